"""The planner: every state, every flag, every missing piece of evidence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.changes.removal import Removal, plan_removal
from dpctl.errors import ExitCode
from dpctl.model import (
    Allocatable,
    Checkpoint,
    Device,
    DeviceClass,
    Kubelet,
    Node,
    PodResources,
    Snapshot,
    Source,
    SourceRow,
)
from dpctl.model.changes import Action, ChangePlan, KeyChange, PlanRow, Verdict
from tests import build
from tests.build import NOW

R = "vendor.example/gpu"
OTHER = "other.example/nic"


def node(capacity: dict[str, str], allocatable: dict[str, str] | None = None, **more) -> Node:
    return build.node(capacity, allocatable)._replace(**more)


def live(**fields: Any) -> Snapshot:
    """A node with all its evidence, and R left behind as 0/0."""
    base: dict[str, Any] = {
        "collected_at": NOW,
        "sources": (),
        "node": node({R: "0"}),
        "checkpoint": build.checkpoint(),
        "directory": build.directory(),
        "sockets": build.table(),
        "kubelets": (build.kubelet(),),
        "registry": (),
        "pods": (),
        "unscheduled": (),
        "pod_resources": PodResources("v1", ()),
        "boot_id": "b",
    }
    return Snapshot(**{**base, **fields})


def prune(snap: Snapshot, *include: str, match: tuple[str, ...] = ()) -> ChangePlan:
    return plan_removal(snap, Removal(Action.PRUNE, include=frozenset(include), match=match))


def remove(snap: Snapshot, *names: str, **flags: Any) -> ChangePlan:
    return plan_removal(snap, Removal(Action.REMOVE, names=names or (R,), **flags))


def row(plan: ChangePlan, name: str = R) -> PlanRow:
    return next(r for r in plan.rows if r.resource == name)


def test_stale_goes_by_prune_and_by_name() -> None:
    for plan in (prune(live()), remove(live())):
        assert row(plan).verdict is Verdict.CHANGE
        assert plan.patches[0].changes == (
            KeyChange("capacity", R, "0", None),
            KeyChange("allocatable", R, "0", None),
        )
        assert (plan.uid, plan.boot_id) == ("u", "b")


def test_a_part_that_is_not_there_must_not_come() -> None:
    plan = remove(live(node=node({R: "0"}, {})))
    assert plan.patches[0].changes[1] == KeyChange("allocatable", R, None, None)
    only_allocatable = live(node=node({}, {R: "0"}, owners={"cpu": ("kubelet",)}))
    assert remove(only_allocatable).patches[0].changes[0].before is None


MISSING: dict[str, tuple[dict[str, object], str]] = {
    "boot ID of the Node": ({"node": node({R: "0"}, boot_id=None)}, "no boot ID"),
    "boot ID of the machine": ({"boot_id": None}, "boot ID could not be read"),
    "another boot ID": ({"boot_id": "c"}, "is another machine"),
    "socket table": ({"sockets": None}, "socket table"),
    "kubelet's listener": ({"sockets": build.table(own=False)}, "another network namespace"),
    "kubelet.sock": ({"directory": None}, "directory was not read"),
    "kubelet of another Node": (
        {"kubelets": (Kubelet(build.KUBELET_PID, (), "worker-9", None, None, None),)},
        "the kubelet here is worker-9's",
    ),
    "kubelet without a name": (
        {"kubelets": (Kubelet(build.KUBELET_PID, (), None, None, None, None),)},
        "cannot be told",
    ),
    "checkpoint": ({"checkpoint": None}, "checkpoint was not read"),
    "checkpoint that verifies": (
        {"checkpoint": build.checkpoint()._replace(stored_checksum=7)},
        "checksum does not fit",
    ),
    "registry": (
        {
            "registry": None,
            "sources": (
                SourceRow(Source.REGISTRY, "/r", "failed", "denied", None, int(ExitCode.DENIED)),
            ),
        },
        "plugins_registry was not read",
    ),
    "pods": ({"pods": None}, "pods were not read"),
    "managedFields": ({"node": node({R: "0"}, owners=None)}, "without managedFields"),
    "everything local": (
        {"checkpoint": None, "sockets": None, "directory": None},
        "nothing was read on the Node itself",
    ),
    "a life": ({"from_bundle": True}, "bundle"),
}


@pytest.mark.parametrize("piece", MISSING)
def test_without_a_piece_of_evidence_nothing_goes_and_it_is_named(piece: str) -> None:
    fields, words = MISSING[piece]
    for plan in (prune(live(**fields)), remove(live(**fields))):
        assert not plan.patches
        found = row(plan)
        assert found.verdict is Verdict.REFUSE
        assert words in found.reason
        assert found.next_step


def failed(source: Source, reason: str, hint: str) -> SourceRow:
    return SourceRow(str(source), "/x", "failed", reason, hint, int(ExitCode.BAD_DATA))


def test_what_was_not_read_is_noted_with_the_reason_and_the_next_step() -> None:
    rows = (
        failed(Source.POD_RESOURCES, "it refuses", "look at List"),
        failed(Source.ALLOCATABLE, "it hangs", "look at the other"),
    )
    notes = "\n".join(prune(live(pod_resources=None, sources=rows)).notes)
    for words in ("it refuses", "look at List", "it hangs", "look at the other"):
        assert words in notes


def test_a_checkpoint_that_is_no_file_of_a_kubelets_does_not_ask_for_root() -> None:
    rows = (failed(Source.CHECKPOINT, "it is not JSON", "the file is damaged"),)
    found = row(remove(live(checkpoint=None, sources=rows)))
    assert (found.next_step or "").startswith("it is written anew")
    assert "it is not JSON" in found.reason


def test_a_checkpoint_that_was_deleted_under_a_connected_kubelet_tells_nothing() -> None:
    connected = [build.listener("/dp/x.sock", 20), build.accepted("/dp/x.sock", 20)]
    snap = live(
        checkpoint=Checkpoint((), {}, 0, 0, absent=True),
        directory=build.directory(build.entry("x.sock", 20)),
        sockets=build.table(*connected),
        processes={200: build.process(200, f"--resource={OTHER}")},
        node=node({R: "0", OTHER: "2"}),
    )
    assert "checkpoint file is gone" in row(remove(snap)).reason


def test_assume_gone_is_for_keys_at_zero_that_nobody_uses() -> None:
    away = {"checkpoint": None, "sockets": None, "directory": None, "boot_id": None}
    assert row(remove(live(**away), assume_gone=True)).verdict is Verdict.CHANGE
    assert remove(live(**away), assume_gone=True).boot_id is None
    above = live(node=node({R: "2"}), **away)
    assert row(remove(above, assume_gone=True)).verdict is Verdict.REFUSE
    used = live(pods=(build.pod("p", build.container("c", {R: "1"})),), **away)
    assert row(remove(used, assume_gone=True)).verdict is Verdict.REFUSE
    assert row(remove(live(**{**away, "pods": None}), assume_gone=True)).verdict is Verdict.REFUSE
    tracked = live(**{**away, "checkpoint": build.checkpoint({R: ()})})
    assert row(remove(tracked, assume_gone=True)).verdict is Verdict.REFUSE


def served(*, connected: bool, tracked: bool, name: str = R) -> dict[str, Any]:
    sockets = [build.listener("/dp/gpu.sock", 20)]
    sockets += [build.accepted("/dp/gpu.sock", 20)] if connected else []
    return {
        "sockets": build.table(*sockets),
        "directory": build.directory(build.entry("gpu.sock", 20)),
        "processes": {200: build.process(200, f"--resource={name}")},
        "checkpoint": build.checkpoint({name: ("d",)} if tracked else {}),
        "allocatable": offers(name) if connected and tracked else None,
    }


def offers(name: str) -> Allocatable:
    return Allocatable((Device(name, "d", (0,)),), (), ())


@pytest.mark.parametrize(("connected", "tracked"), [(True, True), (False, True), (False, False)])
def test_served_is_refused_and_forced_by_name_only(connected: bool, tracked: bool) -> None:
    snap = live(node=node({R: "1"}), **served(connected=connected, tracked=tracked))
    assert row(prune(snap, "ghost", "foreign")).verdict is Verdict.KEEP
    assert row(remove(snap)).verdict is Verdict.REFUSE
    assert remove(snap).refused
    forced = row(remove(snap, force_in_use=True))
    assert (forced.verdict, forced.forced) == (Verdict.CHANGE, True)


def test_grace_waits_whatever_the_flags() -> None:
    snap = live(node=node({R: "1"}, {R: "0"}), checkpoint=build.checkpoint({R: ("d",)}))
    for plan in (prune(snap, "ghost"), remove(snap, force_in_use=True, assume_gone=True)):
        found = row(plan)
        assert found.verdict is Verdict.WAIT
        assert not plan.patches
        assert found.time_left == pytest.approx(309.4, abs=0.1)
        assert "at most 5 min 09 s are left (an upper bound)" in found.reason


def test_who_uses_a_key_in_grace_is_told_before_the_wait() -> None:
    pods = (build.pod("p", build.container("c", {R: "1"})),)
    snap = live(node=node({R: "1"}, {R: "0"}), checkpoint=build.checkpoint({R: ("d",)}), pods=pods)
    for waits in (False, True):
        found = row(remove(snap, waits=waits))
        assert "in use: requested by ml/p, and refused for as long as it is" in found.reason
        assert "delete these pods" in (found.next_step or "")
    assert "in use" not in row(remove(snap, force_in_use=True)).reason


def test_who_waits_is_not_told_to_wait() -> None:
    snap = live(node=node({R: "1"}, {R: "0"}), checkpoint=build.checkpoint({R: ("d",)}))
    assert "now with --wait" in (row(remove(snap)).next_step or "")
    assert row(remove(snap, waits=True)).next_step is None


@pytest.mark.parametrize(("jump", "left"), [(-5000.0, 310.4), (5000.0, 0.0), (0.0, 309.4)])
def test_the_time_left_outlives_a_clock_that_jumps(jump: float, left: float) -> None:
    snap = live(
        node=node({R: "1"}, {R: "0"}),
        checkpoint=build.checkpoint({R: ("d",)}),
        collected_at=NOW + jump,
    )
    assert row(prune(snap)).time_left == pytest.approx(left, abs=0.1)


@pytest.mark.parametrize(
    ("start", "written", "lost", "capacity", "left", "by"),
    [
        # Lost, then restarted: it counts anew. Another plugin has sent something since, or none.
        (60.0, 40.0, 120.0, "0", 250.4, "counted from its start"),
        (60.0, 90.0, 120.0, "0", 250.4, "counted from its start"),
        (60.0, 90.0, None, "0", 250.4, "counted from its start"),
        # Lost since the start.
        (60.0, 40.0, 20.0, "1", 290.4, "by its log"),
        (60.0, 40.0, 20.0, "0", 290.4, "by its log"),
        # It may have been back since, and nothing tells when it was lost again.
        (60.0, 40.0, 120.0, "1", 309.4, "an upper bound"),
        (60.0, 40.0, None, "0", 309.4, "an upper bound"),
        # Long over by that.
        (900.0, 950.0, None, "0", 309.4, "an upper bound"),
        (900.0, 40.0, 800.0, "1", 309.4, "an upper bound"),
    ],
)
def test_a_kubelet_that_was_restarted_counts_anew(
    start: float, written: float, lost: float | None, capacity: str, left: float, by: str
) -> None:
    """Seconds ago: the kubelet's start, the checkpoint's last write, the loss by its log."""
    snap = live(
        node=node({R: capacity}, {R: "0"}),
        checkpoint=build.checkpoint({R: ()}, age=written),
        directory=build.directory(kubelet_age=start),
        lost_at={} if lost is None else {R: NOW - lost},
    )
    found = row(remove(snap))
    assert found.time_left == pytest.approx(left, abs=0.1)
    assert f"are left ({by})" in found.reason


def test_a_kubelet_that_never_noticed_is_said() -> None:
    snap = live(node=node({R: "1"}), checkpoint=build.checkpoint({R: ("d",)}))
    assert "has not noticed: allocatable is still 1" in row(prune(snap)).reason


def test_ghost_malformed_foreign_only_with_include_or_by_name() -> None:
    keys = {"ghost.example/x": "4", "nodomain": "2", "foreign.example/x": "3"}
    owners = {"ghost.example/x": ("kubelet",), "nodomain": ("op",), "foreign.example/x": ("op",)}
    snap = live(node=node(keys, owners=owners))
    assert {r.verdict for r in prune(snap).rows} == {Verdict.KEEP}
    for word, name in (("ghost", "ghost.example/x"), ("malformed", "nodomain")):
        assert [r.resource for r in prune(snap, word).changing] == [name]
    assert [r.resource for r in prune(snap, "foreign").changing] == ["foreign.example/x"]
    assert len(remove(snap, *keys).changing) == 3
    assert [r.resource for r in prune(snap, "ghost", match=("no*",)).rows] == ["nodomain"]


def test_foreign_and_malformed_from_a_workstation_but_not_beside_an_unseen_kubelet() -> None:
    keys = {"nodomain": "2", "foreign.example/x": "3"}
    owned = node(keys, owners=dict.fromkeys(keys, ("op",)))
    away = {"checkpoint": None, "sockets": None, "directory": None}
    assert len(remove(live(node=owned, boot_id=None, **away), *keys).changing) == 2
    assert not remove(live(node=owned, **away), *keys).changing
    untrusted = live(node=owned, sockets=build.table(own=False))
    assert not remove(untrusted, *keys).changing


def test_dra_and_absent_are_refused() -> None:
    classes = (DeviceClass("c", R),)
    assert row(remove(live(device_classes=classes), force_in_use=True)).verdict is Verdict.REFUSE
    absent = live(node=node({}), pods=(build.pod("p", build.container("c", {R: "1"})),))
    found = row(remove(absent, force_in_use=True))
    assert (found.verdict, found.state) == (Verdict.REFUSE, "Absent")


def test_a_name_that_is_nowhere_is_nothing_to_do() -> None:
    found = row(remove(live(), "nope.example/x"), "nope.example/x")
    assert (found.verdict, remove(live(), "nope.example/x").refused) == (Verdict.KEEP, ())


@pytest.mark.parametrize("left_by_a_gone_pod", [True, False])
@pytest.mark.parametrize("connected", [True, False])
def test_what_the_node_lacks_is_gone_already(left_by_a_gone_pod: bool, connected: bool) -> None:
    fields = served(connected=True, tracked=True) if connected else {}
    if left_by_a_gone_pod:
        known = {R: ("d",)} if connected else {}
        entry = build.allocation("uid-gone", "c", R, {-1: ["d"]})
        fields["checkpoint"] = build.checkpoint(known, (entry,))
    found = remove(live(node=node({}), **fields))
    assert (row(found).verdict, found.refused) == (Verdict.KEEP, ())


def test_in_use_by_request_and_by_holding() -> None:
    asked = live(pods=(build.pod("p", build.container("c", {R: "1"})),))
    held = live(
        pods=(build.pod("p", build.container("c")),),
        checkpoint=build.checkpoint({}, (build.allocation("uid-p", "c", R, {-1: ["d"]}),)),
    )
    for snap, words in ((asked, "requested by ml/p"), (held, "held by ml/p/c")):
        assert words in row(remove(snap)).reason
        assert row(prune(snap)).verdict is Verdict.REFUSE
        assert row(remove(snap, force_in_use=True)).forced
    over = live(pods=(build.pod("p", build.container("c", {R: "1"}), phase="Succeeded"),))
    assert row(remove(over)).verdict is Verdict.CHANGE


def test_pods_that_wait_are_named_and_do_not_hinder() -> None:
    waiting = build.pod("p", build.container("c", {R: "1"}), phase="Pending")
    found = row(prune(live(unscheduled=(waiting,))))
    assert (found.verdict, found.waiting_pods) == (Verdict.CHANGE, ("ml/p",))
    unseen = prune(live(unscheduled=None))
    assert any("unscheduled pods were not seen" in note for note in unseen.notes)


@pytest.mark.parametrize("linked", [True, False])
def test_while_a_listener_is_not_known_no_key_goes(linked: bool) -> None:
    files = (build.entry("who.sock", 30),) if linked else ()
    snap = live(
        node=node({R: "0", OTHER: "0", "nodomain": "1"}),
        sockets=build.table(build.listener("/dp/who.sock", 30)),
        directory=build.directory(*files),
    )
    for plan in (prune(snap, "malformed"), remove(snap, R, "nodomain", force_in_use=True)):
        assert not plan.patches
        assert "listens on who.sock" in row(plan).reason


def test_the_name_of_a_socket_clears_no_other_key() -> None:
    """nvidia-gpu.sock may serve gpu.shared as well as gpu."""
    names = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
    snap = live(
        node=node(dict.fromkeys(names, "0")),
        sockets=build.table(build.listener("/dp/nvidia-gpu.sock", 30)),
        directory=build.directory(build.entry("nvidia-gpu.sock", 30)),
    )
    assert not prune(snap).patches


def test_a_connected_plugin_that_has_not_listed_yet_clears_no_key() -> None:
    """It is in no checkpoint, and nothing tells its name: it may be any."""
    fields = served(connected=True, tracked=False)
    fields["processes"] = {}
    snap = live(node=node({R: "0", OTHER: "0"}), **fields)
    assert not prune(snap).patches
    # Beside a name in Grace, it is not taken for that one.
    fields["checkpoint"] = build.checkpoint({OTHER: ("d",)})
    snap = live(node=node({R: "0", OTHER: "1"}, {R: "0", OTHER: "0"}), **fields)
    assert not prune(snap).patches
    # Nor for one that the Node still shows: its plugin may have died within the status period.
    snap = live(node=node({R: "0", OTHER: "1"}), **fields)
    assert not prune(snap).patches
    assert "listens on gpu.sock" in row(prune(snap)).reason
    # When the kubelet offers devices of the name, it is that name.
    snap = live(node=node({R: "0", OTHER: "1"}), **{**fields, "allocatable": offers(OTHER)})
    assert [r.resource for r in prune(snap).changing] == [R]


def test_what_the_kubelet_offers_is_no_ghost() -> None:
    """A name that the checkpoint lacks (its last write came too early), beside a plugin that has
    died and whose devices the Node still shows: the one connected socket looks like that one's."""
    fields = served(connected=True, tracked=False, name=R)
    fields["processes"] = {}
    fields["checkpoint"] = build.checkpoint({OTHER: ("d",)})
    fields["node"] = node({R: "1", OTHER: "1"})
    fields["allocatable"] = offers(R)
    found = live(**fields)
    for plan in (remove(found), prune(found, "ghost"), prune(found)):
        assert not plan.patches
        assert row(plan).state == "Ready"
    failed = SourceRow(Source.ALLOCATABLE, "/s", "failed", "it hangs", None, 4)
    assert any("what the kubelet offers" in n for n in remove(live(sources=(failed,))).notes)


def test_prune_does_not_advise_what_it_would_refuse() -> None:
    snap = live(
        node=node({R: "4", OTHER: "4"}),
        sockets=build.table(build.listener("/dp/who.sock", 30)),
        directory=build.directory(build.entry("who.sock", 30)),
    )
    found = row(prune(snap))
    assert (found.state, found.verdict) == ("Ghost", Verdict.KEEP)
    assert "listens on who.sock" in found.reason
    assert "--include" not in (found.next_step or "")


NAMES = st.sampled_from(["cpu", "memory", "pods", "storage", "hugepages-2Mi", "hugepages-",
                         "attachable-volumes-aws-ebs", "ephemeral-storage"])  # fmt: skip


@given(NAMES, st.booleans(), st.booleans(), st.sampled_from(["0", "4"]))
def test_native_never_goes(name: str, force: bool, assume: bool, value: str) -> None:
    for snap in (live(node=node({name: value})), live(node=node({name: value}), checkpoint=None)):
        plan = remove(snap, name, force_in_use=force, assume_gone=assume)
        assert not plan.patches
        assert row(plan, name).verdict is Verdict.REFUSE
        assert not prune(snap, "ghost", "malformed", "foreign").rows
