"""Runs a command in a network namespace of its own, from where one port still leads to a socket.

    unshare --net python -m tests.cluster.outside PORT SOCKET COMMAND...

So dpctl can be run as in a pod without the host's network: the API server answers, and the kernel's
table of unix sockets is another one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .gate import Gate


def main() -> int:
    """The command's exit code."""
    port, path, *command = sys.argv[1:]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    Gate(int(port), Path(path))
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
