"""Fifty of the interleavings of `tests/changes/test_races.py`, on the real API server.

The kubelet is the lab's there as well: a real one cannot be stopped between its look and its write.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.changes import test_races as races
from tests.changes.world import World

from .api import Api, ApiError
from .bench import Bench

pytestmark = pytest.mark.newest


class RealServer:
    """The requests of dpctl and of the lab's kubelet, to a real server."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def exchange(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        body: bytes,
        content_type: str,
        manager: str,
    ) -> tuple[int, bytes]:
        asked = [*query]
        if method != "GET" and "fieldManager" not in dict(asked):
            asked.append(("fieldManager", manager))
        where = f"{path}?{urlencode(asked)}" if asked else path
        document = json.loads(body) if body else None
        try:
            text = self._api.text(method, where, document, content_type or "application/json")
        except ApiError as error:
            return error.code, error.body.encode()
        return 201 if method == "POST" else 200, text.encode()


@pytest.mark.timeout(900)
def test_fifty_interleavings(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    api = bench.plane.api()
    chance = random.Random(5)
    applied = 0
    for number in range(50):
        name = f"race-{bench.minor.replace('.', '-')}-{number}"
        story = races.Story(
            tuple(chance.choice(races.KINDS) for _ in races.NAMES),
            tuple(
                races.Event(
                    chance.randint(0, 60), chance.choice(races.EVENTS), chance.choice(races.NAMES)
                )
                for _ in range(chance.randint(0, 6))
            ),
            chance.choice([None, None, chance.randint(0, 70)]),
            chance.random() < 0.5,
        )
        directory = Path(tempfile.mkdtemp(prefix="dpw-", dir=races.MEMORY))
        try:
            world = races.play(
                story,
                directory,
                monkeypatch,
                lambda where, name=name: World(where, RealServer(api), name),  # type: ignore[misc]
            )
            applied += len(world.removed)
        except BaseException as error:
            error.add_note(f"story {number}: {story}")
            raise
        finally:
            shutil.rmtree(directory)
            api.delete(f"/api/v1/nodes/{name}")
            for pod in api.get("/api/v1/namespaces/default/pods")["items"]:
                if pod["spec"].get("nodeName") == name:
                    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
                    api.delete(path, {"gracePeriodSeconds": 0})
    assert applied >= 10, "most of them must remove something"
