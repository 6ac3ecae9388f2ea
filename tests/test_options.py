"""Durations and sizes as people type them; the options that every command shares."""

from __future__ import annotations

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from dpctl import cli
from dpctl.env import Settings
from dpctl.options import (
    NAMESPACES,
    ORDER,
    READS,
    Common,
    byte_size,
    declare,
    duration,
    shared_parameters,
)
from dpctl.output import OutputOptions


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5.0),
        ("2.5", 2.5),
        (".5", 0.5),
        ("5s", 5.0),
        ("1m30s", 90.0),
        ("1h", 3600.0),
        ("500ms", 0.5),
        ("1.5h", 5400.0),
        ("250us", 250e-6),
        ("250µs", 250e-6),
        ("1h1m1s1ms", 3661.001),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            "0",
            "0s",
            "-1",
            "-1s",
            "5 s",
            "s",
            "5d",
            "1e3",
            "nan",
            "inf",
            "٣",
            "5s ",
            "1y",
            "8785h",
        ],
        "9" * 39,
        "9" * 400,
    ],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        duration(text)


@given(st.integers(0, 20), st.integers(0, 59), st.integers(1, 59))
def test_go_durations_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert duration(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


@given(st.text(max_size=50))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        seconds = duration(text)
    except typer.BadParameter:
        return
    assert seconds > 0


@pytest.mark.parametrize(
    ("text", "size"), [("64Mi", 64 << 20), ("1", 1), ("16M", 16_000_000), ("2147483647", 2**31 - 1)]
)
def test_sizes(text: str, size: int) -> None:
    assert byte_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "2Gi", "500m", "1.5", "1e99", "9" * 100])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        byte_size(text)


def test_the_flags_arrive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[Common, list[str] | None]] = []

    @declare(*READS, NAMESPACES)
    def command(common: Common, names: list[str] | None = None) -> int | None:
        seen.append((common, names))
        return 1

    from dpctl.parser import build_leaf

    monkeypatch.setattr(cli, "load", lambda name: build_leaf(name, command))
    line = (
        "--from b --host-root h --kubelet-root k --device-plugin-dir d --pod-resources-socket p"
        " --kubeconfig c --context x --as u --as-group g --as-group h --node n"
        " --request-timeout 1m --max-message-size 1Mi --no-allocatable --strict -v"
        " -o json -q --no-headers --no-trunc --sort-by NAME --color never"
        " -w --interval 5s -n space -A --names a --names b"
    )
    assert cli.run(["pods", *line.split()]) == 1
    assert capsys.readouterr().err == ""
    [(common, names)] = seen
    assert names == ["a", "b"]
    assert common.settings == Settings(
        kubelet_root="k",
        device_plugin_dir="d",
        pod_resources_socket="p",
        host_root="h",
        bundle="b",
        kubeconfig="c",
        context="x",
        as_user="u",
        as_groups=("g", "h"),
        node_name="n",
        request_timeout=60.0,
        max_message_size=1 << 20,
        no_allocatable=True,
    )
    assert common.output == OutputOptions("json", True, True, True, "NAME", "never")
    assert (common.watch, common.interval, common.strict, common.verbose) == (True, 5.0, True, True)
    assert (common.namespace, common.all_namespaces) == ("space", True)


def test_no_flag_means_nothing_given() -> None:
    assert Common().settings == Settings()
    assert Common().output == OutputOptions()


def test_every_shared_option_stands_in_a_group_of_the_help() -> None:
    for name, (annotation, _) in shared_parameters().items():
        [option] = annotation.__metadata__
        assert option.rich_help_panel in ORDER, name
        assert option.help, name
        assert annotation.__origin__ is bool or option.metavar, name
