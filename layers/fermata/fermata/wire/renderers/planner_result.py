"""Build what a planner's client is answered in the end: the result of a turn, from its plan or its text."""

from collections.abc import Mapping, Sequence
from typing import Any

MIN_QUESTION_CHARACTERS = 20
"""A shorter text without a plan says nothing."""
UNCLEAR_SUMMARY = "I could not tell what to change. Please say it in other words, or choose one of these."
UNCLEAR_SUGGESTIONS = (
    "Describe this page",
    "Change the heading of this page",
    "Add a section to this page",
    "Create a new page",
)
VALIDATION_STATUS = 422


def build_result(outcome: Mapping[str, Any] | None, text: str, model: str = "") -> dict[str, Any]:
    """Return the result of a turn.

    Args:
        outcome: What became of its plan, as the event `editPlan` has it; None for a turn without a plan.
        text: What the model has written besides.
        model: The name of the model.
    """
    result = _describe_text(text) if outcome is None else _describe_outcome(outcome)
    used = {"modelUsed": model} if model else {}
    return {**result, "plannerSource": "llm", **used}


def _describe_text(text: str) -> dict[str, Any]:
    is_question = len(text.strip()) > MIN_QUESTION_CHARACTERS
    return {
        "status": "needs_clarification",
        "summary": text.strip() if is_question else UNCLEAR_SUMMARY,
        "changes": [],
        "mentionedSlugs": [],
        "suggestions": [] if is_question else list(UNCLEAR_SUGGESTIONS),
    }


def _describe_outcome(outcome: Mapping[str, Any]) -> dict[str, Any]:
    slugs = list_operation_slugs(outcome.get("ops", ()))
    result = {
        "status": outcome["status"],
        "summary": outcome.get("summary", ""),
        "changes": list(outcome.get("changes", ())),
        "mentionedSlugs": slugs,
        "suggestions": list(outcome.get("suggestions", ())),
    }
    copied = ("previewVersion", "pendingPlanId", "approvalId", "normalizedFrom", "errorCode", "expiresAt")
    result |= {name: outcome[name] for name in copied if outcome.get(name) not in (None, [])}
    if outcome.get("continuation") and outcome["status"] == "applied":
        result["continuation"] = outcome["continuation"]
    if outcome.get("destructiveReasons"):
        result["destructiveReasons"] = [reason["message"] for reason in outcome["destructiveReasons"]]
    applied = [one for one in outcome.get("outcomes", ()) if not one.get("skipped")]
    if applied and outcome["status"] == "applied":
        result |= _describe_focus(applied[-1], slugs)
    return result


def _describe_focus(last: Mapping[str, Any], slugs: Sequence[str]) -> dict[str, Any]:
    found = {"focusBlockId": last.get("focusBlockId"), "updatedSlug": last.get("updatedSlug")}
    found["undoSlug"] = last.get("updatedSlug") or (slugs[0] if slugs else None)
    return {name: value for name, value in found.items() if value}


def list_operation_slugs(operations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the slugs that operations name, in their order."""
    slugs: list[Any] = []
    for operation in operations:
        page = operation.get("page")
        created = page.get("slug") if isinstance(page, Mapping) else None
        slugs += [created, *(operation.get(name) for name in ("pageSlug", "newPageSlug", "toPageSlug"))]
    return list(dict.fromkeys(slug for slug in slugs if isinstance(slug, str)))
