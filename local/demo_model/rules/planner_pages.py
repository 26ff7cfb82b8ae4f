"""Answer prompts of the planner: read the page that the user sees, and submit a plan that changes it."""

import re
from typing import TYPE_CHECKING, Any

from local.demo_model.model_answer import ModelAnswer, ToolCall

if TYPE_CHECKING:
    from local.demo_model.rules.next_answer import TurnSoFar

TOOLS = ("list_pages", "get_page", "submit_edit_plan")
PLANNER_ABILITIES = (
    'I can change a heading ("Change the heading to “Hello”"), create a page ("Create a page /team"), rename one '
    '("Rename the page /a to /b") and delete one ("Delete the page /a").'
)
_QUOTED = re.compile(r"[“\"']([^”\"'\n]{1,200})[”\"']")
_SLUG = re.compile(r"(?<![\w/])/[a-z0-9][a-z0-9/_-]*", re.IGNORECASE)
_SEEN_PAGE = re.compile(r"the user sees (/\S*?)\.(?:\s|$)")
_HEADING_PROPS = ("heading", "title")


def answer_planner_prompt(turn_so_far: "TurnSoFar", context: str) -> ModelAnswer:
    """Read the page first, then submit a plan. A plan that was refused is submitted once more with what is there.

    Args:
        context: The part of the request that says what the user sees.
    """
    seen = _SEEN_PAGE.search(context)
    slug = seen[1] if seen else "/"
    if not turn_so_far.results_of("get_page") and "get_page" in turn_so_far.tools:
        return ModelAnswer(
            text="I read the page first.", tool_calls=(ToolCall(turn_so_far.tools["get_page"]["name"], {"slug": slug}),)
        )
    plan = _make_plan(turn_so_far.prompt, slug, turn_so_far.last_data_of("get_page"))
    return ModelAnswer(tool_calls=(ToolCall(turn_so_far.tools["submit_edit_plan"]["name"], plan),))


def _make_plan(prompt: str, slug: str, page: dict[str, Any]) -> dict[str, Any]:
    words, slugs, quoted = prompt.lower(), _SLUG.findall(prompt), _QUOTED.search(prompt)
    if re.search(r"\b(delete|remove)\b.*\bpage\b", words) and slugs:
        return _plan(f"The page {slugs[0]} is deleted.", {"op": "delete_page", "slug": slugs[0]})
    if re.search(r"\brename\b.*\bpage\b", words) and len(slugs) > 1:
        rename = {"op": "rename_page", "pageSlug": slugs[0], "newPageSlug": slugs[1]}
        return _plan(f"The page {slugs[0]} is at {slugs[1]} now.", rename)
    if re.search(r"\b(create|add)\b.*\bpage\b", words) and slugs:
        page = {"slug": slugs[0], "blocks": [{"type": "hero"}]}
        return _plan(f"There is a page {slugs[0]} now.", {"op": "create_page", "page": page})
    target = _find_heading(page)
    if target and quoted and re.search(r"\b(heading|headline|title)\b", words):
        block, prop = target
        change = {"operation": "Update Block", "page_slug": slug, "block_id": block, "props": {prop: quoted[1]}}
        return _plan(f"The heading says “{quoted[1]}” now.", change)
    return {
        "intent": "content_answer",
        "summary_for_user": f"Demo model (fixed rules, not an AI). {PLANNER_ABILITIES}",
        "ops": [],
    }


def _find_heading(page: dict[str, Any]) -> tuple[str, str] | None:
    for block in page.get("blocks", ()):
        prop = next((name for name in _HEADING_PROPS if isinstance(block.get("props", {}).get(name), str)), None)
        if prop:
            return block["id"], prop
    return None


def _plan(summary: str, *operations: dict[str, Any]) -> dict[str, Any]:
    return {
        "intent": "edit_plan",
        "summary_for_user": summary,
        "change_log": [summary],
        "ops": list(operations),
    }
