"""A child process that binds, connects and holds real unix sockets on command, for socket tests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CODE = r"""
import json, os, socket, sys
held = {}
for line in sys.stdin:
    what, *args = json.loads(line)
    answer = None
    if what == "listen":
        kind = getattr(socket, args[1]) if len(args) > 1 else socket.SOCK_STREAM
        held[args[0]] = s = socket.socket(socket.AF_UNIX, kind)
        s.bind(args[0]); s.listen(64) if kind != socket.SOCK_DGRAM else None
        answer = os.fstat(s.fileno()).st_ino
    elif what == "connect":
        s = socket.socket(socket.AF_UNIX); s.connect(args[0])
        held.setdefault("c", []).append(s)
        answer = os.fstat(s.fileno()).st_ino
    elif what == "accept":
        s, _ = held[args[0]].accept(); held.setdefault("a", []).append(s)
        answer = os.fstat(s.fileno()).st_ino
    elif what == "close":
        held.pop(args[0]).close()
    elif what == "chdir":
        os.chdir(args[0])
    elif what == "chroot":
        os.chroot(args[0])
    elif what == "fork":
        r, w = os.pipe(); pid = os.fork()
        if pid == 0:
            os.close(w); os.close(0); os.read(r, 1); os._exit(0)
        os.close(r); answer = pid
    elif what == "open":
        held.setdefault("o", []).append(os.open(args[0], os.O_RDWR)); answer = True
    elif what == "many":
        for i in range(args[1]):
            held[i] = s = socket.socket(socket.AF_UNIX)
            s.bind(f"{args[0]}/{i}.sock"); s.listen(1)
    print(json.dumps(answer), flush=True)
"""


class Peer:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def __call__(self, *command: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextmanager
def peer(*prefix: str, env: dict[str, str] | None = None) -> Iterator[Peer]:
    """`prefix`: a command such as `unshare -n` that execs the rest."""
    process = subprocess.Popen(
        [*prefix, sys.executable, "-S", "-E", "-c", _CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    )
    try:
        child = Peer(process)
        child("ready")  # until then it may still be on its way through exec
        yield child
    finally:
        process.kill()
        process.communicate()
