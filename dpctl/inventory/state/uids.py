"""Which pods the state files speak of. Pure."""

from __future__ import annotations

from dpctl.model import Snapshot


def uids_of(snap: Snapshot) -> set[str]:
    """The pod UIDs of every state file that was read."""
    found = {a.pod_uid for a in snap.checkpoint.allocations} if snap.checkpoint else set()
    for state in (snap.cpu_state, snap.memory_state):
        if state is not None and state.content is not None:
            found.update(state.content.containers, state.content.pods)
    for claim in snap.dra_state.claims if snap.dra_state else ():
        found.update(claim.pod_uids)
    for recorded in (snap.allocated_pods, snap.actuated_pods):
        found.update(pod.uid for pod in (recorded.pods if recorded else ()))
    return found
