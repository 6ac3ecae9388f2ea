from __future__ import annotations

from dpctl.inventory.by_hand import allocation_row
from dpctl.inventory.targets import Target
from dpctl.model import AllocResponse
from dpctl.model.plugin_calls import AllocateAnswer

TARGET = Target("/x.sock", True, "a.b/c", False, False, "")


def refused(answer: AllocateAnswer) -> str | None:
    return allocation_row(TARGET, ("a",), answer, {}, (), pre_started=False).refused


def test_what_a_kubelet_refuses() -> None:
    empty = AllocResponse()
    assert refused(AllocateAnswer((empty,), b"")) is None
    assert refused(AllocateAnswer((), b"")) == "no containers return in allocation response"
    assert "no UTF-8" in (refused(AllocateAnswer((empty,), b"", sound=False)) or "")
