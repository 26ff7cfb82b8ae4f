"""List what was decided about calls and plans of a tenant, from its trail: the newest first."""

import json
import re
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.page_cursor import decode_page_cursor, encode_page_cursor
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.approvals.decision_trail import build_entry_sort_key, trail_partition

MAX_DECISIONS_PER_PAGE = 100
_CURSOR_PATTERN = re.compile(r"(\d{1,10})", re.ASCII)
_FACTS = ("number", "at", "kind", "tool", "agent", "outcome", "reasons", "inputHash", "decidedInputHash")
_PERSONAL = ("askedFor", "decidedBy", "reason")


@value_dataclass(frozen=True)
class DecisionPage:
    """A page of decisions as the API shows them. `next_cursor` is empty on the last one."""

    decisions: tuple[dict[str, Any], ...]
    next_cursor: str = ""


def list_decisions(resources: Resources, caller: Caller, cursor: str, limit: int) -> DecisionPage:
    """Return a page of the newest decisions of the caller's workspace, in the scopes that the caller may act in.

    Args:
        resources: The tables.
        caller: A user with the capability `ai.tools.approve`.
        cursor: `next_cursor` of the page before; empty for the first page.
        limit: The greatest number of entries that are read, at most MAX_DECISIONS_PER_PAGE.

    Raises:
        InvalidRequest: The cursor is malformed.
    """
    before = int(decode_page_cursor(cursor, _CURSOR_PATTERN)[0]) if cursor else 10**10
    items = resources.tables.query_items(
        resources.settings.bridges_table,
        trail_partition(caller.tenant),
        min_sk=build_entry_sort_key(1),
        max_sk=build_entry_sort_key(before - 1),
        descending=True,
        limit=min(limit, MAX_DECISIONS_PER_PAGE),
    )
    views = tuple(_build_decision_view(item) for item in items)
    is_last = len(items) < limit or items[-1]["number"] == 1
    allowed = tuple(view for view in views if caller.allows_scope(view["agent"].partition("@")[0]))
    return DecisionPage(allowed, "" if is_last else encode_page_cursor(str(items[-1]["number"])))


def _build_decision_view(item: Item) -> dict[str, Any]:
    """Return an entry without its salts. What was erased of a person is not there."""
    facts = json.loads(item["data"])
    view = {name: facts[name] for name in _FACTS} | {"approvalId": facts["approval"], "bridgeId": facts["turn"]}
    kept = item.get("personal", {})
    return view | {name: kept[name]["value"] for name in _PERSONAL if name in kept} | {"hash": item["hash"]}
