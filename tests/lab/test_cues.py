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
    found = served(
        'devices = ["a"]\nrepeat = true\n[[cues]]\nafter = 1.5\ndo = ["health a b", "down"]'
    )
    assert found.cues == (Cue(1.5, ("health a b", "down")),)
    assert found.repeat
    assert not served("repeat = true").repeat  # nothing to repeat: it would never rest


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "'x' is not one of"),
        ("x = 1\ny = 2", "'x' and 'y' are not one of"),
        ('[[cues]]\nafter = 1\ndo = ["health b c"]', "cue 1: no device 'b' is listed by then"),
        ('[[cues]]\nafter = 1\ndo = ["remove b"]', "cue 1: no device 'b' is listed by then"),
        ("devices = 1", "devices is not a list"),
        ('devices = "abc"', "devices is not a list"),
        ('devices = ["a@99999999999"]', "no NUMA node"),
        ('device_path = "/dev/{x}"', "braces other than"),
        ("annotations = [1]", "no attribute"),
        ('devices = ["a@x"]', "device 'a@x': behind @ stand NUMA nodes"),
        ('devices = ["a@--"]', "device 'a@--': behind @ stand NUMA nodes"),
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


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('device = ["a"]', 'did you mean "devices" or "device_path"? `dpctl plugin serve gpus'),
        (
            '[[cues]]\nafter = 1\ndo = ["heath a b"]',
            'did you mean "health"? `dpctl plugin serve flap',
        ),
        (
            'devices = ["nic-0"]\n[[cues]]\nafter = 1\ndo = ["health nic-7 b"]',
            'did you mean "nic-0"? `dpctl plugin serve flapping --print`',
        ),
        ("[[cues]]\nafter = 1", "`dpctl plugin serve flapping --print` shows a good one"),
    ],
)
def test_what_was_meant_is_in_the_hint(text: str, hint: str) -> None:
    with pytest.raises(BadDataError) as caught:
        served(text)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(hint)


def test_every_cue_that_is_wrong_is_named() -> None:
    cues_ = "".join(f'[[cues]]\nafter = 1\ndo = ["{line}"]\n' for line in ("up", *["shout"] * 7))
    with pytest.raises(BadDataError) as caught:
        served(cues_)
    said = caught.value.message
    assert [f"cue {n}: 'shout'" in said for n in range(1, 9)] == [False] + [True] * 5 + [False] * 2
    assert said.endswith("; and 2 more")


def test_devices_of_cues_are_those_that_are_listed_by_then() -> None:
    lines = ["remove a", "add b@0", "health b Ill", "devices c d!Ill", "health d Healthy"]
    text = 'devices = ["a"]\n' + "".join(f'[[cues]]\nafter = 1\ndo = ["{x}"]\n' for x in lines)
    assert len(served(text).cues) == 5
    with pytest.raises(BadDataError, match="cue 6: no device 'b' is listed by then"):
        served(text + '[[cues]]\nafter = 1\ndo = ["health b Ill"]')


def test_ids_that_are_listed_twice() -> None:
    assert cues.repeated(served('devices = ["b", "a", "b!Ill", "c", "b", "a"]')) == ["b", "a"]


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
