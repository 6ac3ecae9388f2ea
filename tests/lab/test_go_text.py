"""Go's `%q`, and what a Go server says to what it does not serve."""

from __future__ import annotations

import grpc
import pytest

from dpctl.lab.fixture import Lab
from dpctl.lab.kubelet.go_text import quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", '""'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("\a\b\f\n\r\t\v", '"\\a\\b\\f\\n\\r\\t\\v"'),
        ("\x00\x1b\x7f", '"\\x00\\x1b\\x7f"'),
        ("gé 世", '"gé 世"'),
        ("\u00a0\u200b\ufeff", '"\\u00a0\\u200b\\ufeff"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_quoted(text: str, shown: str) -> None:
    assert quoted(text) == shown


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("/v1beta1.DevicePlugin/GetDevicePluginOptions", "unknown service v1beta1.DevicePlugin"),
        ("/v1beta1.Registration/No", "unknown method No for service v1beta1.Registration"),
    ],
)
def test_registration_refuses_other_services(lab: Lab, method: str, message: str) -> None:
    assert refusal(f"{lab.device_plugins}/kubelet.sock", method) == message


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("/v1beta1.Registration/Register", "unknown service v1beta1.Registration"),
        ("/v1.PodResourcesLister/No", "unknown method No for service v1.PodResourcesLister"),
    ],
)
def test_pod_resources_refuses_other_services(lab: Lab, method: str, message: str) -> None:
    assert refusal(str(lab.pod_resources_socket), method) == message


def refusal(socket: str, method: str) -> str | None:
    with (
        grpc.insecure_channel(f"unix:{socket}") as channel,
        pytest.raises(grpc.RpcError) as raised,
    ):
        channel.unary_unary(method, bytes, bytes)(b"", timeout=5)
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
    details: str | None = raised.value.details()
    return details
