"""`state verify`: whether a kubelet starts with its state files, and what it says if not. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dpctl.errors import ExitCode
from dpctl.inventory.state import cpu, memory, others
from dpctl.inventory.state.loading import Stopped
from dpctl.inventory.state.reader import NEWEST, StateReader
from dpctl.inventory.state.rows import StateCheckRow, StateVerdict
from dpctl.model import Snapshot, Source
from dpctl.model.statefiles import (
    CpuManagerState,
    DraHealthState,
    DraManagerState,
    MemoryManagerState,
    PodResourcesState,
    StateChecksum,
    StateFault,
    checksum_of,
)

FILES: Mapping[str, tuple[Source, ...]] = {
    "devices": (Source.CHECKPOINT,),
    "cpu": (Source.CPU_STATE,),
    "memory": (Source.MEMORY_STATE,),
    "dra": (Source.DRA_STATE, Source.DRA_HEALTH),
    "pods": (Source.ALLOCATED_PODS, Source.ACTUATED_PODS),
}
"""What a person calls the files."""
CHECKPOINT = "kubelet_internal_checkpoint"
BAD = (StateVerdict.REFUSED, StateVerdict.IGNORED, StateVerdict.LOSES, StateVerdict.UNKNOWN)

_FIELDS = {
    Source.CHECKPOINT: "checkpoint",
    Source.CPU_STATE: "cpu_state",
    Source.MEMORY_STATE: "memory_state",
    Source.DRA_STATE: "dra_state",
    Source.DRA_HEALTH: "dra_health",
    Source.ALLOCATED_PODS: "allocated_pods",
    Source.ACTUATED_PODS: "actuated_pods",
}
# What a file is to the rules that could not even be read.
_FAULTY: Mapping[Source, Any] = {
    Source.CPU_STATE: CpuManagerState(None),
    Source.MEMORY_STATE: MemoryManagerState(None),
    Source.DRA_STATE: DraManagerState(None),
    Source.DRA_HEALTH: DraHealthState(),
    Source.ALLOCATED_PODS: PodResourcesState(),
    Source.ACTUATED_PODS: PodResourcesState(),
}
# Behind "could not restore state from checkpoint: ERROR, please drain this node and delete".
_DELETE = {
    Source.CPU_STATE: "the CPU manager checkpoint file",
    Source.MEMORY_STATE: "the memory manager checkpoint file",
    Source.ALLOCATED_PODS: "pod resource information checkpoint file",
    Source.ACTUATED_PODS: "pod resource information checkpoint file",
}
_WHY_NOT_JUST = {
    Source.CPU_STATE: "deleted while pods run, their exclusive CPUs are given out a second time",
    Source.MEMORY_STATE: "deleted while pods run, their memory is given out a second time",
    Source.DRA_STATE: "deleted while pods run, their claims stay prepared with nobody to undo it",
    Source.ALLOCATED_PODS: "deleted while pods run, resizes in flight are lost",
    Source.ACTUATED_PODS: "deleted while pods run, resizes in flight are lost",
}


def file_name(source: Source) -> str:
    return CHECKPOINT if source is Source.CHECKPOINT else source.value


def state_of(snap: Snapshot, source: Source) -> object:
    """The decoded file of a source, or None."""
    return getattr(snap, _FIELDS[source])


def check_rows(
    snap: Snapshot, reader: StateReader, sources: Collection[Source]
) -> list[StateCheckRow]:
    """One row per file that was read, or is there and could not be."""
    found = [_check(snap, reader, source) for source in _FIELDS if source in sources]
    return [row for row in found if row is not None]


def _check(snap: Snapshot, reader: StateReader, source: Source) -> StateCheckRow | None:
    state = state_of(snap, source)
    row = _row(snap, reader, source, state)
    fault = _unread(snap, source, row.path) if state is None else None
    if state is None and fault is None:
        return None
    if fault is not None and source in _FAULTY:
        # As one whose content is too bad: which kubelets look at all is told by the same rules.
        snap = snap._replace(**{_FIELDS[source]: _FAULTY[source]._replace(fault=fault)})
    if getattr(state, "absent", False):
        reason = "there is no file: the kubelet begins without one and makes it"
        return row._replace(verdict=StateVerdict.ABSENT, reason=reason)
    form, stopped, notes = _judge(snap, reader, source, fault)
    newer = getattr(state, "unknown_keys", ())
    if newer:
        keys = ", ".join(newer)
        notes = (f"format newer than known (keys {keys}): judged by what is known", *notes)
    if reader.minor > NEWEST:
        notes = (f"dpctl knows kubelets up to 1.{NEWEST}: judged as one of these", *notes)
    row = row._replace(form=form, notes=(*notes, *_other_half(state, reader)))
    if stopped is None:
        return row
    untold = stopped.verdict is StateVerdict.UNKNOWN and fault is not None
    return row._replace(
        verdict=stopped.verdict,
        rule=stopped.rule,
        says=None if untold else _sentence(source, stopped, row.path),
        reason=stopped.reason,
        remedy=_way_to_tell(snap, source, row.path)
        if untold
        else _remedy(source, stopped, row.path),
    )


def _unread(snap: Snapshot, source: Source, path: str) -> StateFault | None:
    """Why a file that is there was not read; None: there is none, or nobody asked for it."""
    asked = snap.source(source)
    if asked is None or asked.code not in (ExitCode.BAD_DATA, ExitCode.DENIED):
        return None
    words = asked.reason or "it could not be read"
    fails = snap.unreadable.get(source)
    if fails is not None:
        return StateFault(words, f"{fails.call} {path}: {fails.words}")
    # A device checkpoint that is no JSON fails as a source.
    decoded = source is Source.CHECKPOINT and source not in snap.unreadable
    return StateFault(words, certain=decoded and asked.code == ExitCode.BAD_DATA)


def _way_to_tell(snap: Snapshot, source: Source, path: str) -> str:
    """What dpctl could not read may be in order: first it has to be seen."""
    asked = snap.source(source)
    return (asked.hint if asked is not None else None) or f"look at it: ls -lL {path}"


def _row(snap: Snapshot, reader: StateReader, source: Source, state: object) -> StateCheckRow:
    folder = "device-plugins/" if source is Source.CHECKPOINT else ""
    root = "/var/lib/kubelet" if source is Source.CHECKPOINT else snap.state_root
    return StateCheckRow(
        file=file_name(source),
        path=f"{root.rstrip('/')}/{folder}{file_name(source)}",
        version=version_text(state),
        verdict=StateVerdict.GOOD,
        kubelet=reader.version,
        form=None,
        rule=None,
        checksums=_numbers(state),
        says=None,
        reason="read, and nothing wrong with it",
        remedy=None,
        notes=(),
    )


def version_text(state: object) -> str | None:
    """`v1` to `v4`, or what a format calls itself."""
    version = getattr(state, "version", None)
    if isinstance(version, int):
        return f"v{version}"
    return version if isinstance(version, str) else None


def _numbers(state: object) -> tuple[StateChecksum, ...]:
    stored = getattr(state, "stored_checksum", None)
    if stored is not None:
        computed = getattr(state, "computed_checksum", stored)
        return (StateChecksum("", "Checksum", stored, computed),)
    found: tuple[StateChecksum, ...] = getattr(state, "checksums", ())
    return found


def _judge(
    snap: Snapshot, reader: StateReader, source: Source, fault: StateFault | None
) -> tuple[str | None, Stopped | None, tuple[str, ...]]:
    """The form under which it is read, what stops the kubelet, and notes."""
    stopped: Stopped | None
    if source is Source.CPU_STATE and snap.cpu_state is not None:
        cpus = cpu.load_cpu_state(snap.cpu_state, reader)
        if isinstance(cpus, Stopped):
            return None, cpus, ()
        stopped, notes = cpu.check_cpu_content(cpus.content, reader, snap)
        return cpus.form, stopped or _lost(cpus.lost), notes
    if source is Source.MEMORY_STATE and snap.memory_state is not None:
        if reader.minor < 21:
            reason = "kubelets before 1.21 have no memory manager"
            return None, Stopped("gate", None, reason, StateVerdict.UNREAD), ()
        blocks = memory.load_memory_state(snap.memory_state, reader)
        if isinstance(blocks, Stopped):
            return None, blocks, ()
        stopped, notes = memory.check_memory_content(blocks.content, reader, snap)
        return blocks.form, stopped or _lost(blocks.lost), notes
    if source is Source.CHECKPOINT:
        return None, others.check_devices(snap.checkpoint, fault, reader), _devices_twice(snap)
    if source is Source.DRA_STATE and snap.dra_state is not None:
        return None, others.check_dra(snap.dra_state, reader), ()
    if source is Source.DRA_HEALTH and snap.dra_health is not None:
        return None, others.check_health(snap.dra_health), ()
    pods = snap.allocated_pods if source is Source.ALLOCATED_PODS else snap.actuated_pods
    return None, None if pods is None else others.check_pods(pods, reader), ()


def _lost(words: str | None) -> Stopped | None:
    return None if words is None else Stopped("form", None, words, StateVerdict.LOSES)


def _devices_twice(snap: Snapshot) -> tuple[str, ...]:
    from dpctl.inventory.pods import Pods

    if snap.checkpoint is None:
        return ()
    pods = Pods(snap)
    uids = {a.pod_uid for a in snap.checkpoint.allocations}
    live = [uid for uid in uids if pods.by_uid(uid).active]
    return others.held_twice(snap.checkpoint.allocations, live)


def _other_half(state: object, reader: StateReader) -> tuple[str, ...]:
    """What the readers of the half that this kubelet passes over would say."""
    checksums: tuple[StateChecksum, ...] = getattr(state, "checksums", ())
    inner = next((one for one in checksums if one.key == "dataChecksum"), None)
    if inner is None:
        return ()
    outer = checksum_of(checksums, "v2" if inner.form == "v4" else "v1")
    if reader.minor >= 37:
        if outer is None or outer.fits or outer.stored == 0:
            return ()
        return (
            f"the outer half, which kubelets up to 1.36 read, does not fit: checksum says"
            f" {outer.stored}, the content gives {outer.computed}; a downgrade would be refused",
        )
    if inner.fits and getattr(state, "data_fault", None) is None:
        return ()
    return (
        f"`data`, which 1.37 reads, does not fit: dataChecksum says {inner.stored}, the content"
        f" gives {inner.computed}; an upgrade would be refused",
    )


def _sentence(source: Source, stopped: Stopped, path: str) -> str | None:
    """The kubelet's whole sentence. What the static policies find has none around it."""
    if stopped.says is None or source not in _DELETE:
        return stopped.says
    if stopped.rule not in ("decode", "checksum", "policy", "cpu list"):
        return stopped.says
    return (
        f"could not restore state from checkpoint: {stopped.says}, please drain this node and"
        f' delete {_DELETE[source]} "{path}" before restarting Kubelet'
    )


def _remedy(source: Source, stopped: Stopped, path: str) -> str | None:
    if stopped.verdict is StateVerdict.UNREAD:
        return None
    if stopped.verdict is StateVerdict.LOSES:
        return "drain the node before this kubelet starts: those pods' CPUs or memory are forgotten"
    if source is Source.CHECKPOINT:
        return (
            "a kubelet that runs writes it anew at the next change; one that does not: drain the"
            " node first (kubectl drain NODE), then start it, and restart the plugins"
        )
    if source is Source.DRA_HEALTH:
        return "nothing: the kubelet writes it anew"
    way = (
        f"drain the node (kubectl drain NODE), stop the kubelet, move {path} away, start the"
        f" kubelet; {_WHY_NOT_JUST[source]}"
    )
    return f"{stopped.remedy} {way}" if stopped.remedy else way
