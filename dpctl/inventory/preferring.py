"""GetPreferredAllocation as a what-if: the question, the answer checked, and what the kubelet would
take with it and without. Pure.

Source: kubelet-facts §6.2, steps 6 to 8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

from dpctl import cpuset
from dpctl.inventory.by_hand_rows import Check, KubeletChoice, PreferenceRow
from dpctl.inventory.devices import Devices, is_free
from dpctl.inventory.machine import machine_of
from dpctl.inventory.numa import policies
from dpctl.model import Snapshot
from dpctl.text import natural_key, shorten
from dpctl.topology.admission import Machine
from dpctl.topology.devices import Pool, device_hints, split, take
from dpctl.topology.hints import nodes_of
from dpctl.topology.merge import ANYWHERE, Merged, Policy, merge
from dpctl.topology.requests import RefusedError
from dpctl.topology.settings import Settings

_QUOTED = 200


def free_devices(snap: Snapshot, resource: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """IDs that a pod could get now, in natural order; and all that are known."""
    rows = [r for r in Devices(snap).rows() if r.resource == resource and r.device is not None]
    free = tuple(r.device or "" for r in rows if is_free(r))
    return free, frozenset(r.device or "" for r in rows)


def check_answer(
    answer: Sequence[str] | None, available: Sequence[str], must: Sequence[str], size: int
) -> tuple[Check, ...]:
    """What a kubelet's plugin API asks of the answer."""
    if answer is None:
        return (Check("an answer for the container", False, "there is none"),)
    given, offered = set(answer), set(available)
    twice = [i for i, count in Counter(answer).items() if count > 1]
    outside = [i for i in dict.fromkeys(answer) if i not in offered]
    missing = [i for i in must if i not in given]
    wrong_size = None if len(given) == size else f"{len(given)} of {size}"
    return (
        Check(f"exactly {size} devices", wrong_size is None, wrong_size),
        Check("each of them once", not twice, _named(twice)),
        Check("only available ones", not outside, _named(outside)),
        Check("all that must be included", not missing, _named(missing)),
    )


def _named(ids: Sequence[str]) -> str | None:
    if not ids:
        return None
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return ", ".join(shorten(i, _QUOTED) for i in ids[:5]) + more


def kubelet_choice(
    snap: Snapshot,
    resource: str | None,
    available: Sequence[str],
    must: Sequence[str],
    size: int,
    answer: Sequence[str] | None,
) -> tuple[KubeletChoice | None, tuple[str, ...] | None, str | None]:
    """The kubelet's own choice, what it takes with the plugin's answer, and why neither can be
    said. `available`: taken for what is free."""
    if resource is None:
        return None, None, "which resource this is could not be told"
    try:
        found = policies(snap)
        machine = machine_of(snap, found.settings).machine
        known = machine.pools.get(resource) or Pool({}, frozenset())
        kept = frozenset(must)
        # As the kubelet has them: what an init container had is in use, and given again first.
        pool = Pool(known.nodes, frozenset(available), kept)
        merged = _merged(pool, resource, size, kept, machine, found.settings)
    except ValueError as error:
        return None, None, str(error)  # no NUMA tree, a policy that is none, too many nodes
    policy = str(found.settings.policy.value)
    if not merged.admitted:
        message = RefusedError.affinity().message
        choice = KubeletChoice(False, (), (), None, False, message, policy, found.known)
        return choice, None, None
    mask = merged.hint.mask if pool.has_topology else None
    missing = size - len(kept)
    aligned = split(pool, pool.available, mask).aligned
    among = aligned if len(aligned) >= missing else pool.available
    choice = KubeletChoice(
        admitted=True,
        devices=_ordered(take(resource, pool, size, kept, mask)),
        eligible=_ordered(kept | (among if missing > 0 else frozenset())),
        numa_nodes=None if mask is None else nodes_of(mask),
        asks=missing > 0 and len(aligned) != missing,
        message=None,
        policy=policy,
        policy_known=found.known,
    )
    if answer is None:
        return choice, None, None
    wanted = frozenset(answer)
    taken = take(resource, pool, size, kept, mask, preferred=lambda *_: wanted)
    return choice, _ordered(taken), None


def _merged(
    pool: Pool,
    resource: str,
    size: int,
    kept: frozenset[str],
    machine: Machine,
    settings: Settings,
) -> Merged:
    """The topology manager's word on a container that asks for these devices alone."""
    if settings.policy is Policy.NONE:
        return Merged(ANYWHERE, True)
    hints = device_hints(pool, size, kept, machine.numa_nodes, machine.minor)
    distances = machine.distances if settings.prefer_closest else None
    return merge([{resource: hints}], settings.policy, machine.numa_nodes, distances)


def _ordered(ids: Set[str]) -> tuple[str, ...]:
    return tuple(sorted(ids, key=natural_key))


def choice_words(row: PreferenceRow) -> str:
    """What the kubelet does by itself, in a sentence."""
    choice = row.kubelet
    if choice is None:
        return f"cannot be told: {row.kubelet_unknown}"
    policy = f"policy {choice.policy}" if choice.policy_known else "policy unknown, taken as none"
    if not choice.admitted:
        return f"it would refuse the pod ({policy}): {choice.message}"
    where = ""
    if choice.numa_nodes is not None:
        where = f" on NUMA node {cpuset.render(choice.numa_nodes)}"
    if set(choice.devices) == set(choice.eligible):
        return f"all of {_some(choice.eligible)}{where} ({policy})"
    return f"any {row.size}{where} of {_some(choice.eligible)}, at random ({policy})"


def takes_words(row: PreferenceRow) -> str:
    """What the kubelet would take with the plugin's answer, in a sentence."""
    if row.takes is None:
        return "cannot be told" if row.kubelet is None else "nothing: it would refuse the pod"
    if row.kubelet is not None and not row.kubelet.asks:
        return (
            f"{_some(row.takes)}, without asking the plugin: exactly as many are on the NUMA nodes "
            "that the topology manager wants"
        )
    filled = set(row.takes) - set(row.answer or ())
    more = f" ({len(filled)} of them filled up by itself, at random)" if filled else ""
    return _some(row.takes) + more


def _some(ids: Sequence[str]) -> str:
    return _named(ids) or "none"
