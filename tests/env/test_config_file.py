from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpctl.env.config_file import KEYS, read_config, read_settings, unset_config, write_config
from dpctl.errors import BadDataError, DeniedError, UnreachableError, UsageError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "dpctl" / "config.toml"


def put(file: Path, text: str) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


def test_keys_with_dashes_or_underscores(file: Path) -> None:
    path = put(file, 'kubelet_root = "/data/kubelet"\nrequest-timeout = "500ms"\nas-group = "a"\n')
    assert read_config(path) == {
        "kubelet-root": "/data/kubelet",
        "request-timeout": 0.5,
        "as-group": ["a"],
    }


def test_no_file_no_keys(tmp_path: Path) -> None:
    assert read_config(str(tmp_path / "none")) == {}
    assert read_config(str(tmp_path / "none" / "below")) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('node = "a"\nkubelet-root = \n', "line 2"),
        ('kubelet-rot = "/x"\n', "unknown key 'kubelet-rot'"),
        ('[table]\nnode = "x"\n', "unknown key 'table'"),
        ("kubelet-root = 3\n", "kubelet-root: expected text"),
        ('kubelet-root = ""\n', "kubelet-root: expected text"),
        ('kubelet-root = "a\\u0000b"\n', "kubelet-root: expected text"),
        ("request-timeout = 0\n", "request-timeout: expected seconds"),
        ("request-timeout = true\n", "request-timeout: expected seconds"),
        ("request-timeout = nan\n", "request-timeout: expected seconds"),
        ('request-timeout = "5 parsecs"\n', "request-timeout: expected seconds"),
        ("max-message-size = 2147483648\n", "max-message-size: expected bytes"),
        ('max-message-size = "2"\nmax_message_size = 3\n', "max-message-size is given twice"),
        ('no-allocatable = "perhaps"\n', "no-allocatable: expected true or false"),
        ("as-group = [1]\n", "as-group: expected texts"),
    ],
)
def test_bad_files(file: Path, text: str, words: str) -> None:
    path = put(file, text)
    with pytest.raises(BadDataError) as caught:
        read_config(path)
    assert words in caught.value.message
    assert path in caught.value.message
    assert caught.value.hint


def test_not_utf8_names_the_line(file: Path) -> None:
    put(file, "")
    file.write_bytes(b'node = "a"\nas = "\xff"\n')
    with pytest.raises(BadDataError, match="line 2: not UTF-8"):
        read_config(str(file))


def test_a_huge_or_odd_file(file: Path) -> None:
    put(file, "#" * (1 << 20) + "\n")
    with pytest.raises(BadDataError, match="more than"):
        read_config(str(file))
    with pytest.raises(BadDataError, match="directory"):
        read_config(str(file.parent))


def test_deep_nesting_is_bad_data(file: Path) -> None:
    path = put(file, "as-group = " + "[" * 100_000)
    with pytest.raises(BadDataError):
        read_config(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="drops root for a moment")
def test_not_readable_is_denied(file: Path) -> None:
    path = put(file, "")
    file.chmod(0)
    os.chmod(file.parent, 0o755)
    os.chmod(file.parent.parent, 0o755)
    os.seteuid(65534)
    try:
        if os.access(file.parent, os.X_OK):
            with pytest.raises(DeniedError, match=r"may not read"):
                read_config(path)
        with pytest.raises((DeniedError, BadDataError)):
            read_config(path)
    finally:
        os.seteuid(0)


def test_the_later_file_wins_and_home_is_expanded(tmp_path: Path) -> None:
    one = put(tmp_path / "1" / "a.toml", 'node = "a"\ncontext = "c"\n')
    two = put(tmp_path / "2" / "b.toml", 'node = "b"\nkubeconfig = "~/k"\n')
    assert read_settings((one, two), "/home/me") == {
        "node": ("b", two),
        "context": ("c", one),
        "kubeconfig": ("/home/me/k", two),
    }


def test_write_makes_directories_and_is_readable_by_all(file: Path) -> None:
    old = os.umask(0o077)
    try:
        write_config(str(file), "kubelet_root", "/data/kubelet")
    finally:
        os.umask(old)
    assert file.read_text() == 'kubelet-root = "/data/kubelet"\n'
    assert file.stat().st_mode & 0o777 == 0o644
    assert [p.name for p in file.parent.iterdir()] == ["config.toml"]


def test_comments_and_order_stay(file: Path) -> None:
    path = put(file, '# mine\nnode = "a" # old\n\n# two\nkubelet_root = "/x"')
    write_config(path, "kubelet-root", "/y")
    write_config(path, "no-allocatable", "true")
    assert file.read_text() == (
        '# mine\nnode = "a" # old\n\n# two\nkubelet-root = "/y"\nno-allocatable = true\n'
    )
    assert unset_config(path, "node")
    assert file.read_text() == '# mine\n\n# two\nkubelet-root = "/y"\nno-allocatable = true\n'
    assert not unset_config(path, "node")


def test_a_value_over_several_lines_costs_the_comments_only(file: Path) -> None:
    path = put(file, '# c\nas-group = [\n  "a",\n  "b",\n]\nnode = "n"\n')
    write_config(path, "as-group", ["c"])
    assert read_config(path) == {"as-group": ["c"], "node": "n"}


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.toml"
    target.write_text("")
    target.chmod(0o600)
    file.parent.mkdir()
    file.symlink_to(target)
    write_config(str(file), "node", "n")
    assert file.is_symlink()
    assert target.read_text() == 'node = "n"\n'
    assert target.stat().st_mode & 0o777 == 0o600


def test_refusals(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown key"):
        write_config(str(file), "nonsense", "1")
    with pytest.raises(UsageError, match="request-timeout: expected seconds"):
        write_config(str(file), "request-timeout", "soon")
    with pytest.raises(UsageError, match="UTF-8"):
        write_config(str(file), "kubelet-root", "/\udcff")
    assert not file.exists()
    bad = put(file, "node = \n")
    with pytest.raises(BadDataError):
        write_config(bad, "node", "x")
    assert file.read_text() == "node = \n"
    (tmp_path / "plain").write_text("")
    with pytest.raises(UnreachableError, match="cannot write"):
        write_config(str(tmp_path / "plain" / "config.toml"), "node", "x")


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "path": _TEXT,
    "text": _TEXT,
    "list": st.lists(_TEXT, min_size=1, max_size=3),
    "switch": st.sampled_from(["true", "false"]),
    "seconds": st.sampled_from(["5", "2.5", "500ms", "1m", "1h"]),
    "bytes": st.sampled_from(["1", "64Mi", "67108864", "4M"]),
}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(sorted(KEYS)).flatmap(lambda k: st.tuples(st.just(k), _VALUES[KEYS[k]])),
        max_size=6,
    )
)
def test_what_was_written_is_read(tmp_path_factory: Any, changes: list[tuple[str, Any]]) -> None:
    path = str(tmp_path_factory.mktemp("c") / "c.toml")
    expected: dict[str, Any] = {}
    for key, value in changes:
        write_config(path, key, value)
        expected[key] = value
    found = read_config(path)
    assert set(found) == set(expected)
    for key, value in expected.items():
        if KEYS[key] in ("path", "text", "list"):
            assert found[key] == value
    if expected:
        assert tomllib.loads(Path(path).read_text("utf-8"))
