"""Store a tenant's policy of approvals: which calls need a person, whatever agent makes them."""

import json
from typing import Any

from fermata.agents.approval_policy import NO_POLICY, ApprovalPolicy
from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, ItemKey, Put
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import PayloadTooLarge, ServiceUnavailable
from fermata.domain.value_dataclass import value_dataclass

MAX_SET_POLICY_ATTEMPTS = 5
MAX_POLICY_BYTES = 64_000
"""The row of each turn keeps the policy with which it has started, and has 400 KB for everything."""
TOO_LONG_MESSAGE = (
    f"The policy has more than {MAX_POLICY_BYTES:,} characters of JSON. Name toolsets, risks or a capability in place "
    "of single tools."
)


@value_dataclass(frozen=True)
class StoredPolicy:
    """A tenant's policy with who has set it, and when. Version 0 was never stored."""

    policy: ApprovalPolicy = NO_POLICY
    version: int = 0
    updated_at: str = ""
    updated_by: str = ""


def build_policy_key(resources: Resources, tenant: str) -> ItemKey:
    """Return the key of the row with a tenant's policy."""
    return ItemKey(resources.settings.settings_table, f"t#{tenant}", "approval-policy")


def policy_from_item(item: Item | None) -> StoredPolicy:
    """Read the row of a policy; a tenant without one has the empty policy."""
    if item is None:
        return StoredPolicy()
    policy = ApprovalPolicy.from_wire(json.loads(item["policy"]))
    return StoredPolicy(
        policy=policy, version=item["version"], updated_at=item["updated_at"], updated_by=item["updated_by"]
    )


def read_policy(resources: Resources, tenant: str) -> StoredPolicy:
    """Return the policy of a tenant."""
    return policy_from_item(resources.tables.get_item_by_key(build_policy_key(resources, tenant)))


def to_policy_view(stored: StoredPolicy) -> dict[str, Any]:
    """Return a policy as the API shows it."""
    view = stored.policy.to_wire()
    if stored.policy.turn_cost_usd is not None:
        view["turnCostUsd"] = float(stored.policy.turn_cost_usd)
    return view | ({"updatedAt": stored.updated_at, "updatedBy": stored.updated_by} if stored.version else {})


def set_policy(resources: Resources, caller: Caller, policy: ApprovalPolicy) -> StoredPolicy:
    """Replace the policy of the caller's tenant. It applies to turns that start from now on.

    Args:
        resources: The settings table.
        caller: The administrator who sets it; recorded as `updated_by`.
        policy: The new policy.

    Returns:
        The policy as stored.

    Raises:
        PayloadTooLarge: It is longer than a turn can keep.
        ServiceUnavailable: Other requests change the policy all the time.
    """
    if len(_dump_policy(policy).encode()) > MAX_POLICY_BYTES:
        raise PayloadTooLarge(TOO_LONG_MESSAGE)
    for _ in range(MAX_SET_POLICY_ATTEMPTS):
        before = read_policy(resources, caller.tenant)
        stored = StoredPolicy(
            policy=policy,
            version=before.version + 1,
            updated_at=resources.clock.now_iso(),
            updated_by=caller.user,
        )
        if _replace_policy(resources, caller.tenant, before, stored):
            observability.log_audit_event(
                "ai.policy.updated", tenant=caller.tenant, user=caller.user, rules=len(policy.rules)
            )
            return stored
    raise ServiceUnavailable("Other requests are changing the policy. Send the same request again.", retry_after=1)


def _dump_policy(policy: ApprovalPolicy) -> str:
    return json.dumps(policy.to_wire(), separators=(",", ":"))


def _replace_policy(resources: Resources, tenant: str, before: StoredPolicy, stored: StoredPolicy) -> bool:
    """Store a policy in place of the one that was read. Return False when that has changed since (decision 0143)."""
    key = build_policy_key(resources, tenant)
    item = {
        "pk": key.pk,
        "sk": key.sk,
        "v": 1,
        "policy": _dump_policy(stored.policy),
        "version": stored.version,
        "updated_at": stored.updated_at,
        "updated_by": stored.updated_by,
    }
    condition = "#version = :was" if before.version else "attribute_not_exists(#version)"
    values = {":was": before.version} if before.version else {}
    try:
        resources.tables.write_items(
            Put(key.table, item, condition=condition, values=values, names={"#version": "version"})
        )
    except ConditionFailed as error:
        return error.item == item
    return True
