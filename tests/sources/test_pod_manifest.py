"""Manifests of pods that are not there yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpctl.errors import BadDataError
from dpctl.sources.pod_manifest import parse_manifest, read_manifest

SPEC = {"containers": [{"name": "main", "resources": {"limits": {"v.example/gpu": 2, "cpu": 0.5}}}]}


BOMB = b"a0: &a0 [x, x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 9)
)
MERGES = b"a0: &a0 {x: 1}\n" + b"".join(
    b"a%d: &a%d {<<: [%s]}\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 9)
)


def manifest(kind: str, spec: object) -> bytes:
    return json.dumps({"kind": kind, "metadata": {"name": "x"}, "spec": spec}).encode()


@pytest.mark.parametrize(
    "data",
    [
        manifest("Pod", SPEC),
        manifest("Deployment", {"template": {"spec": SPEC}}),
        manifest("CronJob", {"jobTemplate": {"spec": {"template": {"spec": SPEC}}}}),
        b'{"kind": "List", "items": ['
        + manifest("Service", {})
        + b","
        + manifest("Pod", SPEC)
        + b"]}",
        b"kind: Service\nspec: {}\n---\n" + manifest("Pod", SPEC),
    ],
)
def test_what_has_a_pod(data: bytes) -> None:
    (pod,) = parse_manifest(data)
    assert (pod.namespace, pod.name) == ("default", "x")
    (container,) = pod.containers
    assert container.limits == {"v.example/gpu": "2", "cpu": "0.5"}
    assert container.requests == container.limits  # as the API server has it


def test_several_pods_of_one_yaml() -> None:
    text = """
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: ml}
spec:
  initContainers:
  - {name: proxy, restartPolicy: Always}
  - {name: warm}
  containers:
  - {name: main, resources: {limits: {cpu: 2, memory: 1Gi}}}
  resources: {limits: {cpu: 3}}
---
kind: Pod
metadata: {generateName: two-}
spec: {containers: [{name: main}]}
"""
    one, two = parse_manifest(text.encode())
    assert [c.kind for c in one.containers] == ["sidecar", "init", "app"]
    assert one.pod_requests == {"cpu": "3"}
    assert (one.namespace, two.name) == ("ml", "two-")


def test_aliases_as_people_write_them() -> None:
    text = """
x-limits: &limits {cpu: 2, memory: 1Gi}
kind: Pod
metadata: {name: &name one}
spec:
  containers:
  - name: *name
    resources: {limits: *limits, requests: *limits}
  - name: more
    resources: {limits: {<<: *limits, cpu: 3}}
"""
    (pod,) = parse_manifest(text.encode())
    first, more = pod.containers
    assert first.name == "one"
    assert first.limits == first.requests == {"cpu": "2", "memory": "1Gi"}
    assert more.limits == {"cpu": "3", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no pod in it"),
        (b"[]", "no pod in it"),
        (b"kind: ConfigMap\n", "no pod in it"),
        (manifest("Pod", {"containers": []}), "has no containers"),
        (manifest("Pod", {"containers": [{}]}), "name"),
        (b"kind: Pod\nspec: [\n", "line "),
        (b"a: &x [1, *x]\n", "inside of what it stands for"),
        (b"a: *x\n", "line 1: found undefined alias"),
        (BOMB, "stand for more than any pod has"),
        (MERGES, "stand for more than any pod has"),
        (b"\xff", "UTF-8"),
        (
            manifest("Pod", {"containers": [{"name": "m", "resources": {"limits": {"cpu": "x"}}}]}),
            "not a quantity",
        ),
    ],
)
def test_what_has_none(data: bytes, words: str) -> None:
    with pytest.raises(BadDataError, match=words):
        parse_manifest(data)


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_bytes(manifest("Pod", SPEC))
    assert read_manifest(str(path))[0].name == "x"
