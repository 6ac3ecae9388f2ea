"""The sockets of plugins_registry/: what is registered there, by GetInfo alone.

NotifyRegistrationStatus is the kubelet's: a plugin may restart when told `false`.
"""

from __future__ import annotations

from dpctl.errors import BadDataError
from dpctl.model import DirectoryEntry, RegistrySocket, SocketState
from dpctl.sources.channel import CallFailed, GrpcSocket
from dpctl.sources.directory import list_directory
from dpctl.sources.greeting import Greeting
from dpctl.sources.plugin_sockets import ask_side_by_side, call_info, parse_info_json, state_of


def probe_registry(path: str, *, timeout: float) -> tuple[RegistrySocket, ...]:
    """Every socket of the directory, by name; names with a leading dot are the watcher's to ignore.

    `timeout`: seconds per socket. Raises UnreachableError, DeniedError for the directory itself.
    """
    entries = [
        entry
        for entry in list_directory(path).entries
        if entry.kind == "socket" and not entry.name.startswith(".")
    ]
    answers = ask_side_by_side(path, entries, _ask, timeout=timeout)
    return tuple(
        _silent(entry, answer) if isinstance(answer, Greeting) else answer
        for entry, answer in zip(entries, answers, strict=True)
    )


def parse_registry_json(data: bytes, path: str) -> RegistrySocket:
    """A recorded answer to GetInfo of the socket `path`. Raises BadDataError."""
    return parse_info_json(data, path)


def _ask(peer: GrpcSocket, entry: DirectoryEntry, seconds: float) -> RegistrySocket:
    try:
        return call_info(peer, entry, seconds)
    except CallFailed as e:
        state, detail = state_of(peer, e)
    except BadDataError as e:
        state, detail = SocketState.SERVING, e.message
    return _silent(entry, Greeting(state, detail))


def _silent(entry: DirectoryEntry, greeting: Greeting) -> RegistrySocket:
    state = greeting.state or SocketState.UNKNOWN
    return RegistrySocket(
        path=entry.name,
        state=state,
        detail=greeting.detail,
        modified=entry.modified,
        inode=entry.inode,
        device=entry.device,
    )
