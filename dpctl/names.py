"""Which resource names are native, extended and legal: the kubelet's own rules. A leaf.

Source: kubelet-facts on registration (`IsExtendedResourceName` of the kubelet, executed there).
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
