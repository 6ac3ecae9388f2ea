"""`dpctl snapshot` in the lab: a bundle replays what the node said, and `--redact` hides names."""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpctl.bundle.meta import parse_meta
from dpctl.documents import json_text
from dpctl.lab.fixture import Lab
from dpctl.statefiles.device_checkpoint import parse_checkpoint
from tests.run import Result, dpctl

READING = (
    ("resources",),
    ("resources", "--stale"),
    ("devices",),
    ("devices", "--group-by", "numa"),
    ("pods", "-A"),
    ("pods", "--failed"),
    ("plugins",),
    ("plugins", "--all"),
    ("topology",),
    ("topology", "--fit", "vendor.example/gpu=1,cpu=1,memory=1Gi"),
    ("node",),
    ("who", "gpu-0"),
    ("who", "/dev/vendor0"),
    ("state",),
    ("state", "verify"),
    ("state", "diff"),
)
"""Every reading command; `pods NS/POD` has no JSON of its own and is compared as text."""


def snapshot(lab: Lab, path: Path, *more: str) -> Result:
    result = dpctl("snapshot", str(path), *more, env=lab.env)
    assert result.code == 0, result
    return result


# The live run takes the moment of the snapshot for now: ages are compared to the last digit.
_AT = """
import sys, time, types
moment = float(sys.argv.pop(1))
import dpctl.collect.live, dpctl.commands._node_list
clock = types.SimpleNamespace(time=lambda: moment, monotonic=time.monotonic)
dpctl.collect.live.time = dpctl.commands._node_list.time = clock  # grpc counts by the real one
from dpctl.__main__ import main
sys.exit(main())
"""


def ask(lab: Lab, moment: float, *line: str) -> Result:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("DPCTL_")}
    done = subprocess.run(
        [sys.executable, "-c", _AT, repr(moment), *line],
        env={**clean, "HOME": "/nonexistent", "COLUMNS": "80", **lab.env},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def moment_of(bundle: Path) -> float:
    meta = bundle / "meta.json"
    data = meta.read_bytes() if bundle.is_dir() else tar_files(bundle)["meta.json"]
    found = parse_meta(data).collected_at
    assert found is not None
    return found


def placed(text: str) -> str:
    """Without the places in which sources were read; `topology` names a file besides."""
    document = json.loads(text)
    places = {source["where"] for source in document["sources"]}
    assert json_text(document, indent=4) + "\n" == text

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(item) for key, item in value.items()}
        if isinstance(value, list):
            return [without(item) for item in value]
        return "PLACE" if isinstance(value, str) and value in places else value

    return json_text(without(document), indent=4)


def assert_replays(lab: Lab, bundle: Path, *line: str) -> None:
    """Sockets of other programs of this machine may come and go between the two looks: then there
    is another snapshot, and another look."""
    for attempt in range(4):
        live = ask(lab, moment_of(bundle), *line, "-o", "json")
        replayed = dpctl(*line, "-o", "json", "--from", str(bundle))
        same = (replayed.code, replayed.err) == (live.code, live.err)
        if same and placed(replayed.out) == placed(live.out):
            return
        again = bundle.with_name(f"again-{attempt}-{bundle.name}")
        if not again.exists():
            snapshot(lab, again)
        bundle = again
    assert (replayed.code, replayed.err) == (live.code, live.err)
    assert placed(replayed.out) == placed(live.out)


@pytest.fixture(scope="module")
def bundle(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("snapshot") / "node.tgz"
    snapshot(lab, path)
    return path


@pytest.mark.parametrize("line", READING, ids=" ".join)
def test_a_bundle_says_what_the_node_said(lab: Lab, bundle: Path, line: tuple[str, ...]) -> None:
    assert_replays(lab, bundle, *line)


def test_tables_and_one_pod_in_full(lab: Lab, bundle: Path) -> None:
    for line in (("pods", "ml/trainer"), ("plugins",), ("resources", "-o", "wide")):
        live = ask(lab, moment_of(bundle), *line)
        assert live.code == 0
        assert dpctl(*line, "--from", str(bundle)) == live


def tar_files(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {
            member.name.removeprefix("dpctl-snapshot/"): archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive
            if member.isfile()
        }


def test_a_directory_is_the_same_bundle(lab: Lab, bundle: Path, tmp_path: Path) -> None:
    path = tmp_path / "node"
    result = snapshot(lab, path)
    sources = r"24 of 25 sources \(pods-api: not there\)"
    assert re.fullmatch(
        rf"note: wrote {re.escape(str(path))}: {sources}, \d+ files, \d+ bytes\n", result.err
    )
    assert result.out == ""
    names = {str(p.relative_to(path)) for p in path.rglob("*") if p.is_file()}
    assert names == set(tar_files(bundle))
    assert_replays(lab, path, "resources")
    assert_replays(lab, path, "who", "/dev/fuse")


def test_only_its_owner_reads_it(lab: Lab, bundle: Path, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        snapshot(lab, tmp_path / "node")
        snapshot(lab, tmp_path / "node.tar")
    finally:
        os.umask(old)
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "node.tar").stat().st_mode) == 0o600
    for path in (tmp_path / "node", *(tmp_path / "node").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_name_that_is_taken_is_left_alone(lab: Lab, tmp_path: Path) -> None:
    taken = tmp_path / "node.tgz"
    taken.write_text("mine")
    result = dpctl("snapshot", str(taken), env=lab.env)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {taken} is there already\n")
    assert taken.read_text() == "mine"
    nowhere = dpctl("snapshot", str(tmp_path / "no" / "node.tgz"), env=lab.env)
    assert nowhere.code == 6
    assert "no directory" in nowhere.err


def test_a_bundle_is_no_node(bundle: Path, tmp_path: Path) -> None:
    result = dpctl("snapshot", str(tmp_path / "x"), "--from", str(bundle))
    assert result.code == 2


# --- sources that fail ---


# All here answer or refuse at once: on a busy machine a deadline would be one failure more.
PATIENT = ("--request-timeout", "30s")


@pytest.fixture
def broken(new_lab: Callable[..., Lab]) -> Lab:
    """No API server that answers, a checkpoint that is damaged, no PodResources."""
    lab = new_lab()
    checkpoint = lab.device_plugins / "kubelet_internal_checkpoint"
    lab.kubelet.stop()
    checkpoint.write_bytes(checkpoint.read_bytes()[:-40])
    lab.fail_requests(count=1000, code=501)  # one that is not asked again
    return lab


def test_failures_come_back_as_they_were(broken: Lab, tmp_path: Path) -> None:
    path = tmp_path / "node.tgz"
    result = dpctl("snapshot", str(path), *PATIENT, env=broken.env)
    assert result.code == 0
    assert "podresources, allocatable not read: " in result.err or "not read: " in result.err
    strict = dpctl("snapshot", str(tmp_path / "s"), "--strict", *PATIENT, env=broken.env)
    assert strict.code != 0
    failed = {
        row["name"]: (row["state"], row["code"])
        for row in json.loads(tar_files(path)["meta.json"])["sources"]
        if row["state"] == "failed"
    }
    assert {"podresources", "node", "pods", "checkpoint"} <= set(failed)
    assert "device-plugins/kubelet_internal_checkpoint" in tar_files(path)  # as it is, to look at
    for line in (("resources",), ("plugins",), ("state", "verify"), ("resources", "--strict")):
        live = ask(broken, moment_of(path), *line, "-o", "json", *PATIENT)
        replayed = dpctl(*line, "-o", "json", "--from", str(path))
        assert (replayed.code, replayed.err) == (live.code, live.err), line
        if live.out:
            assert placed(replayed.out) == placed(live.out), line


# --- redaction ---

SECRETS = {
    "pods": ("payments-api-7d9f", "db-shard-04"),
    "namespace": "customer-acme",
    "value": "s3cr3t-pa55word",
    "long": "postgres://admin:hunter2@db.customer-acme.svc:5432/ledger",
    "address": "10.42.7.99",
}


@pytest.fixture
def secretive(new_lab: Callable[..., Lab]) -> Lab:
    lab = new_lab(node_name="acme-rack7-node3")
    for name in SECRETS["pods"]:
        lab.create_pod(SECRETS["namespace"], name, {"main": {"vendor.example/gpu": 1}})  # type: ignore[arg-type]
    for name in SECRETS["pods"]:
        base = f"/api/v1/namespaces/{SECRETS['namespace']}/pods/{name}"
        code, pod = lab.api("GET", base)
        assert code == 200
        pod["spec"]["containers"][0]["env"] = [
            {"name": "PASSWORD", "value": SECRETS["value"]},
            {"name": "DATABASE", "value": SECRETS["long"]},
        ]
        pod["metadata"].setdefault("annotations", {})["note"] = f"on {SECRETS['address']}"
        code, answer = lab.api("PUT", base, pod)
        assert code == 200, answer
    return lab


def every_text(path: Path) -> Iterator[tuple[str, bytes]]:
    """All files of a bundle, and what base64 in them stands for."""
    for name, data in tar_files(path).items():
        yield name, data
        for found in re.finditer(rb'"AllocResp":"([A-Za-z0-9+/=]*)"', data):
            yield f"{name} AllocResp", base64.b64decode(found[1])


def test_no_name_is_left(secretive: Lab, tmp_path: Path) -> None:
    plain, hidden = tmp_path / "plain.tgz", tmp_path / "hidden.tgz"
    snapshot(secretive, plain)
    snapshot(secretive, hidden, "--redact")
    uname = os.uname().nodename
    words = [*SECRETS["pods"], *(v for v in SECRETS.values() if isinstance(v, str))]
    words += ["acme-rack7-node3", "trainer", "notebook", "nightly", "greedy"]
    raw = b"\n".join(data for _, data in every_text(plain))
    for word in words:
        assert word.encode() in raw, word  # else its absence below would prove nothing
    for name, data in every_text(hidden):
        for word in [*words, uname]:
            found = re.search(rb"(?<![A-Za-z0-9])" + re.escape(word.encode()), data)
            assert found is None, (name, word)
    for word in words:
        assert word not in "".join(tar_files(hidden)), word
    meta = json.loads(tar_files(hidden)["meta.json"])
    assert (meta["redacted"], meta["nodeName"]) == (True, "node-1")


def shape(text: str) -> Any:
    """A document with every name and message taken for any other."""
    hidden = {"namespace", "pod", "node", "name", "where", "reason", "hint", "age", "command"}
    hidden |= {"message", "owner", "claim", "checksums", "origin", "holder", "holders"}
    hidden |= {"policyOrigin", "allocResp", "stored", "computed"}

    def one(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return sorted(value) if key == "envs" else {k: one(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return sorted((one(v, key) for v in value), key=json.dumps)
        return "x" if value is not None and key in hidden else value

    document = json.loads(text)
    return one({"items": document["items"], "sources": document["sources"]})


def test_a_redacted_bundle_has_the_same_shape(secretive: Lab, tmp_path: Path) -> None:
    plain, hidden = tmp_path / "plain", tmp_path / "hidden"
    snapshot(secretive, plain)
    snapshot(secretive, hidden, "--redact")
    for line in READING:
        if line[0] == "pods":
            continue  # their answers hold values of the environment
        a = dpctl(*line, "-o", "json", "--from", str(plain))
        b = dpctl(*line, "-o", "json", "--from", str(hidden))
        assert a.code == b.code, (line, a.err, b.err)
        assert shape(a.out) == shape(b.out), line
    name = "device-plugins/kubelet_internal_checkpoint"
    old, new = (parse_checkpoint((p / name).read_bytes()) for p in (plain, hidden))
    assert new.verified
    assert len(new.allocations) == len(old.allocations)
    assert new.registered == old.registered
    assert [a.devices for a in new.allocations] == [a.devices for a in old.allocations]
    answers = [a.answer for a in new.allocations if a.answer and a.answer.envs]
    assert answers
    assert all(re.fullmatch(r"value-\d+", v) for a in answers for v in a.envs.values())
