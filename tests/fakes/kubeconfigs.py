"""Kubeconfigs and an Env around them, for tests that talk to `api_server`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpctl.env import Env, Settings, find_env
from tests.fakes import api_server as fake

NODE = {
    "kind": "Node",
    "metadata": {"name": "worker-0", "uid": "u"},
    "status": {"capacity": {"vendor.example/gpu": "4"}},
}
NODE_PATH = "/api/v1/nodes/worker-0"


def kubeconfig(path: Path, server: str, user: object = None, **cluster: object) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u"}},
            {"name": "elsewhere", "context": {"cluster": "c2", "user": "u"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": server, **cluster}},
            {"name": "c2", "cluster": {"server": "http://127.0.0.1:1"}},
        ],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
    }
    path.write_text(json.dumps(document))
    return str(path)


def env_for(path: str | None, **settings: Any) -> Env:
    settings.setdefault("request_timeout", 5.0)
    return find_env(Settings(kubeconfig=path, **settings), {"HOME": "/nonexistent"})


def headers_of(server: fake.Server, name: str, request: int = -1) -> list[str]:
    return [value for key, value in server.requests[request][2] if key.lower() == name.lower()]
