"""A bundle: a node's evidence on disk, in the node's own layout (`--from`).

`reader`: which file answers for which source. `folders`: the sources that are many files. `files`:
opening them without trust, `tar` those of an archive. `records`: the JSON files that are a
bundle's own, both ways. Nothing here is decided about the node.
"""

from __future__ import annotations

from dpctl.bundle.reader import read_bundle, read_bundle_file

__all__ = ["read_bundle", "read_bundle_file"]
