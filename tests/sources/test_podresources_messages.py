from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from dpctl.errors import BadDataError
from dpctl.model import Claim, ClaimDevice, Device, MemoryBlock
from dpctl.pb.podresources.v1 import podresources_pb2 as pb
from dpctl.sources.podresources_messages import (
    merge_devices,
    parse_allocatable_binpb,
    parse_allocatable_json,
    parse_list_binpb,
    parse_list_json,
)

DATA = Path(__file__).parent.parent / "data"
MOMENTS = ["1-healthy", "2-plugin-dead-in-grace", "3-after-kubelet-restart"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_captured_bytes_and_their_json_are_the_same(moment):
    where = DATA / "captures" / moment / "podresources"
    pods = parse_list_binpb((where / "list.binpb").read_bytes())
    assert pods == parse_list_json((where / "list.json").read_bytes())
    allocatable = parse_allocatable_binpb((where / "allocatable.binpb").read_bytes())
    assert allocatable == parse_allocatable_json((where / "allocatable.json").read_bytes())


def test_what_a_real_kubelet_said():
    where = DATA / "captures" / "1-healthy" / "podresources"
    pods = parse_list_binpb((where / "list.binpb").read_bytes())
    assert pods.pods
    allocatable = parse_allocatable_binpb((where / "allocatable.binpb").read_bytes())
    assert Device("fabric.example/rdma", "0000:3b:00.2", (0,)) in allocatable.devices


def test_numa_node_0_is_a_node_and_no_topology_is_none():
    pods = parse_list_json((DATA / "inputs" / "podres-list-numa0.json").read_bytes())
    (container,) = pods.pods[0].containers
    assert container.devices == (
        Device("example.com/nic", "0000:3b:00.1", (0,)),
        Device("example.com/nic", "0000:d8:00.1", (1,)),
        Device("example.com/serial", "/dev/ttyUSB0", None),
    )
    assert container.cpus == (2, 3, 46, 47)
    assert container.memory == (
        MemoryBlock("memory", 34359738368, (0,)),
        MemoryBlock("hugepages-1Gi", 1073741824, (0,)),
    )


def test_claims_and_the_pod_level():
    (pod,) = parse_list_json((DATA / "inputs" / "podres-dra.json").read_bytes()).pods
    assert pod.cpus == (8, 9, 10, 11)
    assert pod.memory == (MemoryBlock("memory", 8589934592, (1,)),)
    assert pod.containers[0].claims == (
        Claim(
            "team-a",
            "dra-pod-gpu-abcde",
            None,
            (
                ClaimDevice(
                    "gpu.example.com",
                    "node-a",
                    "gpu-1",
                    "0000004d-0000-4000-8000-00000000004d",
                    ("k8s.gpu.example.com/device=gpu-1",),
                ),
            ),
        ),
    )


@pytest.mark.parametrize("name", ["podres-timeslice", "podres-missing-devices"])
def test_unknown_keys_are_passed_over(name):
    assert parse_list_json((DATA / "inputs" / f"{name}.json").read_bytes()).pods


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([("r", ["a"], [1]), ("r", ["a"], [0])], (Device("r", "a", (0, 1)),)),
        ([("r", ["a"], [-1])], (Device("r", "a", None, below_zero=True),)),
        ([("r", ["a"], [-1]), ("r", ["a"], [0])], (Device("r", "a", (0,), below_zero=True),)),
        ([("r", ["a"], None), ("r", ["a"], [2])], (Device("r", "a", (2,)),)),
        ([("r", ["a"], [])], (Device("r", "a", None),)),
        ([("r", ["a"], [0]), ("s", ["a"], [1])], (Device("r", "a", (0,)), Device("s", "a", (1,)))),
        ([("r", ["b", "a"], None)], (Device("r", "b", None), Device("r", "a", None))),
        ([("r", ["a"], [1, 1, 0])], (Device("r", "a", (0, 1)),)),
    ],
)
def test_merging(entries, expected):
    assert merge_devices(entries) == expected


BOTH = [
    b'{"pod_resources":[{"name":"a","containers":[{"devices":[{"resource_name":"r/x",'
    b'"device_ids":["1"],"topology":{"nodes":[{"ID":"6"}]}}],"cpu_ids":["2",1],"memory":'
    b'[{"memory_type":"m","size":"9"}]}]}]}',
    b'{"podResources":[{"name":"a","containers":[{"devices":[{"resourceName":"r/x",'
    b'"deviceIds":["1"],"topology":{"nodes":[{"ID":6}]}}],"cpuIds":[1,2],"memory":'
    b'[{"memoryType":"m","size":9}]}]}]}',
]


def test_both_spellings():
    left, right = map(parse_list_json, BOTH)
    assert left == right
    assert left.pods[0].containers[0].devices == (Device("r/x", "1", (6,)),)
    assert left.pods[0].containers[0].memory == (MemoryBlock("m", 9, None),)


def test_an_empty_answer_and_another_document():
    assert parse_list_json(b"{}").pods == ()
    assert parse_list_json(b'{"pod_resources":[]}').pods == ()
    assert parse_allocatable_json(b"{}").devices == ()
    for data in (b'{"kind":"Node"}', b'{"devices":[]}', b"[]", b"null", b"3"):
        with pytest.raises(BadDataError):
            parse_list_json(data)
    with pytest.raises(BadDataError, match="has no devices or cpu_ids or memory"):
        parse_allocatable_json(b'{"pod_resources":[]}')


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[" * 200_000,
        b'{"pod_resources":{}}',
        b'{"pod_resources":[1]}',
        b'{"pod_resources":[{"name":1}]}',
        b'{"pod_resources":[{"containers":[{"cpu_ids":["x"]}]}]}',
        b'{"pod_resources":[{"containers":[{"cpu_ids":[1.5]}]}]}',
        b'{"pod_resources":[{"containers":[{"cpu_ids":["' + b"9" * 5000 + b'"]}]}]}',
        b'{"pod_resources":[{"containers":[{"devices":[{"device_ids":"x"}]}]}]}',
        b'{"pod_resources":[{"containers":[{"devices":[{"topology":[]}]}]}]}',
        b'{"pod_resources":[{"containers":[{"devices":[{"topology":{"nodes":[0]}}]}]}]}',
        b"\0" * 1000,
    ],
)
def test_garbage(data):
    with pytest.raises(BadDataError):
        parse_list_json(data)


IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
TOPOLOGIES = st.none() | st.builds(
    pb.TopologyInfo, nodes=st.lists(st.builds(pb.NUMANode, ID=st.integers(-1, 3)), max_size=2)
)
DEVICES = st.lists(
    st.builds(
        pb.ContainerDevices, resource_name=IDS, device_ids=st.lists(IDS), topology=TOPOLOGIES
    ),
    max_size=4,
)
MEMORY = st.lists(
    st.builds(
        pb.ContainerMemory,
        memory_type=IDS,
        size=st.integers(0, 2**64 - 1),
        topology=TOPOLOGIES,
    ),
    max_size=2,
)


@settings(max_examples=100)
@given(DEVICES, MEMORY, st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3), st.booleans())
def test_protobuf_and_its_json_say_the_same(devices, memory, cpus, snake):
    message = pb.AllocatableResourcesResponse(devices=devices, memory=memory, cpu_ids=cpus)
    shown = json_format.MessageToJson(message, preserving_proto_field_name=snake)
    assert parse_allocatable_json(shown.encode()) == parse_allocatable_binpb(
        message.SerializeToString()
    )


@settings(max_examples=300)
@given(st.binary(max_size=50))
def test_any_bytes_are_decoded_or_refused(data):
    for parse in (parse_list_binpb, parse_allocatable_binpb, parse_list_json):
        with suppress(BadDataError):
            parse(data)
