"""A bundle's own JSON: what is written comes back, whatever the node called its things."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.bundle.meta import Meta, encode_meta, parse_meta
from dpctl.bundle.records import (
    encode_cdi,
    encode_host_paths,
    encode_pod_names,
    encode_proc,
    encode_socket_state,
    encode_sockets,
    endpoint_folder,
    folder_endpoint,
    parse_cdi,
    parse_host_paths,
    parse_pod_names,
    parse_proc,
    parse_socket_state,
    parse_sockets,
)
from dpctl.errors import BadDataError
from dpctl.model import (
    CdiDevice,
    CdiSpec,
    DirectoryEntry,
    DirectoryListing,
    HostPath,
    Kubelet,
    PodName,
    Process,
    SocketState,
    SocketTable,
    UnixSocket,
)

# Names as a node has them: bytes that are no text stand as lone surrogates.
NAMES = st.binary(min_size=1, max_size=12).map(lambda b: b.decode("utf-8", "surrogateescape"))
TIMES = st.none() | st.integers(0, 2**33).map(float)
NUMBERS = st.integers(0, 2**63)
MAYBE = st.none() | NUMBERS

ENTRIES = st.builds(
    DirectoryEntry,
    name=NAMES,
    kind=st.sampled_from(["socket", "file", "directory", "symlink", "other"]),
    mode=NUMBERS,
    uid=NUMBERS,
    gid=NUMBERS,
    inode=MAYBE,
    device=MAYBE,
    modified=TIMES,
    size=NUMBERS,
    link_target=st.none() | NAMES,
)
LISTINGS = st.builds(
    DirectoryListing, NAMES, st.lists(ENTRIES, max_size=3).map(tuple), MAYBE, MAYBE
)
SOCKETS = st.builds(
    UnixSocket,
    inode=NUMBERS,
    state=st.sampled_from(["listen", "established", "other"]),
    name=st.none() | NAMES,
    file_inode=MAYBE,
    device=MAYBE,
    peer=MAYBE,
    pid=MAYBE,
    peer_pids=st.lists(NUMBERS, max_size=3).map(tuple),
    parent_inode=MAYBE,
    parent_device=MAYBE,
    parent_known=st.booleans(),
    other_namespace=st.booleans(),
)
PROCESSES = st.builds(
    Process,
    pid=NUMBERS,
    command=NAMES,
    arguments=st.lists(NAMES, max_size=3).map(tuple),
    environment=st.dictionaries(NAMES, NAMES, max_size=3),
    pod_uid=st.none() | NAMES,
    container_id=st.none() | NAMES,
    started=TIMES,
)
KUBELETS = st.builds(
    Kubelet,
    pid=NUMBERS,
    arguments=st.lists(NAMES, max_size=3).map(tuple),
    node_name=st.none() | NAMES,
    started=TIMES,
    config_path=st.none() | NAMES,
    root_dir=st.none() | NAMES,
)


@given(st.none() | LISTINGS, st.none() | st.lists(SOCKETS, max_size=3).map(tuple))
def test_sockets(directory: DirectoryListing | None, rows: tuple[UnixSocket, ...] | None) -> None:
    table = None if rows is None else SocketTable(rows)
    data = encode_sockets(directory, table)
    assert parse_sockets(data) == (directory, table)
    assert data.isascii()


@given(st.none() | st.lists(KUBELETS, max_size=2).map(tuple), st.lists(PROCESSES, max_size=3))
def test_proc(kubelets: tuple[Kubelet, ...] | None, processes: list[Process]) -> None:
    by_pid = {process.pid: process for process in processes}
    assert parse_proc(encode_proc(kubelets, by_pid)) == (kubelets, by_pid)


@given(st.lists(st.builds(PodName, NAMES, NAMES, NAMES), max_size=4).map(tuple))
def test_pod_names(names: tuple[PodName, ...]) -> None:
    assert parse_pod_names(encode_pod_names(names)) == names


MAYBE_NAME = st.none() | NAMES
HOST_PATHS = st.builds(
    HostPath, MAYBE_NAME, MAYBE, MAYBE_NAME, st.none() | st.booleans(), MAYBE_NAME
)


@given(st.dictionaries(NAMES, HOST_PATHS, max_size=4))
def test_host_paths(paths: dict[str, HostPath]) -> None:
    assert parse_host_paths(encode_host_paths(paths)) == paths


SEVERAL = st.lists(NAMES, max_size=3).map(tuple)
CDI_SPECS = st.builds(
    CdiSpec,
    path=NAMES,
    priority=NUMBERS,
    kind=NAMES | st.just(""),
    version=NAMES | st.just(""),
    devices=st.lists(st.builds(CdiDevice, NAMES, SEVERAL), max_size=3).map(tuple),
    device_nodes=SEVERAL,
    error=MAYBE_NAME,
)


@given(st.lists(CDI_SPECS, max_size=3).map(tuple))
def test_cdi(specs: tuple[CdiSpec, ...]) -> None:
    assert parse_cdi(encode_cdi(specs)) == specs


@given(st.builds(Meta, TIMES, st.none() | NAMES, st.none() | NAMES, st.none() | NAMES))
def test_meta(meta: Meta) -> None:
    assert parse_meta(encode_meta(meta)) == meta


@given(st.sampled_from(SocketState), st.none() | NAMES)
def test_socket_state(state: SocketState, detail: str | None) -> None:
    assert parse_socket_state(encode_socket_state(state, detail)) == (state, detail)


@given(st.binary(min_size=1).map(lambda b: b.decode("utf-8", "surrogateescape")))
def test_endpoints_are_folders_and_back(endpoint: str) -> None:
    folder = endpoint_folder(endpoint)
    assert "/" not in folder
    assert folder_endpoint(folder) == endpoint


def test_names_are_camel_case_and_times_rfc_3339() -> None:
    entry = DirectoryEntry("a.sock", "socket", 0o755, 0, 0, 7, 8, 1795957935.272202, 0, None)
    row = UnixSocket(1, "listen", "/x", 7, 8, None, 42, (1, 2))
    document = json.loads(encode_sockets(DirectoryListing("/d", (entry,)), SocketTable((row,))))
    assert document["directory"]["entries"][0]["modified"] == "2026-11-29T13:12:15.272202+00:00"
    assert document["directory"]["entries"][0]["linkTarget"] is None
    assert document["sockets"][0]["fileInode"] == 7
    assert document["sockets"][0]["peerPids"] == [1, 2]


def test_meta_by_hand() -> None:
    text = b'{"collectedAt": "2026-11-29T13:12:54Z", "kubeletVersion": "v1.36.2", "extra": 1}'
    assert parse_meta(text) == Meta(1795957974.0, "v1.36.2")


@pytest.mark.parametrize("parse", [parse_sockets, parse_proc, parse_meta, parse_pod_names])
@pytest.mark.parametrize("data", [b"", b"[]", b"7", b"{", b'"x"'])
def test_what_is_no_record(parse: object, data: bytes) -> None:
    assert callable(parse)
    with pytest.raises(BadDataError):
        parse(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"sockets": [{"inode": "x"}]}', r"sockets\[0\]\.inode is text"),
        (b'{"sockets": [{"inode": true}]}', r"sockets\[0\]\.inode is true or false"),
        (b'{"sockets": [{"inode": 1}]}', r"sockets\[0\]\.state is missing"),
        (b'{"directory": {"path": "/d", "entries": [{}]}}', r"entries\[0\]\.name is missing"),
        (b'{"directory": []}', "directory is a list"),
    ],
)
def test_wrong_types_are_named(data: bytes, message: str) -> None:
    with pytest.raises(BadDataError, match=message):
        parse_sockets(data)


def test_a_state_that_is_none() -> None:
    with pytest.raises(BadDataError, match="no state of a socket"):
        parse_socket_state(b'{"state": "Fine"}')


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for parse in (parse_sockets, parse_proc, parse_meta, parse_pod_names, parse_socket_state):
        with suppress(BadDataError):
            parse(data)
