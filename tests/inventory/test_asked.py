"""A plugin's answer against the host: each problem with what to do about it."""

from __future__ import annotations

import pytest

from dpctl.inventory.asked import Answers
from dpctl.inventory.rows import AskedDevice, AskedMount, PluginAnswer
from dpctl.model import AllocResponse, DeviceSpec, HostPath, Mount

R, OTHER = "vendor.example/gpu", "vendor.example/nic"
GOOD = HostPath("character device", 0o660, "195:0", True)


def device(found: HostPath | None, permissions: str = "rw", path: str = "/dev/x") -> AskedDevice:
    said = AllocResponse(device_specs=(DeviceSpec("/dev/in", path, permissions),))
    answer = Answers({R: said}, None if found is None else {path: found}).of(R)
    assert answer is not None
    return answer.device_nodes[0]


def mount(found: HostPath | None, path: str = "/opt/x") -> AskedMount:
    said = AllocResponse(mounts=(Mount("/in", path, True),))
    answer = Answers({R: said}, None if found is None else {path: found}).of(R)
    assert answer is not None
    return answer.mounts[0]


@pytest.mark.parametrize(
    ("found", "permissions", "words", "advice"),
    [
        (HostPath(None), "rw", "MISSING", "load the driver"),
        (HostPath("file", 0o644), "rw", "is a file, not a device", "ls -l /dev/x"),
        (HostPath(None, reason="Permission denied"), "rw", "cannot be looked at", "namei"),
        (GOOD, "", "permissions ''", "maker"),
        (GOOD, "rwx", "permissions 'rwx'", "maker"),
        (GOOD._replace(mode=0o440), "rw", "0440 gives nobody w", "udev"),
        (GOOD._replace(mode=0), "rwm", "0000 gives nobody r and w", "udev"),
        (GOOD._replace(linked=False), "rw", "/dev/char/195:0 does not", "ln -s /dev/x /dev/char"),
        (
            HostPath("block device", 0o660, "7:1", False),
            "r",
            "/dev/block/7:1 does not",
            "ln -s /dev/x /dev/block/7:1",
        ),
    ],
)
def test_device_problems(found: HostPath, permissions: str, words: str, advice: str) -> None:
    asked = device(found, permissions)
    assert words in (asked.problem or "")
    assert advice in (asked.advice or "")


@pytest.mark.parametrize(
    ("found", "permissions"),
    [
        (GOOD, "rwm"),
        (GOOD._replace(mode=0o440), "r"),
        (GOOD._replace(linked=None), "rw"),
        (HostPath("directory", 0o755), "rw"),
        (None, "rw"),
    ],
)
def test_devices_without_a_problem(found: HostPath | None, permissions: str) -> None:
    asked = device(found, permissions)
    assert (asked.problem, asked.advice) == (None, None)
    assert asked.exists is (None if found is None else True)


def test_a_path_for_a_shell_is_quoted() -> None:
    asked = device(GOOD._replace(linked=False), path="/dev/x; rm -rf /")
    assert "`ln -s '/dev/x; rm -rf /' " in (asked.advice or "")


@pytest.mark.parametrize("path", ["", "dev/x"])
def test_no_absolute_path(path: str) -> None:
    asked = device(HostPath("file"), path=path)
    assert "no absolute path" in (asked.problem or "")


def test_mounts() -> None:
    assert "makes an empty directory" in (mount(HostPath(None)).problem or "")
    assert mount(HostPath(None)).exists is False
    for kind in ("directory", "file", "socket"):
        assert mount(HostPath(kind)).problem is None
    assert mount(None).exists is None
    refused = mount(HostPath(None, reason="Permission denied"))
    assert (refused.exists, "Permission denied" in (refused.problem or "")) == (None, True)


def test_a_path_nobody_looked_at_is_not_missing() -> None:
    """The bound on paths, or a bundle of another moment."""
    said = AllocResponse(mounts=(Mount("/in", "/opt/x", True),))
    answer = Answers({R: said}, {"/else": GOOD}).of(R)
    assert answer is not None
    assert (answer.mounts[0].exists, answer.mounts[0].problem) == (None, None)


def clashes(mine: AllocResponse, theirs: AllocResponse) -> list[tuple[str, str, tuple[str, ...]]]:
    both = Answers({R: mine, OTHER: theirs}, None)
    answers: list[PluginAnswer] = [a for a in (both.of(R), both.of(OTHER)) if a is not None]
    found = [[(c.what, c.key) for c in answer.clashes] for answer in answers]
    assert found[0] == found[1], "both are told"
    return [(c.what, c.key, c.resources) for c in answers[0].clashes]


@pytest.mark.parametrize(
    ("mine", "theirs", "what", "key"),
    [
        (
            AllocResponse(annotations={"a": "1", "b": "1"}),
            AllocResponse(annotations={"a": "2", "b": "1"}),
            "annotation",
            "a",
        ),
        (
            AllocResponse(envs={"A": "1"}),
            AllocResponse(envs={"A": "2"}),
            "environment variable",
            "A",
        ),
        (
            AllocResponse(mounts=(Mount("/in", "/a", True),)),
            AllocResponse(mounts=(Mount("/in", "/a", False),)),
            "mount",
            "/in",
        ),
        (
            AllocResponse(device_specs=(DeviceSpec("/dev/in", "/dev/a", "r"),)),
            AllocResponse(device_specs=(DeviceSpec("/dev/in", "/dev/b", "r"),)),
            "device node",
            "/dev/in",
        ),
    ],
)
def test_clashes(mine: AllocResponse, theirs: AllocResponse, what: str, key: str) -> None:
    assert clashes(mine, theirs) == [(what, key, (OTHER,))]
    assert clashes(mine, mine) == []


def test_what_the_kubelet_writes_itself() -> None:
    said = AllocResponse(annotations={"io.kubernetes.container.hash": "1", "io.kubernetes.x": "1"})
    answer = Answers({R: said}, None).of(R)
    assert answer is not None
    assert [(c.key, c.resources) for c in answer.clashes] == [("io.kubernetes.container.hash", ())]


def test_many_plugins_that_disagree() -> None:
    """A checkpoint may name 10^5 resources of one container: none is told of all others."""
    answers = {f"r/{i}": AllocResponse(envs={"A": str(i)}) for i in range(200)}
    found = Answers(answers, None).of("r/0")
    assert found is not None
    assert [len(c.resources) for c in found.clashes] == [8]
