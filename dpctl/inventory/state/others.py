"""What a kubelet makes of the other files: device checkpoint, DRA, pods' resources. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from dpctl.inventory.state.loading import CORRUPT, UNTOLD, Stopped, numbers_text, undecodable
from dpctl.inventory.state.reader import StateReader
from dpctl.inventory.state.rows import StateVerdict
from dpctl.model import Allocation, Checkpoint
from dpctl.model.statefiles import (
    DraHealthState,
    DraManagerState,
    PodResourcesState,
    StateChecksum,
    StateFault,
)

DEVICES_SAY = (
    "Continue after failing to read checkpoint file. Device allocation info may NOT be up-to-date"
)
_DEVICES_MEAN = (
    "the kubelet starts with no devices: until a plugin registers, pods that ask for its devices"
    " start without one"
)
_HEALTH_SAYS = "Failed to load health checkpoint, proceeding with empty cache"


def check_devices(
    checkpoint: Checkpoint | None, fault: StateFault | None, reader: StateReader
) -> Stopped | None:
    """`fault`: why the file cannot be read or decoded."""
    ignored = StateVerdict.IGNORED
    if checkpoint is None:
        if fault is None or not fault.certain:
            words = fault.words if fault is not None else "not read"
            return Stopped("decode", None, words, StateVerdict.UNKNOWN)
        reason = f"{fault.words}; {_DEVICES_MEAN}"
        return Stopped("decode", f'{DEVICES_SAY}" err="{fault.kubelet or UNTOLD}', reason, ignored)
    if not checkpoint.verified:
        number = StateChecksum(
            "", "Checksum", checkpoint.stored_checksum, checkpoint.computed_checksum
        )
        reason = f"{numbers_text(number)}; {_DEVICES_MEAN}"
        return Stopped("checksum", f'{DEVICES_SAY}" err="{CORRUPT}', reason, ignored)
    if any(a.flat for a in checkpoint.allocations) and reader.minor >= 30:
        reason = (
            f"its device lists are flat, as before 1.20, which 1.30 and newer refuse;"
            f" {_DEVICES_MEAN}"
        )
        says = f'{DEVICES_SAY}" err="json: cannot unmarshal array into Go struct field {UNTOLD}'
        return Stopped("decode", says, reason, ignored)
    return None


def held_twice(allocations: Iterable[Allocation], live: Iterable[str]) -> tuple[str, ...]:
    """Devices of several pods that are all there, which no kubelet looks for. Containers of one pod
    share on purpose (kubelet-facts §0.4)."""
    alive = set(live)
    holders: dict[tuple[str, str], set[str]] = {}
    for allocation in allocations:
        if allocation.pod_uid in alive:
            for device in allocation.device_nodes():
                holders.setdefault((allocation.resource, device), set()).add(allocation.pod_uid)
    return tuple(
        f"{resource} {device} is held by pods {' and '.join(sorted(pods))}; no kubelet looks"
        for (resource, device), pods in sorted(holders.items())
        if len(pods) > 1
    )


def check_dra(state: DraManagerState, reader: StateReader) -> Stopped | None:
    if not reader.gate("DynamicResourceAllocation", since=34):
        reason = "this kubelet does not read it: DynamicResourceAllocation is off"
        return Stopped("gate", None, reason, StateVerdict.UNREAD)
    prefix = "create ResourceClaim cache: "
    read = f"{prefix}GetOrCreate() on checkpoint state: failed to get checkpoint dra_manager_state"
    if state.fault is not None:
        return undecodable(state.fault, f"{read}: ")
    if not state.checksums[0].fits:
        why = numbers_text(state.checksums[0])
        if "entries" in state.unknown_keys:
            why = "the file is in the form of a kubelet before 1.32"
        return Stopped("checksum", f"{read}: {CORRUPT}", why)
    if state.data_fault is not None:
        return undecodable(state.data_fault, f"{prefix}GetEntries() on checkpoint: ")
    return None


def check_health(state: DraHealthState) -> Stopped | None:
    if state.fault is None:
        return None
    if not state.fault.certain:
        return undecodable(state.fault)
    said = f'{_HEALTH_SAYS}" err="{state.fault.kubelet or UNTOLD}'
    reason = f"{state.fault.words}; the kubelet waits for its drivers to tell the health anew"
    return Stopped("decode", said, reason, StateVerdict.IGNORED)


def check_pods(state: PodResourcesState, reader: StateReader) -> Stopped | None:
    if not reader.gate("InPlacePodVerticalScaling", since=33):
        reason = "this kubelet does not read it: InPlacePodVerticalScaling is off"
        return Stopped("gate", None, reason, StateVerdict.UNREAD)
    if state.fault is not None:
        return undecodable(state.fault)
    if not state.checksums[0].fits:
        return Stopped("checksum", CORRUPT, numbers_text(state.checksums[0]))
    if state.data_fault is not None:
        return undecodable(state.data_fault, "failed to get pod resource information: ")
    return None
