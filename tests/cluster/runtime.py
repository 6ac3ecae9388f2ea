"""containerd for one node: its configuration, kept apart from any other containerd's."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

from . import build, images, pinning

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

# containerd starts this a dozen times for every container, and only these two speak of CPUs.
# Isolated and without site, since that is quicker: no virtual environment is needed either.
_RUNC = f"""\
#!/bin/sh
case " $* " in
*" create "* | *" update "*) exec {Path(sys.executable).resolve()} -IS "${{0%/*}}/pin.py" "$@" ;;
esac
exec {pinning.RUNC} "$@"
"""

# Pods use the host's network, so this is never called; without it the node is never Ready.
_NETWORK = {"cniVersion": "0.4.0", "name": "none", "type": "loopback"}


def command(path: Path, socket: Path) -> list[str]:
    """Write the configuration below `path`; the command that runs a containerd with it."""
    (path / "cni").mkdir()
    (path / "cni" / "10-none.conf").write_text(json.dumps(_NETWORK) + "\n")
    config = path / "containerd.toml"
    values = {"path": path, "socket": socket, "pause": images.PAUSE, "runc": runc()}
    config.write_text(_TEMPLATE.format(**values))
    return ["containerd", f"--config={config}"]


def runc() -> Path:
    """What stands in for runc, in the cache of builds: from /run, where a node's files are, many
    a machine executes nothing."""
    pin = Path(pinning.__file__).read_bytes()
    digest = hashlib.sha256(_RUNC.encode() + pin).hexdigest()[:12]
    kept = build.cache_root() / f"runc-{digest}"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".runc-", dir=kept.parent))
        try:
            (temporary / "pin.py").write_bytes(pin)
            (temporary / "runc").write_text(_RUNC)
            (temporary / "runc").chmod(0o755)
            temporary.rename(kept)
        except OSError:
            # Another process has made the same one meanwhile.
            if not kept.is_dir():
                raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return kept / "runc"
