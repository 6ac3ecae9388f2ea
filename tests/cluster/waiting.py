"""A node on which five-minute graces run out while other tests run.

Plugins have come and gone there: `gone.test/gpu` was killed while a pod held one of its two
devices, `idle.test/fpga` was killed with nobody on it, and `quiet.test/nic` lives on through a
kubelet restart without registering again. Upstream's sample plugin has been through what every
tutorial tells; `dpctl node remove --wait` waits for its key.
"""

from __future__ import annotations

import subprocess
import time

from . import pods
from .api import Api
from .bench import Bench
from .node import SAMPLE_RESOURCE, Result
from .processes import Daemon, wait_for

# Five minutes, then the next status build (a second), and some for a busy machine.
GRACE_SECONDS = 300.0
LATEST_SECONDS = 330.0


class Waiting:
    """The node, and when its last grace began."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.node = bench.node
        self.since = 0.0
        self.story: dict[str, Result] = {}
        self.pending = ""
        """Why the scheduler left the tutorial's second pod Pending."""

    def start(self) -> None:
        """Bring it up and let the plugins come and go."""
        bench, node = self.bench, self.node
        node.start()
        self.quiet = bench.plugin(
            "quiet.test/nic",
            ["nic-0"],
            endpoint="quiet.sock",
            watch_kubelet=False,
            arguments=["--resource-name=quiet.test/nic"],
        )
        node.restart_kubelet()
        node.wait_resource("quiet.test/nic", "0", "0")
        sample = node.start_sample_plugin(wait=False)
        gone = bench.plugin("gone.test/gpu", ["gpu-0", "gpu-1"], preferred=True)
        idle = bench.plugin("idle.test/fpga", ["fpga-0"])
        node.create_pod(f"keeper-{node.name}", {"gone.test/gpu": 1}, phase=None)
        self._tell_tutorial(sample)
        pods.wait_phase(bench.plane.api(), f"keeper-{node.name}", "Running")
        for plugin in (gone, idle):
            plugin.kill()
        node.wait_resource("gone.test/gpu", "0", "2")
        node.wait_resource("idle.test/fpga", "0", "1")
        state = {"XDG_STATE_HOME": str(node.kubelet_dir / "dpctl-state")}
        self.removal = subprocess.Popen(
            [
                *(*node.entering, *bench.command(), "node", "remove", SAMPLE_RESOURCE),
                *("--wait", "--yes", "--verify", "5s"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **bench.environment(env=state)},
        )
        self.since = time.monotonic()

    def _tell_tutorial(self, sample: Daemon) -> None:
        """A pod gets a device, a second one stays Pending, the plugin stops, both pods go.

        All nodes of a machine share /tmp/Dev-1 and Dev-2, which the plugin makes anew each time it
        gives them away: a pod whose mount fails over that is started again by its kubelet.
        """
        api, node = self.bench.plane.api(), self.node
        first, second = f"first-{node.name}", f"second-{node.name}"
        node.wait_resource(SAMPLE_RESOURCE, "2", needs=[sample])
        self._note("registered")
        node.create_pod(first, {SAMPLE_RESOURCE: 1})
        node.create_pod(second, {SAMPLE_RESOURCE: 2}, phase=None)
        self.pending = wait_for("the second pod to be refused", lambda: _unfit(api, second), 30)
        self._note("held")
        sample.stop()
        node.wait_resource(SAMPLE_RESOURCE, "0", "2")
        self._note("stopped")
        # Nothing is removed while a pod asks for it.
        for name in (second, first):
            node.delete_pod(name)

    def _note(self, moment: str) -> None:
        """What dpctl says of the sample's resource, for the test that tells the story."""
        self.story[moment] = self.bench.dpctl("resources", SAMPLE_RESOURCE)

    def wait(self) -> None:
        """Wait until the kubelet has let go of everything."""
        last: list[object] = []

        def probe() -> bool:
            registered = self.bench.checkpoint()["Data"]["RegisteredDevices"]
            status = self.node.get()["status"]["capacity"]
            shown = {k: status.get(k) for k in ("gone.test/gpu", "idle.test/fpga")}
            last[:] = [registered, shown]
            names = {"gone.test/gpu", "idle.test/fpga", "quiet.test/nic"}
            return self.released or (not names & set(registered) and set(shown.values()) == {"0"})

        seconds = max(5.0, self.since + LATEST_SECONDS - time.monotonic())
        try:
            wait_for(f"{self.node.name}'s kubelet to let go", probe, seconds, interval=0.5)
        except Exception as error:
            error.add_note(f"last seen: {last}")
            raise
        if not self.released:
            self.said, _ = self.removal.communicate(timeout=120)
        self.released = True

    released = False
    said = ""
    """What `dpctl node remove --wait` printed."""

    def pod(self) -> str:
        """The pod that holds a device of the plugin that is gone."""
        found = pods.find(self.bench.plane.api(), f"keeper-{self.node.name}")
        assert found is not None
        name: str = found["metadata"]["name"]
        return name


def _unfit(api: Api, name: str) -> str | None:
    """What the scheduler says of a pod that it could not place."""
    pod = pods.find(api, name)
    for condition in pod["status"].get("conditions", ()) if pod is not None else ():
        if (condition["type"], condition["status"]) == ("PodScheduled", "False"):
            message: str = condition["message"]
            return message
    return None
