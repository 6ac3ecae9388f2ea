"""What is planned for, and became of, things that plugins and rejected pods left behind: rows of
`plugins prune` and `pods prune`. Field names are JSON names."""

from __future__ import annotations

from typing import NamedTuple

from dpctl.model.changes import Outcome, Verdict


class SocketChangeRow(NamedTuple):
    """One socket file of device-plugins/."""

    endpoint: str
    state: str
    """Of the socket when it was spoken to; `-` for kubelet.sock, which is not."""
    verdict: Verdict
    outcome: Outcome | None
    """Null: nothing was done to it."""
    reason: str
    next_step: str | None
    age: float | None
    """Seconds since the file was made."""
    named: bool
    """By the user, in full: then a refusal is exit code 6."""
    inode: int | None
    device: int | None
    """As the kernel's socket diagnostics give it."""


class PodChangeRow(NamedTuple):
    """One pod that the kubelet rejected at admission."""

    namespace: str
    pod: str
    uid: str
    reason: str
    """Why the kubelet rejected it: `UnexpectedAdmissionError`."""
    message: str | None
    owner: str | None
    """`Kind/name` of its controller, which will have made another one."""
    outcome: Outcome | None
    """Null: nothing was done to it."""
    detail: str | None
    """Why it was not deleted."""
