"""The control socket: what can be asked of a running lab, a line of JSON each way.

For the lab's own commands and for tests. Mode 0600 in a directory of mode 0700.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

from dpctl.lab.api_errors import Json
from dpctl.lab.child import Child, ChildError
from dpctl.lab.settle import UnsettledError, settle
from dpctl.lab.spec import plugin_from_json

if TYPE_CHECKING:
    from dpctl.lab.supervisor import Plugin, Supervisor

_LONGEST = 1 << 26
"""Bytes of a request: a plugin with 10^5 devices fits."""


def serve(supervisor: Supervisor) -> None:
    """Listen until the process ends. Returns at once."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = supervisor.directory / "ctl.sock"
    path.unlink(missing_ok=True)
    listener.bind(str(path))
    os.chmod(path, 0o600)
    listener.listen(16)
    threading.Thread(target=_accept, args=(supervisor, listener), daemon=True).start()


def _accept(supervisor: Supervisor, listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_converse, args=(supervisor, connection), daemon=True).start()


def _converse(supervisor: Supervisor, connection: socket.socket) -> None:
    with connection, connection.makefile("rwb") as file:
        while line := file.readline(_LONGEST):
            try:
                request = json.loads(line)
                answer: Json = {"value": answer_to(supervisor, request.pop("op"), request)}
            except (ChildError, UnsettledError, KeyError, ValueError, TypeError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            try:
                file.write(json.dumps(answer).encode() + b"\n")
                file.flush()
            except OSError:
                return


def answer_to(supervisor: Supervisor, op: str, request: Json) -> Any:
    """Raises ChildError, UnsettledError, KeyError, ValueError."""
    if op == "status":
        return _status(supervisor)
    if op == "settle":
        settle(supervisor, float(request.get("timeout", 15.0)))
    elif op == "down":
        supervisor.stopping.set()
    elif op == "kubelet":
        return _kubelet(supervisor, request.pop("command"), request)
    elif op == "plugin":
        return _plugin(supervisor, request.pop("name"), request.pop("command"), request)
    elif op == "add-plugin":
        from dpctl.lab.supervisor import Plugin

        spec = plugin_from_json(request["spec"])
        supervisor.plugins[spec.name] = Plugin(spec)
    elif op == "fault":
        supervisor.api.faults.add(**request)
    else:
        raise ValueError(f"unknown request {op!r}")
    return None


def _status(supervisor: Supervisor) -> Json:
    kubelet = supervisor.kubelet
    return {
        "pid": os.getpid(),
        "kubelet": kubelet.pid if kubelet is not None and kubelet.running() else None,
        "plugins": {
            name: plugin.child.pid if plugin.child is not None and plugin.running() else None
            for name, plugin in supervisor.plugins.items()
        },
    }


def _kubelet(supervisor: Supervisor, command: str, request: Json) -> Any:
    kubelet = supervisor.kubelet
    if command in ("stop", "restart"):
        if kubelet is not None:
            kubelet.kill()  # a kubelet that exits removes nothing either
        if command == "restart":
            supervisor.start_kubelet()
        return None
    if command == "start":
        supervisor.start_kubelet()
        return None
    if kubelet is None:
        raise ChildError("no kubelet")
    return kubelet.ask(command, **request)


def _plugin(supervisor: Supervisor, name: str, command: str, request: Json) -> Any:
    plugin = supervisor.plugins[name]
    if command == "start":
        supervisor.start_plugin(name)
        return None
    child = _child(plugin)
    if command == "kill":
        child.kill()
    elif command in ("pause", "resume"):
        plugin.paused = command == "pause"
        child.send_signal(signal.SIGSTOP if plugin.paused else signal.SIGCONT)
    elif command == "exit":
        child.ask("exit")
        child.wait(5)
    else:
        return child.ask(command, **request)
    return None


def _child(plugin: Plugin) -> Child:
    if plugin.child is None:
        raise ChildError(f"plugin {plugin.spec.name} has never been started")
    return plugin.child
