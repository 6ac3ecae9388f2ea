"""What plugins ask the runtime for, and what this machine has of it: read, in order. The rows are
the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from dpctl.model import Source

Read = Callable[[Source, str, str, Callable[[], object]], object]
"""Takes the source, the snapshot's field, the place in words, and the reading."""


def read_asked(root: str, want: Collection[Source], fields: Mapping[str, Any], read: Read) -> None:
    """CDI specifications before the paths: they name some of them. `fields`: what is read so far,
    and grows with `read`."""
    if Source.CDI in want:
        from dpctl.sources.cdi import CDI_DIRECTORIES, read_cdi

        where = ", ".join(root.rstrip("/") + directory for directory in CDI_DIRECTORIES)
        read(Source.CDI, "cdi", where, partial(read_cdi, root))
    checkpoint, cdi = fields.get("checkpoint"), fields.get("cdi")
    if Source.HOST_PATHS in want and (checkpoint is not None or cdi is not None):
        from dpctl.sources.hostpaths import read_host_paths

        read(
            Source.HOST_PATHS,
            "host_paths",
            root,
            partial(read_host_paths, root, checkpoint, cdi or ()),
        )
