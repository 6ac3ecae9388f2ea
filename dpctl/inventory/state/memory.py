"""The memory manager's own rules for its state file (kubelet-facts §5.5), read in 1.34 to 1.37.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpctl import cpuset, quantity
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
from dpctl.model import MemoryBlock, NumaTree, Snapshot
from dpctl.model.statefiles import (
    MemoryAssignments,
    MemoryManagerState,
    MemoryTable,
    NumaMemory,
    checksum_of,
)

_DIFFERENT = "[memorymanager] the expected machine state is different from the real one"
_WRAP = 2**64
_GROUPS = "NUMA node {} is joined with {} for one container and with {} for another"


def load_memory_state(
    state: MemoryManagerState, reader: StateReader
) -> Loaded[MemoryAssignments] | Stopped:
    """What this kubelet reads of the file, or why it does not."""
    if state.fault is not None or state.outer is None:
        assert state.fault is not None
        return undecodable(state.fault)
    if reader.minor >= 37 and state.version == 3:
        return load_data("memory", "v3", state.data, state.data_fault, state.checksums, reader)
    outer = state.outer
    if (reader.minor >= 37 or (reader.minor == 36 and reader.pod_level)) and fits(
        state.checksums, "v2"
    ):
        return with_pods("memory", outer, "v2", reader)
    number = checksum_of(state.checksums, "v1")
    zero = reader.minor >= 36 and number is not None and number.stored == 0
    own = reader.minor == 36 and not reader.pod_level and fits(state.checksums, "v1*")
    if fits(state.checksums, "v1") or zero or own:
        return without_pods("memory", outer, "v1")
    why = numbers_text(number)
    if fits(state.checksums, "v2"):
        why = "the file is v2, which only 1.37, and 1.36 with PodLevelResourceManagers on, read"
    elif number is not None and number.stored == 0:
        why = "checksum is 0, which kubelets before 1.36 refuse"
    return Stopped("checksum", CORRUPT, why)


# --- content ---


def check_memory_content(
    content: MemoryAssignments, reader: StateReader, snap: Snapshot
) -> tuple[Stopped | None, tuple[str, ...]]:
    """The rule that stops the kubelet, if any; and what is odd or could not be checked."""
    stopped, notes = check_policy(
        reader, "memoryManagerPolicy", "None", content.policy, "[memorymanager] "
    )
    if stopped is not None:
        return stopped, ()
    if content.policy != "Static":
        return None, tuple(notes)
    return _check_static(content, reader, snap, notes), tuple(notes)


def _check_static(
    content: MemoryAssignments, reader: StateReader, snap: Snapshot, notes: list[str]
) -> Stopped | None:
    if not content.nodes:
        if content.containers:
            says = "[memorymanager] machine state can not be empty when it has memory assignments"
            return Stopped("machine", says, "machineState is empty, although pods hold memory")
        return None
    if snap.numa is None:
        notes.append("the machine's memory is not known: not compared")
        return None
    reserved = reader.reserved_memory()
    if reserved is None:
        notes.append("reservedMemory is not known: taken to be the recorded one")
        reserved = _recorded_reserved(content.nodes)
    expected = _empty_machine(snap.numa, reserved)
    seen: dict[int, tuple[int, ...]] = {}
    ambiguous: str | None = None
    for pod, container, block in _blocks(content):
        stopped = _place(expected, pod, container, block)
        if stopped is not None:
            return stopped
        for number in block.numa_nodes or ():
            group = tuple(sorted(block.numa_nodes or ()))
            if seen.setdefault(number, group) != group:
                one, two = cpuset.render(seen[number]), cpuset.render(group)
                ambiguous = _GROUPS.format(number, one, two)
    if ambiguous is not None:
        return Stopped(
            "numa",
            _DIFFERENT,
            f"{ambiguous}: which of the two the kubelet expects depends on chance",
            StateVerdict.UNKNOWN,
        )
    different = _difference(content.nodes, expected)
    if different is None:
        return None
    rule, reason = different
    return Stopped(
        rule,
        _DIFFERENT,
        reason,
        remedy="either put memory and reservedMemory back to what they were; or"
        if rule == "memory"
        else None,
    )


def _blocks(content: MemoryAssignments) -> Iterator[tuple[str, str, MemoryBlock]]:
    """In the file's order; of a pod with memory of its own the containers' is not added."""
    for pod, containers in content.containers.items():
        of_pod = content.pods.get(pod)
        if of_pod:
            yield from ((pod, "", block) for block in of_pod)
            continue
        for container, blocks in containers.items():
            yield from ((pod, container, block) for block in blocks)


class _Node:
    """One NUMA node of the expected machine, while blocks are placed."""

    def __init__(self, number: int, tables: dict[str, list[int]]) -> None:
        self.assignments = 0
        self.group: tuple[int, ...] = (number,)
        self.tables = tables
        """Memory type to total, system reserved, allocatable, reserved, free."""


def _empty_machine(numa: NumaTree, reserved: Mapping[tuple[int, str], int]) -> dict[int, _Node]:
    found: dict[int, _Node] = {}
    for node in numa.nodes:
        tables: dict[str, list[int]] = {}
        in_pages = 0
        for kind, pages in node.hugepages.items():
            total = pages * (quantity.count(kind.removeprefix("hugepages-")) or 0)
            in_pages += total
            tables[kind] = _table(total, reserved.get((node.numa_node, kind), 0), 0)
        kept = reserved.get((node.numa_node, "memory"), 0)
        tables["memory"] = _table(node.memory_total or 0, kept, in_pages)
        found[node.numa_node] = _Node(node.numa_node, tables)
    return found


def _table(total: int, reserved: int, in_pages: int) -> list[int]:
    allocatable = (total - reserved - in_pages) % _WRAP
    return [total, reserved, allocatable, 0, allocatable]


def _recorded_reserved(
    nodes: Mapping[int, NumaMemory | None],
) -> dict[tuple[int, str], int]:
    return {
        (number, kind): table.system_reserved
        for number, node in nodes.items()
        if node is not None
        for kind, table in node.tables.items()
        if table is not None
    }


def _place(
    expected: dict[int, _Node], pod: str, container: str, block: MemoryBlock
) -> Stopped | None:
    """Account for a block as the kubelet does; a node that is full is passed over."""
    left = block.size
    where = f"[memorymanager] (pod: {pod}, container: {container}) the memory assignment uses"
    for number in block.numa_nodes or ():
        node = expected.get(number)
        if node is None:
            says = f"{where} the NUMA that does not exist"
            return Stopped("numa", says, f"NUMA node {number} of the file is not on this machine")
        node.assignments += 1
        node.group = block.numa_nodes or ()
        table = node.tables.get(block.memory_type)
        if table is None:
            says = f"{where} memory resource that does not exist"
            reason = f"NUMA node {number} has no {block.memory_type} on this machine"
            return Stopped("memory", says, reason)
        taken = min(left, table[4])
        table[3] += taken
        table[4] -= taken
        left -= taken
    return None


_FIELDS = ("total", "reserved for the system", "allocatable")


def _difference(
    nodes: Mapping[int, NumaMemory | None], expected: Mapping[int, _Node]
) -> tuple[str, str] | None:
    """The rule and the first thing that differs, in the kubelet's order of looking."""
    if set(nodes) != set(expected):
        here, there = cpuset.render(expected), cpuset.render(n for n in nodes if n >= 0)
        return "numa", f"the machine has NUMA nodes {here}, the file {there}"
    for number in sorted(nodes):
        node, wanted = nodes[number], expected[number]
        if node is None:
            return "numa", f"NUMA node {number} is null"
        if node.assignments != wanted.assignments:
            return "machine", (
                f"NUMA node {number} counts {node.assignments} assignments, the containers make"
                f" {wanted.assignments}"
            )
        if sorted(node.group) != sorted(wanted.group):
            one, two = cpuset.render(node.group), cpuset.render(wanted.group)
            return "numa", f"NUMA node {number} is joined as {one}, by the containers as {two}"
        if set(node.tables) != set(wanted.tables):
            here = ", ".join(sorted(set(node.tables) ^ set(wanted.tables)))
            return "memory", f"NUMA node {number}: {here} is only in one of file and machine"
        for kind, table in sorted(node.tables.items()):
            found = _table_difference(number, kind, table, wanted.tables[kind])
            found = found or _group_difference(nodes, expected, node, kind)
            if found is not None:
                return found
    return None


def _table_difference(
    number: int, kind: str, table: MemoryTable | None, wanted: list[int]
) -> tuple[str, str] | None:
    if table is None:
        return "memory", f"NUMA node {number}: {kind} is null"
    for name, one, two in zip(_FIELDS, table, wanted, strict=False):
        if one != two:
            by = two - one
            more = f"{abs(by)} bytes {'more' if by > 0 else 'less'}"
            return "memory", (
                f"NUMA node {number}, {kind}, {name}: {one} in the file, {two} on the machine"
                f" ({more})"
            )
    return None


def _group_difference(
    nodes: Mapping[int, NumaMemory | None],
    expected: Mapping[int, _Node],
    node: NumaMemory,
    kind: str,
) -> tuple[str, str] | None:
    """Free and reserved are compared in sum over joined nodes."""
    tables = [found.tables.get(kind) for n in node.group if (found := nodes.get(n)) is not None]
    known = [table for table in tables if table is not None]
    wanted = [expected[n].tables[kind] for n in node.group if n in expected]
    group = cpuset.render(node.group)
    for name, one, two in (
        ("free", sum(t.free for t in known), sum(t[4] for t in wanted)),
        ("reserved", sum(t.reserved for t in known), sum(t[3] for t in wanted)),
    ):
        if one != two:
            return "machine", (
                f"NUMA node {group}, {kind}: {name} is {one} in the file, {two} by its containers"
            )
    return None
