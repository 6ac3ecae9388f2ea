"""A pod that is not there yet, from a manifest: what it would request. Pure but for one reader.

Takes a Pod, or anything with a pod template (Deployment, Job, StatefulSet, DaemonSet, CronJob…).
"""

from __future__ import annotations

import sys

from dpctl.errors import BadDataError, UsageError
from dpctl.model import Pod
from dpctl.sources.files import read_bounded
from dpctl.sources.json_fields import Field
from dpctl.sources.node_json import pods_from_json
from dpctl.sources.yaml_document import parse_documents

_LARGEST = 4 << 20
STDIN = "-"


def read_manifest(path: str) -> tuple[Pod, ...]:
    """`-` is standard input. Raises as `read_bounded` and `parse_manifest` do."""
    if path != STDIN:
        return parse_manifest(read_bounded(path, _LARGEST), path)
    if sys.stdin.isatty():
        raise UsageError("-f - reads a pod from standard input, and nothing is piped in")
    data = sys.stdin.buffer.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise BadDataError("standard input is larger than 4 MiB", "a pod's manifest is not")
    return parse_manifest(data, "standard input")


def parse_manifest(data: bytes, where: str = "the manifest") -> tuple[Pod, ...]:
    """Every pod in it; limits stand in for requests, as the API server has it. What has no pod (a
    Service beside a Deployment) is passed over. Raises BadDataError, also when there is none."""
    objects: list[Field] = []
    for document in parse_documents(data, where, aliases=True):
        root = Field(document, "")
        is_list = isinstance(document, dict) and document.get("kind") in ("List", "PodList")
        objects += root.at("items").items() if is_list else [root]
    try:
        specs = [(each, _pod_spec(each)) for each in objects if isinstance(each.value, dict)]
        found = tuple(_pod(each, spec) for each, spec in specs if spec is not None)
    except BadDataError as e:
        raise BadDataError(f"{where}: {e.message}", e.hint) from e
    if not found:
        raise BadDataError(f"{where}: no pod in it", "give a Pod, or what has a pod template")
    return found


def _pod(document: Field, spec: object) -> Pod:
    meta = document.at("metadata")
    names = {
        "namespace": meta.at("namespace").text() or "default",
        "name": meta.at("name").text() or meta.at("generateName").text() or "pod",
        "uid": "new",
    }
    found = pods_from_json({"metadata": names, "spec": spec})[0]
    if not found.containers:
        raise BadDataError(f"pod {found.name} has no containers")
    limits = Field(spec, "spec").at("resources", "limits").quantities()
    return found._replace(pod_requests={**limits, **found.pod_requests})


def _pod_spec(document: Field) -> object | None:
    kind = document.at("kind").text()
    places = (
        ("spec", "jobTemplate", "spec", "template", "spec"),
        ("spec", "template", "spec"),
        ("template", "spec"),
        ("spec",),
    )
    for place in places if kind != "Pod" else (("spec",),):
        spec = document.at(*place)
        if isinstance(spec.value, dict) and "containers" in spec.value:
            return spec.value
    return None
