"""What may be advertised by hand, and under whose name."""

from __future__ import annotations

import pytest

from dpctl.changes.setting import parse_setting, plan_set
from dpctl.errors import UsageError
from dpctl.model import DeviceClass
from dpctl.model.changes import Verdict
from tests import build
from tests.changes.test_removal import R, live, node, row, served

AWAY = {"checkpoint": None, "sockets": None, "directory": None, "boot_id": None}
OURS = {R: ("dpctl",)}


def test_a_setting_is_a_name_and_a_whole_number() -> None:
    assert parse_setting("a.example/x=0") == ("a.example/x", 0)
    assert parse_setting(f"a.example/x={(1 << 63) - 1}")[1] == (1 << 63) - 1
    for text in (
        "a.example/x",
        "=4",
        "a.example/x=",
        "a.example/x=-1",
        "a.example/x=1.5",
        "a.example/x=1k",
        "a.example/x=²",
        f"a.example/x={1 << 63}",
        "nodomain=1",
        "kubernetes.io/x=1",
        "requests.a/x=1",
        "cpu=4",
        "hugepages-2Mi=4",
    ):
        with pytest.raises(UsageError) as error:
            parse_setting(text)
        assert error.value.hint


@pytest.mark.parametrize("away", [True, False])
def test_a_new_name_is_set_in_both_parts_under_dpctl(away: bool) -> None:
    plan = plan_set(live(node=node({}), **(AWAY if away else {})), R, 4)
    (patch,) = plan.patches
    assert patch.manager == "dpctl"
    assert [(c.before, c.after) for c in patch.changes] == [(None, "4"), (None, "4")]
    assert (plan.boot_id is None) == away


def test_what_the_kubelet_writes_is_refused() -> None:
    for connected, tracked in ((True, True), (False, True), (False, False)):
        snap = live(node=node({R: "1"}), **served(connected=connected, tracked=tracked))
        assert plan_set(snap, R, 4).refused
        assert plan_set(snap, R, 0, ours=True).refused
    grace = live(node=node({R: "1"}, {R: "0"}), checkpoint=build.checkpoint({R: ("d",)}))
    assert "still tracks it" in row(plan_set(grace, R, 4)).reason
    assert plan_set(live(node=node({}), device_classes=(DeviceClass("c", R),)), R, 4).refused


def test_zero_on_a_ghost_stays_the_kubelets() -> None:
    ghost = live(node=node({R: "4"}))
    (patch,) = plan_set(ghost, R, 0).patches
    assert patch.manager == "dpctl-kubelet"
    assert plan_set(ghost, R, 3).refused, "a number above 0 that nobody backs"
    away = plan_set(live(node=node({R: "4"}), **AWAY), R, 0)
    assert "the key is the kubelet's" in row(away).reason
    assert away.refused


def test_an_operators_number_is_changed_from_anywhere() -> None:
    theirs = node({R: "3"}, owners={R: ("nfd",)})
    for fields in ({}, AWAY):
        (patch,) = plan_set(live(node=theirs, **fields), R, 5, manager="me").patches
        assert patch.manager == "me"
    same = plan_set(live(node=node({R: "1k"}, owners=OURS)), R, 1000)
    assert (row(same).verdict, same.patches, same.refused) == (Verdict.KEEP, (), ())


def test_what_the_kubelet_reset_is_advertised_again_if_it_was_ours() -> None:
    """At its start a kubelet writes 0 over what it does not know (kubelet-facts §4.4)."""
    zero = live(node=node({R: "0"}), **AWAY)
    assert plan_set(zero, R, 3).refused
    assert plan_set(zero, R, 3, ours=True).changing
    assert plan_set(live(node=node({R: "0"})), R, 3).changing, "nobody serves it, as all can see"


def test_beside_an_unknown_listener_the_kubelets_keys_are_left_alone() -> None:
    snap = live(
        node=node({R: "4", "b.example/y": "0"}),
        sockets=build.table(build.listener("/dp/who.sock", 30)),
        directory=build.directory(build.entry("who.sock", 30)),
    )
    assert "who.sock" in row(plan_set(snap, R, 0)).reason
