"""Decide the next answer of the demo model from the request alone.

A turn on a page has these steps: list documents and tokens (server tools), read the document (browser), make all edits
in one round (browser), report the result. Ids come from tool results, content from the prompt and the page.
"""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from local.demo_model.merged_messages import MergedMessage, merge_messages
from local.demo_model.model_answer import ModelAnswer, ToolCall
from local.demo_model.rules import cms_site, content_workspace, edit_planning, planner_pages, studio_project
from local.demo_model.rules.edit_plan import ToolEdit
from local.demo_model.rules.html_page import HtmlPage, parse_page
from local.demo_model.rules.intents import Intent, parse_intent
from local.demo_model.rules.named_call import answer_named_calls

MODEL_LABEL = "Demo model (fixed rules, not an AI)"
IMAGE_NOTICE = "A picture came with that; I follow rules about words and cannot see what is on it."
SITE_ABILITIES = (
    'I can add a section ("Add a pricing section after the hero"), change a heading ("Change the heading to “Hello”"), '
    'replace a text ("Replace “Hello” with “Welcome”"), remove a section ("Remove the testimonials section"), '
    'move or repeat one ("Move the hours section above the breads", "Duplicate the breads section"), rename the page '
    '("Rename the page to “Hello”") and change a colour ("Change the colour of the buttons to teal", "Make the primary '
    'colour darker").'
)
_NAMES = {
    "list_documents": "site_list_documents",
    "list_tokens": "site_list_tokens",
    "read_document": "site_read_document",
    "insertHtml": "site_insert_html",
    "replaceNodeHtml": "site_replace_node_html",
    "deleteNode": "site_delete_node",
    "applyCss": "site_apply_css",
    "moveNode": "site_move_node",
    "duplicateNode": "site_duplicate_node",
    "renamePage": "site_rename_page",
    "set_color_tokens": "site_set_color_tokens",
}
_CONTENT = {f"content_{name}": name for name in (*content_workspace.READ_TOOLS, *content_workspace.WRITE_TOOLS)}
_SEED_NAMES = {newer: seed for seed, newer in _NAMES.items()} | _CONTENT
_KNOWN = {*_SEED_NAMES.values(), *planner_pages.TOOLS, *cms_site.CMS_TOOLS, *studio_project.STUDIO_TOOLS}
_READS = ("list_documents", "list_tokens", "read_document", *content_workspace.READ_TOOLS)


@dataclass(frozen=True)
class ToolResult:
    """The result or error of a tool call in this turn."""

    tool: str
    input: dict[str, Any]
    data: Any = None
    error: str | None = None


@dataclass(frozen=True)
class TurnSoFar:
    prompt: str
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The offered tools that the rules use, by their original names."""
    results: tuple[ToolResult, ...] = ()
    """The results of this turn, in order."""
    has_pictures: bool = False
    """Whether the prompt has images."""
    context: str = ""
    """What the prompt's context block says of the editor."""

    def results_of(self, tool: str) -> list[ToolResult]:
        return [result for result in self.results if result.tool == tool]

    def last_data_of(self, tool: str) -> dict[str, Any]:
        results = [result.data for result in self.results_of(tool) if isinstance(result.data, dict)]
        return results[-1] if results else {}


def decide_answer(body: dict[str, Any]) -> ModelAnswer:
    turn_so_far = read_turn_so_far(body)
    answer = _answer_named_calls(body, turn_so_far) or _answer(turn_so_far)
    return (
        replace(answer, text=f"{answer.text} {IMAGE_NOTICE}")
        if turn_so_far.has_pictures and not turn_so_far.results
        else answer
    )


def _answer_named_calls(body: dict[str, Any], turn_so_far: TurnSoFar) -> ModelAnswer | None:
    is_forbidden = (body.get("tool_choice") or {}).get("type") == "none"
    offered = [] if is_forbidden else [tool["name"] for tool in body.get("tools") or []]
    return answer_named_calls(turn_so_far.prompt, offered, turn_so_far.results, MODEL_LABEL)


def _answer(turn_so_far: TurnSoFar) -> ModelAnswer:
    if "submit_edit_plan" in turn_so_far.tools:
        return planner_pages.answer_planner_prompt(turn_so_far, turn_so_far.context)
    if cms_site.CMS_TOOLS[0] in turn_so_far.tools:
        return _name_model_once(turn_so_far, cms_site.answer_cms_prompt(turn_so_far))
    if studio_project.STUDIO_TOOLS[0] in turn_so_far.tools:
        return _name_model_once(turn_so_far, studio_project.answer_studio_prompt(turn_so_far))
    intent = parse_intent(turn_so_far.prompt)
    edit_results = [result for result in turn_so_far.results if result.tool not in _READS]
    if edit_results:
        return _continue_edits(turn_so_far, intent, edit_results) or ModelAnswer(text=_report(intent, edit_results))
    if "list_collections" in turn_so_far.tools:
        return _name_model_once(turn_so_far, content_workspace.answer_content_prompt(turn_so_far, intent))
    if intent is None:
        return ModelAnswer(text=f"{MODEL_LABEL}. You said: “{_shorten(turn_so_far.prompt)}”. {SITE_ABILITIES}")
    if "read_document" not in turn_so_far.tools:
        return ModelAnswer(
            text=f"{MODEL_LABEL}. I have no page in front of me here, so I can only talk. {SITE_ABILITIES}"
        )
    return _list_catalogue(turn_so_far, intent) or _read_document(turn_so_far) or _edit(turn_so_far, intent)


def _name_model_once(turn_so_far: TurnSoFar, answer: ModelAnswer) -> ModelAnswer:
    """Say which model this is, in the first answer and in the last."""
    if turn_so_far.results and answer.tool_calls:
        return answer
    return replace(answer, text=f"{MODEL_LABEL}. {answer.text}")


def read_turn_so_far(body: dict[str, Any]) -> TurnSoFar:
    turns = merge_messages(body["messages"])
    start = max((index for index, turn in enumerate(turns) if _prompt_in(turn)), default=0)
    tools = {_SEED_NAMES.get(tool["name"], tool["name"]): tool for tool in body.get("tools") or []}
    if (body.get("tool_choice") or {}).get("type") == "none":
        tools = {}
    known = {name: tool for name, tool in tools.items() if name in _KNOWN}
    pictures = bool(turns) and any(block["type"] == "image" for block in turns[start].blocks)
    context = "\n".join(text for turn in turns[start:] for text in _context_texts(turn))
    return TurnSoFar(_prompt_in(turns[start]), known, tuple(_results(turns[start:])), pictures, context)


def _context_texts(turn: MergedMessage) -> list[str]:
    texts = [block["text"] for block in turn.blocks if block["type"] == "text"]
    return [text for text in texts if text.startswith("<context>")]


def count_rounds(body: dict[str, Any]) -> int:
    """Count the answers that this turn already has."""
    turns = merge_messages(body["messages"])
    start = max((index for index, turn in enumerate(turns) if _prompt_in(turn)), default=0)
    return sum(turn.role == "assistant" for turn in turns[start:])


def _prompt_in(turn: MergedMessage) -> str:
    """Get the user's text of a message, without tool results, the context block, or a bare request to continue."""
    if turn.role != "user":
        return ""
    texts = [block["text"] for block in turn.blocks if block["type"] == "text"]
    prompt = "\n".join(text for text in texts if not text.startswith("<context>")).strip()
    return "" if prompt == "Continue." else prompt


def _results(turns: list[MergedMessage]) -> list[ToolResult]:
    calls = {block["id"]: block for turn in turns for block in turn.blocks if block["type"] == "tool_use"}
    results = []
    for block in (block for turn in turns for block in turn.blocks if block["type"] == "tool_result"):
        call = calls.get(block["tool_use_id"])
        if call:
            text = _text_of(block.get("content", ""))
            tool = str(_SEED_NAMES.get(call["name"], call["name"]))
            failed = bool(block.get("is_error"))
            results.append(ToolResult(tool, call["input"], None if failed else _json(text), text if failed else None))
    return results


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _list_catalogue(turn_so_far: TurnSoFar, intent: Intent) -> ModelAnswer | None:
    """List documents and design tokens first."""
    catalogue = [name for name in ("list_documents", "list_tokens") if name in turn_so_far.tools]
    if turn_so_far.results or not catalogue:
        return None
    text = (
        f"{MODEL_LABEL}. You would like me to {edit_planning.describe_intent(intent)}. Let me look at the page first."
    )
    return ModelAnswer(text=text, tool_calls=tuple(ToolCall(turn_so_far.tools[name]["name"]) for name in catalogue))


def _read_document(turn_so_far: TurnSoFar) -> ModelAnswer | None:
    """Read the current document, one part after another."""
    reads = turn_so_far.results_of("read_document")
    if reads and reads[-1].error:
        return ModelAnswer(text=f"{MODEL_LABEL}. I could not read the page: {reads[-1].error}")
    info = turn_so_far.last_data_of("read_document").get("pageInfo") or {}
    if reads and not info.get("nextPart"):
        return None
    current = turn_so_far.last_data_of("list_documents").get("currentDocument")
    wanted = {"document": current} if isinstance(current, dict) else {}
    wanted |= {"part": info["nextPart"]} if info.get("nextPart") else {}
    text = "" if turn_so_far.results else f"{MODEL_LABEL}. "
    return ModelAnswer(
        text=text + "I read the page.", tool_calls=(ToolCall(turn_so_far.tools["read_document"]["name"], wanted),)
    )


def _edit(turn_so_far: TurnSoFar, intent: Intent) -> ModelAnswer:
    page = _page(turn_so_far)
    steps = edit_planning.plan_edits(intent, page)
    if isinstance(steps, str):
        return ModelAnswer(text=f"{MODEL_LABEL}. {steps}")
    missing = sorted({step.tool for step in steps.calls} - turn_so_far.tools.keys())
    if missing:
        return ModelAnswer(text=f"{MODEL_LABEL}. I would need {', '.join(missing)} for that, which I was not given.")
    calls = _calls(turn_so_far, steps.calls)
    return ModelAnswer(text=steps.text, tool_calls=calls if page.is_tidy else _calls_before_style(calls, steps.calls))


def _continue_edits(turn_so_far: TurnSoFar, intent: Intent | None, done: list[ToolResult]) -> ModelAnswer | None:
    """Apply the style after the markup, in a page with unclosed tags, where the markup may be refused."""
    page = _page(turn_so_far)
    if (
        intent is None
        or page.is_tidy
        or any(result.error for result in done)
        or "read_document" not in turn_so_far.tools
    ):
        return None
    steps = edit_planning.plan_edits(intent, page)
    if isinstance(steps, str) or len(steps.calls) <= len(done):
        return None
    return ModelAnswer(text="Now its style.", tool_calls=_calls(turn_so_far, steps.calls)[len(done) :])


def _calls_before_style(calls: tuple[ToolCall, ...], steps: tuple[ToolEdit, ...]) -> tuple[ToolCall, ...]:
    """Take the calls up to the style, when there is markup as well."""
    markup = [step.tool != "applyCss" for step in steps]
    return calls[: markup.index(False)] if markup[0] and False in markup else calls


def _calls(turn_so_far: TurnSoFar, steps: tuple[ToolEdit, ...]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(turn_so_far.tools[step.tool]["name"], _fit_input(turn_so_far.tools[step.tool], step.input))
        for step in steps
    )


def _page(turn_so_far: TurnSoFar) -> HtmlPage:
    parts = [result.data for result in turn_so_far.results_of("read_document") if isinstance(result.data, dict)]
    joined = {name: "".join(str(part.get(name) or "") for part in parts) for name in ("html", "css")}
    last = parts[-1] if parts else {}
    page_id = str((last.get("document") or {}).get("id") or "")
    return parse_page(joined["html"], joined["css"], str(last.get("title") or ""), page_id)


def _fit_input(tool: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Add the operation that newer editors require for CSS."""
    needs_operation = "operation" in tool["input_schema"].get("required", ())
    return {"operation": "merge", **wanted} if needs_operation else wanted


def _report(intent: Intent | None, done: list[ToolResult]) -> str:
    failed = [f"{result.tool}: {result.error}" for result in done if result.error]
    if failed:
        return f"{MODEL_LABEL}. Not everything worked. {' · '.join(failed)}"
    return f"Done: I {edit_planning.describe_done_intent(intent) if intent else 'made the edits'}. {MODEL_LABEL}."


def _shorten(prompt: str) -> str:
    return prompt if len(prompt) <= 120 else prompt[:119] + "…"
