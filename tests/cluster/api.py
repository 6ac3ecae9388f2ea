"""The API server as raw JSON over HTTPS, and kubeconfig files."""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import urllib3

JSON = dict[str, Any]
JSON_PATCH = "application/json-patch+json"
AGENT = "by-hand"
"""What the API server takes for the manager of the fields that tests write."""
MERGE_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    """An answer other than 2xx."""

    def __init__(self, method: str, path: str, code: int, body: str) -> None:
        super().__init__(f"{method} {path}: {code}: {body}")
        self.code = code
        self.body = body


class Api:
    """One user's view of an API server."""

    def __init__(self, server: str, token: str, ca: Path) -> None:
        self.server = server
        self.token = token
        self.ca = ca

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
    ) -> JSON:
        """Send a request and return the answer's JSON object."""
        text = self.text(method, path, body, content_type)
        answer: JSON = json.loads(text)
        return answer

    def text(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
    ) -> str:
        """Send a request and return the answer as it is."""
        answer = _pool(self.ca).request(
            method,
            self.server + path,
            body=None if body is None else json.dumps(body),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": content_type,
                "User-Agent": AGENT,
            },
        )
        text = answer.data.decode(errors="replace")
        if answer.status >= 300:
            raise ApiError(method, path, answer.status, text)
        return text

    def get(self, path: str) -> JSON:
        """GET."""
        return self.request("GET", path)

    def find(self, path: str) -> JSON | None:
        """GET, or None when there is no such object."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def create(self, path: str, body: JSON) -> JSON:
        """POST.

        Minors are tested side by side under one API server: a name without its node's in it would
        be another test's, too, and that shows only when they meet.
        """
        name = body["metadata"]["name"]
        assert re.search(r"worker-\d", name), f"{name}: no node's name in it"
        return self.request("POST", path, body)

    def patch(self, path: str, body: object, content_type: str = JSON_PATCH) -> JSON:
        """PATCH, by default a JSON Patch."""
        return self.request("PATCH", path, body, content_type)

    def delete(self, path: str, body: JSON | None = None) -> None:
        """DELETE; a missing object is fine."""
        try:
            self.request("DELETE", path, body)
        except ApiError as error:
            if error.code != 404:
                raise

    def write_kubeconfig(self, path: Path, user: str) -> Path:
        """Write a kubeconfig (JSON is YAML, too) for this user; readable by root only."""
        ca = base64.b64encode(self.ca.read_bytes()).decode()
        cluster = {"server": self.server, "certificate-authority-data": ca}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1) + "\n")
        return path


@cache
def _pool(ca: Path) -> urllib3.PoolManager:
    """Connections that are used again: waiting asks often, and a handshake costs both sides."""
    return urllib3.PoolManager(maxsize=8, ca_certs=str(ca), timeout=30.0, retries=False)
