"""Which names of resources and of CDI devices are legal, which are the kubelet's own. A leaf.

Source: kubelet-facts on registration (`IsExtendedResourceName` of the kubelet, executed there);
the CDI specification.
"""

from __future__ import annotations

import re

_NATIVE = frozenset({"cpu", "memory", "pods", "storage", "ephemeral-storage"})
_NATIVE_PREFIXES = ("hugepages-", "attachable-volumes-")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
# 253 for a DNS name less the nine characters of "requests.", which quotas put in front.
_PREFIX_LENGTH = 253 - len("requests.")
_NAME_LENGTH = 63
_CDI_PART = r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
_CDI_KIND = re.compile(f"{_CDI_PART}/{_CDI_PART}")
_CDI_DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")


def is_native(name: str) -> bool:
    """Kubernetes' own resources: never this tool's to list or to remove."""
    return name in _NATIVE or name.startswith(_NATIVE_PREFIXES)


def is_extended(name: str) -> bool:
    """Whether a kubelet lets a device plugin register this name."""
    prefix, slash, rest = name.partition("/")
    if not slash or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return (
        len(prefix) <= _PREFIX_LENGTH
        and len(rest) <= _NAME_LENGTH
        and _PREFIX.fullmatch(prefix) is not None
        and _NAME.fullmatch(rest) is not None
    )


def is_cdi_kind(kind: str) -> bool:
    """`vendor.example/class`."""
    return _CDI_KIND.fullmatch(kind) is not None


def is_cdi_device(name: str) -> bool:
    """The part behind the equals sign."""
    return _CDI_DEVICE.fullmatch(name) is not None


def is_cdi_name(name: str) -> bool:
    """`vendor.example/class=device`."""
    kind, equals, device = name.partition("=")
    return bool(equals) and is_cdi_kind(kind) and is_cdi_device(device)
