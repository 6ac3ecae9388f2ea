from __future__ import annotations

import pytest

from dpctl.errors import BadDataError
from dpctl.inventory.state.cpu import load_cpu_state
from dpctl.inventory.state.loading import Loaded
from dpctl.inventory.state.memory import load_memory_state
from dpctl.inventory.state.others import check_devices, check_dra, check_pods
from dpctl.inventory.state.reader import StateReader
from dpctl.model import Checkpoint
from dpctl.model.statefiles import StateFault
from dpctl.statefiles.cpu_manager import parse_cpu_manager_state
from dpctl.statefiles.device_checkpoint import parse_checkpoint
from dpctl.statefiles.dra_manager import parse_dra_manager_state
from dpctl.statefiles.memory_manager import parse_memory_manager_state
from dpctl.statefiles.pod_resources_state import parse_pod_resources_state

from .index import COLUMNS, VECTORS, verdicts

INDEX = verdicts()


def accepted(name: str, reader: StateReader) -> bool:
    data = (VECTORS / f"{name}.json").read_bytes()
    if name.startswith("cpu"):
        return isinstance(load_cpu_state(parse_cpu_manager_state(data), reader), Loaded)
    if name.startswith("mem"):
        return isinstance(load_memory_state(parse_memory_manager_state(data), reader), Loaded)
    if name.startswith("dra"):
        return check_dra(parse_dra_manager_state(data), reader) is None
    if name.startswith("alloc"):
        return check_pods(parse_pod_resources_state(data), reader) is None
    checkpoint: Checkpoint | None
    try:
        checkpoint, fault = parse_checkpoint(data), None
    except BadDataError as e:
        checkpoint, fault = None, StateFault(e.message)
    return check_devices(checkpoint, fault, reader) is None


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: c[0])
@pytest.mark.parametrize("name", sorted(INDEX))
def test_every_vector_gets_the_verdict_of_a_real_reader(name, column):
    title, minor, gate = column
    gates = {"featureGates": {"PodLevelResourceManagers": gate}}
    reader = StateReader(f"v1.{minor}.0", minor, gates)
    assert accepted(name, reader) is INDEX[name][title]
    if minor == 37:
        on = reader._replace(config={"featureGates": {"PodLevelResourceManagers": True}})
        assert accepted(name, on) is INDEX[name][title]


def test_the_table_is_whole():
    assert len(INDEX) > 45
    assert {mark for marks in INDEX.values() for mark in marks.values()} == {True, False}


@pytest.mark.parametrize(
    ("name", "minor", "gate", "form", "loses"),
    [
        ("cpu-v3-checksum-zero", 37, True, "v2", True),
        ("cpu-v3-static", 37, True, "v3", False),
        ("cpu-v3-static", 37, False, "v3", True),
        ("cpu-v4-static-podentries", 37, True, "v4", False),
        ("cpu-v4-static-podentries", 37, False, "v4", True),
        ("cpu-v4-static-podentries", 34, False, "v2", False),
        ("cpu-v4-data-emptied", 37, False, "v2", False),
        ("cpu-v1-none", 36, False, "v1", False),
        ("mem-v2-checksum-zero", 37, True, "v1", True),
        ("mem-v3-static-podentries", 37, False, "v3", True),
        ("mem-v3-data-emptied", 37, False, "v1", False),
    ],
)
def test_the_form_under_which_it_is_read(name, minor, gate, form, loses):
    reader = StateReader("", minor, {"featureGates": {"PodLevelResourceManagers": gate}})
    data = (VECTORS / f"{name}.json").read_bytes()
    found: object
    if name.startswith("cpu"):
        found = load_cpu_state(parse_cpu_manager_state(data), reader)
    else:
        found = load_memory_state(parse_memory_manager_state(data), reader)
    assert isinstance(found, Loaded)
    assert (found.form, found.lost is not None) == (form, loses)
