"""Putting bundles together and reading them."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from dpctl.bundle import read_bundle
from dpctl.env import Env, Settings, find_env
from dpctl.model import Snapshot, Source, SourceRow

DATA = Path(__file__).parent.parent / "data"
CAPTURES = DATA / "captures"
INPUTS = DATA / "inputs"
ALL = tuple(Source)


def env_of(path: Path | str, **settings: Any) -> Env:
    return find_env(Settings(bundle=str(path), **settings), {"NODE_NAME": "elsewhere"})


def read(path: Path, want: Collection[Source] = ALL, **settings: Any) -> Snapshot:
    return read_bundle(env_of(path, **settings), want)


def row(snapshot: Snapshot, name: str) -> SourceRow:
    (found,) = [r for r in snapshot.sources if r.name == name]
    return found


def put(directory: Path, name: str, data: bytes | str | object) -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, bytes):
        path.write_bytes(data)
    else:
        path.write_text(data if isinstance(data, str) else json.dumps(data))
    return directory


def input_(name: str) -> bytes:
    return (INPUTS / name).read_bytes()
