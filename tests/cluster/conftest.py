"""One control plane and two nodes per minor for the whole run; every test gets a clean node.

Minors are tested side by side: pytest-xdist gives each its own process, and they share the control
plane, which the first process starts and ends. What is not tested on every minor (`1.37+` in a
test's name) goes, file by file, to whichever process is free. `--minor 1.36` (or MINOR=1.36) leaves
the others out. Without root, or without Go, the run ends in one line.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from . import build
from .bench import Bench
from .control import ControlPlane
from .everything import assert_everything
from .node import Node
from .plane import Plane, Seat
from .processes import ClusterError
from .waiting import Waiting

_ran: Counter[str] = Counter()
_MINORS = pytest.StashKey[list[str]]()
_PLANE = pytest.StashKey[ControlPlane]()
_FAILED = pytest.StashKey[bool]()
_SEATS = pytest.StashKey[Iterator[int]]()


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
    if config.option.collectonly:
        return
    try:
        for minor in config.stash[_MINORS]:
            build.binaries(minor)
        plane = ControlPlane()
    except (ClusterError, build.BuildError, OSError) as error:
        pytest.exit(str(error), 1)
    config.stash[_PLANE] = plane
    config.stash[_SEATS] = iter(range(1, 1 + len(build.minors())))
    plane.__enter__()
    # Ready before the processes join it: they would wait for it anyway.
    plane.wait_ready()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _PLANE in config.stash:
        config.stash[_PLANE].stop()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist where the control plane is."""
    plane = node.config.stash[_PLANE]
    node.workerinput["seat"] = tuple(plane.seat(next(node.config.stash[_SEATS])))


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = ", ".join(f"{minor}: {count}" for minor, count in sorted(_ran.items()))
    terminalreporter.write_line(f"cluster tests run per minor: {counts or 'none'}")


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
            bench = Bench(Node(self.plane, minor, numa=2))
            with ThreadPoolExecutor(2) as pool:
                starting = pool.submit(bench.node.start)
                if first:
                    self.waiting(minor)
                starting.result()
            self._benches[minor] = bench
        return self._benches[minor]

    def waiting(self, minor: str) -> Waiting:
        """The node on which a minor's graces run out."""
        if minor not in self._waiting:
            found = Waiting(Bench(Node(self.plane, minor)))
            found.start()
            self._waiting[minor] = found
        return self._waiting[minor]


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
