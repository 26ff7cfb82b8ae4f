"""Map a model request to the body of a Messages request that the API accepts and can cache (decision 0060).

- The order is tools, system, messages; the API caches a request up to each of its at most four breakpoints, byte for
  byte. Turns and rounds only ever append, so each request finds the prefix of the last one in the cache.
- `ModelRequest.volatile` changes from turn to turn, so it is not part of `system`: it follows the newest prompt,
  behind a breakpoint. It stays there while the turn's rounds follow, because newer models discard their own thinking
  when anything before it has changed, and because text behind tool results makes models end their turn.
"""

from collections.abc import Iterator, Sequence
from itertools import compress, islice
from operator import attrgetter
from typing import Any

from fermata.domain.model_io import ModelRequest
from fermata.domain.tools import ToolSpec
from fermata.domain.untrusted_text import frame_context
from fermata.domain.weak_cache import WeakCache
from fermata.drivers.adjustments import NO_ADJUSTMENTS, AppliedAdjustments
from fermata.drivers.protocols.anthropic_messages.message_fold import (
    CACHE_BREAKPOINT,
    THINKING_BLOCK_TYPES,
    AnthropicMessage,
    AnthropicMessageFold,
    format_anthropic_id,
)
from fermata.drivers.protocols.anthropic_messages.thinking import (
    MIN_THINKING_BUDGET_TOKENS,
    get_anthropic_allowance,
    get_max_output_tokens,
    get_thinking_mode,
    has_bound_thinking,
    has_output_schemas,
)
from fermata.drivers.protocols.call_id_mapping import CallIdMapper, choose_call_id_formatter
from fermata.drivers.protocols.encode_items_once import EncodedItems, EncodedPart
from fermata.drivers.protocols.shared_encoding import (
    build_tool_schema,
)

THINKING_BINDING_BETA = "thinking-binding-controls-2026-08-01"
NO_THINKING_ADJUSTMENT = "disable thinking"
"""The adjustment for a model that does not think, or not in the way its name suggests."""

_JsonObject = dict[str, Any]


def build_request_body(
    request: ModelRequest,
    applied: AppliedAdjustments = NO_ADJUSTMENTS,
    *,
    with_thinking: bool = True,
    with_history_thinking: bool = True,
) -> _JsonObject:
    """Build the JSON body.

    Args:
        applied: Decides about the form of call ids.
        with_thinking: Whether the model is asked to think at all.
        with_history_thinking: Whether its earlier thinking is sent back.
    """
    format_call_id = choose_call_id_formatter(applied, format_anthropic_id)
    messages = request.message_prefix_cache.fold_messages(
        ("anthropic", request.model, with_history_thinking, format_call_id),
        request.messages,
        lambda: AnthropicMessageFold(
            request.model, CallIdMapper(format_call_id), with_history_thinking=with_history_thinking
        ),
    ).finish()
    body: _JsonObject = {"model": request.model, "max_tokens": request.max_tokens, "stream": True}
    system: list[_JsonObject] = []
    if request.system.strip():
        system.append({"type": "text", "text": request.system, "cache_control": CACHE_BREAKPOINT})
    tools = _encode_tools(request.tools, is_breakpoint=not system)
    if tools:
        body["tools"] = tools
    if tools and not request.call_tools:
        body["tool_choice"] = {"type": "none"}
    elif request.forced_tool:
        body["tool_choice"] = _build_tool_choice(request.forced_tool)
    if system:
        body["system"] = system
    if request.output is not None and has_output_schemas(request.model):
        body["output_config"] = {"format": {"type": "json_schema", "schema": request.output.json_schema}}
    # A model that has to call a tool does not think first: the API refuses both together.
    if with_thinking and not request.forced_tool and (thinking := _build_thinking(request, messages)):
        body |= {"thinking": thinking, "max_tokens": _get_output_limit(request)}
    body["messages"] = _encode_messages(messages, _build_volatile(request))
    return body


def _build_tool_choice(forced_tool: str) -> _JsonObject:
    return {"type": "any"} if forced_tool == "*" else {"type": "tool", "name": forced_tool}


def _encode_messages(messages: list["AnthropicMessage"], volatile: list[_JsonObject]) -> EncodedItems:
    """Put the messages together. Breakpoints and the volatile part change only few of them, which move."""
    prompt = _find_newest_prompt(messages)
    breakpoints = _choose_breakpoints(messages)
    parts = list(map(_get_part, messages))
    for index in {prompt, *breakpoints}:
        parts[index] = messages[index].build_part(
            volatile if index == prompt else (), is_breakpoint=index in breakpoints
        )
    return EncodedItems(parts)


_get_part = attrgetter("part")
_has_prompt = attrgetter("has_prompt")


def _build_tool(spec: ToolSpec) -> _JsonObject:
    description = {"description": spec.description} if spec.description else {}
    return {"name": spec.name, **description, "input_schema": build_tool_schema(spec)}


@WeakCache
def _build_tool_part(spec: ToolSpec) -> EncodedPart:
    return EncodedPart([_build_tool(spec)])


def _encode_tools(specs: Sequence[ToolSpec], *, is_breakpoint: bool) -> EncodedItems:
    """Put the tools together, each of which is encoded once in a process."""
    parts = list(map(_build_tool_part, specs))
    if is_breakpoint:
        parts[-1:] = [EncodedPart([{**part.items[0], "cache_control": CACHE_BREAKPOINT}]) for part in parts[-1:]]
    return EncodedItems(parts)


def _choose_breakpoints(messages: list[AnthropicMessage]) -> list[int]:
    """Return the places of the messages to cache up to: the two newest of our side, and the newest prompt before these.

    The second newest is where the last round's request ended. The prompt is where the last turn's prefix ends that no
    volatile text has changed.
    """
    newest = list(islice(_list_newest_of_ours(messages), 2))
    return [*newest, *islice(_list_newest_prompts(messages, newest[-1]), 1)]


def _find_newest_prompt(messages: list[AnthropicMessage]) -> int:
    """Return the place of the newest message in which a user speaks, or without one the newest of our side."""
    prompt = next(_list_newest_prompts(messages, len(messages)), None)
    return next(_list_newest_of_ours(messages)) if prompt is None else prompt


def _list_newest_of_ours(messages: list[AnthropicMessage]) -> Iterator[int]:
    """Yield the places of our side's messages, the newest first. There is always one: the first message is ours."""
    return (index for index in reversed(range(len(messages))) if messages[index].role == "user")


def _list_newest_prompts(messages: list[AnthropicMessage], end: int) -> Iterator[int]:
    """Yield the places before `end` where a user speaks, the newest first. A turn of many rounds has one, far back."""
    return compress(reversed(range(end)), map(_has_prompt, islice(reversed(messages), len(messages) - end, None)))


def _build_volatile(request: ModelRequest) -> list[_JsonObject]:
    """Build what follows the newest prompt and is not cached."""
    context = frame_context(request.volatile, request.instruction)
    return [{"type": "text", "text": context}] if context else []


def _build_thinking(request: ModelRequest, messages: list[AnthropicMessage]) -> _JsonObject | None:
    match get_thinking_mode(request.model, request.thinking_tokens):
        case "adaptive":
            # Summaries are asked for, because these models write their notes between two calls as thinking.
            thinking: _JsonObject = {"type": "adaptive", "display": "summarized"}
            if has_bound_thinking(request.model):
                # Without this, the API refuses a history that has changed: a shortened result, a new context.
                thinking["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
            return thinking
        case "enabled":
            allowance = get_anthropic_allowance(request.model, request.thinking_tokens)
            budget = min(allowance, get_max_output_tokens(request.model) - request.max_tokens)
            if budget >= MIN_THINKING_BUDGET_TOKENS and not _lacks_required_thinking(messages):
                return {"type": "enabled", "budget_tokens": budget}
    return None


def _get_output_limit(request: ModelRequest) -> int:
    """Return the tokens of the answer and of the thinking before it."""
    limit = request.max_tokens + get_anthropic_allowance(request.model, request.thinking_tokens)
    return max(request.max_tokens, min(limit, get_max_output_tokens(request.model)))


def _lacks_required_thinking(messages: list[AnthropicMessage]) -> bool:
    """Return whether the newest calls' message lacks its thinking, which the API requires with a budget."""
    if len(messages) < 2 or messages[-1].blocks[0]["type"] != "tool_result":
        return False
    return messages[-2].blocks[0]["type"] not in THINKING_BLOCK_TYPES
