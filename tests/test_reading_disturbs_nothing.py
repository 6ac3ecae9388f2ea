"""Reading never disturbs the node: servers that write down every call, and a tree watched by inode.

A command of the table that stands in neither list below fails the first test.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent import futures
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import pytest

from dpctl.cli import COMMANDS
from dpctl.lab.fixture import Lab
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as plugin_pb
from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2_grpc as plugin_rpc
from dpctl.pb.pluginregistration.v1 import pluginregistration_pb2 as info_pb
from dpctl.pb.pluginregistration.v1 import pluginregistration_pb2_grpc as info_rpc
from dpctl.pb.podresources.v1 import podresources_pb2 as resources_pb
from dpctl.pb.podresources.v1 import podresources_pb2_grpc as resources_rpc
from tests.fakes import api_server
from tests.fakes.kubeconfigs import kubeconfig
from tests.fakes.node_tree import (
    RESOURCE,
    NodeTree,
    kubelet_answers,
    node,
    node_document,
    serve_cluster,
)
from tests.run import DATA, dpctl

CAPTURE = str(DATA / "captures" / "1-healthy")
FORMATS = ("table", "wide", "json")


def each(*arguments: str) -> list[tuple[str, ...]]:
    return [(*arguments, "-o", output) for output in FORMATS]


READING: dict[str, list[tuple[str, ...]]] = {
    "resources": [*each("resources"), ("resources", "--stale", "-v", "--strict")],
    "devices": [*each("devices"), ("devices", "--group-by", "numa")],
    "pods": [
        *each("pods", "-A"),
        *each("pods", "ml/trainer"),
        *each("pods", "--failed"),
        ("pods", "--all", "-n", "ml"),
        ("pods", "prune", "--failed", "--dry-run=client"),
    ],
    "plugins": [*each("plugins"), ("plugins", "prune", "--dry-run")],
    # The others ask first: tests/commands/test_plugin_*.py.
    "plugin": [
        *each("plugin", "options", "gpu.sock"),
        ("plugin", "wait", "nobody.example/x", "--for", "gone"),
        ("plugin", "serve", "--list"),
        ("plugin", "serve", "gpus", "--print"),
    ],
    "node": [*each("node"), ("node", "prune", "--dry-run=client")],
    "topology": [
        *each("topology"),
        ("topology", "-o", "svg"),
        *each("topology", "--fit", "vendor.example/gpu=1,cpu=1,memory=1Gi"),
        ("topology", "--fit", "vendor.example/gpu=9", "--policy", "restricted"),
    ],
    "who": [*each("who", "gpu-0"), ("who", "/dev/null"), ("who", "/dev/null", "-o", "json")],
    "state": [
        *each("state"),
        *each("state", "diff"),
        *each("state", "verify", "--kubelet-version", "v1.37.2"),
        ("state", "verify", "cpu", "-v", "--kubelet-version", "v1.34.4"),
    ],
    "snapshot": [("snapshot", "OUT/node.tgz"), ("snapshot", "--redact", "OUT/node")],
    "diff": each("diff", CAPTURE),
    "dashboard": [("dashboard", "--screenshot", "/dev/null", "--view", "numa")],
    "env": each("env"),
    "config": each("config", "view"),
    "schema": [("schema",), ("schema", "Device"), ("schema", "Plugin", "-o", "json")],
    "completion": [("completion", shell) for shell in ("bash", "zsh", "fish")],
    "version": [("version",), ("--version",)],
    "__complete": [
        ("__complete", kind)
        for kind in ("resources", "devices", "pods", "namespaces", "endpoints", "nodes")
    ],
}
CHANGING = {"lab": "starts processes of its own, in a directory of its own"}

HARMLESS = {
    "/v1beta1.DevicePlugin/GetDevicePluginOptions",
    "/pluginregistration.Registration/GetInfo",
    "/v1.PodResourcesLister/List",
    "/v1.PodResourcesLister/Get",
    "/v1.PodResourcesLister/GetAllocatableResources",
}


def test_every_command_is_in_a_list() -> None:
    assert set(COMMANDS) == (set(READING) | set(CHANGING)) - {"__complete"}


# --- servers that answer everything, and write it down --------------------------------------------


class Plugin(plugin_rpc.DevicePluginServicer):
    def GetDevicePluginOptions(self, request: Any, context: Any) -> Any:
        return plugin_pb.DevicePluginOptions(pre_start_required=True)

    def ListAndWatch(self, request: Any, context: Any) -> Iterator[Any]:
        yield plugin_pb.ListAndWatchResponse(devices=[plugin_pb.Device(ID="gpu-0")])

    def GetPreferredAllocation(self, request: Any, context: Any) -> Any:
        return plugin_pb.PreferredAllocationResponse()

    def Allocate(self, request: Any, context: Any) -> Any:
        return plugin_pb.AllocateResponse()

    def PreStartContainer(self, request: Any, context: Any) -> Any:
        return plugin_pb.PreStartContainerResponse()


class Info(info_rpc.RegistrationServicer):
    def GetInfo(self, request: Any, context: Any) -> Any:
        return info_pb.PluginInfo(
            type="DevicePlugin", name=RESOURCE, supported_versions=["v1beta1"]
        )

    def NotifyRegistrationStatus(self, request: Any, context: Any) -> Any:
        return info_pb.RegistrationStatusResponse()


class Kubelet(plugin_rpc.RegistrationServicer):
    def Register(self, request: Any, context: Any) -> Any:
        return plugin_pb.Empty()


class PodResources(resources_rpc.PodResourcesListerServicer):
    def List(self, request: Any, context: Any) -> Any:
        return resources_pb.ListPodResourcesResponse.FromString(ANSWERS["/List"])

    def Get(self, request: Any, context: Any) -> Any:
        return resources_pb.GetPodResourcesResponse.FromString(ANSWERS["/Get"])

    def GetAllocatableResources(self, request: Any, context: Any) -> Any:
        return resources_pb.AllocatableResourcesResponse.FromString(
            ANSWERS["/GetAllocatableResources"]
        )


ANSWERS: dict[str, Any] = {
    "/" + method.rpartition("/")[2]: answer for method, answer in kubelet_answers().items()
}


class Recorder:
    """Stands before the services: sees every call, known or not, answers none."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        """(socket, method)."""

    @contextmanager
    def serving(self, path: Path, *add: tuple[Any, Any]) -> Iterator[None]:
        server = grpc.server(
            futures.ThreadPoolExecutor(8),
            interceptors=[_At(self, path.name)],
            options=[("grpc.so_reuseport", 0)],
        )
        for register, servicer in add:
            register(servicer, server)
        server.add_insecure_port("unix:" + quote(str(path)))
        server.start()
        try:
            yield
        finally:
            server.stop(0).wait()


class _At(grpc.ServerInterceptor):  # type: ignore[type-arg]
    def __init__(self, recorder: Recorder, name: str) -> None:
        self._recorder = recorder
        self._name = name

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        self._recorder.calls.append((self._name, str(handler_call_details.method)))
        return continuation(handler_call_details)


class Node:
    def __init__(self, tree: NodeTree, calls: Recorder, requests: list[str]) -> None:
        self.tree = tree
        self.calls = calls
        self.requests = requests
        """HTTP methods that reached the API server."""


@pytest.fixture(scope="module")
def watched() -> Iterator[Node]:
    recorder = Recorder()
    methods: list[str] = []

    class Handler(api_server.Handler):
        def parse_request(self) -> bool:
            known = super().parse_request()
            methods.append(self.command)
            return known

    with node(kubelet=False, cluster=False, plugin=False) as tree, ExitStack() as stack:
        plugin = (plugin_rpc.add_DevicePluginServicer_to_server, Plugin())
        info = (info_rpc.add_RegistrationServicer_to_server, Info())
        kubelet = (plugin_rpc.add_RegistrationServicer_to_server, Kubelet())
        resources = (resources_rpc.add_PodResourcesListerServicer_to_server, PodResources())
        at = tree.device_plugins
        stack.enter_context(recorder.serving(at / "kubelet.sock", kubelet, plugin, info))
        stack.enter_context(recorder.serving(at / "gpu.sock", plugin, info))
        stack.enter_context(recorder.serving(tree.registry / "reg.sock", info, plugin))
        stack.enter_context(recorder.serving(tree.pod_resources, resources))
        server = stack.enter_context(api_server.running())
        server.RequestHandlerClass = Handler
        serve_cluster(server)
        # The process behind kubelet.sock is this one: its Node is called as the machine is.
        tree.node_name = os.uname().nodename.lower()
        document = node_document()
        document["metadata"]["name"] = tree.node_name
        server.answer(f"/api/v1/nodes/{tree.node_name}", api_server.json_reply(document))
        kubeconfig(tree.kubeconfig, server.url)
        yield Node(tree, recorder, methods)


def everything(root: Path) -> dict[str, object]:
    """Names with all that a write would change, the time of reading alone left out."""
    found: dict[str, object] = {}
    for directory, names, files in os.walk(root):
        for name in (".", *names, *files):
            path = os.path.join(directory, name)
            seen = os.lstat(path)
            content: object = None
            if stat.S_ISLNK(seen.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(seen.st_mode):
                content = Path(path).read_bytes()
            found[path] = (
                seen.st_ino,
                seen.st_mode,
                seen.st_uid,
                seen.st_nlink,
                seen.st_mtime_ns,
                seen.st_ctime_ns,
                content,
            )
    return found


def harmless(node: Node) -> None:
    assert {method for _, method in node.calls.calls} <= HARMLESS
    assert not [call for call in node.calls.calls if call[1].endswith("Register")]
    assert set(node.requests) <= {"GET"}


@pytest.mark.parametrize("command", READING)
def test_only_harmless_calls_and_no_write(watched: Node, tmp_path: Path, command: str) -> None:
    before = everything(watched.tree.root)
    lines = [[word.replace("OUT", str(tmp_path)) for word in line] for line in READING[command]]
    for result in watched.tree.ask_all(lines):
        assert result.code in (0, 1), result
    harmless(watched)
    assert everything(watched.tree.root) == before


def test_watching(watched: Node) -> None:
    before = everything(watched.tree.root)
    asked = len(watched.calls.calls)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("DPCTL_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "dpctl", "resources", "-w", "--interval", "200ms"],
        env={**clean, **watched.tree.env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    options = "/v1beta1.DevicePlugin/GetDevicePluginOptions"
    while [m for _, m in watched.calls.calls[asked:]].count(options) < 3:
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    harmless(watched)
    assert everything(watched.tree.root) == before


def test_the_recorders_see_what_is_asked(watched: Node) -> None:
    """Else the tests above would prove nothing."""
    assert watched.tree.run("resources").code == 0
    seen = set(watched.calls.calls)
    assert {
        ("gpu.sock", "/v1beta1.DevicePlugin/GetDevicePluginOptions"),
        ("gpu.sock", "/pluginregistration.Registration/GetInfo"),
        ("reg.sock", "/pluginregistration.Registration/GetInfo"),
        ("kubelet.sock", "/v1.PodResourcesLister/List"),
        ("kubelet.sock", "/v1.PodResourcesLister/GetAllocatableResources"),
    } <= seen
    assert "GET" in watched.requests
    count = len(watched.calls.calls)
    path = quote(str(watched.tree.device_plugins / "gpu.sock"))
    with grpc.insecure_channel(f"unix:{path}") as channel:
        stub = plugin_rpc.DevicePluginStub(channel)  # type: ignore[no-untyped-call]
        assert next(iter(stub.ListAndWatch(plugin_pb.Empty()))).devices[0].ID == "gpu-0"
    assert watched.calls.calls[count:] == [("gpu.sock", "/v1beta1.DevicePlugin/ListAndWatch")]
    del watched.calls.calls[count:]


# --- in the lab -----------------------------------------------------------------------------------

LAB_LINES: Sequence[tuple[str, ...]] = (
    ("resources", "-o", "wide"),
    ("devices", "-o", "json"),
    ("pods", "-o", "wide"),
    ("pods", "ml/trainer"),
    ("pods", "--failed"),
    ("plugins", "-o", "wide"),
    ("who", "/dev/vendor0"),
    ("__complete", "nodes"),
)


def test_the_labs_kubelet_and_plugins_notice_nothing(lab: Lab) -> None:
    def seen() -> dict[str, object]:
        alive = [name for name, pid in lab.client.ask("status")["plugins"].items() if pid]
        return {
            "kubelet": lab.kubelet.state(),
            "plugins": {name: lab.plugin(name).state() for name in alive},
            "checkpoint": (lab.device_plugins / "kubelet_internal_checkpoint").read_bytes(),
            "files": {p.name: p.lstat().st_ino for p in lab.device_plugins.iterdir()},
            "pods": {name: pod["metadata"]["resourceVersion"] for name, pod in lab.pods().items()},
        }

    before = seen()
    for line in LAB_LINES:
        assert dpctl(*line, env=lab.env).code == 0
    assert seen() == before
