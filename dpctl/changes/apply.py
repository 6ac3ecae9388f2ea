"""A plan to the API server, and what its answer means.

A 422 says nothing, so the Node is read again to explain it; a 200 is believed only where the
answer shows the change; a request that broke off is judged by what the Node says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpctl.model.changes import AppliedChange, ChangePlan

if TYPE_CHECKING:
    from dpctl.sources.apiserver import Api


def apply_plan(api: Api, plan: ChangePlan, *, dry_run: bool = False) -> AppliedChange:
    """Send the plan's patches. Raises NotAppliedError (with the reason found on the Node),
    DeniedError (with the rule to add), PeerError, UnreachableError (the outcome is not known)."""
    raise NotImplementedError
