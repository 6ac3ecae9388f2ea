"""Undo: the record, its file, and what may be put back."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.changes.removal import Removal, plan_removal
from dpctl.changes.undo_file import (
    read_undo,
    rewrite_undo,
    undo_directory,
    undo_records,
    write_undo,
)
from dpctl.changes.undo_record import (
    encode_record,
    last_to_undo,
    parse_record,
    plan_undo,
    record_of,
    took_nothing,
)
from dpctl.env import Settings, find_env
from dpctl.errors import BadDataError, DeniedError, NotAppliedError, UsageError
from dpctl.model import Node
from dpctl.model.changes import Action, ChangePlan, UndoKey, UndoRecord, UndoState, Verdict
from tests import build
from tests.changes.test_removal import live, node, remove, row, served

R = "vendor.example/gpu"
TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
AMOUNT = st.none() | st.sampled_from(["0", "4", "1k", "2Gi", "1e99", "9" * 80]) | TEXT
RECORDS = st.builds(
    UndoRecord,
    st.sampled_from(Action),
    TEXT,
    st.none() | TEXT,
    TEXT,
    st.floats(0, 4e9),
    st.lists(
        st.builds(
            UndoKey,
            TEXT,
            AMOUNT,
            AMOUNT,
            AMOUNT,
            AMOUNT,
            st.none() | st.lists(TEXT, max_size=2).map(tuple),
            st.booleans(),
        ),
        max_size=3,
        unique_by=lambda key: key.resource,
    ).map(tuple),
    st.sampled_from(UndoState),
    st.lists(TEXT, max_size=2).map(tuple),
)


@given(RECORDS)
def test_a_record_is_read_as_it_was_written(record: UndoRecord) -> None:
    assert parse_record(encode_record(record), "it") == record


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text() | st.integers(),
       lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=8)
       .map(lambda x: json.dumps(x).encode()))  # fmt: skip
def test_nonsense_is_bad_data(data: bytes) -> None:
    with pytest.raises(BadDataError, match="it"):
        parse_record(data, "it")


def test_a_file_of_another_kind_is_bad_data() -> None:
    document = json.loads(encode_record(record()))
    for path, value in (("version", 2), ("kind", "Pod"), ("keys", [{}]), ("state", "x")):
        with pytest.raises(BadDataError):
            parse_record(json.dumps({**document, path: value}).encode(), "it")


@pytest.mark.parametrize("created", ["NaN", "Infinity", "1e400", "1" + "0" * 400, "-1e300"])
def test_a_time_that_is_none_is_bad_data(created: str) -> None:
    text = json.dumps({**json.loads(encode_record(record())), "created": "?"})
    with pytest.raises(BadDataError, match="is no undo file"):
        parse_record(text.replace('"?"', created).encode(), "it")


def test_a_key_that_stands_there_twice_is_bad_data() -> None:
    found = record()
    twice = found._replace(keys=(*found.keys, record(("9", "9")).keys[0]))
    with pytest.raises(BadDataError, match="twice"):
        parse_record(encode_record(twice), "it")


def record(
    before: tuple[str | None, str | None] = ("4", "4"),
    *,
    kubelets: bool = True,
    after: tuple[str | None, str | None] = (None, None),
    name: str = R,
    **more: Any,
) -> UndoRecord:
    key = UndoKey(name, *before, *after, ("kubelet",), kubelets)
    found = UndoRecord(Action.REMOVE, "worker-0", "u", "http://s", build.NOW, (key,))
    return found._replace(**{"state": UndoState.APPLIED, **more})


def gone(**fields: Any) -> Node:
    return node({}, owners={"cpu": ("kubelet",)}, **fields)


def undo(found: UndoRecord, restore: bool = False, **fields: Any) -> ChangePlan:
    return plan_undo(live(**{"node": gone(), **fields}), found, restore_value=restore)


@given(
    st.dictionaries(TEXT, st.sampled_from(["0", "4", "1k"]) | TEXT, min_size=1, max_size=3),
    st.none() | st.lists(TEXT, max_size=2).map(tuple),
)
def test_whatever_a_node_had_can_be_put_back(keys: dict[str, str], who: Any) -> None:
    """An empty name, too, which the API server takes."""
    owners = None if who is None else dict.fromkeys(keys, who)
    before = node(keys, owners=owners)
    taken = plan_removal(
        live(node=before),
        Removal(Action.PRUNE, include=frozenset(("ghost", "malformed", "foreign"))),
    )
    written = encode_record(record_of(taken, "http://s", build.NOW, before))
    plan = undo(parse_record(written, "it"), restore=True)
    assert {c.resource for p in plan.patches for c in p.changes} == {
        row.resource for row in taken.changing
    }


def after(plan: ChangePlan) -> tuple[str, str | None, str | None]:
    (patch,) = plan.patches
    return (patch.manager, patch.changes[0].after, patch.changes[1].after)


def test_the_kubelets_number_goes_back_as_zero_unless_asked() -> None:
    assert after(undo(record())) == ("dpctl-kubelet", "0", "0")
    assert after(undo(record(), restore=True)) == ("dpctl-kubelet", "4", "4")
    assert after(undo(record(("0", "0")))) == ("dpctl-kubelet", "0", "0")
    assert after(undo(record(("4", None)))) == ("dpctl-kubelet", "0", None)
    assert after(undo(record(("3", "3"), kubelets=False))) == ("dpctl", "3", "3")


def test_several_owners_are_several_patches() -> None:
    both = record()._replace(keys=(*record().keys, *record(kubelets=False, name="a.b/c").keys))
    assert {p.manager for p in undo(both).patches} == {"dpctl", "dpctl-kubelet"}


def refused(plan: ChangePlan) -> str:
    assert not plan.patches
    assert plan.refused
    return row(plan).reason


def test_what_is_refused() -> None:
    assert "made anew" in refused(undo(record(), node=gone(uid="other")))
    assert "made anew" in refused(undo(record(uid=None)))
    assert "Node worker-9" in refused(undo(record(node="worker-9")))
    back = {"node": node({R: "1"}), **served(connected=True, tracked=True)}
    assert "a plugin serves it" in refused(undo(record(), **back))
    unknown = served(connected=False, tracked=False)  # the name is nowhere any more
    assert "listens on gpu.sock" in refused(undo(record(), restore=True, **unknown))
    assert after(undo(record(), **unknown)) == ("dpctl-kubelet", "0", "0")
    tracked = build.checkpoint({R: ()})
    assert "tracks it" in refused(undo(record(), checkpoint=tracked))
    changed = node({R: "2"}, owners={R: ("operator",)})
    assert "written by operator" in refused(undo(record(), node=changed))


def test_native_is_refused_whatever_a_file_says() -> None:
    plan = undo(record(name="cpu"))
    assert not plan.patches
    assert plan.rows[0].verdict is Verdict.REFUSE


def test_what_is_back_already_needs_nothing() -> None:
    plan = undo(record(), node=node({R: "4"}))
    assert (plan.patches, row(plan).verdict) == ((), Verdict.KEEP)


def test_a_set_is_undone_to_what_was_before() -> None:
    ours = {R: ("dpctl",)}
    made = record((None, None), after=("1000", "1000"), kubelets=False)
    plan = undo(made, node=node({R: "1k"}, owners=ours))
    assert after(plan) == ("dpctl", None, None)
    assert plan.patches[0].changes[0].before == "1k"
    pod = build.pod("p", build.container("c", {R: "1"}))
    assert "pods request it" in refused(undo(made, node=node({R: "1k"}, owners=ours), pods=(pod,)))
    zeroed = record(("4", "4"), after=("0", "0"))
    now = node({R: "0"}, owners={R: ("dpctl-kubelet",)})
    assert after(undo(zeroed, restore=True, node=now)) == ("dpctl-kubelet", "4", "4")


def test_a_record_knows_whose_a_key_was() -> None:
    before = node({R: "4", "a.b/c": "2"}, owners={R: ("kubelet",), "a.b/c": ("op",)})
    plan = remove(live(node=before), R, "a.b/c")
    found = record_of(plan, "http://s", 1.0, before)
    assert {key.resource: key.kubelets for key in found.keys} == {R: True, "a.b/c": False}
    assert took_nothing(before, found)
    assert not took_nothing(gone(), found)


def test_the_last_change_that_took_something() -> None:
    planned = record(state=UndoState.PLANNED)
    done = record(state=UndoState.UNDONE)
    applied_ = record(("0", "0"))
    records = [("c", planned), ("b", done), ("a", applied_)]
    assert last_to_undo(gone(), records) == (("c", planned), ())
    there = node({R: "4"})
    assert last_to_undo(there, records) == (("a", applied_), ("c",))
    assert last_to_undo(there, [("b", done)]) == (None, ())


# -- the file


def test_files_are_private_numbered_and_the_last_comes_first(tmp_path: Path) -> None:
    directory = str(tmp_path / "undo")
    paths = [write_undo(record(created=when), directory) for when in (9.0, 5.0, 7.0)]
    assert stat.S_IMODE(os.stat(paths[0]).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    found = list(undo_records(directory, "worker-0"))
    assert [path for path, _ in found] == paths[::-1], "clocks jump, numbers do not"
    assert not list(undo_records(directory, "other"))
    rewrite_undo(paths[0], record(state=UndoState.UNDONE))
    assert read_undo(paths[0]).state is UndoState.UNDONE
    assert not [name for name in os.listdir(directory) if name.startswith(".")]


def test_a_file_that_was_begun_or_is_none_is_passed_over(tmp_path: Path) -> None:
    write_undo(record(), str(tmp_path))
    (tmp_path / "000002-worker-0-prune.json").touch()
    (tmp_path / "notes.txt").write_text("mine")
    assert len(list(undo_records(str(tmp_path), "worker-0"))) == 1
    assert "000003" in write_undo(record(), str(tmp_path))


def test_an_older_change_is_not_taken_for_the_last_one(tmp_path: Path) -> None:
    older = write_undo(record(), str(tmp_path))
    newer = Path(write_undo(record(), str(tmp_path)))
    (tmp_path / "000009-worker-9-prune.json").write_text("{")  # another Node's
    whole = newer.read_bytes()
    newer.write_bytes(whole[:-20])
    with pytest.raises(BadDataError, match="000002-worker-0-remove") as error:
        next(undo_records(str(tmp_path), "worker-0"))
    assert "undo FILE" in (error.value.hint or "")
    newer.write_bytes(whole)
    Path(older).write_text("{")
    path, _ = next(undo_records(str(tmp_path), "worker-0"))
    assert path == str(newer), "what is older does not matter"


def test_a_place_that_cannot_be_listed_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadDataError, match="Not a directory"):
        next(undo_records(str(tmp_path / "file"), "worker-0"))
    assert not list(undo_records(str(tmp_path / "none"), "worker-0"))


def test_a_link_that_was_named_stays_a_link(tmp_path: Path) -> None:
    path = write_undo(record(), str(tmp_path))
    link = tmp_path / "stdin"
    link.symlink_to(path)
    rewrite_undo(str(link), record(state=UndoState.UNDONE))
    assert link.is_symlink()
    assert read_undo(path).state is UndoState.UNDONE
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(NotAppliedError):
        rewrite_undo(str(tmp_path / "fifo"), record())
    assert stat.S_ISFIFO(os.stat(tmp_path / "fifo").st_mode)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotAppliedError, match="nothing was changed"):
        write_undo(record(), str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_hostile_name_stays_in_the_directory(tmp_path: Path) -> None:
    path = write_undo(record(node="../../etc/x"), str(tmp_path))
    assert os.path.dirname(path) == str(tmp_path)


def test_a_file_of_ones_own_is_never_overwritten(tmp_path: Path) -> None:
    mine = str(tmp_path / "mine.json")
    assert write_undo(record(), str(tmp_path), mine) == mine
    with pytest.raises(UsageError):
        write_undo(record(), str(tmp_path), mine)
    with pytest.raises(UsageError, match="not there"):
        read_undo(str(tmp_path / "none.json"))


def test_without_a_place_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises((NotAppliedError, DeniedError), match="nothing was changed"):
        write_undo(record(), str(tmp_path / "file" / "undo"))


def test_where_the_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = find_env(Settings(host_root=str(tmp_path)), {}, scan=False)
    assert undo_directory(env, {"XDG_STATE_HOME": "/s"}) == "/s/dpctl/undo"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert undo_directory(env, {"HOME": "/h"}) == f"{tmp_path}/var/lib/dpctl/undo"
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    assert undo_directory(env, {"HOME": "/h"}) == "/h/.local/state/dpctl/undo"
