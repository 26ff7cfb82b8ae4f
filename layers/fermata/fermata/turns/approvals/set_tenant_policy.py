"""Set a tenant's policy, and say which names in its rules nothing has."""

from typing import Any

from fermata.agents.approval_policy import ApprovalPolicy
from fermata.agents.policy_store import set_policy, to_policy_view
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.turns.approvals.policy_warnings import list_policy_warnings


def set_tenant_policy(resources: Resources, caller: Caller, policy: ApprovalPolicy) -> dict[str, Any]:
    """Replace the policy of the caller's tenant, and return its view, with `warnings` if there are some.

    Args:
        resources: The settings table, and where tools and agents are.
        caller: The administrator who sets it.
        policy: The new policy.

    Raises:
        PayloadTooLarge, ServiceUnavailable: As `set_policy`.
    """
    warnings = list_policy_warnings(resources, caller.tenant, policy)
    view = to_policy_view(set_policy(resources, caller, policy))
    return view | ({"warnings": warnings} if warnings else {})
