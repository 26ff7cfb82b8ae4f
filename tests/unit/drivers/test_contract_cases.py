"""The recorded cases about streams, arguments, keys, errors and mappings (cases.json)."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from fermata.domain.blocks import ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.errors import ProviderError
from fermata.domain.messages import Message
from fermata.domain.model_io import FinishReason, ModelResponse, TextDelta
from fermata.drivers.error_mapping import error_from_response, error_from_stream
from fermata.drivers.protocols import response_stream
from fermata.drivers.protocols.anthropic_messages.accumulator import MessagesAccumulator
from fermata.drivers.protocols.anthropic_messages.request import build_request_body as anthropic_body
from fermata.drivers.protocols.chat_completions.accumulator import ChatAccumulator
from fermata.drivers.protocols.ollama_chat.request import build_request_body as ollama_body
from fermata.drivers.protocols.openai_responses.accumulator import ResponsesAccumulator
from fermata.drivers.protocols.openai_responses.request import build_request_body as responses_body
from fermata.drivers.protocols.tool_arguments import build_tool_call
from fermata.drivers.providers.openai import make_prompt_cache_key
from fermata.drivers.registry import get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.drivers.transport.stream_decoders import SseDecoder
from tests.strict.openai import StrictOpenAI
from tests.unit.drivers.conversation_builders import (
    model_message,
    model_request,
    tool_call,
    tool_result,
    user_message,
)

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases.json").read_text())
SITE = """list_documents list_modules list_tokens list_post_types list_loop_sources list_breakpoints insert_html
    get_node_html read_document open_document replace_node_html delete_node update_node_props move_node rename_node
    duplicate_node apply_css assign_class remove_class list_code_assets read_code_asset write_code_asset
    patch_code_asset inspect_code_runtime add_page delete_page rename_page duplicate_page set_page_template
    clear_page_template set_color_tokens set_font_tokens set_type_scale set_spacing_scale render_snapshot"""
CONTENT = """list_collections get_collection_schema list_documents get_document search_documents list_users list_media
    create_document delete_document set_document_status set_document_field set_document_fields set_document_author
    set_active_document set_active_collection"""


def cases_of(area: str) -> pytest.MarkDecorator:
    matches = [case for case in CASES if case["area"] == area]
    return pytest.mark.parametrize("case", matches, ids=[case["id"] for case in matches])


def get_case(identity: str) -> Any:
    return next(case for case in CASES if case["id"] == identity)


@cases_of("parseToolArguments")
def test_arguments_are_read_as_in_the_original(case: Any) -> None:
    call = build_tool_call("call_1", "read_document", case["input"])
    assert call.input == case["expected"]
    assert bool(call.malformed) is ("malformed" in case["note"])


@cases_of("sse")
def test_events_are_read_as_in_the_original(case: Any) -> None:
    if isinstance(case["input"], str):
        character = "data: é\n\n".encode()
        assert _events(character[:7], character[7:]) == ["é"]
        return
    assert _events(*(part.encode() for part in case["input"])) == list(map(_join_name_and_data, case["expected"]))


def _join_name_and_data(event: Any) -> str:
    """Return the data as the decoder passes it on: with the name of its event as `type` (decision 0393)."""
    if event["event"] in (None, "message"):
        return str(event["data"])
    return json.dumps({"type": event["event"], **json.loads(event["data"])}, separators=(",", ":"))


def _events(*chunks: bytes) -> list[str]:
    frames = SseDecoder()
    events = [data for chunk in chunks for data in frames.feed(chunk)] + frames.flush()
    return events[: events.index("[DONE]")] if "[DONE]" in events else events


@cases_of("promptCacheKey")
def test_the_cache_key_is_that_of_the_original(case: Any) -> None:
    scope = case["input"]["scope"]
    tools = case["input"]["tools"]
    names = (
        tools
        if isinstance(tools, list)
        else [f"{scope}_{name}" for name in {"site": SITE, "content": CONTENT}[scope].split()]
    )
    assert make_prompt_cache_key(scope, names) == case["expected"]
    assert make_prompt_cache_key(scope, reversed(names)) == case["expected"]


@cases_of("classifyHttpError")
def test_an_error_status_is_described_as_in_the_original(case: Any) -> None:
    case_input = case["input"]
    error = error_from_response(case_input["provider"], case_input["status"], {}, case_input["body"].encode(), "")
    if case["expected"] == "kind replayOverflow":
        assert error.code == "provider_overflow"
    else:
        assert error.message == case["expected"]
        assert error.code != "provider_overflow"


@cases_of("normalizeContextTokens")
def test_the_context_is_the_whole_prompt_for_every_way_to_count_it(case: Any) -> None:
    case_input = case["input"]
    prompt, read = case_input["promptTokens"], case_input["cacheReadTokens"]
    if case_input["provider"] == "anthropic":
        usage = {"input_tokens": prompt, "cache_read_input_tokens": read, "cache_creation_input_tokens": 50}
        accumulator: response_stream.ResponseAccumulator = MessagesAccumulator("m", b"")
        list(accumulator.add_event({"type": "message_start", "message": {"usage": usage}}))
    else:
        usage = {"input_tokens": prompt, "input_tokens_details": {"cached_tokens": read}}
        accumulator = ResponsesAccumulator(case_input["provider"], "m", b"")
        list(accumulator.add_event({"type": "response.completed", "response": {"usage": usage}}))
    assert accumulator.tokens.context_tokens == case["expected"]


def test_c081_a_note_stands_for_the_images_of_a_result_where_only_text_is_read() -> None:
    assert get_case("C081")["expected"].endswith("text only.]'")
    note = get_case("C081")["expected"].split("'")[1]
    rows = (user_message("a"), model_message(tool_call("t1")), tool_result("t1", {"n": 1}, images=(_image(),)))
    request, text = model_request(*rows), '{"n":1}' + f"\n\n{note}"
    items = responses_body(request, "openai", frozenset(), with_item_ids=False, thinking_allowance=0)["input"]
    assert items[-1]["output"] == text
    assert ollama_body(request, "ollama", thinking_allowance=0)["messages"][-1]["content"] == text


def test_c080_images_of_results_go_to_anthropic_as_they_are() -> None:
    rows = (user_message("a"), model_message(tool_call("t1")), tool_result("t1", {"n": 1}, images=(_image(),)))
    content = anthropic_body(model_request(*rows))["messages"][-1]["content"][0]["content"]
    expected = get_case("C080")["expected"]["tool_result.content"]
    assert [part["type"] for part in content] == [part["type"] for part in expected]
    assert content[1] == expected[1]


def _image() -> ImageBlock:
    return ImageBlock(mime_type="image/png", data="QUJD")


@pytest.mark.parametrize("identity", ["C138", "C139"])
def test_rows_become_turns_of_anthropic_as_in_the_original(identity: str) -> None:
    messages = anthropic_body(model_request(*_rows(get_case(identity)["input"]), tools=()))["messages"]
    kinds = [[part["type"] for part in message["content"]] for message in messages]
    if identity == "C138":
        assert kinds == [["text"], ["tool_use"], ["tool_result", "text"]]
        assert messages[2]["content"][0]["is_error"] is True
        assert messages[2]["content"][0]["content"] == "interrupted"
    else:
        # The answer may not end with words put in the model's mouth: the last turn is answered with a nudge.
        assert kinds == [["text"], ["text", "tool_use"], ["tool_result"], ["text"], ["text"]]
        assert messages[2]["content"][0]["content"] == '{"nodeIds":["n1"]}'


def _rows(cases: list[dict[str, Any]]) -> list[Message]:
    rows = []
    for row in cases:
        if "output" in row:
            content: tuple[Any, ...] = (ToolResultBlock.from_wire(row["output"]),)
        else:
            kinds: dict[str, Any] = {"text": TextBlock, "toolCall": ToolCallBlock}
            content = tuple(kinds[block["kind"]].from_wire(block) for block in row["content"])
        rows.append(
            Message(position=0, role=row["role"], content=content, turn="t", tool_call_id=row.get("toolCallId"))
        )
    return rows


def test_c144_and_c146_the_stable_part_comes_first_and_the_volatile_part_reaches_the_model() -> None:
    """The original joins both into one system text; here the volatile part follows the newest prompt."""
    prefix, _, suffix = get_case("C146")["input"]
    request = model_request(user_message("a"), system=prefix, volatile=suffix)
    body = responses_body(request, "openai", frozenset(), with_item_ids=False, thinking_allowance=0)
    assert body["instructions"] == prefix
    assert suffix in body["input"][-1]["content"][-1]["text"]
    assert anthropic_body(request)["system"][0] == get_case("C144")["expected"][0]
    assert suffix in anthropic_body(request)["messages"][-1]["content"][-1]["text"]


def test_c145_a_system_text_alone_is_one_block() -> None:
    (block,) = anthropic_body(model_request(user_message("a"), system=get_case("C145")["input"][0]))["system"]
    assert block["text"] == get_case("C145")["expected"]


def _collect_parts(accumulator: response_stream.ResponseAccumulator, *events: dict[str, Any]) -> list[Any]:
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    return list(
        response_stream.iter_parts("Provider", ProviderResponse(200, {}, iter([stream])), accumulator, "", SseDecoder())
    )


def test_c140_a_call_in_two_events_is_one_call() -> None:
    start = {"type": "tool_use", "id": "t1", "name": "insertHtml", "input": {}}
    parts = [{"type": "input_json_delta", "partial_json": part} for part in ('{"parentId":', '"root"}')]
    reply = _collect_parts(
        MessagesAccumulator("m", b""),
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": part} for part in parts),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    )[-1]
    assert reply.blocks[0].input == get_case("C140")["expected"]["one_toolCall_event"]["input"]
    assert reply.stop is FinishReason.TOOL_CALLS


@pytest.mark.parametrize(("identity", "label"), [("C141", "Anthropic"), ("C148", "Provider")])
def test_an_error_in_a_stream_has_the_providers_words(identity: str, label: str) -> None:
    case_input = get_case(identity)["input"]
    error = error_from_stream(label, case_input.get("error") or case_input, "")
    message = get_case(identity)["expected"]["message"].partition(": ")[2]
    assert error.message == f"{label} stream error: {message}"


def test_c143_null_members_of_usage_lose_no_tokens() -> None:
    accumulator = MessagesAccumulator("m", b"")
    usage = {"input_tokens": 9, "cache_read_input_tokens": None}
    list(accumulator.add_event({"type": "message_start", "message": {"usage": usage}}))
    assert accumulator.tokens.prompt == 9


def test_c149_a_failure_without_usage_is_a_failure() -> None:
    with pytest.raises(ProviderError, match="Provider stream error: x"):
        _collect_parts(ResponsesAccumulator("openai", "m", b""), get_case("C149")["input"])


def test_c150_a_chunk_with_null_usage_is_not_dropped() -> None:
    parts = _collect_parts(_chat(), get_case("C150")["input"], {"choices": [{"delta": {}, "finish_reason": "stop"}]})
    assert parts[0] == TextDelta(text="hi")


def test_c151_a_call_whose_arguments_came_in_two_chunks_is_one_call() -> None:
    first = {"index": 0, "id": "c", "function": {"name": "read", "arguments": '{"a"'}}
    second = {"index": 0, "function": {"arguments": ":1}"}}
    chunks = [{"choices": [{"delta": {"tool_calls": [fragment]}}]} for fragment in (first, second)]
    reply = _collect_parts(_chat(), *chunks, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})[-1]
    assert isinstance(reply, ModelResponse)
    assert [block.model_dump()["input"] for block in reply.blocks] == [{"a": 1}]


def _chat() -> ChatAccumulator:
    return ChatAccumulator("openai-compatible", "Provider", "m", b"", 0)


def test_c093_an_aborted_request_has_an_error_code_of_its_own() -> None:
    assert get_case("C093")["expected"] is True
    connection = HttpConnection(stall_seconds=5)
    with StrictOpenAI.run() as server, connection.call_scope():
        connection.abort()
        with pytest.raises(ProviderError) as caught:
            list(
                get_provider("openai").stream(
                    model_request(user_message("a")), connection, AuthenticatedEndpoint(server.url, SecretStr("k"))
                )
            )
    connection.close()
    assert (caught.value.code, caught.value.retryable) == ("provider_closed", False)


def test_every_case_is_covered() -> None:
    text = Path(__file__).read_text().lower()
    areas = {case["area"] for case in CASES if case["id"].lower() not in text}
    assert areas == {"sse", "classifyHttpError", "parseToolArguments", "normalizeContextTokens", "promptCacheKey"}
