"""Scenarios that `dpctl plugin serve` reads: what they mean, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpctl.errors import BadDataError, DpctlError, UnreachableError, UsageError
from dpctl.lab import cues
from dpctl.lab.cues import Cue, parse_cue, parse_scenario
from dpctl.lab.spec import SampleDevice


def served(text: str):
    return parse_scenario(f'resource = "a.example/x"\n{text}', "s.toml")


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("a", SampleDevice("a")),
        ("a@", SampleDevice("a", ())),
        ("a@0,12", SampleDevice("a", (0, 12))),
        ("a@-1!ill", SampleDevice("a", (-1,), "ill")),
        ("a!Unhealthy", SampleDevice("a", None, "Unhealthy")),
    ],
)
def test_device(text: str, device: SampleDevice) -> None:
    assert cues.device(text) == device


@pytest.mark.parametrize("name", cues.shipped())
def test_what_is_shipped_is_sound(name: str) -> None:
    found = parse_scenario(cues.read_text(cues.find_scenario(name)), name)
    assert found.about
    assert found.spec.devices
    assert found.spec.serve_info
    assert found.spec.resource.startswith("sample.example/")


def test_counted_devices_and_replicas() -> None:
    found = served('count = 4\nid = "g{}"\nnuma = 2\nreplicas = 2')
    assert [(d.device_id, d.numa_nodes) for d in found.spec.devices] == [
        (f"g{n}::{r}", (n // 2,)) for n in range(4) for r in range(2)
    ]
    assert (found.spec.endpoint, found.spec.watch_kubelet) == ("x.sock", True)


def test_cues() -> None:
    found = served('repeat = true\n[[cues]]\nafter = 1.5\ndo = ["health a b", "down"]')
    assert found.cues == (Cue(1.5, ("health a b", "down")),)
    assert found.repeat
    assert not served("repeat = true").repeat  # nothing to repeat: it would never rest


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "'x' is not one of"),
        ("devices = 1", "devices is not a list"),
        ('devices = "abc"', "devices is not a list"),
        ('devices = ["a@99999999999"]', "no NUMA node"),
        ('device_path = "/dev/{x}"', "braces other than"),
        ("annotations = [1]", "no attribute"),
        ('devices = ["a@x"]', "invalid literal|no device"),
        ('endpoint = "../x"', "no file name"),
        ('endpoint = "kubelet.sock"', "kubelet's own"),
        ("preferred = 1", "preferred is not true or false"),
        ("count = 200001", "at most 200000"),
        ("count = 200000\nreplicas = 2", "more than 200000 devices"),
        ("[[cues]]\nafter = 1", "do is missing"),
        ('[[cues]]\nafter = -1\ndo = ["down"]', "not a number of seconds"),
        ('[[cues]]\nafter = true\ndo = ["down"]', "not a number of seconds"),
        ('[[cues]]\nafter = 1\ndo = ["shout"]', "'shout' is not one of"),
        ('repeat = true\n[[cues]]\nafter = 0\ndo = ["state"]', "a round of the cues takes less"),
        ("repeat = 1", "repeat is not true or false"),
        ('[[cues]]\nafter = 1\ndo = "down"', "do is not a list"),
        (f'count = 200000\nid = "{"x" * 1000}"', "more than 64 MiB"),
        (f'devices = ["{"x" * 1000}"]\nreplicas = 100000', "more than 64 MiB"),
        ("a = = 1", "Invalid value"),
        ("mounts = [1]", "unpack"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(BadDataError, match=words) as caught:
        served(text)
    assert caught.value.message.startswith("s.toml is no scenario: ")
    assert caught.value.hint


def test_without_a_resource() -> None:
    with pytest.raises(BadDataError, match="resource is missing"):
        parse_scenario("", "s.toml")


@pytest.mark.parametrize(
    "line",
    ["", "health a", "hang", "hang Everything", "exit x", "add a@x", 'health "a b', "toString"],
)
def test_no_cue(line: str) -> None:
    with pytest.raises(ValueError):
        parse_cue(line)


def test_words_of_a_cue_are_those_of_a_shell() -> None:
    assert parse_cue("remove\t'a b'  \"c\" d\\ e")[1] == ["a b", "c", "d e"]
    assert parse_cue(" remove  a\tb#c\u00a0d ")[1] == ["a", "b#c\u00a0d"]
    assert parse_cue("add " + "x" * (1 << 23))[1] == ["x" * (1 << 23)]
    with pytest.raises(ValueError, match="a line with quotes"):
        parse_cue("add '" + "x" * (1 << 23) + "'")


def test_a_cue() -> None:
    assert parse_cue("health 'a b' Unhealthy") == ("health", ["a b", "Unhealthy"])
    assert parse_cue("exit 3") == ("exit", ["3"])


def test_files(tmp_path: Path) -> None:
    assert cues.find_scenario("./x.toml") == Path("x.toml")
    with pytest.raises(UsageError, match="no scenario"):
        cues.find_scenario("../gpus"[3:] + "x")
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"\xff")
    large = tmp_path / "large.toml"
    with large.open("wb") as file:
        file.truncate(17 << 20)
    for path, kind in (
        (tmp_path / "missing", UnreachableError),
        (tmp_path, UnreachableError),
        (bad, BadDataError),
        (large, DpctlError),
    ):
        with pytest.raises(kind):
            cues.read_text(path)
