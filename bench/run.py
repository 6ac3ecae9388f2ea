"""`make bench`: dpctl against its floors, in one run, as a Markdown table.

Runs are interleaved, so that a busy moment meets all of them; medians and ratios count, the
milliseconds are this machine's. Whole processes, with compiled bytecode.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import dashboard
from bench.api import NODE
from bench.node import KUBECONFIG, KUBELET

# As the installed script does it; `python -m` would add runpy.
DPCTL = [sys.executable, "-c", "import sys; from dpctl.__main__ import main; sys.exit(main())"]
CHECKOUT = Path(__file__).resolve().parents[1]


@dataclass
class Case:
    name: str
    command: list[str]
    floor: str | None = None
    """Name of the case that it is held against."""
    goal: float | None = None
    """Largest ratio to the floor."""
    screen: bool = False
    """Of the dashboard: until its first screen is there."""
    times: list[float] = field(default_factory=list)
    """Milliseconds of the wall clock."""
    peak: int = 0
    """Largest resident set seen, KiB. Linux counts this process's at the fork, so small ones
    cannot be told."""

    @property
    def median(self) -> float:
        return statistics.median(self.times)


@contextmanager
def node(pods: int, devices: int) -> Iterator[Path]:
    """A host's root, served by a process of its own."""
    with tempfile.TemporaryDirectory(prefix="dpb-") as name:
        root = Path(name)
        command = [sys.executable, "-m", "bench.node", name, str(pods), str(devices)]
        server = subprocess.Popen(
            command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert server.stdout is not None
            if server.stdout.readline() != b"ready\n":
                raise SystemExit("the server of the bench did not start")
            yield root
        finally:
            server.communicate()


def environment(root: Path) -> dict[str, str]:
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DPCTL_", "PYTHON")) and name not in ("KUBECONFIG", "NODE_NAME")
    }
    # No API server is asked: a kubeconfig that is not there.
    return environ | {
        "DPCTL_HOST_ROOT": str(root),
        "HOME": str(root),
        "PYTHONPATH": str(CHECKOUT),
    }


def measure(cases: list[Case], root: Path, rounds: int) -> None:
    environ = environment(root)
    for turn in range(rounds + 1):
        for case in cases:
            if case.screen:
                milliseconds, peak = dashboard.first_paint(case.command, environ), 0
            else:
                milliseconds, peak = once(case.command, environ)
            if turn:  # the first one warms the page cache
                case.times.append(milliseconds)
                case.peak = max(case.peak, peak)


def once(command: list[str], environ: dict[str, str]) -> tuple[float, int]:
    """Wall clock in milliseconds and peak resident set in KiB of one process."""
    with open(os.devnull, "r+b") as null:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, env=environ, cwd=CHECKOUT, stdin=null, stdout=null, stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        took = (time.perf_counter() - start) * 1000
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed with {process.returncode}: {said.decode()}")
    return took, usage.ru_maxrss


def anew(path: str, command: list[str]) -> list[str]:
    """The command, with nothing under that name before."""
    return ["sh", "-c", 'rm -f "$1"; shift; exec "$@"', "sh", path, *command]


def table(cases: list[Case]) -> Iterator[str]:
    yield "| what | median | against | ratio | goal | |"
    yield "| --- | ---: | --- | ---: | ---: | --- |"
    by_name = {case.name: case for case in cases}
    for case in cases:
        ratio = goal = verdict = ""
        if case.floor is not None and case.goal is not None:
            value = case.median / by_name[case.floor].median
            ratio, goal = f"{value:.2f}", f"≤ {case.goal:g}"
            verdict = "held" if value <= case.goal else "**missed**"
        yield (
            f"| {case.name} | {case.median:.0f} ms | {case.floor or ''} | {ratio} | {goal}"
            f" | {verdict} |"
        )


def idle_lines() -> Iterator[str]:
    """The dashboard, untouched, at its usual interval."""
    yield "| `dpctl dashboard`, idle at 2 s | of a core | bytes a second | goal | |"
    yield "| --- | ---: | ---: | ---: | --- |"
    for devices, goal in ((100, 0.02), (10_000, 0.1)):
        with node(pods=devices // 10, devices=devices) as root:
            command = [*DPCTL, "dashboard", "--view", "devices"]
            found = dashboard.idle(command, environment(root), 30.0)
        verdict = "held" if found.share < goal else "**missed**"
        yield (
            f"| {devices} devices | {found.share:.1%} | {found.sent:.0f} | < {goal:.0%}"
            f" | {verdict} |"
        )


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    python = sys.executable
    small = [
        Case("`python -c pass`", [python, "-c", "pass"]),
        Case("`import typer`", [python, "-c", "import typer"]),
        Case("`import textual.app`", [python, "-c", "import textual.app"]),
        Case("bare List", []),
        Case("`dpctl --version`", [*DPCTL, "--version"]),
        Case(
            "`dpctl __complete resources`",
            [*DPCTL, "__complete", "resources"],
            "`python -c pass`",
            4,
        ),
        Case("`dpctl --help`", [*DPCTL, "--help"], "`import typer`", 1.25),
        Case("`dpctl pods`", [*DPCTL, "pods", "-A"], "bare List", 1.3),
        Case(
            "`dpctl dashboard`, first screen",
            [*DPCTL, "dashboard"],
            "`import textual.app`",
            1.5,
            screen=True,
        ),
    ]
    with node(pods=10, devices=24) as root:
        socket = root / KUBELET / "pod-resources/kubelet.sock"
        small[3].command = [python, "-m", "bench.bare_list", str(socket)]
        measure(small, root, rounds)
    large = [
        Case("`dpctl devices -o json`", [*DPCTL, "devices", "-o", "json"]),
        Case("`dpctl snapshot node.tgz`", []),
        Case("`dpctl snapshot --redact r.tgz`", []),
        Case("`dpctl devices --from node.tgz -o json`", []),
        Case("`dpctl resources --from node.tgz`", []),
        Case("`dpctl diff node.tgz node.tgz`", []),
    ]
    with node(pods=1000, devices=10_000) as root:
        bundle, redacted = str(root / "node.tgz"), str(root / "r.tgz")
        asks = ["--kubeconfig", str(root / KUBECONFIG), "--node", NODE]
        large[1].command = anew(bundle, [*DPCTL, "snapshot", bundle, *asks])
        large[2].command = anew(redacted, [*DPCTL, "snapshot", redacted, "--redact", *asks])
        large[3].command = [*DPCTL, "devices", "--from", bundle, "-o", "json"]
        large[4].command = [*DPCTL, "resources", "--from", bundle]
        large[5].command = [*DPCTL, "diff", bundle, bundle]
        measure(large, root, max(rounds // 3, 1))
        size = os.path.getsize(bundle) / 1024
    print(
        f"Start-up, {rounds} interleaved runs, Python {sys.version.split()[0]}, "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}:\n"
    )
    print("\n".join(table(small)))
    print(f"\n1 000 pods, 10 000 devices; the bundle has {size:.0f} KiB:\n")
    print("| what | median | peak memory |\n| --- | ---: | ---: |")
    for case in large:
        print(f"| {case.name} | {case.median:.0f} ms | {case.peak / 1024:.0f} MiB |")
    print("\n" + "\n".join(idle_lines()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
