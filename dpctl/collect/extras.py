"""What a bundle has besides the sources: lines of the kubelet's log, and who has devices open.

Nothing of it is a source, so a failure is a line in `meta.json` and no more.
"""

from __future__ import annotations

from dpctl.bundle.records import Opened, encode_openers
from dpctl.env import Env
from dpctl.errors import DpctlError
from dpctl.model import Checkpoint, Kubelet, SourceRow
from dpctl.sources.evidence import LOG, OPENERS, Evidence

# A node has some hundred; a checkpoint may name 10^5.
_MOST_DEVICES = 4096


def keep_extras(
    env: Env, evidence: Evidence, kubelet: Kubelet | None, checkpoint: Checkpoint | None
) -> None:
    if kubelet is None:
        evidence.left_out[LOG] = "no kubelet was found whose log this could be"
    else:
        from dpctl.sources.kubelet_log import read_device_lines

        try:
            evidence.files[LOG] = read_device_lines(env.proc.value or "/proc", kubelet.pid)
        except DpctlError as error:
            evidence.left_out[LOG] = error.message
    try:
        evidence.files[OPENERS] = encode_openers(_openers(env, checkpoint))
    except DpctlError as error:
        evidence.left_out[OPENERS] = error.message


def _openers(env: Env, checkpoint: Checkpoint | None) -> dict[str, Opened]:
    """Of the device nodes that plugins asked for. Raises UnreachableError, DeniedError."""
    from dpctl.sources.proc import device_number, holders_of_devices

    answers = [a.answer for a in (checkpoint.allocations if checkpoint else ()) if a.answer]
    paths = dict.fromkeys(d.host_path for answer in answers for d in answer.device_specs)
    found: dict[str, Opened] = {}
    devices = {}
    for path in list(paths)[:_MOST_DEVICES]:
        try:
            devices[path] = device_number(env, path)
        except DpctlError as e:
            row = SourceRow("openers", path, "failed", e.message, e.hint, int(e.code))
            found[path] = Opened(failed=row)
    if devices:
        for path, holders in holders_of_devices(env, devices).items():
            found[path] = Opened(holders.processes, holders.denied)
    return found
