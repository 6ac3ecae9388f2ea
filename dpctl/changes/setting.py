"""Whether a count may be advertised under a name: pure, over one snapshot (`set`).

By evidence, not by state: a name that a plugin serves or the kubelet tracks is the kubelet's to
write, and it would (kubelet-facts §4.2). Anything else is the operator's.
"""

from __future__ import annotations

from dpctl import names
from dpctl.changes.evidence import Evidence, evidence_of
from dpctl.changes.removal import NATIVE, notes_of, summary, waiting_pods
from dpctl.errors import BadDataError, UsageError
from dpctl.inventory.ages import status_period
from dpctl.inventory.connections import foreign_owners
from dpctl.inventory.devices import Devices
from dpctl.inventory.resources import requests, resource_rows
from dpctl.inventory.rows import ResourceRow, ResourceState
from dpctl.model import Node, Snapshot
from dpctl.model.changes import Action, ChangePlan, KeyChange, Patch, PlanRow, Verdict
from dpctl.quantity import count as number_of
from dpctl.text import shorten

KUBELETS_MANAGER = "dpctl-kubelet"
"""Under which the kubelet's own keys are put back or zeroed: it counts as the kubelet."""
_LARGEST = (1 << 63) - 1


def parse_setting(text: str) -> tuple[str, int]:
    """`vendor.example/gpu=4`. Raises UsageError for what no kubelet would take."""
    name, equals, number = text.rpartition("=")
    shown = shorten(text, 80)
    if not equals or not name:
        raise UsageError(f"{shown!r} is not RESOURCE=N", "for example: vendor.example/dongle=4")
    if names.is_native(name):
        raise UsageError(f"{name} is Kubernetes' own: the kubelet measures it", "leave it alone")
    if not names.is_extended(name):
        raise UsageError(
            f"{shorten(name, 60)!r} is no legal name of an extended resource",
            "names are DOMAIN/NAME, such as vendor.example/dongle; not below kubernetes.io",
        )
    if not (number.isascii() and number.isdigit()) or len(number) > 19 or int(number) > _LARGEST:
        raise UsageError(
            f"{shorten(number, 40)!r} is not a whole number", "devices are counted: 0, 1, 2, …"
        )
    return name, int(number)


def plan_set(
    snap: Snapshot, resource: str, count: int, *, manager: str = "dpctl", ours: bool = False
) -> ChangePlan:
    """One row; refused for names that a plugin serves or the kubelet tracks. 0 on a Ghost is taken
    under `dpctl-kubelet`: it stays the kubelet's. `ours`: it was set before (`--keep`), so that a 0
    which the kubelet wrote over it is a loss, not a left-over.

    Raises BadDataError for a snapshot without a Node.
    """
    node = snap.node
    if node is None:
        raise BadDataError("no Node was read", "dpctl env shows which API server is asked")
    joined = Devices(snap)
    evidence = evidence_of(snap, joined)
    found = next((r for r in resource_rows(snap, joined) if r.resource == resource), None)
    verdict, reason, step = _verdict(node, resource, count, found, evidence, ours)
    classes = [c.name for c in snap.device_classes or () if c.extended_resource_name == resource]
    if classes and verdict is Verdict.CHANGE and count > 0:
        words = f"DeviceClass {classes[0]} serves this name: a number on the Node would hide it"
        verdict, reason, step = Verdict.REFUSE, words, "choose another name"
    row = PlanRow(
        resource=resource,
        state=NATIVE if names.is_native(resource) else str(found.state) if found else "-",
        verdict=verdict,
        reason=reason,
        next_step=step,
        capacity=node.capacity.get(resource),
        allocatable=node.allocatable.get(resource),
        owners=None if node.owners is None else tuple(node.owners.get(resource, ())),
        requested=None if snap.pods is None else requests(snap).get(resource, 0),
        evidence=found.evidence if found else (),
        named=True,
        forced=False,
        waiting_pods=waiting_pods(snap, resource),
    )
    patches: tuple[Patch, ...] = ()
    if verdict is Verdict.CHANGE:
        kubelets = count == 0 and resource in node.capacity and is_kubelets(node, resource)
        text = str(count)
        changes = (
            KeyChange("capacity", resource, node.capacity.get(resource), text),
            KeyChange("allocatable", resource, node.allocatable.get(resource), text),
        )
        patches = (Patch(KUBELETS_MANAGER if kubelets else manager, changes),)
    return ChangePlan(
        action=Action.SET,
        node=node.name,
        uid=node.uid,
        boot_id=node.boot_id if evidence.local else None,
        rows=(row,),
        patches=patches,
        notes=notes_of(snap, evidence),
        period=status_period(snap),
        kubelet_manager=node.kubelet_manager,
    )


def is_kubelets(node: Node, resource: str) -> bool:
    """Whether the capacity key is the kubelet's; also where owners are not known."""
    if node.owners is None:
        return True
    return bool(node.owners.get(resource)) and not foreign_owners(node, resource)


def _verdict(
    node: Node,
    resource: str,
    count: int,
    found: ResourceRow | None,
    evidence: Evidence,
    ours: bool,
) -> tuple[Verdict, str, str | None]:
    if names.is_native(resource):
        return Verdict.REFUSE, "it is Kubernetes' own: the kubelet measures it", "leave it alone"
    on_node = resource in node.capacity or resource in node.allocatable
    if found is not None:
        if found.connected or found.served:
            words = summary(found, found.state)
            return Verdict.REFUSE, words, "the plugin tells how many there are; choose another name"
        if found.tracked:
            words = "the kubelet still tracks it and would write its own number"
            return Verdict.REFUSE, words, "wait until it has let go: dpctl resources"
        if found.state in (ResourceState.DRA, ResourceState.MALFORMED):
            return Verdict.REFUSE, summary(found, found.state), "choose another name"
    if not on_node:
        return Verdict.CHANGE, "the Node has no such key yet", None
    now = (node.capacity.get(resource), node.allocatable.get(resource))
    if all(number_of(text) == count for text in now):
        return Verdict.KEEP, f"it is {count} already", None
    if not is_kubelets(node, resource):
        owners = ", ".join((node.owners or {}).get(resource, ())) or "nobody"
        return Verdict.CHANGE, f"its owner is {owners}, which may write it again", None
    zero = all(number_of(text or "0") == 0 for text in now)
    if ours and zero:
        return Verdict.CHANGE, "the kubelet wrote 0 over it", None
    if not evidence.local:
        words = f"the key is the kubelet's, and {evidence.why_not}"
        return Verdict.REFUSE, words, evidence.hint
    if evidence.unclaimed:
        words = f"which resource {', '.join(evidence.unclaimed[:3])} serves is not known for sure"
        return Verdict.REFUSE, words, "restart that plugin, or stop it: dpctl plugins --all"
    if count > 0 and not zero:
        words = "it is a left-over of the kubelet above 0, and nobody behind it"
        return Verdict.REFUSE, words, f"remove it first: dpctl node remove {resource}"
    return Verdict.CHANGE, summary(found, found.state) if found else "nobody serves it", None
