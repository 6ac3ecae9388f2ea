"""UIDs to pod names without the API server: the names of /var/log/pods (kubelet-facts §5.8).

Only the directory's listing is read, never a log.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from dpctl.errors import BadDataError
from dpctl.model import PodName
from dpctl.sources.files import file_error

# A node keeps a few hundred; a directory of this size is something else.
_MOST = 100_000


def read_pod_names(pod_logs_dir: str) -> tuple[PodName, ...]:
    """Pods that have logs here, by namespace and name; pods that are gone may still be among them.

    Raises UnreachableError (no such directory), DeniedError, BadDataError (too many entries).
    """
    names: list[str] = []
    try:
        with os.scandir(pod_logs_dir) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > _MOST:
                    raise BadDataError(f"{pod_logs_dir} holds more than {_MOST} entries")
    except (OSError, ValueError) as e:
        raise file_error(e, pod_logs_dir) from e
    return parse_pod_log_names(names)


def parse_pod_log_names(names: Iterable[str]) -> tuple[PodName, ...]:
    """`<namespace>_<name>_<uid>` each (none of the three may hold `_`); other names are skipped."""
    found = {
        PodName(uid=parts[2], namespace=parts[0], name=parts[1])
        for name in names
        if len(parts := name.split("_")) == 3 and all(parts)
    }
    return tuple(sorted(found, key=lambda pod: (pod.namespace, pod.name, pod.uid)))
