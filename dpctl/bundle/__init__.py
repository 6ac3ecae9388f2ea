"""A bundle: a node's evidence on disk, in the node's own layout (`--from`).

`reader`: which file answers for which source. `folders`: the sources that are many files. `files`:
opening them without trust, `tar` those of an archive. `records` and `meta`: the JSON files that are
a bundle's own, both ways. `writer`: what `dpctl snapshot` puts where, `disk`: how it gets there.
`redact` and its neighbours: names and addresses taken out. Nothing here is decided about the node.
"""

from __future__ import annotations

from dpctl.bundle.opened import read_bundle_file, read_openers
from dpctl.bundle.reader import read_bundle

__all__ = ["read_bundle", "read_bundle_file", "read_openers"]
