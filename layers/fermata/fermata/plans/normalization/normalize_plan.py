"""Normalize a candidate for an edit plan, and record what was changed about it (decision 0335).

Nothing is validated here: what has no plain meaning stays as it is, and the schema refuses it.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from fermata.domain.base import DomainModel
from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.edit_plan import MAX_OPERATIONS, MAX_SUGGESTIONS
from fermata.plans.normalization import block_rules, item_rules, member_names, operation_names, page_rules
from fermata.plans.normalization.plan_context import PlanContext, RawOperation

Rule = Callable[[RawOperation, PlanContext], RawOperation | list[RawOperation] | None]

RULES: tuple[Rule, ...] = (
    operation_names.unwrap_operation,
    operation_names.rename_operation,
    member_names.rename_members,
    item_rules.read_list_path,
    member_names.resolve_slugs,
    member_names.coerce_numbers,
    member_names.collect_patch,
    block_rules.resolve_block_path,
    page_rules.turn_into_rename_page,
    page_rules.turn_into_remove_page,
    page_rules.turn_into_add_block,
    block_rules.find_block_id,
    block_rules.complete_block,
    page_rules.turn_into_create_page,
    page_rules.complete_page,
    item_rules.turn_into_remove_item,
    item_rules.turn_into_add_items,
    block_rules.rename_props,
    item_rules.split_longer_list,
    item_rules.find_list_key,
    item_rules.complete_item,
    item_rules.rename_item_members,
    block_rules.anchor_block,
    page_rules.anchor_page,
    member_names.keep_known_members,
)
"""What is done with each operation, in this order. A rule returns the operation, several in its place, or none."""

_SUMMARY_MEMBERS = ("summary_for_user", "summaryForUser", "summary", "message", "answer")
_BULLET = re.compile(r"(?:[-*•]|\d{1,2}[.)])[ \t]++")
_UNCLEAR_SUMMARY = "It is not clear which page is meant. Name the page as it is now and as it should be."


class NormalizedOperation(DomainModel):
    """What was changed about one operation: `index` counted from 1 in the plan as it was submitted."""

    index: int
    rules: tuple[str, ...]
    submitted: Any
    became: tuple[dict[str, Any], ...]


@value_dataclass(frozen=True)
class NormalizedPlan:
    """A candidate in the form of the schema, and what was changed about its operations."""

    candidate: dict[str, Any]
    normalized_from: tuple[NormalizedOperation, ...] = ()

    @property
    def operation_count(self) -> int:
        """How many operations the candidate has."""
        return len(self.candidate["ops"])


def normalize_plan(candidate: Any, context: PlanContext) -> NormalizedPlan:
    """Return a candidate in the form of the schema.

    Args:
        candidate: What the model has submitted: a plan, or a single operation.
        context: The pages and the user's message.
    """
    root = candidate if isinstance(candidate, Mapping) else {}
    changes: list[NormalizedOperation] = []
    results: list[RawOperation] = []
    submitted = find_operations(root)[: MAX_OPERATIONS + 1]
    context.created_slugs.update(page_rules.list_created_slugs(submitted))
    for index, operation in enumerate(submitted):
        normalized, rules = _normalize_operation(operation, context)
        if rules:
            changes.append(
                NormalizedOperation(index=index + 1, rules=rules, submitted=operation, became=tuple(normalized))
            )
        results += normalized
    results = page_rules.follow_created_pages(results, context)
    results, is_unclear = _drop_unclear_updates(results)
    return NormalizedPlan(_build_root(root, results, is_unclear=is_unclear), tuple(changes))


def find_operations(root: Mapping[str, Any]) -> list[Any]:
    """Return the operations of a candidate: of `ops` or `operations`, or the candidate if it is itself one."""
    for member in ("ops", "operations"):
        if isinstance(root.get(member), list):
            return list(root[member])
        if isinstance(root.get(member), Mapping):
            return [root[member]]
    is_single = any(operation_names.find_operation_name(root.get(name)) for name in operation_names.NAME_MEMBERS)
    return [root] if is_single else []


def _normalize_operation(raw: Any, context: PlanContext) -> tuple[list[RawOperation], tuple[str, ...]]:
    """Return what becomes of an operation, and the names of the rules that have changed more than its spelling."""
    if not isinstance(raw, Mapping):
        return [{"op": raw}], ()
    operations = [dict(raw)]
    fired: list[str] = []
    for rule in RULES:
        results: list[RawOperation] = []
        for operation in operations:
            result = rule(operation, context)
            results += [] if result is None else result if isinstance(result, list) else [result]
        if results != operations and rule is not member_names.keep_known_members:
            fired.append(rule.__name__)
        operations = results
    is_same = operations == [dict(raw)]
    return operations, () if is_same else tuple(fired)


def _drop_unclear_updates(operations: list[RawOperation]) -> tuple[list[RawOperation], bool]:
    """Leave out updates of a page that name no block, if nothing else is there: they are a question to the user."""
    unclear = [one for one in operations if one.get("op") == "update_props" and not one.get("blockId")]
    if not unclear or len(unclear) < len(operations):
        return operations, False
    return [], True


def _build_root(root: Mapping[str, Any], operations: list[RawOperation], *, is_unclear: bool) -> dict[str, Any]:
    summary = next((root[name] for name in _SUMMARY_MEMBERS if isinstance(root.get(name), str) and root[name]), "")
    intent = root.get("intent") or ("edit_plan" if operations else "content_answer" if summary else "")
    if is_unclear or not intent:
        intent = "needs_clarification"
        summary = _UNCLEAR_SUMMARY if is_unclear else summary or "Please say what should change."
    suggestions = root.get("suggested_next_actions", root.get("suggestedNextActions"))
    return {
        "intent": intent,
        "summary_for_user": summary or _summarize(operations),
        "change_log": split_lines(root.get("change_log", root.get("changeLog"))),
        "ops": operations,
        "suggested_next_actions": split_lines(suggestions)[:MAX_SUGGESTIONS],
    }


def split_lines(value: Any) -> list[str]:
    """Return the lines of a text without their bullets, or the texts of a list."""
    if isinstance(value, str):
        lines = (line.strip() for line in value.splitlines())
        return [_BULLET.sub("", line, count=1) for line in lines if line.strip("-*• ")]
    if isinstance(value, list):
        return [text.strip() for text in value if isinstance(text, str) and text.strip()]
    return []


def _summarize(operations: list[RawOperation]) -> str:
    if not operations:
        return "There is nothing to change."
    counts = Counter(str(operation.get("op")).replace("_", " ") for operation in operations)
    return f"Planned: {', '.join(f'{count} × {name}' for name, count in counts.items())}."
