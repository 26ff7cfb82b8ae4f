"""A request in Google's form: roles, parts, signatures, results, tools, and what servers make it leave out."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from fermata.domain.blocks import ReasoningBlock
from fermata.domain.errors import ProviderError
from fermata.domain.messages import Message
from fermata.domain.model_io import TextDelta
from fermata.domain.tools import ToolSpec
from fermata.drivers.error_mapping import error_from_response, error_from_stream
from fermata.drivers.protocols.gemini_generate.schema_subset import reduce_schema
from fermata.drivers.registry import get_provider
from fermata.drivers.transport.http_connection import HttpConnection
from local.demo_model.request_checks.gemini_generate import check_request
from tests.unit.drivers.conversation_builders import (
    image_block,
    model_message,
    model_request,
    tool_call,
    tool_result,
    user_message,
)
from tests.unit.drivers.history_strategies import MODELS, histories, reasoning_blocks, turn_with_rounds
from tests.unit.drivers.strict_providers import CASES_BY_PROVIDER, StartServer, build_request, collect_parts

PEER = CASES_BY_PROVIDER["gemini"]
MODEL = MODELS["gemini"]
PLACEHOLDER = "skip_thought_signature_validator"
HEADERS = {"x-goog-api-key": "k"}


def build_body(*rows: Message, model: str = MODEL, **members: Any) -> Any:
    """Return the body as it is sent, after checking that the API takes it."""
    request = model_request(*rows, model=model, **members)
    body = json.loads(get_provider("gemini")._encode_body(request, frozenset()))
    check_request(HEADERS, body, model)
    return body


def signature_block(signature: str = "c2ln", *, model: str = MODEL) -> ReasoningBlock:
    return ReasoningBlock(provider="gemini", model=model, payload={"thoughtSignature": signature})


def list_calls(body: Any) -> list[Any]:
    return [part for content in body["contents"] for part in content["parts"] if "functionCall" in part]


def list_results(body: Any) -> list[Any]:
    return [part for content in body["contents"] for part in content["parts"] if "functionResponse" in part]


@given(rows=histories())
def test_any_history_is_accepted(rows: list[Message]) -> None:
    for model in (MODEL, "gemini-2.5-flash"):
        build_body(*rows, user_message("And now?"), model=model, volatile="Page: Home")


def test_the_model_is_part_of_the_path_and_cannot_leave_it() -> None:
    provider = get_provider("gemini")
    assert provider.get_path("models/gemini-3-pro") == provider.get_path("gemini-3-pro")
    assert provider.get_path("a/../b?c") == "/v1beta/models/a%2F..%2Fb%3Fc:streamGenerateContent?alt=sse"


def test_the_sides_alternate_and_results_follow_their_calls() -> None:
    body = build_body(
        user_message("Hi"),
        model_message("One moment.", tool_call("c1"), tool_call("c2")),
        tool_result("c1", {"n": 1}),
        tool_result("c2", ok=False, error="No such node"),
        user_message("Go on"),
        system="Be brief.",
        volatile="Page: Home",
    )
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert [content["role"] for content in body["contents"]] == ["user", "model", "user", "user"]
    assert [part["functionResponse"] for part in list_results(body)] == [
        {"id": "c1", "name": "read_document", "response": {"output": '{"n":1}'}},
        {"id": "c2", "name": "read_document", "response": {"error": "No such node"}},
    ]
    prompt = body["contents"][-1]["parts"]
    assert prompt[0] == {"text": "Go on"}
    assert "Page: Home" in prompt[1]["text"]


def test_a_signature_goes_back_in_the_part_it_came_with() -> None:
    thought = ReasoningBlock(provider="gemini", model=MODEL, payload={"thought": "Hm.", "thoughtSignature": "dGg="})
    calls = (signature_block(), tool_call("c1"), tool_call("c2"))
    body = build_body(
        user_message("Hi"),
        model_message(thought, signature_block("dHh0"), "Well.", *calls),
        tool_result("c1"),
        tool_result("c2"),
    )
    said, text, first, second = body["contents"][1]["parts"]
    assert said == {"text": "Hm.", "thought": True, "thoughtSignature": "dGg="}
    assert text == {"text": "Well.", "thoughtSignature": "dHh0"}
    assert (first["thoughtSignature"], "thoughtSignature" in second) == ("c2ln", False)


@pytest.mark.parametrize("model", ["gemini-3-pro", "gemini-3.8-flash", "gemini-flash-latest"])
@pytest.mark.parametrize("maker", ["anthropic", "openai-compatible"])
def test_the_first_call_of_another_model_has_a_placeholder_for_its_signature(model: str, maker: str) -> None:
    body = build_body(*list(turn_with_rounds(maker, "t1"))[:-1], model=model)
    signatures = [call.get("thoughtSignature") for call in list_calls(body)]
    assert signatures == [PLACEHOLDER, None] * 2


def test_a_model_that_needs_no_signatures_gets_no_placeholders() -> None:
    body = build_body(*list(turn_with_rounds("anthropic", "t1"))[:-1], model="gemini-2.5-pro")
    assert "thoughtSignature" not in json.dumps(body)


def test_thoughts_of_another_model_are_not_sent() -> None:
    foreign = signature_block("Zm9yZWlnbg==", model="gemini-2.5-pro")
    body = build_body(
        user_message("Hi"), model_message(foreign, *reasoning_blocks("anthropic", 1), tool_call("c")), tool_result("c")
    )
    assert [call["thoughtSignature"] for call in list_calls(body)] == [PLACEHOLDER]
    assert "Zm9yZWlnbg==" not in json.dumps(body)


def test_images_of_results_are_within_them_for_newer_models_and_beside_them_for_older_ones() -> None:
    rows = (
        user_message("Hi"),
        model_message(tool_call("c1"), tool_call("c2")),
        tool_result("c1", 1, images=(image_block(),)),
        tool_result("c2", 2),
    )
    picture = {"inlineData": {"mimeType": image_block().mime_type, "data": image_block().data}}
    newer, older = build_body(*rows)["contents"][-1], build_body(*rows, model="gemini-2.5-flash")["contents"][-1]
    assert newer["parts"][0]["functionResponse"]["parts"] == [picture]
    assert len(newer["parts"]) == 2
    assert older["parts"][2:] == [picture]
    assert "parts" not in older["parts"][0]["functionResponse"]


def test_a_result_that_holds_a_reference_is_sent_as_text() -> None:
    """Within an object the API would look for a part of that name, and refuse the request."""
    schema = {"properties": {"a": {"$ref": "#/$defs/a"}}}
    body = build_body(user_message("Hi"), model_message(tool_call("c1")), tool_result("c1", schema))
    (result,) = list_results(body)
    assert json.loads(result["functionResponse"]["response"]["output"]) == schema


TOOL = ToolSpec(name="read", description="Reads.", input_schema={"type": "object"})


def test_tools_have_their_json_schema_and_may_be_forbidden() -> None:
    body = build_body(user_message("Hi"), tools=(TOOL,), call_tools=False)
    (declared,) = body["tools"][0]["functionDeclarations"]
    schema = {"type": "object", "properties": {}}
    assert declared == {"name": "read", "description": "Reads.", "parametersJsonSchema": schema}
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}


@pytest.mark.parametrize(
    ("schema", "reduced"),
    [
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"const": 3}, {"enum": ["3"], "type": "string"}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "string", "enum": ["1", "2"]}),
        (
            {"oneOf": [{"const": "a"}, {"type": "null"}]},
            {"anyOf": [{"enum": ["a"], "type": "string"}, {"type": "null"}]},
        ),
        ({"type": "string", "format": "uri", "pattern": "x"}, {"type": "string", "pattern": "x"}),
        (
            {"type": "object", "additionalProperties": False, "properties": {"const": {"type": "array", "items": {}}}},
            {"type": "object", "properties": {"const": {"type": "array", "items": {}}}},
        ),
        ({"exclusiveMinimum": 0, "multipleOf": 2, "$schema": "x", "minimum": 1}, {"minimum": 1}),
        (True, {}),
    ],
)
def test_a_schema_is_reduced_to_the_older_form(schema: Any, reduced: Any) -> None:
    assert reduce_schema(schema) == reduced


ROWS = (user_message("a"), model_message(tool_call("c1"), tool_call("c2")), tool_result("c1", images=(image_block(),)))
ROWS_WITH_RESULTS = (*ROWS, tool_result("c2"))
FIELD = "Invalid JSON payload received. Unknown name \"{}\" at '{}': Cannot find field."
REFUSALS: list[tuple[str, Callable[[Any], bool]]] = [
    (
        FIELD.format("parametersJsonSchema", "tools[0].function_declarations[0]"),
        lambda body: "parametersJsonSchema" in json.dumps(body),
    ),
    (FIELD.format("id", "contents[1].parts[0].function_call"), lambda body: '"id"' in json.dumps(body["contents"])),
    (
        FIELD.format("parts", "contents[2].parts[0].function_response"),
        lambda body: any("parts" in part["functionResponse"] for part in list_results(body)),
    ),
    ("Developer instruction is not enabled for models/gemma-3-27b-it", lambda body: "systemInstruction" in body),
    (
        "Thinking_config.include_thoughts is only enabled when thinking is enabled.",
        lambda body: "thinkingConfig" in body["generationConfig"],
    ),
    ("Thinking is not enabled for this model.", lambda body: "thinkingConfig" in body["generationConfig"]),
    (
        "Unable to submit request because it has a maxOutputTokens value of 11192 but the supported range is from 1 "
        "(inclusive) to 8193 (exclusive).",
        lambda body: "maxOutputTokens" in body["generationConfig"],
    ),
]


@pytest.mark.parametrize(("words", "is_refused"), REFUSALS, ids=[words[:50] for words, _ in REFUSALS])
def test_a_refused_form_is_sent_in_another_one_and_that_is_remembered(
    words: str, is_refused: Any, running: StartServer, connection: HttpConnection
) -> None:
    server = running(PEER)
    server.rules.append(lambda body: words if is_refused(body) else None)
    model = f"{MODEL}-{len(words)}"
    request = build_request(PEER, *ROWS_WITH_RESULTS, system="Brief.", tools=(TOOL,), model=model, thinking_tokens=3000)
    for _ in range(2):
        server.script_chunks(PEER.text_response("Fine."))
        assert TextDelta(text="Fine.") in collect_parts(PEER, request, connection, server)
    assert server.refusals == [words]


def test_a_model_of_which_nobody_knows_that_it_needs_signatures_gets_placeholders(
    running: StartServer, connection: HttpConnection
) -> None:
    server = running(PEER)
    words = "Function call is missing a thought_signature in functionCall parts."
    server.rules.append(lambda body: words if PLACEHOLDER not in json.dumps(body) else None)
    request = build_request(PEER, *ROWS_WITH_RESULTS, model="gemini-2.5-x")
    for _ in range(2):
        server.script_chunks(PEER.text_response("Fine."))
        collect_parts(PEER, request, connection, server)
    assert server.refusals == [words]


@pytest.mark.parametrize("words", ["Corrupted thought signature.", "Invalid thought_signature."])
def test_signatures_of_another_account_are_replaced_in_this_conversation_only(
    words: str, running: StartServer, connection: HttpConnection
) -> None:
    server = running(PEER)
    server.rules.append(lambda body: words if "c2ln" in json.dumps(body) else None)
    rows = (user_message("a"), model_message(signature_block(), tool_call("c1")), tool_result("c1"))
    for _ in range(2):
        server.script_chunks(PEER.text_response("Fine."))
        collect_parts(PEER, build_request(PEER, *rows), connection, server)
    assert server.refusals == [words, words]
    assert [call["thoughtSignature"] for call in list_calls(server.bodies[-1])] == [PLACEHOLDER]


def google_error(status: int, name: str, message: str, *details: Any) -> bytes:
    error = {"code": status, "message": message, "status": name, "details": [*details]}
    return json.dumps([{"error": error}]).encode()


def read_error(status: int, name: str, message: str, *details: Any) -> ProviderError:
    return error_from_response("Google Gemini", status, {}, google_error(status, name, message, *details), "AIza-key")


def test_a_wrong_key_is_told_as_such_although_its_status_is_400() -> None:
    error = read_error(
        400,
        "INVALID_ARGUMENT",
        "API key not valid. Please pass a valid API key.",
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"},
    )
    assert (error.code, error.retryable) == ("provider_auth", False)
    assert error.message == "Google Gemini authentication failed. Check your API key in /admin/ai/providers."


def test_a_rate_limit_says_itself_when_to_retry() -> None:
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}
    error = read_error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota. Please retry in 7.5s.", retry)
    assert (error.code, error.retryable, error.retry_after) == ("provider_quota", True, 7.5)


@pytest.mark.parametrize("delay", [None, 7, "soon", "", "nans"])
def test_a_delay_that_is_none_is_ignored(delay: Any) -> None:
    assert read_error(429, "RESOURCE_EXHAUSTED", "Slow down.", {"retryDelay": delay}, "x").retry_after is None


def test_an_overloaded_model_in_mid_stream_may_be_asked_again() -> None:
    error = error_from_stream(
        "Google Gemini", {"code": 503, "status": "UNAVAILABLE", "message": "The model is overloaded."}, ""
    )
    assert (error.code, error.retryable, error.status) == ("provider_overloaded", True, 503)


def test_a_key_in_an_error_is_not_shown() -> None:
    key = "AIzaSyA1234567890abcdefghijklmnopqrstuv"
    error = error_from_response(
        "Google Gemini", 400, {}, google_error(400, "INVALID_ARGUMENT", f"key={key}"), "another"
    )
    assert key not in error.message + error.detail
