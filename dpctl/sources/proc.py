"""What /proc and the kernel's socket table say, in one place to import from.

`processes` reads single processes, `socket_table` the sockets behind them, `kubelets` kubelets and
the boot ID. Nothing of its own.
"""

from __future__ import annotations

from dpctl.sources.kubelets import boot_id, find_kubelets, kubelet_from_pid
from dpctl.sources.processes import (
    DeviceHolders,
    device_holders,
    device_number,
    holders_of_devices,
    read_process,
)
from dpctl.sources.socket_table import read_socket_table

__all__ = [
    "DeviceHolders",
    "boot_id",
    "device_holders",
    "device_number",
    "find_kubelets",
    "holders_of_devices",
    "kubelet_from_pid",
    "read_process",
    "read_socket_table",
]
