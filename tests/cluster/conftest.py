"""One control plane and two nodes per minor for the whole run; every test gets a clean node.

Minors are tested side by side: pytest-xdist gives each its own process, and they share the control
plane, which the first process starts and ends. What is not tested on every minor (`1.37+` in a
test's name) goes, file by file, to whichever process is free. `--minor 1.36` (or MINOR=1.36) leaves
the others out. Without root, or without Go, the run ends in one line.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from . import build, images, runtime, slots
from .bench import Bench
from .control import ControlPlane, check_programs
from .everything import assert_everything
from .node import Node
from .plane import Plane, Seat
from .processes import ClusterError
from .sysfs import Machine
from .waiting import Waiting

_ran: Counter[str] = Counter()
_MINORS = pytest.StashKey[list[str]]()
_PLANE = pytest.StashKey[ControlPlane]()
_FAILED = pytest.StashKey[bool]()
_SEATS = pytest.StashKey[Iterator[int]]()
_TOO_MANY = f"at most {slots.PARTS - 1} processes (-n) can share the control plane"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--minor",
        action="append",
        default=None,
        help="Kubernetes minor to test, such as 1.36; may be repeated; all when left out",
    )


def _minors(config: pytest.Config) -> list[str]:
    chosen = config.getoption("--minor") or os.environ.get("MINOR", "").split()
    unknown = [minor for minor in chosen if minor not in build.minors()]
    if unknown:
        raise pytest.UsageError(f"no such minor: {', '.join(unknown)} ({build.minors()})")
    return [minor for minor in build.minors()[::-1] if minor in chosen or not chosen]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "last: needs a grace to be over, so it runs at the end")
    config.addinivalue_line("markers", "newest: asks the API server alone, and there is one")
    config.addinivalue_line("markers", "ends: what changes between minors shows at both ends")
    config.stash[_MINORS] = _minors(config)
    if _is_worker(config):
        return
    if os.geteuid() != 0:
        pytest.exit("cluster tests need root: they run a kubelet, containerd and mounts", 1)
    if (config.getoption("numprocesses", None) or 0) >= slots.PARTS:
        raise pytest.UsageError(_TOO_MANY)
    if config.option.collectonly:
        return
    config.stash[_SEATS] = iter(range(1, slots.PARTS))
    try:
        _set_up(config)
    except (ClusterError, build.BuildError, OSError, subprocess.SubprocessError) as error:
        pytest.exit(str(error), 1)


def _set_up(config: pytest.Config) -> None:
    """All that can fail before the first test, what takes minutes last."""
    check_programs()
    images.archive()
    runtime.runc()
    for minor in config.stash[_MINORS]:
        build.binaries(minor)
    plane = config.stash[_PLANE] = ControlPlane()
    plane.start()
    # Ready before the processes join it: they would wait for it anyway.
    plane.wait_ready()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _PLANE in config.stash:
        config.stash[_PLANE].stop()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist where the control plane is."""
    plane = node.config.stash[_PLANE]
    part = next(node.config.stash[_SEATS], None)
    if part is None:
        # One that takes the place of a process that crashed has a seat of its own.
        pytest.exit(_TOO_MANY, 1)
    node.workerinput["seat"] = tuple(plane.seat(part))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a minor in one process, in order; the files that not all minors have go to
    those that are done with their own."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByMinor(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            minor = _minor_of(nodeid)
            return f"{nodeid.partition('::')[0]} {minor}" if f"[{minor}+" in nodeid else minor

    return ByMinor(config, log)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    minors = metafunc.config.stash[_MINORS]
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    if "newest" in marks:
        tested = minors[:1]
    elif "ends" in marks:
        tested = [minor for minor in minors if minor in (minors[0], minors[-1])]
    else:
        tested = minors
    names = [minor if tested is minors else f"{minor}+" for minor in tested]
    for fixture in ("bench", "waiting"):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, tested, ids=names, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # What waits for five-minute graces goes last: they run out meanwhile.
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.outcome != "skipped":
        _ran[_minor_of(report.nodeid)] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not _is_worker(session.config) and session.exitstatus == 0 and _untested(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    counts = ", ".join(f"{minor}: {count}" for minor, count in sorted(_ran.items()))
    terminalreporter.write_line(f"cluster tests run per minor: {counts or 'none'}")
    if untested := _untested(config):
        terminalreporter.write_line(f"FAILED: no test ran on {', '.join(untested)}", red=True)


def _untested(config: pytest.Config) -> list[str]:
    """Chosen minors on which nothing ran, although nobody has asked for less than everything."""
    option = config.option
    here = Path(__file__).parent
    paths = [config.invocation_params.dir / arg for arg in config.args]
    whole = all("::" not in path.name and here.is_relative_to(path.resolve()) for path in paths)
    if not whole or option.keyword or option.markexpr or option.deselect or option.collectonly:
        return []
    return [minor for minor in config.stash[_MINORS] if not _ran[minor]]


def _minor_of(nodeid: str) -> str:
    found = re.search(r"\[(\d+\.\d+)\b", nodeid)
    return found[1] if found else "none"


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


class Cluster:
    """This process's nodes under the control plane, brought up with the first test of a minor."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self._benches: dict[str, Bench] = {}
        self._waiting: dict[str, Waiting] = {}

    def bench(self, minor: str) -> Bench:
        """The node for tests; the process's first one comes with one on which graces run out."""
        if minor not in self._benches:
            first = not self._benches
            bench = Bench(Node(self.plane, minor, machine=Machine(numa=2)))
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(self.waiting, minor) if first else None
                with _ended_if_it_fails(bench.node):
                    bench.node.start()
                self._benches[minor] = bench
            if waiting is not None:
                waiting.result()
        return self._benches[minor]

    def waiting(self, minor: str) -> Waiting:
        """The node on which a minor's graces run out."""
        if minor not in self._waiting:
            found = Waiting(Bench(Node(self.plane, minor)))
            with _ended_if_it_fails(found.node):
                found.start()
            self._waiting[minor] = found
        return self._waiting[minor]


@contextmanager
def _ended_if_it_fails(node: Node) -> Iterator[None]:
    """A node that does not come up is ended: the next test gets another one."""
    try:
        yield
    except BaseException:
        node.end()
        raise


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    config = request.config
    if _is_worker(config):
        seat = Seat(*config.workerinput["seat"])  # type: ignore[attr-defined]
        return Cluster(Plane.join(seat))
    return Cluster(config.stash[_PLANE])


@pytest.fixture
def bench(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Bench]:
    """A clean node of one minor."""
    found = cluster.bench(request.param)
    found.clean()
    yield found
    try:
        if not _failed(request) and found.node.kubelet is not None and found.node.kubelet.alive:
            assert_everything(found)
    finally:
        found.settle()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember how the test went, for what follows it."""
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


def _failed(request: pytest.FixtureRequest) -> bool:
    return bool(request.node.stash.get(_FAILED, False))


@pytest.fixture
def waiting(request: pytest.FixtureRequest, cluster: Cluster) -> Waiting:
    """A node of one minor, after its graces have run out."""
    found = cluster.waiting(request.param)
    found.wait()
    return found
