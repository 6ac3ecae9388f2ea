"""The kubelet's requests to the API server, with the node's own credentials."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from urllib.parse import quote

from dpctl.lab.api_errors import Json

_TIMEOUT = 10.0


class RequestError(Exception):
    """No answer, or one that is not success; `code` 0: no answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ApiClient:
    """One kept connection per thread."""

    def __init__(self, port: int, token: str, version: str) -> None:
        self._port = port
        self._headers = {
            "Authorization": f"Bearer {token}",
            # The part before the slash is the manager in managedFields.
            "User-Agent": f"kubelet/{version} (linux/amd64) kubernetes/lab",
            "Accept": "application/json",
        }
        self._local = threading.local()

    def get_node(self, name: str) -> Json:
        return self.request("GET", f"/api/v1/nodes/{quote(name)}")

    def create_node(self, node: Json) -> Json:
        return self.request("POST", "/api/v1/nodes", node)

    def patch_node_status(self, name: str, patch: Json) -> Json:
        path = f"/api/v1/nodes/{quote(name)}/status"
        return self.request("PATCH", path, patch, "application/strategic-merge-patch+json")

    def patch_pod_status(self, pod: Json, patch: Json) -> Json:
        path = _pod_path(pod) + "/status"
        return self.request("PATCH", path, patch, "application/strategic-merge-patch+json")

    def delete_pod(self, pod: Json) -> None:
        self.request("DELETE", _pod_path(pod) + "?gracePeriodSeconds=0")

    def create_event(self, namespace: str, event: Json) -> None:
        self.request("POST", f"/api/v1/namespaces/{quote(namespace)}/events", event)

    def list_pods(self, node_name: str) -> tuple[list[Json], str]:
        """The node's pods, and the version to watch from."""
        answer = self.request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node_name}")
        return answer["items"], answer["metadata"]["resourceVersion"]

    def watch_pods(self, node_name: str, version: str) -> Iterator[Json]:
        """Watch events until the stream ends. Raises RequestError, OSError."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        path = (
            f"/api/v1/pods?watch=true&resourceVersion={version}"
            f"&fieldSelector=spec.nodeName%3D{quote(node_name)}"
        )
        connection.request("GET", path, headers=self._headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise RequestError(answer.status, answer.read().decode())
        while line := answer.readline():
            event: Json = json.loads(line)
            yield event

    def request(
        self, method: str, path: str, body: Json | None = None, kind: str = "application/json"
    ) -> Json:
        """Raises RequestError."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers if data is None else {**self._headers, "Content-Type": kind}
        connection = self._connection()
        try:
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                text = answer.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                connection.close()  # an idle connection that the server ended: once more
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise RequestError(0, str(error)) from error
        document: Json = json.loads(text)
        if answer.status >= 300:
            raise RequestError(answer.status, str(document.get("message")))
        return document

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if found is None:
            found = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT)
            self._local.connection = found
        return found


def _pod_path(pod: Json) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{quote(metadata['namespace'])}/pods/{quote(metadata['name'])}"
