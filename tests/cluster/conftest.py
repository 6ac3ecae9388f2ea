"""One control plane and a node per minor for the whole run; every test gets a clean node.

`--minor 1.36` (or MINOR=1.36) leaves the others out. Without root, or without Go and a finished
build, the run ends in one line.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from . import build
from .bench import Bench
from .node import Node
from .plane import ControlPlane
from .processes import ClusterError
from .waiting import Waiting

_ran: Counter[str] = Counter()


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
    return chosen or build.minors()[::-1]


def pytest_configure(config: pytest.Config) -> None:
    if os.geteuid() != 0:
        pytest.exit("cluster tests need root: they run a kubelet, containerd and mounts", 1)
    if not _go():
        pytest.exit("cluster tests need Go to build Kubernetes: command go not found", 1)
    config.stash[_MINORS] = _minors(config)
    config.addinivalue_line("markers", "last: needs a grace to be over, so it runs at the end")


_MINORS = pytest.StashKey[list[str]]()


def _go() -> bool:
    try:
        return bool(build._go("env", "GOVERSION"))
    except build.BuildError:
        return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    minors = metafunc.config.stash[_MINORS]
    for name in ("bench", "waiting"):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, minors, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # What waits for five-minute graces goes last: they run out meanwhile.
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.outcome != "skipped":
        name = report.nodeid.rpartition("[")[2].rstrip("]")
        _ran[name] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = ", ".join(f"{minor}: {count}" for minor, count in sorted(_ran.items()))
    terminalreporter.write_line(f"cluster tests run per minor: {counts or 'none'}")


class Cluster:
    """The control plane with two nodes per minor: one for tests, one on which graces run out."""

    def __init__(self, plane: ControlPlane, minors: list[str]) -> None:
        self.plane = plane
        self.benches = {minor: Bench(Node(plane, minor, numa=2)) for minor in minors}
        self.waiting = {minor: Waiting(Bench(Node(plane, minor))) for minor in minors}

    def start(self) -> None:
        """Bring all nodes up side by side."""
        nodes = [bench.node for bench in self.benches.values()]
        waiting = list(self.waiting.values())
        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(node.start) for node in nodes]
            work += [pool.submit(one.start) for one in waiting]
            for done in work:
                done.result()


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    try:
        plane = ControlPlane()
    except (ClusterError, build.BuildError, OSError) as error:
        pytest.exit(str(error), 1)
    with plane:
        made = Cluster(plane, request.config.stash[_MINORS])
        made.start()
        yield made


@pytest.fixture
def bench(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Bench]:
    """A clean node of one minor."""
    found = cluster.benches[request.param]
    found.clean()
    yield found
    found.settle()


@pytest.fixture
def waiting(request: pytest.FixtureRequest, cluster: Cluster) -> Waiting:
    """A node of one minor, after its graces have run out."""
    found = cluster.waiting[request.param]
    found.wait()
    return found
