"""The bundle that `--from` names, opened once a run, and single files of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache

from dpctl.bundle.files import BundleFiles, open_bundle
from dpctl.bundle.records import Opened, parse_openers
from dpctl.env import Env
from dpctl.errors import UsageError


def opened(env: Env) -> BundleFiles:
    """Raises UnreachableError (no such path), DeniedError, BadDataError, UsageError."""
    path = env.bundle.value
    if path is None:
        raise UsageError("no bundle is named", "name one with --from")
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return open_bundle(path, max_file_size=env.max_message_size)  # says what is wrong
    version = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
    return _open(path, version, env.max_message_size)


@lru_cache(maxsize=1)
def _open(path: str, version: tuple[int, ...], max_file_size: int) -> BundleFiles:
    """An archive is unpacked in memory: once, though a command may look twice."""
    return open_bundle(path, max_file_size=max_file_size)


def read_bundle_file(env: Env, name: str) -> bytes | None:
    """One file by its name in the layout (`kubelet/cpu_manager_state`); None: not in the bundle.

    Errors as `opened`, and DpctlError for a file that may not be read.
    """
    return opened(env).read(name)


def read_openers(env: Env) -> Mapping[str, Opened]:
    """Device node to who had it open; empty: not recorded. Errors as `read_bundle_file`."""
    data = read_bundle_file(env, "openers.json")
    return {} if data is None else parse_openers(data)
