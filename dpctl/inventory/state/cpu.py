"""The CPU manager's rules for its state file (kubelet-facts §5.4), read in 1.34 to 1.37. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from dpctl import cpuset
from dpctl.inventory.state.loading import (
    CORRUPT,
    Loaded,
    Stopped,
    check_policy,
    fits,
    load_data,
    numbers_text,
    undecodable,
    with_pods,
    without_pods,
)
from dpctl.inventory.state.reader import StateReader
from dpctl.inventory.state.rows import StateVerdict
from dpctl.model import Snapshot
from dpctl.model.statefiles import BadCpuList, CpuAssignments, CpuManagerState, checksum_of

_LAST_WITH_V1 = 36
_FIRST_WITH_V2 = 18
_NESTED = "json: cannot unmarshal object into Go struct field {}.entries of type string"
_FLAT = "json: cannot unmarshal string into Go struct field {}.entries of type map[string]string"


def load_cpu_state(state: CpuManagerState, reader: StateReader) -> Loaded[CpuAssignments] | Stopped:
    """What this kubelet reads of the file, or why it does not."""
    if state.fault is not None or state.outer is None:
        assert state.fault is not None
        return undecodable(state.fault)
    if reader.minor >= 37:
        return _by_137(state, state.outer, reader)
    if reader.minor == 36 and reader.pod_level and fits(state.checksums, "v3"):
        return Loaded(state.outer, "v3")
    return _by_older(state, state.outer, reader)


def _by_137(
    state: CpuManagerState, outer: CpuAssignments, reader: StateReader
) -> Loaded[CpuAssignments] | Stopped:
    if state.version == 4:
        return load_data("cpu", "v4", state.data, state.data_fault, state.checksums, reader)
    if fits(state.checksums, "v3", "v3*"):
        return with_pods("cpu", outer, "v3", reader)
    if state.container_ids:
        return Stopped(
            "decode",
            _FLAT.format("CPUManagerCheckpointV2"),
            "the file is v1, of a kubelet before 1.18, which 1.37 no longer reads",
        )
    if _accepted(state, "v2", own_name=not reader.pod_level):
        return without_pods("cpu", outer, "v2")
    return Stopped("checksum", CORRUPT, numbers_text(checksum_of(state.checksums, "v2")))


def _by_older(
    state: CpuManagerState, outer: CpuAssignments, reader: StateReader
) -> Loaded[CpuAssignments] | Stopped:
    """1.36 tries v2, then v1, and shows the error of the last; 1.18 to 1.35 the other way round."""
    own_name = reader.minor == _LAST_WITH_V1 and not reader.pod_level
    if reader.minor >= _FIRST_WITH_V2 and _accepted(state, "v2", own_name=own_name):
        return without_pods("cpu", outer, "v2")
    if _accepted(state, "v1", own_name=False):
        return _migrated(state, outer, reader)
    if reader.minor < _FIRST_WITH_V2 or reader.minor == _LAST_WITH_V1:
        if outer.containers:
            name = f"CPUManagerCheckpoint{'V1' if reader.minor == _LAST_WITH_V1 else ''}"
            why = numbers_text(checksum_of(state.checksums, "v2"))
            if reader.minor < _FIRST_WITH_V2:
                why = f"the file is v{state.version}, and kubelets before 1.18 read v1 only"
            return Stopped("checksum", _NESTED.format(name), _why_v3(state, why))
        return Stopped("checksum", CORRUPT, numbers_text(checksum_of(state.checksums, "v1")))
    if state.container_ids:
        says = _FLAT.format("CPUManagerCheckpoint")
        return Stopped("checksum", says, numbers_text(checksum_of(state.checksums, "v1")))
    why = _why_v3(state, numbers_text(checksum_of(state.checksums, "v2")))
    return Stopped("checksum", CORRUPT, why)


def _why_v3(state: CpuManagerState, otherwise: str) -> str:
    if fits(state.checksums, "v3"):
        return "the file is v3, which only 1.37, and 1.36 with PodLevelResourceManagers on, read"
    return otherwise


def _migrated(
    state: CpuManagerState, outer: CpuAssignments, reader: StateReader
) -> Loaded[CpuAssignments] | Stopped:
    if not state.container_ids or reader.minor < _FIRST_WITH_V2:
        return Loaded(outer, "v1")
    first = next(iter(state.container_ids))
    prefix = "error migrating v1 checkpoint state to v2 checkpoint state"
    if reader.minor == _LAST_WITH_V1:
        prefix = "failed to migrate checkpoint from v1 to v2"
    return Stopped(
        "decode",
        f"{prefix}: containerID '{first}' not found in initial containers list",
        "the file is v1 and names container IDs: the kubelet starts only if every one of these"
        " containers is still there",
        StateVerdict.UNKNOWN,
    )


def _accepted(state: CpuManagerState, form: str, *, own_name: bool) -> bool:
    """A number of 0 is not looked at (v1 and v2)."""
    number = checksum_of(state.checksums, form)
    if number is None:
        return False
    return number.stored == 0 or number.fits or (own_name and fits(state.checksums, f"{form}*"))


# --- content ---


def check_cpu_content(
    content: CpuAssignments, reader: StateReader, snap: Snapshot
) -> tuple[Stopped | None, tuple[str, ...]]:
    """The rule that stops the kubelet, if any; and what is odd or could not be checked."""
    stopped, notes = check_policy(reader, "cpuManagerPolicy", "none", content.policy)
    if stopped is not None:
        return stopped, ()
    bad = _bad_list(content, reader)
    if bad is not None:
        return bad, tuple(notes)
    if content.policy != "static":
        return None, tuple(notes)
    stopped = _check_static(content, reader, snap, notes)
    notes += _held_twice(content)
    return stopped, tuple(notes)


def _bad_list(content: CpuAssignments, reader: StateReader) -> Stopped | None:
    for where in ("default", "container", "baseline"):
        for one in content.unparsable:
            if one.where == where and (where != "baseline" or _baselines_count(reader)):
                reason = f"{one.text!r} is no CPU list: {one.error}"
                return Stopped("cpu list", _bad_list_says(one, reader), reason)
    return None


def _baselines_count(reader: StateReader) -> bool:
    return reader.minor >= 37 and reader.gate("InPlacePodVerticalScalingExclusiveCPUs", since=99)


def _bad_list_says(one: BadCpuList, reader: StateReader) -> str:
    if one.where == "default":
        name = "CPU set" if reader.minor >= 37 else "cpu set"
        return f'could not parse default {name} "{one.text}": {one.error}'
    name = "Baseline cpuset" if one.where == "baseline" else "cpuset"
    return (
        f'could not parse {name} "{one.text}" for container "{one.container}"'
        f' in pod "{one.pod_uid}": {one.error}'
    )


def _check_static(
    content: CpuAssignments, reader: StateReader, snap: Snapshot, notes: list[str]
) -> Stopped | None:
    default = set(content.default_cpus)
    if not default:
        if content.containers:
            reason = "no CPU is left for the shared pool, although pods hold some"
            return Stopped("cpus", "default cpuset cannot be empty", reason)
        return None
    reserved = reader.reserved_cpus()
    strict = reader.option("cpuManagerPolicyOptions", "strict-cpu-reservation")
    if reserved is not None:
        stopped = _check_reserved(set(reserved), default, strict)
        if stopped is not None:
            return stopped
    else:
        notes.append(_reserved_unknown(reader))
    for pod, lists in content.containers.items():
        for container, cpus in lists.items():
            if default.intersection(cpus):
                return _overlap(pod, container, cpus, content.default_cpus)
    if snap.numa is None:
        notes.append("which CPUs are online is not known: not compared")
        return None
    if strict and reserved is None:
        notes.append("with strict-cpu-reservation the CPUs cannot be compared either")
        return None
    online = set(snap.numa.node_of_cpu()) - (set(reserved or ()) if strict else set())
    known = default.union(*(c for lists in content.containers.values() for c in lists.values()))
    known = known.union(*content.pods.values())
    if known == online:
        return None
    return _cpus_differ(online, known)


def _check_reserved(reserved: set[int], default: set[int], strict: bool) -> Stopped | None:
    if strict:
        inside = reserved & default
        if not inside:
            return None
        says = (
            f'some of strictly reserved cpus: "{cpuset.render(inside)}" are present in'
            f' defaultCpuSet: "{cpuset.render(default)}"'
        )
        reason = f"CPUs {cpuset.render(inside)} are reserved strictly, and in the shared pool"
        return Stopped("reserved", says, reason)
    if reserved <= default:
        return None
    says = (
        f'not all reserved cpus: "{cpuset.render(reserved)}" are present in defaultCpuSet:'
        f' "{cpuset.render(default)}"'
    )
    lost = cpuset.render(reserved - default)
    reason = f"CPUs {lost} are reserved now, and not in the recorded shared pool"
    return Stopped("reserved", says, reason, remedy="either reserve what was reserved before; or")


def _reserved_unknown(reader: StateReader) -> str:
    count = reader.reserved_count()
    if count is None:
        return "the reserved CPUs are not known: not checked"
    return f"which {count} CPUs are reserved depends on the machine's cores: not checked"


def _overlap(pod: str, container: str, cpus: Iterable[int], default: Iterable[int]) -> Stopped:
    shared = cpuset.render(set(cpus) & set(default))
    return Stopped(
        "overlap",
        f'pod: {pod}, container: {container} cpuset: "{cpuset.render(cpus)}" overlaps with default'
        f' cpuset "{cpuset.render(default)}"',
        f"CPUs {shared} are in the shared pool and held exclusively by container {container}: a"
        " kubelet that is killed between its two writes leaves a file like that",
    )


def _cpus_differ(online: set[int], known: set[int]) -> Stopped:
    parts = []
    if known - online:
        parts.append(f"CPUs {cpuset.render(known - online)} of the file are not online")
    if online - known:
        parts.append(f"online CPUs {cpuset.render(online - known)} are not in the file")
    return Stopped(
        "cpus",
        f'current set of available CPUs "{cpuset.render(online)}" doesn\'t match with CPUs in state'
        f' "{cpuset.render(known)}"',
        "; ".join(parts) + " (CPU hot-plug, SMT switched, another machine type)",
        remedy="either bring the machine's CPUs back to what they were; or",
    )


def _held_twice(content: CpuAssignments) -> list[str]:
    """CPUs of several pods, which no kubelet looks for. Containers of one pod may share."""
    owner: dict[int, str] = {}
    found: dict[tuple[str, str], set[int]] = {}
    for pod, lists in content.containers.items():
        for cpu in {cpu for cpus in lists.values() for cpu in cpus}:
            other = owner.setdefault(cpu, pod)
            if other != pod:
                found.setdefault((other, pod), set()).add(cpu)
    return [
        f"CPUs {cpuset.render(cpus)} are held by pod {one} and by pod {two}; no kubelet looks"
        for (one, two), cpus in found.items()
    ]
