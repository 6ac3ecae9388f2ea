"""The kubelet that is to read the files: its minor, gates and settings (kubelet-facts §9.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dpctl import cpuset, quantity
from dpctl.model.node import minor_version

NEWEST = 37
"""Minor whose code these rules were read in; newer ones are judged by it."""


class StateReader(NamedTuple):
    version: str
    minor: int
    config: Mapping[str, object] | None
    """None: not read, so its policies and reservations are not known."""

    def gate(self, name: str, *, since: int) -> bool:
        """A feature gate that is on by default from this minor on (99: not yet)."""
        gates = (self.config or {}).get("featureGates")
        value = gates.get(name) if isinstance(gates, Mapping) else None
        if value is None:
            return self.minor >= since
        return str(value).lower() == "true"

    @property
    def pod_level(self) -> bool:
        return self.gate("PodLevelResourceManagers", since=99)

    def text(self, field: str, default: str) -> str | None:
        """A setting that is a word; None where the configuration was not read."""
        if self.config is None:
            return None
        value = self.config.get(field)
        return str(value) if value else default

    def option(self, field: str, name: str) -> bool:
        options = (self.config or {}).get(field)
        return isinstance(options, Mapping) and str(options.get(name)).lower() == "true"

    def reserved_cpus(self) -> tuple[int, ...] | None:
        """Those that `reservedSystemCPUs` names; None: it names none, or cannot be told."""
        value = self.text("reservedSystemCPUs", "")
        try:
            return cpuset.parse(value) or None if value else None
        except ValueError:
            return None

    def reserved_count(self) -> int | None:
        """How many CPUs are reserved by quantity, rounded up; None: not known."""
        if self.config is None:
            return None
        total = quantity.parse("0")
        for field in ("systemReserved", "kubeReserved"):
            amounts = self.config.get(field)
            value = amounts.get("cpu") if isinstance(amounts, Mapping) else None
            try:
                total += quantity.parse(str(value)) if value is not None else 0
            except ValueError:
                return None
        return -(-total.numerator // total.denominator)

    def reserved_memory(self) -> dict[tuple[int, str], int] | None:
        """(NUMA node, memory type) to bytes, of `reservedMemory`; None: not known."""
        if self.config is None:
            return None
        found: dict[tuple[int, str], int] = {}
        entries = self.config.get("reservedMemory") or ()
        if not isinstance(entries, list | tuple):
            return None
        for entry in entries:
            limits = entry.get("limits") if isinstance(entry, Mapping) else None
            node = entry.get("numaNode", 0) if isinstance(entry, Mapping) else None
            if not isinstance(limits, Mapping) or not isinstance(node, int):
                return None
            for kind, amount in limits.items():
                number = quantity.count(str(amount))
                if number is None:
                    return None
                key = (node, str(kind))
                found[key] = found.get(key, 0) + number
        return found


def reader_for(version: str, config: Mapping[str, object] | None) -> StateReader | None:
    """None: that is no version (`v0.0.0` is an unstamped build)."""
    text = version if version.startswith("v") else f"v{version}"
    minor = minor_version(text.partition("-")[0].partition("+")[0])
    return None if minor is None else StateReader(text, minor, config)
