"""Every path and endpoint with where it came from; relocatable roots; detection of layouts.

`find_env(Settings(...))` is the way in. `places` is the data; `find` the order of precedence;
`given` what a person said; `machine` what the machine says; `reading` bounded reads, links inside a
root; `layouts` what distributions do; `kubelets` what running ones say; `kubeconfig` which one;
`certificate` a node's name; `config_file` dpctl's own file. No source of facts lives here, and
nothing that TAB completion cannot afford is imported on load.
"""

from __future__ import annotations

from dpctl.env.find import find_env
from dpctl.env.places import Env, Place, Settings
from dpctl.env.reading import resolve_inside

__all__ = ["Env", "Place", "Settings", "find_env", "resolve_inside"]
