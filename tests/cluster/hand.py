"""Test nodes by hand: bring them up, show how to get at them, take them down.

python tests/cluster/up.py --minor 1.37 --minor 1.34 --numa 2 --plugin --pod
python tests/cluster/up.py --detach     # give the terminal back when all is up
python tests/cluster/up.py --down       # end everything that was brought up like this
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from . import build, slots
from .control import ControlPlane
from .node import SAMPLE_RESOURCE, Node
from .plane import ADMIN, NO_RIGHTS
from .processes import ClusterError
from .settings import KubeletSettings
from .sysfs import Machine

UP = "everything is up"
DOWN_SECONDS = 30.0


def main() -> int:
    """Run the command line."""
    args = _arguments()
    try:
        if args.down:
            return _down()
        if args.detach:
            return _detach()
        return _up(args)
    except (ClusterError, build.BuildError, OSError, subprocess.SubprocessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="up.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minor", action="append", help="a node of this minor; repeatable")
    parser.add_argument("--numa", type=int, default=1, choices=(1, 2, 4), help="NUMA nodes")
    parser.add_argument("--cpus", type=int, default=16, help="CPUs that the kubelet sees")
    parser.add_argument("--topology", default="none", help="topology manager policy")
    parser.add_argument("--scope", default="container", help="topology manager scope")
    parser.add_argument("--cpu-policy", default="none", help="none or static")
    parser.add_argument("--memory-policy", default="None", help="None or Static")
    parser.add_argument("--plugin", action="store_true", help="start the sample device plugin")
    parser.add_argument("--pod", action="store_true", help="run a pod with one of its devices")
    parser.add_argument("--detach", action="store_true", help="leave it running and return")
    parser.add_argument("--down", action="store_true", help="take everything down")
    return parser.parse_args()


def _up(args: argparse.Namespace) -> int:
    # A plain kill ends it like Ctrl-C; and a shell's background jobs start with that ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    started = time.monotonic()
    plane = ControlPlane()
    try:
        _note_runner(plane)
        plane.start()
        settings = KubeletSettings(
            topology_policy=args.topology,
            topology_scope=args.scope,
            cpu_policy=args.cpu_policy,
            memory_policy=args.memory_policy,
        )
        for minor in args.minor or [plane.minor]:
            node = Node(plane, minor, machine=Machine(args.numa, args.cpus), settings=settings)
            node.start()
            if args.plugin or args.pod:
                node.start_sample_plugin()
            if args.pod:
                node.create_pod(f"holder-{node.name}", {SAMPLE_RESOURCE: 1})
            _describe(node)
        print(f"admin:     {plane.kubeconfig(ADMIN)}")
        print(f"no rights: {plane.kubeconfig(NO_RIGHTS)}")
        print(f"kubectl:   {plane.bin}/kubectl --kubeconfig={plane.kubeconfig(ADMIN)}")
        print(f"logs:      {plane.path}/log")
        print(f"{UP} after {time.monotonic() - started:.1f} s; Ctrl-C ends it", flush=True)
        while True:
            signal.pause()
    except KeyboardInterrupt:
        return 0
    finally:
        plane.stop()


def _describe(node: Node) -> None:
    version = node.get()["status"]["nodeInfo"]["kubeletVersion"]
    pid = node.kubelet.pid if node.kubelet else 0
    print(f"{node.name}: kubelet {version}, pid {pid}, port {node.port}")
    print(f"  its own kubeconfig: {node.kubeconfig}")
    print(f"  its directories:    {node.path}")
    print(f"  to get in:          {' '.join(node.nsenter)} COMMAND", flush=True)


def _detach() -> int:
    """Run this command again without a terminal, and return when everything is up."""
    command = [sys.executable, str(Path(__file__).with_name("up.py"))]
    command += [arg for arg in sys.argv[1:] if arg != "--detach"]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith(UP):
                # Not to be waited for: it stays.
                os._exit(0)
        return process.wait()


def _note_runner(plane: ControlPlane) -> None:
    runner = {"pid": os.getpid(), "started": _started(os.getpid())}
    (plane.path / "hand.json").write_text(json.dumps(runner))


def _down() -> int:
    """Ask every runner of this command to end, then clear what nobody holds."""
    running = []
    for number in slots.held():
        note = slots.BASE / str(number) / "hand.json"
        if not note.exists():
            continue  # a test run's
        runner = json.loads(note.read_text())
        if _started(runner["pid"]) == runner["started"]:
            os.kill(runner["pid"], signal.SIGTERM)
            running.append(note)
    deadline = time.monotonic() + DOWN_SECONDS
    while any(note.exists() for note in running):
        if time.monotonic() > deadline:
            raise ClusterError(f"still there after {DOWN_SECONDS:.0f} s: {running}")
        time.sleep(0.05)
    slots.clear_abandoned()
    print(f"took down {len(running)}")
    return 0


def _started(pid: int) -> str | None:
    """When a process was started, in clock ticks; tells a pid from a later use of it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


if __name__ == "__main__":
    sys.exit(main())
