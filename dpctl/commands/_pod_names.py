"""Pods as a person names them: `POD`, `NAMESPACE/POD`, globs, `pod/NAME`."""

from __future__ import annotations

from collections.abc import Sequence

from dpctl.options import Common


def pattern(text: str) -> str:
    """`pod/NAME` is how a pod is named that is called like a subcommand."""
    return text.removeprefix("pod/").removeprefix("pods/")


def matches(
    common: Common, patterns: Sequence[str], namespace: str | None, pod: str | None
) -> bool:
    from dpctl.text import matches_any

    wanted = None if common.all_namespaces else common.namespace
    if wanted is not None and namespace != wanted:
        return False
    names = (pod or "", f"{namespace}/{pod}")
    return not patterns or any(matches_any(name, patterns) for name in names)
