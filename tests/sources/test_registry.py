from __future__ import annotations

import pytest

from dpctl.errors import BadDataError, UnreachableError
from dpctl.model import SocketState
from dpctl.pb.pluginregistration.v1 import pluginregistration_pb2 as pb
from dpctl.sources.registry import parse_registry_json, probe_registry
from tests.fakes.grpc_sockets import INFO, OPTIONS, dead, fail, listening, serving, short_directory

CSI = pb.PluginInfo(
    type="CSIPlugin", name="csi.example", endpoint="/x/csi.sock", supported_versions=["1.0.0", "2"]
).SerializeToString()


def test_every_socket_is_asked_for_its_info_and_nothing_else():
    with (
        short_directory() as top,
        serving(top / "a-reg.sock", {INFO: CSI}) as recorder,
        serving(top / "b-reg.sock", {INFO: fail("UNKNOWN", "boom")}),
        serving(top / "c-reg.sock", {OPTIONS: b""}),
        serving(top / "d-reg.sock", {INFO: b"\xff"}),
        listening(top / "e-reg.sock", lambda c: c.recv(9)),
        serving(top / ".hidden.sock", {INFO: CSI}) as hidden,
    ):
        dead(top / "f-reg.sock")
        (top / "note").touch()
        found = {s.path: s for s in probe_registry(str(top), timeout=1)}
    assert {path: s.state for path, s in found.items()} == {
        "a-reg.sock": SocketState.SERVING,
        "b-reg.sock": SocketState.SERVING,
        "c-reg.sock": SocketState.WRONG_SERVICE,
        "d-reg.sock": SocketState.SERVING,
        "e-reg.sock": SocketState.HUNG,
        "f-reg.sock": SocketState.DEAD,
    }
    csi = found["a-reg.sock"]
    assert (csi.type, csi.name, csi.service_endpoint) == ("CSIPlugin", "csi.example", "/x/csi.sock")
    assert csi.versions == ("1.0.0", "2")
    assert csi.inode
    assert csi.modified
    assert "boom" in (found["b-reg.sock"].detail or "")
    assert "cannot be decoded" in (found["d-reg.sock"].detail or "")
    assert recorder.methods == [INFO]
    assert hidden.methods == []


def test_no_directory(tmp_path):
    with pytest.raises(UnreachableError):
        probe_registry(str(tmp_path / "no"), timeout=1)


def test_recorded_info():
    found = parse_registry_json(
        b'{"type":"DRAPlugin","name":"gpu.example","supportedVersions":["v1.DRAPlugin"]}', "x.sock"
    )
    assert (found.path, found.type, found.name) == ("x.sock", "DRAPlugin", "gpu.example")
    assert (found.service_endpoint, found.versions) == ("", ("v1.DRAPlugin",))
    with pytest.raises(BadDataError):
        parse_registry_json(b"[]", "x.sock")
