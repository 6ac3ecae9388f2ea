"""dra_manager_state, dra_health_state, allocated_pods_state and actuated_pods_state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpctl.model.statefiles import (
    DraDeviceHealth,
    PreparedClaim,
    PreparedDevice,
    PreparedDriver,
    RecordedPod,
    RecordedResources,
)
from dpctl.statefiles.dra_health import encode_dra_health_state, parse_dra_health_state
from dpctl.statefiles.dra_manager import encode_dra_manager_state, parse_dra_manager_state
from dpctl.statefiles.pod_resources_state import (
    encode_pod_resources_state,
    parse_pod_resources_state,
)

from .vectors import DATA, TEXTS, names, read, reindented, tampered_values

CAPTURES = DATA / "captures"


@pytest.mark.parametrize("name", names("dra"))
def test_dra_vectors(name):
    state = parse_dra_manager_state(read(name))
    assert state.fault is None
    assert state.data_fault is None
    assert state.checksums[0].fits
    assert encode_dra_manager_state(state.claims) == read(name)


@pytest.mark.parametrize("name", names("alloc"))
def test_alloc_vectors(name):
    state = parse_pod_resources_state(read(name))
    assert state.checksums[0].fits is (name != "alloc-tampered")
    if state.checksums[0].fits:
        minor = 37 if name.endswith("137") else 36
        assert encode_pod_resources_state(state.pods, minor=minor) == read(name)


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*/kubelet/*_pods_state")))
def test_captured_pods_verify(path: Path):
    state = parse_pod_resources_state(path.read_bytes())
    assert state.checksums[0].fits
    assert encode_pod_resources_state(state.pods, minor=36) == path.read_bytes()


@pytest.mark.parametrize(
    "path",
    [*CAPTURES.glob("*/kubelet/dra_manager_state"), DATA / "inputs/dra_manager_state-empty.json"],
)
def test_captured_claims_verify(path: Path):
    state = parse_dra_manager_state(path.read_bytes())
    assert state.checksums[0].fits
    assert state.claims == ()


def test_what_is_read():
    (claim,) = parse_dra_manager_state(read("dra-one"), modified=1.5).claims
    assert (claim.namespace, claim.name, claim.pod_uids) == (
        "default",
        "gpu-claim",
        ("pod-a", "pod-b"),
    )
    (device,) = claim.drivers["gpu.example.com"].devices
    assert (device.pool, device.device) == ("node1", "gpu-0")
    assert device.cdi_devices[1] == "<a>&é"
    (claim,) = parse_dra_manager_state(read("dra-skip-137")).claims
    assert claim.drivers["gpu.example.com"].skip_node_operations == ("*",)
    (pod,) = parse_pod_resources_state(read("alloc-emptydir-137")).pods
    assert pod.containers["c"].limits == {"cpu": "1500m", "vendor.example/gpu": "1"}
    assert pod.empty_dirs == {"cache": "64Mi"}


@pytest.mark.parametrize("name", ["dra-one", "dra-skip-137", "alloc-one", "alloc-emptydir-137"])
def test_a_tampered_byte_anywhere_in_a_value_fails(name):
    parse = parse_dra_manager_state if name.startswith("dra") else parse_pod_resources_state
    count = 0
    for data, _ in tampered_values(read(name)):
        state = parse(data)
        count += 1
        assert state.fault is not None or not state.checksums[0].fits, data
    assert count > 30


@pytest.mark.parametrize("name", [*names("dra"), *names("alloc")])
def test_a_file_indented_anew_is_the_same(name):
    parse = parse_dra_manager_state if name.startswith("dra") else parse_pod_resources_state
    assert parse(reindented(read(name))) == parse(read(name))


def test_the_old_form_of_dra_does_not_verify():
    """Before 1.32; a newer kubelet finds no `Data` and a number that is not that of nothing."""
    state = parse_dra_manager_state(b'{"version":"v1","entries":[],"checksum":2866174}')
    assert state.unknown_keys == ("version", "entries")
    assert not state.checksums[0].fits


def test_newer_formats_are_noticed_and_read_as_far_as_possible():
    document = json.loads(read("dra-one"))
    inner = json.loads(document["Data"]) | {"More": 1}
    document["Data"] = json.dumps(inner)
    state = parse_dra_manager_state(json.dumps(document).encode())
    assert state.unknown_keys == ("Data.More",)
    assert len(state.claims) == 1


@pytest.mark.parametrize(
    ("parse", "data", "words"),
    [
        (parse_dra_manager_state, b"", "is empty"),
        (parse_dra_manager_state, b'{"Data":{}}', "Data is an object"),
        (parse_dra_manager_state, b'{"Checksum":-1}', "Checksum is a number"),
        (parse_pod_resources_state, b'{"data":1}', "data is a number"),
        (parse_pod_resources_state, b"\0\0\0", "zero bytes"),
        (parse_dra_health_state, b"[]", "the document is a list"),
        (parse_dra_health_state, b'{"d":{"Devices":[1]}}', "d.Devices is a list"),
        (parse_dra_health_state, b'{"d":{"Devices":{"a":{"Health":1}}}}', "Health is a number"),
    ],
)
def test_what_cannot_be_decoded_is_said(parse, data, words):
    fault = parse(data).fault
    assert fault is not None
    assert words in fault.words


@pytest.mark.parametrize(
    ("text", "words", "kubelet"),
    [
        ("", "is empty", "unexpected end of JSON input"),
        ("[]", "the text is a list", None),
        ('{"ClaimInfoStateList":{}}', "ClaimInfoStateList is an object", None),
        ('{"ClaimInfoStateList":[{"PodUIDs":[1]}]}', "PodUIDs is a list", None),
        ('{"entries":[1]}', "entries is a list", None),
        ('{"entries":{"u":{"ContainerResources":{"c":{"limits":{"cpu":[]}}}}}}', "cpu is", None),
    ],
)
def test_a_broken_inner_text_is_said(text, words, kubelet):
    parse = parse_pod_resources_state if "entries" in text else parse_dra_manager_state
    fault = parse(json.dumps({"data": text}).encode()).data_fault
    assert fault is not None
    assert words in fault.words
    assert fault.kubelet == kubelet


LISTS = st.lists(TEXTS, max_size=3).map(tuple)
DEVICES = st.builds(PreparedDevice, TEXTS, TEXTS, st.none() | TEXTS, LISTS, LISTS)
DRIVERS = st.builds(PreparedDriver, st.lists(DEVICES, max_size=3).map(tuple), LISTS)
CLAIMS = st.lists(
    st.builds(
        PreparedClaim,
        TEXTS,
        TEXTS,
        TEXTS,
        st.sets(TEXTS, max_size=3).map(lambda uids: tuple(sorted(uids))),
        st.dictionaries(TEXTS, DRIVERS, max_size=2),
    ),
    max_size=3,
)


@settings(max_examples=150)
@given(CLAIMS)
def test_round_trip_of_claims(claims):
    data = encode_dra_manager_state(claims)
    state = parse_dra_manager_state(data)
    assert state.checksums[0].fits
    assert state.claims == tuple(claims)
    assert encode_dra_manager_state(state.claims) == data


QUANTITIES = st.dictionaries(TEXTS, TEXTS, max_size=3)
RESOURCES = st.builds(RecordedResources, QUANTITIES, QUANTITIES)
PODS = st.lists(
    st.builds(
        RecordedPod,
        TEXTS,
        st.dictionaries(TEXTS, RESOURCES, max_size=2),
        st.none() | RESOURCES,
        st.none() | st.dictionaries(TEXTS, st.none() | TEXTS, max_size=2),
    ),
    max_size=3,
    unique_by=lambda pod: pod.uid,
)


@settings(max_examples=150)
@given(PODS, st.sampled_from([34, 37]))
def test_round_trip_of_pods(pods, minor):
    data = encode_pod_resources_state(pods, minor=minor)
    state = parse_pod_resources_state(data)
    assert state.checksums[0].fits
    wanted = pods if minor == 37 else [pod._replace(empty_dirs=None) for pod in pods]
    assert {pod.uid: pod for pod in state.pods} == {pod.uid: pod for pod in wanted}
    assert encode_pod_resources_state(state.pods, minor=minor) == data


HEALTH = st.lists(
    st.builds(
        DraDeviceHealth,
        TEXTS,
        TEXTS,
        TEXTS,
        st.sampled_from(["Healthy", "Unhealthy", "Unknown"]),
        st.sampled_from([None, "2026-11-29T13:12:15.5Z"]),
        st.sampled_from([None, 30.0, 0.5]),
        st.sampled_from([None, "too hot"]),
    ),
    max_size=4,
    unique_by=lambda d: (d.driver, f"{d.pool}/{d.device}"),
)


@given(HEALTH)
def test_round_trip_of_health(devices):
    data = encode_dra_health_state(devices)
    found = parse_dra_health_state(data).devices
    assert set(found) == set(devices)
    assert encode_dra_health_state(found) == data


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    parse_dra_manager_state(data)
    parse_pod_resources_state(data)
    parse_dra_health_state(data)
