"""Say what a caller may do in each space, so that a console offers nothing that is refused (decision 0668)."""

from collections.abc import Sequence
from typing import Any, Literal

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.space_access import may_read_content
from fermata.content.space_members import Membership, read_memberships
from fermata.domain.caller import Caller, Capability

SpaceRight = Literal["read", "write", "review", "manage", "keys", "plan"]
"""Read content; write it; decide about changes and submissions; manage models and members; see keys, and the plan."""
_WRITERS = (Capability.WRITE_CONTENT, Capability.CONTENT)
_NOBODY = Membership(is_listed=False)


def list_space_rights(
    resources: Resources, caller: Caller, spaces: Sequence[SpaceKey]
) -> dict[SpaceKey, dict[str, Any]]:
    """Return for each space the caller's `rights`, and `member`: the row of its list that narrows them, if any.

    Args:
        resources: Of the process.
        caller: Who asks.
        spaces: Of the caller's tenant.
    """
    asked = [] if caller.has_capability(Capability.CONTENT) else [one for one in spaces if one.name != caller.space]
    memberships = read_memberships(resources, asked, caller.user)
    return {space: _describe_rights(caller, memberships.get(space, _NOBODY)) for space in spaces}


def _describe_rights(caller: Caller, membership: Membership) -> dict[str, Any]:
    member = membership.member
    row = {} if member is None else {"member": member.to_view()}
    if (membership.is_listed and member is None) or (member is not None and member.is_restricted):
        return {"rights": [], **row}
    return {"rights": _list_rights(caller, None if member is None else member.role), **row}


def _list_rights(caller: Caller, role: str | None) -> list[SpaceRight]:
    """Return what may be done by the rights of a caller, and the role of its row; None without a row."""
    has = caller.has_capability
    manages, reads = has(Capability.CONTENT), may_read_content(caller)
    found: dict[SpaceRight, bool] = {
        "read": reads,
        "write": any(map(has, _WRITERS)) and role in (None, "editor"),
        "review": manages or (reads and has(Capability.REVIEW_CONTENT) and role in (None, "reviewer")),
        "manage": manages,
        "keys": manages and has(Capability.KEYS),
        "plan": manages or has(Capability.AUDIT),
    }
    return [right for right, is_given in found.items() if is_given]
