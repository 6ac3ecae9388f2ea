"""`dpctl pods` begins with a question that needs no parser: PodResources List, asked by a child
process while this one still loads the parser and the joins.

Only when nothing on the command line says where the kubelet is; and what came back is used only
when it is what the command wants. List is harmless (it is what the command would ask anyway).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dpctl.child import Child
from dpctl.model.kubelet import PodResources

_COMMAND = "pods"
# With one of these List is asked of another socket, in another way, or not at all.
_ELSEWHERE = (
    "--from",
    "--host-root",
    "--kubelet-root",
    "--pod-resources-socket",
    "--request-timeout",
    "--max-message-size",
    "--help",
    "-h",
    "--failed",
)


class Asked(NamedTuple):
    """How it was asked, and the answer (or what `list_pod_resources` raised)."""

    socket: str
    timeout: float
    max_message_size: int
    answer: PodResources | Exception


_started: Child[Asked] | None = None


def begin(arguments: Sequence[str]) -> None:
    """Start asking, if this command line will want the answer."""
    global _started
    import os

    if arguments[:1] != [_COMMAND] or os.environ.get("DPCTL_FROM"):
        return
    if any(argument.partition("=")[0] in _ELSEWHERE for argument in arguments):
        return
    try:
        _started = Child(_ask)
    except OSError:
        _started = None  # no process to be had: the command asks by itself


def take(socket: str, timeout: float, max_message_size: int) -> PodResources | None:
    """The answer to exactly this question; None: it was not asked ahead. Raises what the call
    raised."""
    global _started
    if _started is None:
        return None
    child, _started = _started, None
    try:
        asked = child.result()
    except (ChildProcessError, EOFError):
        return None
    if asked[:3] != (socket, timeout, max_message_size):
        return None
    if isinstance(asked.answer, Exception):
        raise asked.answer
    return asked.answer


def stop() -> None:
    """At the end of the run: nobody waits for it any more."""
    global _started
    if _started is not None:
        _started.stop()
        _started = None


def _ask() -> Asked:
    from dpctl.env import Settings, find_env
    from dpctl.sources.podresources import list_pod_resources

    env = find_env(Settings())
    socket = env.pod_resources_socket.value or ""
    answer: PodResources | Exception
    try:
        answer = list_pod_resources(
            socket, timeout=env.request_timeout, max_message_size=env.max_message_size
        )
    except Exception as error:
        answer = error
    return Asked(socket, env.request_timeout, env.max_message_size, answer)
