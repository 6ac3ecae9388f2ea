"""containerd for one node: its configuration, kept apart from any other containerd's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from . import images, pinning

_TEMPLATE = """\
version = 2
root = "{path}/cd"
state = "{path}/cs"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.nri.v1.nri",
]

[grpc]
address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{path}/opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
restrict_oom_score_adj = true
enable_cdi = true
cdi_spec_dirs = ["/run/cdi"]

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{path}/cni"
conf_dir = "{path}/cni"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{runc}"
"""

# Pods use the host's network, so this is never called; without it the node is never Ready.
_NETWORK = {"cniVersion": "0.4.0", "name": "none", "type": "loopback"}


def command(path: Path, socket: Path) -> list[str]:
    """Write the configuration below `path`; the command that runs a containerd with it."""
    (path / "cni").mkdir()
    (path / "cni" / "10-none.conf").write_text(json.dumps(_NETWORK) + "\n")
    pin = path / "pin.py"
    pin.write_text(Path(pinning.__file__).read_text())
    runc = path / "runc"
    # It is started a dozen times for every container, and only these two speak of CPUs. Isolated
    # and without site, since that is quicker.
    runc.write_text(
        "#!/bin/sh\n"
        'case " $* " in\n'
        f'*" create "* | *" update "*) exec {sys.executable} -IS {pin} "$@" ;;\n'
        "esac\n"
        f'exec {pinning.RUNC} "$@"\n'
    )
    runc.chmod(0o755)
    config = path / "containerd.toml"
    values = {"path": path, "socket": socket, "pause": images.PAUSE, "runc": runc}
    config.write_text(_TEMPLATE.format(**values))
    return ["containerd", f"--config={config}"]
