"""The API server of a large node: its Node, and pods as large as real ones, page by page."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

NODE = "bench-0"
_KUBECONFIG = """apiVersion: v1
kind: Config
current-context: bench
clusters: [{{name: bench, cluster: {{server: "{server}"}}}}]
users: [{{name: bench, user: {{token: bench}}}}]
contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]
"""


def pod_document(number: int, limits: dict[str, str]) -> dict[str, Any]:
    """Some 8 KB, managedFields a third of it."""
    fields: dict[str, Any] = {f"f:field-{n}": {f"f:{m}": {} for m in range(12)} for n in range(14)}
    return {
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "bench",
            "uid": f"uid-{number}",
            "labels": {f"label-{n}": f"value-{n}-{number}" for n in range(8)},
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}],
        },
        "spec": {
            "nodeName": NODE,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/bench:1",
                    "env": [{"name": f"VARIABLE_{n}", "value": "x" * 60} for n in range(30)],
                    "resources": {"limits": limits, "requests": limits},
                }
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": f"Type-{n}", "status": "True"} for n in range(5)],
            "containerStatuses": [
                {"name": "main", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
            ],
        },
    }


def node_document(devices: dict[str, int]) -> dict[str, Any]:
    counts = {name: str(count) for name, count in devices.items()}
    info = {"kubeletVersion": "v1.36.2"}
    status = {"capacity": counts, "allocatable": counts, "nodeInfo": info}
    return {"kind": "Node", "metadata": {"name": NODE, "uid": "node-uid"}, "status": status}


def serve(node: dict[str, Any], pods: list[dict[str, Any]], kubeconfig: Path) -> None:
    """In threads of this process; the kubeconfig says where."""
    answers = [json.dumps(pod) for pod in pods]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            if url.path == f"/api/v1/nodes/{NODE}":
                self._send(json.dumps(node))
            elif url.path == "/api/v1/pods":
                start = int(query.get("continue", ["0"])[0])
                end = start + int(query.get("limit", ["500"])[0])
                token = str(end) if end < len(answers) else ""
                listed = ",".join(answers[start:end])
                self._send(f'{{"metadata":{{"continue":"{token}"}},"items":[{listed}]}}')
            else:
                self._send('{"items":[]}')

        def _send(self, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kubeconfig.write_text(_KUBECONFIG.format(server=f"http://127.0.0.1:{server.server_port}"))
    Thread(target=server.serve_forever, daemon=True).start()
