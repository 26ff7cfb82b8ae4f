"""List the turns of a tenant for its operators: those that run or wait, and those that have ended (decision 0278)."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.limits.list_running_turns import list_running_turns
from fermata.turns.read.turn_status import describe_origin, read_open_turn_status
from fermata.turns.turn import Turn, build_turn_pk, turn_from_item
from fermata.usage.ledger.ledger_store import read_turn_requests
from fermata.usage.ledger.recent_turns import RecentTurn, read_recent_turns

MAX_TURNS_PER_PAGE = 50
_TOKEN_MEMBERS = {
    "promptTokens": "prompt",
    "completionTokens": "completion",
    "cacheReadTokens": "cacheRead",
    "cacheCreationTokens": "cacheCreation",
}


def list_tenant_turns(resources: Resources, caller: Caller, cursor: str, limit: int) -> dict[str, Any]:
    """Return a page of the turns of the caller's tenant, the latest first.

    Args:
        cursor: `nextCursor` of the page before; empty for the first page, which also has all turns that are running.
        limit: The greatest number of turns that have a ledger row, at most MAX_TURNS_PER_PAGE.

    Raises:
        InvalidRequest: The cursor is malformed.
    """
    page = read_recent_turns(resources, caller.tenant, cursor, min(limit, MAX_TURNS_PER_PAGE))
    running = list_running_turns(resources, caller.tenant)
    recent = [turn for turn in page.turns if not cursor or turn.end or turn.id not in running]
    known = {turn.id for turn in recent}
    others = [] if cursor else [id_ for id_ in running if id_ not in known][:MAX_TURNS_PER_PAGE]
    stored = _read_turns(resources, caller.tenant, [*others, *known])
    running_views = (_view_of_running_turn(resources, stored[id_]) for id_ in others if id_ in stored)
    views = [view for view in running_views if view is not None]
    views.sort(key=lambda view: str(view["startedAt"]), reverse=True)
    views += [_view_of_recent_turn(resources, turn, stored.get(turn.id)) for turn in recent]
    allowed = [view for view in views if caller.allows_scope(view["scope"])]
    return {"turns": allowed} | ({"nextCursor": page.next_cursor} if page.next_cursor else {})


def sum_requests(requests: Iterable[Item]) -> dict[str, Any]:
    """Return rounds, requests, tokens and cost of ledger rows, as a turn's view has them."""
    rows = list(requests)
    tokens = {member: sum(int(row.get(name, 0)) for row in rows) for member, name in _TOKEN_MEMBERS.items()}
    rounds = len({str(row["sk"]).partition("#")[0] for row in rows})
    cost = sum((Decimal(row.get("cost", 0)) for row in rows), Decimal(0))
    return {"rounds": rounds, "requests": len(rows), "costUsd": float(cost)} | tokens


def describe_turn(turn: Turn) -> dict[str, Any]:
    """Return the members of a view that are fixed when a turn starts."""
    return {
        "bridgeId": turn.id,
        "conversationId": turn.root_conversation,
        "userId": turn.user,
        "scope": turn.scope,
        "providerId": turn.provider,
        "modelId": turn.model,
        "startedAt": turn.started_at,
    } | describe_origin(turn)


def _read_turns(resources: Resources, tenant: str, ids: Sequence[str]) -> dict[str, Turn]:
    """Return the turns whose rows have not expired."""
    if not ids:
        return {}
    keys = [(build_turn_pk(tenant, id_), "turn") for id_ in ids]
    items = resources.tables.batch_get_items(resources.settings.bridges_table, keys, consistent=False)
    turns = (turn_from_item(item, resources.clock.time()) for item in items.values())
    return {turn.id: turn for turn in turns if turn is not None}


def _view_of_running_turn(resources: Resources, turn: Turn) -> dict[str, Any] | None:
    """Return the view of a turn that counts as running; None if it has ended meanwhile."""
    status = read_open_turn_status(resources, turn)
    if status is None:
        return None
    return describe_turn(turn) | {"status": status} | sum_requests(read_turn_requests(resources, turn.tenant, turn.id))


def _view_of_recent_turn(resources: Resources, recent: RecentTurn, turn: Turn | None) -> dict[str, Any]:
    row = recent.row
    view: dict[str, Any] = {
        "bridgeId": recent.id,
        "conversationId": row["conversation"],
        "userId": row["user"],
        "scope": row["scope"],
        "providerId": row["provider"],
        "modelId": row["model"],
    }
    if turn:
        view |= describe_turn(turn)
    if recent.end:
        view |= {"status": recent.end["how"], "endedAt": recent.end["at"]}
        view |= {"errorCode": recent.end["code"]} if recent.end.get("code") else {}
    else:
        view["status"] = (turn and read_open_turn_status(resources, turn)) or "expired"
    return view | sum_requests(recent.requests)
