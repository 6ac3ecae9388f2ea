"""The kubelet's rules for the content of its files; the sentences are those of its source."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.errors import ExitCode
from dpctl.inventory.state.reader import StateReader, reader_for
from dpctl.inventory.state.rows import StateCheckRow, StateVerdict
from dpctl.inventory.state.verify import FILES, check_rows
from dpctl.model import Checkpoint, MemoryBlock, NumaNode, NumaTree, Snapshot, Source, SourceRow
from dpctl.model.statefiles import (
    CpuAssignments,
    MemoryAssignments,
    MemoryTable,
    NumaMemory,
    ReadFailure,
)
from dpctl.statefiles.cpu_manager import encode_cpu_manager_state, parse_cpu_manager_state
from dpctl.statefiles.dra_health import parse_dra_health_state
from dpctl.statefiles.dra_manager import parse_dra_manager_state
from dpctl.statefiles.memory_manager import (
    encode_memory_manager_state,
    parse_memory_manager_state,
)
from dpctl.statefiles.pod_resources_state import parse_pod_resources_state
from tests.run import DATA

GIB = 1 << 30
STATIC: dict[str, object] = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}
NUMA = NumaTree(
    (
        NumaNode(0, (0, 1, 2, 3), 8 * GIB, GIB, {"hugepages-2Mi": 512}, (10, 21)),
        NumaNode(1, (4, 5, 6, 7), 8 * GIB, GIB, {"hugepages-2Mi": 0}, (21, 10)),
    )
)


def reader(minor: int = 37, **config: object) -> StateReader:
    return StateReader(f"v1.{minor}.2", minor, {**STATIC, **config})


def check(
    source: Source, *, by: StateReader | None = None, numa: NumaTree | None = NUMA, **fields: Any
) -> StateCheckRow:
    sources = (SourceRow(source, "file", "read"),)
    snap = Snapshot(0.0, sources, numa=numa, **fields)
    (row,) = check_rows(snap, by or reader(), [source])
    return row


def cpu(content: CpuAssignments, **options: Any) -> StateCheckRow:
    minor = options["by"].minor if options.get("by") else 37
    data = encode_cpu_manager_state(content, 4 if minor == 37 else 2)
    return check(Source.CPU_STATE, cpu_state=parse_cpu_manager_state(data), **options)


def memory(content: MemoryAssignments, **options: Any) -> StateCheckRow:
    data = encode_memory_manager_state(content)
    return check(Source.MEMORY_STATE, memory_state=parse_memory_manager_state(data), **options)


IDLE = CpuAssignments("static", tuple(range(8)))
WRAPPED = (
    "could not restore state from checkpoint: {}, please drain this node and delete the CPU manager"
    ' checkpoint file "/var/lib/kubelet/cpu_manager_state" before restarting Kubelet'
)


@pytest.mark.parametrize(
    "content",
    [
        IDLE,
        CpuAssignments("static", ()),
        CpuAssignments("static", (0, 1, 4, 5, 6, 7), {"a": {"c": (2, 3)}}),
        CpuAssignments("static", (0, 1, 4, 5, 6, 7), {"a": {"c": (2, 3), "init": (2,)}}),
    ],
)
def test_good_cpus(content):
    row = cpu(content)
    assert row.verdict == StateVerdict.GOOD
    assert (row.says, row.remedy, row.notes) == (None, None, ())


@pytest.mark.parametrize(
    ("content", "rule", "says"),
    [
        (
            CpuAssignments("none", ()),
            "policy",
            WRAPPED.format(
                'configured policy "static" differs from state checkpoint policy "none"'
            ),
        ),
        (
            CpuAssignments("static", (), {"a": {"c": (2,)}}),
            "cpus",
            "default cpuset cannot be empty",
        ),
        (
            CpuAssignments("static", (1, 2, 3, 4, 5, 6, 7), {"a": {"c": (0,)}}),
            "reserved",
            'not all reserved cpus: "0" are present in defaultCpuSet: "1-7"',
        ),
        (
            CpuAssignments("static", tuple(range(8)), {"a": {"c": (3, 4)}}),
            "overlap",
            'pod: a, container: c cpuset: "3-4" overlaps with default cpuset "0-7"',
        ),
        (
            CpuAssignments("static", (0, 1, 2), {"a": {"c": (3,)}}),
            "cpus",
            'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-3"',
        ),
        (
            CpuAssignments("static", tuple(range(9))),
            "cpus",
            'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-8"',
        ),
    ],
)
@pytest.mark.parametrize("minor", [34, 37])
def test_refused_cpus(content, rule, says, minor):
    row = cpu(content, by=reader(minor))
    assert (row.verdict, row.rule, row.says) == (StateVerdict.REFUSED, rule, says)
    assert row.remedy is not None
    assert "drain the node" in row.remedy
    assert "/var/lib/kubelet/cpu_manager_state" in row.remedy


def test_strict_reservation_turns_the_rule_round():
    strict = reader(cpuManagerPolicyOptions={"strict-cpu-reservation": "true"})
    assert cpu(CpuAssignments("static", tuple(range(1, 8))), by=strict).verdict == "Good"
    row = cpu(IDLE, by=strict)
    assert row.says == ('some of strictly reserved cpus: "0" are present in defaultCpuSet: "0-7"')


def test_pod_level_cpus_count_with_the_gate_alone():
    content = CpuAssignments("static", (0, 1, 2, 3, 4, 5), pods={"a": (6, 7)})
    on = reader(featureGates={"PodLevelResourceManagers": True})
    assert cpu(content, by=on).verdict == "Good"
    row = cpu(content)
    assert row.says is not None
    assert row.says.startswith("current set of available CPUs")


def test_cpus_of_two_pods_are_a_note():
    """No kubelet looks for it; containers of one pod may share."""
    content = CpuAssignments("static", (0, 1, 4, 5, 6, 7), {"a": {"c": (2, 3)}, "b": {"c": (3,)}})
    row = cpu(content)
    assert row.verdict == "Good"
    assert row.notes == ("CPUs 3 are held by pod a and by pod b; no kubelet looks",)


@pytest.mark.parametrize(
    ("text", "error"),
    [("0-x", 'strconv.Atoi: parsing "x": invalid syntax'), ("5-3", 'invalid range "5-3" (5 > 3)')],
)
@pytest.mark.parametrize(("minor", "name"), [(37, "CPU set"), (36, "cpu set"), (34, "cpu set")])
def test_a_list_that_cannot_be_parsed(text, error, minor, name):
    data = encode_cpu_manager_state(IDLE, 2).replace(b"0-7", text.encode())
    state = parse_cpu_manager_state(data)
    (number,) = [one for one in state.checksums if one.form == "v2"]
    data = data.replace(str(number.stored).encode(), str(number.computed).encode())
    row = check(Source.CPU_STATE, cpu_state=parse_cpu_manager_state(data), by=reader(minor))
    assert row.rule == "cpu list"
    assert row.says == WRAPPED.format(f'could not parse default {name} "{text}": {error}')


def test_what_is_not_known_is_said():
    unknown = StateReader("v1.37.2", 37, None)
    row = cpu(IDLE, by=unknown, numa=None)
    assert row.verdict == "Good"
    assert [note.partition(":")[0] for note in row.notes] == [
        "the configured policy is not known",
        "the reserved CPUs are not known",
        "which CPUs are online is not known",
    ]
    by_quantity = reader(reservedSystemCPUs="", kubeReserved={"cpu": "1500m"})
    assert cpu(IDLE, by=by_quantity).notes == (
        "which 2 CPUs are reserved depends on the machine's cores: not checked",
    )


def table(total: int, system: int, pages: int = 0, reserved: int = 0) -> MemoryTable:
    allocatable = total - system - pages
    return MemoryTable(total, system, allocatable, reserved, allocatable - reserved)


def node(
    number: int, reserved: int = 0, *, count: int = 0, group: tuple[int, ...] | None = None
) -> NumaMemory:
    pages = GIB if number == 0 else 0
    kept = GIB if number == 0 else 0
    return NumaMemory(
        count,
        {
            "hugepages-2Mi": table(pages, 0),
            "memory": table(8 * GIB, kept, pages, reserved),
        },
        group or (number,),
    )


MACHINE = MemoryAssignments("Static", {0: node(0), 1: node(1)})
BLOCK = MemoryBlock("memory", 2 * GIB, (0,))
BOTH = MemoryBlock("memory", 7 * GIB, (0, 1))


@pytest.mark.parametrize(
    "content",
    [
        MACHINE,
        MemoryAssignments("Static", {}),
        MemoryAssignments(
            "Static", {0: node(0, 2 * GIB, count=1), 1: node(1)}, {"a": {"c": (BLOCK,)}}
        ),
        MemoryAssignments(
            "Static",
            {
                0: node(0, 6 * GIB, count=1, group=(0, 1)),
                1: node(1, GIB, count=1, group=(0, 1)),
            },
            {"a": {"c": (BOTH,)}},
        ),
        # What joined nodes hold counts in sum.
        MemoryAssignments(
            "Static",
            {
                0: node(0, 5 * GIB, count=1, group=(0, 1)),
                1: node(1, 2 * GIB, count=1, group=(1, 0)),
            },
            {"a": {"c": (BOTH,)}},
        ),
        # An init container's block that was used again.
        MemoryAssignments(
            "Static",
            {0: node(0, 2 * GIB, count=2), 1: node(1)},
            {"a": {"c": (BLOCK,), "init": (BLOCK._replace(size=0),)}},
        ),
    ],
)
def test_good_memory(content):
    row = memory(content)
    assert (row.verdict, row.reason, row.notes) == ("Good", "read, and nothing wrong with it", ())


DIFFERENT = "[memorymanager] the expected machine state is different from the real one"
EXISTS = "[memorymanager] (pod: a, container: c) the memory assignment uses {} that does not exist"


@pytest.mark.parametrize(
    ("content", "rule", "says", "words"),
    [
        (
            MemoryAssignments("Static", {}, {"a": {"c": (BLOCK,)}}),
            "machine",
            "[memorymanager] machine state can not be empty when it has memory assignments",
            "machineState is empty",
        ),
        (MemoryAssignments("Static", {0: node(0)}), "numa", DIFFERENT, "NUMA nodes 0-1"),
        (
            MemoryAssignments("Static", {0: node(0, count=1), 1: node(1)}),
            "machine",
            DIFFERENT,
            "counts 1 assignments, the containers make 0",
        ),
        (
            MemoryAssignments("Static", {0: node(0, group=(0, 1)), 1: node(1)}),
            "numa",
            DIFFERENT,
            "joined as 0-1, by the containers as 0",
        ),
        (
            MemoryAssignments("Static", {0: node(0, GIB), 1: node(1)}),
            "machine",
            DIFFERENT,
            "free is",
        ),
        (
            MACHINE._replace(containers={"a": {"c": (BLOCK._replace(numa_nodes=(7,)),)}}),
            "numa",
            EXISTS.format("the NUMA"),
            "NUMA node 7",
        ),
        (
            MACHINE._replace(containers={"a": {"c": (BLOCK._replace(memory_type="x"),)}}),
            "memory",
            EXISTS.format("memory resource"),
            "has no x",
        ),
        (
            MACHINE._replace(nodes={**MACHINE.nodes, 1: None}),
            "numa",
            DIFFERENT,
            "NUMA node 1 is null",
        ),
    ],
)
def test_refused_memory(content, rule, says, words):
    row = memory(content)
    assert (row.verdict, row.rule, row.says) == ("Refused", rule, says)
    assert words in row.reason
    assert row.remedy is not None
    assert "drain" in row.remedy


def test_memory_of_another_size_says_by_how_much():
    """Totals change by a few MiB from boot to boot (field report H5)."""
    other = NumaTree((NUMA.nodes[0]._replace(memory_total=8 * GIB + 4096), NUMA.nodes[1]))
    row = memory(MACHINE, numa=other)
    assert row.rule == "memory"
    assert "total: 8589934592 in the file, 8589938688 on the machine (4096 bytes more)" in (
        row.reason
    )


def test_a_reservation_that_was_changed():
    row = memory(MACHINE, by=reader(reservedMemory=[{"numaNode": 0, "limits": {"memory": "2Gi"}}]))
    assert "reserved for the system: 1073741824 in the file, 2147483648" in row.reason
    # Without the configuration the recorded one is taken.
    row = memory(MACHINE, by=StateReader("v1.37.2", 37, None))
    assert row.verdict == "Good"
    assert any("reservedMemory" in note for note in row.notes)


def test_groups_that_overlap_are_a_matter_of_chance():
    """kubernetes#113035: [0] and [0,1]."""
    nodes = {0: node(0, 6 * GIB, count=2), 1: node(1, 3 * GIB, count=1, group=(0, 1))}
    row = memory(MemoryAssignments("Static", nodes, {"a": {"c": (BLOCK,)}, "b": {"c": (BOTH,)}}))
    assert (row.verdict, row.rule) == ("Unknown", "numa")
    assert "depends on chance" in row.reason


def test_the_kubelets_of_the_other_half():
    text = encode_cpu_manager_state(IDLE).replace(b'"checksum":', b'"checksum":1')
    state = parse_cpu_manager_state(text)
    row = check(Source.CPU_STATE, cpu_state=state)
    assert row.verdict == "Good"
    assert "a downgrade would be refused" in row.notes[0]
    row = check(Source.CPU_STATE, cpu_state=state, by=reader(34))
    assert (row.verdict, row.rule) == ("Refused", "checksum")
    text = encode_cpu_manager_state(IDLE).replace(b'"dataChecksum":', b'"dataChecksum":1')
    state = parse_cpu_manager_state(text)
    row = check(Source.CPU_STATE, cpu_state=state, by=reader(34))
    assert row.verdict == "Good"
    assert "an upgrade would be refused" in row.notes[0]
    assert check(Source.CPU_STATE, cpu_state=state).says == WRAPPED.format(
        "could not load v4 checkpoint: checkpoint is corrupted"
    )


def test_newer_than_known_is_said():
    text = encode_cpu_manager_state(IDLE).replace(b'{"policyName"', b'{"quota":1,"policyName"', 1)
    row = check(Source.CPU_STATE, cpu_state=parse_cpu_manager_state(text), by=reader(39))
    assert row.notes == (
        "dpctl knows kubelets up to 1.37: judged as one of these",
        "format newer than known (keys quota): judged by what is known",
    )


@pytest.mark.parametrize(
    ("minor", "says"),
    [
        (37, "json: cannot unmarshal string into Go struct field CPUManagerCheckpointV2.entries"),
        (36, "failed to migrate checkpoint from v1 to v2: containerID 'x' not found in"),
        (34, "error migrating v1 checkpoint state to v2 checkpoint state: containerID 'x' not"),
    ],
)
def test_v1_with_containers(minor, says):
    data = encode_cpu_manager_state(IDLE, 1, container_ids={"x": (3,)})
    row = check(Source.CPU_STATE, cpu_state=parse_cpu_manager_state(data), by=reader(minor))
    assert says in (row.says or "")
    assert row.verdict == ("Refused" if minor == 37 else "Unknown")


@pytest.mark.parametrize(
    ("source", "field", "data", "verdict", "says"),
    [
        (
            Source.DRA_STATE,
            "dra_state",
            b'{"Data":"{}","Checksum":1}',
            "Refused",
            "create ResourceClaim cache: GetOrCreate() on checkpoint state: failed to get"
            " checkpoint dra_manager_state: checkpoint is corrupted",
        ),
        (
            Source.DRA_HEALTH,
            "dra_health",
            b"{",
            "Ignored",
            'Failed to load health checkpoint, proceeding with empty cache" err="unexpected end of'
            " JSON input",
        ),
        (
            Source.ALLOCATED_PODS,
            "allocated_pods",
            b'{"data":"{}","checksum":0}',
            "Refused",
            "could not restore state from checkpoint: checkpoint is corrupted, please drain this"
            " node and delete pod resource information checkpoint file"
            ' "/var/lib/kubelet/allocated_pods_state" before restarting Kubelet',
        ),
    ],
)
def test_the_other_files(source, field, data, verdict, says):
    parse: Any = {
        "dra_state": parse_dra_manager_state,
        "dra_health": parse_dra_health_state,
        "allocated_pods": parse_pod_resources_state,
    }[field]
    row = check(source, **{field: parse(data)})
    assert (row.verdict, row.says) == (verdict, says)
    old = check(source, **{field: parse(data)}, by=reader(30))
    assert old.verdict == ("Ignored" if field == "dra_health" else "Unread")


def test_the_device_checkpoint_never_stops_a_kubelet():
    row = check(Source.CHECKPOINT, checkpoint=Checkpoint((), {}, 1, 2))
    assert (row.verdict, row.path) == (
        "Ignored",
        "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
    )
    assert "start without one" in row.reason
    assert check(Source.CHECKPOINT, checkpoint=Checkpoint((), {}, 0, 0, absent=True)).verdict == (
        "Absent"
    )


def test_the_published_drift_is_found():
    """inputs/meminfo-drift.txt beside memory_manager_state-pods.json (field report H5)."""
    state = parse_memory_manager_state(
        (DATA / "inputs/memory_manager_state-pods.json").read_bytes()
    )
    lines = (DATA / "inputs/meminfo-drift.txt").read_text().splitlines()
    totals = {int(w[1]): int(w[3]) * 1024 for line in lines if len(w := line.split()) == 5}
    numa = NumaTree(
        tuple(
            NumaNode(n, (n,), totals[n], 0, {"hugepages-1Gi": 10, "hugepages-2Mi": 0}, ())
            for n in (0, 1)
        )
    )
    row = check(
        Source.MEMORY_STATE,
        memory_state=state,
        numa=numa,
        by=StateReader("v1.34.4", 34, None),
    )
    assert (row.verdict, row.rule) == ("Refused", "memory")


@pytest.mark.parametrize(
    ("text", "minor"),
    [("v1.37.2", 37), ("1.34.4", 34), ("v1.33.1+k3s1", 33), ("v1.36.0-eks-1", 36)],
)
def test_versions(text, minor):
    found = reader_for(text, None)
    assert found is not None
    assert found.minor == minor


@pytest.mark.parametrize("text", ["v0.0.0", "v0.0.0-master+x", "", "latest", "v2.1.0", "1"])
def test_no_versions(text):
    assert reader_for(text, None) is None


@given(
    st.sets(st.integers(0, 7)),
    st.lists(st.sets(st.integers(0, 7)), max_size=3),
    st.sampled_from([34, 36, 37]),
)
def test_what_is_called_good_is_a_partition(default, held, minor):
    """Whatever the file says: a good one has every CPU, each in the pool or held, 0 in the pool."""
    containers = {f"pod{i}": {"c": tuple(sorted(cpus))} for i, cpus in enumerate(held)}
    content = CpuAssignments("static", tuple(sorted(default)), containers)
    row = cpu(content, by=reader(minor))
    exclusive = set().union(*held)
    whole = 0 in default and not default & exclusive and default | exclusive == set(range(8))
    fresh = not default and not held
    assert (row.verdict == "Good") is (whole or fresh)


# --- files that could not be read -----------------------------------------------------------------

DIRECTORY = ReadFailure("read", "is a directory")
FAILED = {
    Source.CPU_STATE: WRAPPED.format("read /var/lib/kubelet/cpu_manager_state: is a directory"),
    Source.DRA_STATE: "create ResourceClaim cache: GetOrCreate() on checkpoint state: failed to get"
    " checkpoint dra_manager_state: read /var/lib/kubelet/dra_manager_state: is a directory",
    Source.DRA_HEALTH: 'Failed to load health checkpoint, proceeding with empty cache" err="read'
    " /var/lib/kubelet/dra_health_state: is a directory",
    Source.CHECKPOINT: "Continue after failing to read checkpoint file. Device allocation info may"
    ' NOT be up-to-date" err="read /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint: is'
    " a directory",
}
EVERY = [source for sources in FILES.values() for source in sources]


def unread(source: Source, code: ExitCode, **fields: Any) -> list[StateCheckRow]:
    sources = (SourceRow(source, "file", "failed", "WHY", "LOOK", code),)
    return check_rows(Snapshot(0.0, sources, **fields), reader(), [source])


@pytest.mark.parametrize("source", EVERY)
def test_a_file_that_no_program_can_read(source):
    (row,) = unread(source, ExitCode.BAD_DATA, unreadable={source: DIRECTORY})
    starts = source in (Source.CHECKPOINT, Source.DRA_HEALTH)
    assert row.verdict == (StateVerdict.IGNORED if starts else StateVerdict.REFUSED)
    assert row.says == FAILED.get(source, row.says)
    assert row.says is not None
    assert f"read {row.path}: is a directory" in row.says
    assert "WHY" in row.reason


@pytest.mark.parametrize("source", EVERY)
@pytest.mark.parametrize(
    ("code", "unreadable"), [(ExitCode.BAD_DATA, True), (ExitCode.DENIED, False)]
)
def test_a_file_that_dpctl_did_not_read(source, code, unreadable):
    (row,) = unread(source, code, unreadable={source: None} if unreadable else {})
    assert (row.verdict, row.says, row.reason) == (StateVerdict.UNKNOWN, None, "WHY")
    assert row.remedy == "LOOK"


@pytest.mark.parametrize("source", EVERY)
def test_a_directory_that_is_not_there_has_no_files(source):
    assert unread(source, ExitCode.UNREACHABLE) == []


def test_a_file_that_this_kubelet_does_not_read():
    source = Source.ALLOCATED_PODS
    sources = (SourceRow(source, "file", "failed", "WHY", "LOOK", ExitCode.BAD_DATA),)
    snap = Snapshot(0.0, sources, unreadable={source: None})
    (row,) = check_rows(snap, reader(30), [source])
    assert row.verdict == StateVerdict.UNREAD
