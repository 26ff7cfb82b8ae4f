"""Keep who may work in a space and as what (decision 0424).

    who#           the space has a list of members
    who#<user>     a member: role, and the only models and languages

While a space has no list, the rights of a caller alone say what may be done. From the first member on, somebody without
a row may do nothing, and a row never permits more than the rights of its member. Who may manage content needs no row.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fermata.aws.dynamodb_items_and_writes import (
    ConditionCheck,
    ConditionFailed,
    Delete,
    Item,
    ItemKey,
    Put,
    TransactionCanceled,
    build_versioned_delete,
    build_versioned_put,
)
from fermata.aws.resources import Resources
from fermata.aws.workspace_subscription import read_subscription, require_plan_feature
from fermata.content.content_space import SpaceKey, list_spaces, read_space
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import ApiError, Conflict, Forbidden, InvalidRequest, NotFound, TooManyRequests
from fermata.domain.plan_refusals import check_plan_quota
from fermata.domain.value_dataclass import value_dataclass
from fermata.domain.workspace_plan import PlanFeature, PlanQuota

MemberRole = Literal["viewer", "reviewer", "editor"]
MEMBER_PREFIX = "who#"
MAX_MEMBERS = 500
_DELETED_AT_ONCE = 100
_SPACES_AT_ONCE = 50
"""Of which two rows each are read with one request."""
MAX_USER_BYTES = 200
_CHANGED_MEANWHILE = "Somebody else has just changed this member. Try again."


@value_dataclass(frozen=True)
class SpaceMember:
    """A member of a space.

    Attributes:
        role: `viewer`, `reviewer` or `editor`. Another text, of a newer release, is no more than a viewer.
        models: The only models whose content the member may read or change; None for all.
        locales: The only languages; None for all.
    """

    user: str
    role: str
    models: frozenset[str] | None = None
    locales: frozenset[str] | None = None

    @property
    def is_restricted(self) -> bool:
        """Whether the member may see a part of the space only."""
        return self.models is not None or self.locales is not None

    def to_view(self) -> dict[str, Any]:
        """Return the JSON form for people."""
        only = {"models": self.models, "locales": self.locales}
        lists = {name: sorted(found) for name, found in only.items() if found is not None}
        return {"user": self.user, "role": self.role, **lists}


@value_dataclass(frozen=True)
class Membership:
    """What the list of a space says about a user.

    Attributes:
        is_listed: Whether the space has a list of members.
    """

    is_listed: bool
    member: SpaceMember | None = None


def read_membership(resources: Resources, space: SpaceKey, user: str) -> Membership:
    """Return what the list of a space says about a user now, with one request.

    Args:
        resources: Of the process.
        space: The space.
        user: The user; nobody has the empty name.
    """
    return read_memberships(resources, [space], user)[space]


def read_memberships(resources: Resources, spaces: Sequence[SpaceKey], user: str) -> dict[SpaceKey, Membership]:
    """Return what the lists of spaces say about a user, with one request for each fifty spaces.

    Args:
        resources: Of the process.
        spaces: The spaces.
        user: The user; nobody has the empty name.
    """
    table, found = resources.settings.content_table, {}
    for start in range(0, len(spaces), _SPACES_AT_ONCE):
        some = spaces[start : start + _SPACES_AT_ONCE]
        sort_keys = [MEMBER_PREFIX] + ([MEMBER_PREFIX + user] if user else [])
        rows = resources.tables.batch_get_items(table, [(one.pk, key) for one in some for key in sort_keys])
        for space in some:
            own = rows.get((space.pk, MEMBER_PREFIX + user)) if user else None
            # A row without the other one is left by a list that is being deleted: it still counts.
            is_listed = own is not None or (space.pk, MEMBER_PREFIX) in rows
            found[space] = Membership(is_listed, _member_from_item(own) if own else None)
    return found


def require_membership(resources: Resources, space: SpaceKey, caller: Caller) -> SpaceMember | None:
    """Return the caller's row of a space; None where the caller's rights alone count.

    Args:
        resources: Of the process.
        space: The space.
        caller: The caller. Who may manage content needs no row, and neither does a key that was made for this space.

    Raises:
        Forbidden: The space has a list of members, and the caller is not on it.
    """
    if caller.has_capability(Capability.CONTENT) or caller.space == space.name:
        return None
    membership = read_membership(resources, space, caller.user)
    if membership.is_listed and membership.member is None:
        raise Forbidden(f"Forbidden: you are not a member of {space.name}. Who manages its content can add you.")
    return membership.member


def list_members(resources: Resources, space: SpaceKey) -> list[SpaceMember] | None:
    """Return the members of a space by user; None if it has no list of them."""
    rows = _query_rows(resources, space)
    return [_member_from_item(row) for row in rows if row["sk"] != MEMBER_PREFIX] if rows else None


def put_member(resources: Resources, space: SpaceKey, member: SpaceMember) -> SpaceMember:
    """Say what a user may do in a space. The first member begins its list.

    Args:
        resources: Of the process.
        space: The space.
        member: The member, in the place of an earlier row.

    Raises:
        NotFound: There is no such space.
        InvalidRequest: The name of the user is none, or a language is none of the space.
        TooManyRequests: The space has as many members as it may have.
        Conflict: Somebody else has changed the member at the same moment.
        PlanLocked: Nobody pays for the workspace.
        PlanUpgradeRequired: Its plan has no more members, or no restrictions.
    """
    _check_member(member, read_space(resources, space).locales)
    table, rows = resources.settings.content_table, _query_rows(resources, space)
    known = next((row for row in rows if row["sk"] == MEMBER_PREFIX + member.user), None)
    if known is None and len(rows) > MAX_MEMBERS:
        raise TooManyRequests(f"A space has at most {MAX_MEMBERS} members. Remove one first.")
    _check_restrictions(resources, space, member, known)
    if known is None:
        _check_seats(resources, space.tenant, member.user)
    item = _member_to_item(space, member, int(known["version"]) + 1 if known else 1)
    is_listed = any(row["sk"] == MEMBER_PREFIX for row in rows)
    try:
        resources.tables.write_items(_put_after(table, item, known), _keep_list(table, space, is_listed))
    except (ConditionFailed, TransactionCanceled):
        raise Conflict(_CHANGED_MEANWHILE) from None
    if known is None:
        _take_back_beyond_seats(resources, space, member.user)
    return member


def _check_restrictions(resources: Resources, space: SpaceKey, member: SpaceMember, known: Item | None) -> None:
    """Check that the plan has restrictions, if the member gets new ones. Those of an earlier plan stay in force."""
    before = _member_from_item(known) if known else None
    if member.is_restricted and (before is None or (member.models, member.locales) != (before.models, before.locales)):
        require_plan_feature(resources, space.tenant, PlanFeature.MODEL_RESTRICTIONS)


def _check_seats(resources: Resources, tenant: str, user: str = "") -> None:
    """Check that the plan has a seat for everybody on a list of the workspace, and for this user."""
    subscription, now = read_subscription(resources, tenant), resources.clock.time()
    is_limited = subscription.get_limit(PlanQuota.SEATS) is not None
    seated = list_seated_users(resources, tenant) if is_limited else frozenset()
    if user not in seated:
        check_plan_quota(subscription, PlanQuota.SEATS, len(seated | ({user} if user else set())), now)


def _take_back_beyond_seats(resources: Resources, space: SpaceKey, user: str) -> None:
    """Remove a member who was added beside others at the same time, if they are too many. Who removes is told why."""
    try:
        _check_seats(resources, space.tenant)
    except ApiError:
        with contextlib.suppress(NotFound, Conflict):  # somebody else has decided about the member meanwhile
            remove_member(resources, space, user)
        raise


def list_seated_users(resources: Resources, tenant: str) -> frozenset[str]:
    """Return everybody who is on a list of members of a workspace. Each takes one seat."""
    spaces = [space for space, _ in list_spaces(resources, tenant)]
    rows = [row for space in spaces for row in _query_rows(resources, space)]
    return frozenset(row["user"] for row in rows if row["sk"] != MEMBER_PREFIX)


def remove_member(resources: Resources, space: SpaceKey, user: str) -> None:
    """Remove a member, who may do nothing in the space from then on. The list stays, even if nobody is left on it.

    Args:
        resources: Of the process.
        space: The space.
        user: The member.

    Raises:
        NotFound: There is no such member.
        Conflict: Somebody else has changed the member at the same moment.
    """
    key = ItemKey(resources.settings.content_table, space.pk, MEMBER_PREFIX + user)
    before = resources.tables.get_item_by_key(key) if user else None
    if before is None:
        raise NotFound("There is no such member.")
    try:
        resources.tables.write_items(build_versioned_delete(key, before["version"]))
    except (ConditionFailed, TransactionCanceled):
        raise Conflict(_CHANGED_MEANWHILE) from None


def delete_member_list(resources: Resources, space: SpaceKey) -> None:
    """Delete the list of a space, so that rights alone count again. That there is one is forgotten last."""
    table, rows = resources.settings.content_table, _query_rows(resources, space)
    members = [Delete(table, row["pk"], row["sk"]) for row in rows if row["sk"] != MEMBER_PREFIX]
    for start in range(0, len(members), _DELETED_AT_ONCE):
        resources.tables.write_items(*members[start : start + _DELETED_AT_ONCE])
    resources.tables.write_items(Delete(table, space.pk, MEMBER_PREFIX))


def _query_rows(resources: Resources, space: SpaceKey) -> list[Item]:
    table = resources.settings.content_table
    return resources.tables.query_items(table, space.pk, min_sk=MEMBER_PREFIX, max_sk=f"{MEMBER_PREFIX}\U0010ffff")


def _put_after(table: str, item: Item, known: Item | None) -> Put:
    return build_versioned_put(table, item, known["version"] if known else None)


def _keep_list(table: str, space: SpaceKey, is_listed: bool) -> Put | ConditionCheck:
    """Return the write that begins the list of a space, or that checks that nobody has deleted it."""
    if is_listed:
        return ConditionCheck(table, space.pk, MEMBER_PREFIX, "attribute_exists(pk)")
    return Put(table, {"pk": space.pk, "sk": MEMBER_PREFIX, "v": 1}, if_absent=True)


def _check_member(member: SpaceMember, locales: tuple[str, ...]) -> None:
    user = member.user
    if not user.strip() or not user.isprintable() or len(user.encode()) > MAX_USER_BYTES:
        raise InvalidRequest(f"'user' is the id of a user, with at most {MAX_USER_BYTES} bytes.")
    if unknown := sorted((member.locales or frozenset()) - set(locales)):
        raise InvalidRequest(f"The space has no language {unknown[0]}. It has {', '.join(locales)}.")


def _member_to_item(space: SpaceKey, member: SpaceMember, version: int) -> Item:
    only = {"models": member.models, "locales": member.locales}
    lists = {name: sorted(found) for name, found in only.items() if found is not None}
    key = {"pk": space.pk, "sk": MEMBER_PREFIX + member.user}
    return {**key, "v": 1, "version": version, "user": member.user, "role": member.role, **lists}


def _member_from_item(item: Mapping[str, Any]) -> SpaceMember:
    models, locales = (frozenset(item[name]) if name in item else None for name in ("models", "locales"))
    return SpaceMember(item["user"], str(item.get("role", "")), models, locales)
