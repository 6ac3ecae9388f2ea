"""Every kind of document, for `dpctl schema`. Loads all rows: import it inside a function."""

from __future__ import annotations

from typing import Any

from dpctl import views
from dpctl.columns import View
from dpctl.views import changes, differences, leftovers, nodes, numa, plugin, state

VIEWS: tuple[View[Any], ...] = (
    views.RESOURCES,
    views.DEVICES,
    views.GROUPS,
    views.CONTAINERS,
    views.FAILED_PODS,
    views.PLUGINS,
    views.USERS,
    nodes.NODE_RESOURCES,
    changes.CHANGES,
    leftovers.SOCKET_CHANGES,
    leftovers.POD_CHANGES,
    state.STATE,
    state.STATE_CHECKS,
    state.STATE_DIFFERENCES,
    differences.DIFFERENCES,
    views.ENVIRONMENT,
    numa.TOPOLOGY,
    numa.NUMA_NODES,
    numa.ALIGNMENT,
    numa.FIT,
    plugin.LISTED_DEVICES,
    plugin.DEVICE_LIST,
    plugin.OPTIONS,
    plugin.PREFERENCE,
    plugin.ALLOCATION,
    plugin.WAITED,
)
