"""Refusals in the words of real servers (docs/provider-rules.md) are answered by the change that helps."""

import json

import pytest

from fermata.domain.errors import ProviderError
from fermata.drivers.adjustments import (
    ADD_PLACEHOLDER_SIGNATURES,
    FLATTEN_EARLIER_TURNS,
    MERGE_SYSTEM_INTO_PROMPT,
    OMIT_REASONING_ITEMS,
    OMIT_THINKING_BLOCKS,
)
from fermata.drivers.error_mapping import error_from_response
from fermata.drivers.protocols.chat_completions.request import (
    ADD_EMPTY_REASONING,
    ANSWER_RESULTS,
    NAME_RESULTS,
    OMIT_REASONING_FIELDS,
    SPLIT_PARALLEL_CALLS,
)
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict.server import StrictServer
from tests.unit.drivers.conversation_builders import (
    model_message,
    thinking_block,
    tool_call,
    tool_result,
    user_message,
)
from tests.unit.drivers.history_strategies import reasoning_blocks
from tests.unit.drivers.strict_providers import CASES_BY_PROVIDER, StartServer, build_request, collect_parts
from tests.unit.drivers.test_remember_history_repairs import ANTHROPIC

CHAT = "openai-compatible"
FLATTENS = FLATTEN_EARLIER_TURNS.name
REFUSALS = [
    (
        "anthropic",
        400,
        "messages.1: The final block in an assistant message cannot be `thinking`.",
        OMIT_THINKING_BLOCKS,
    ),
    (
        "anthropic",
        400,
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` "
        "is enabled, a final `assistant` message must start with a thinking block.",
        OMIT_THINKING_BLOCKS,
    ),
    (
        "anthropic",
        400,
        "messages.1.content.0.thinking: each thinking block must contain thinking",
        OMIT_THINKING_BLOCKS,
    ),
    ("anthropic", 400, "messages.3.content.0: Invalid `signature` in `thinking` block", OMIT_THINKING_BLOCKS),
    ("anthropic", 400, "The `content[].thinking` in the thinking mode must be passed back to the API.", FLATTENS),
    ("anthropic", 400, "final assistant content cannot end with trailing whitespace", FLATTENS),
    ("anthropic", 400, "The toolResult blocks at messages.2.content contain duplicate Ids: tooluse_1", FLATTENS),
    ("openai", 400, "No tool output found for function call call_abc.", FLATTENS),
    (
        "openai",
        400,
        "Invalid 'input[4].call_id': string too long. Expected a string with maximum length 64.",
        FLATTENS,
    ),
    ("openai", 400, "The encrypted content gAAA could not be verified.", OMIT_REASONING_ITEMS),
    ("gemini", 400, "Request contains an invalid argument.", FLATTENS),
    ("openrouter", 400, "Provider returned error", FLATTENS),
    (CHAT, 400, "Bad Request", FLATTENS),
    (CHAT, 422, "Unprocessable Entity", FLATTENS),
    (CHAT, 400, "", FLATTENS),
    (CHAT, 400, "Parameter error: messages illegal", FLATTENS),
    (CHAT, 400, "Value error, Invalid message", FLATTENS),
    (CHAT, 400, "Failed to apply prompt template", FLATTENS),
    (CHAT, 400, "3 validation errors for ChatCompletionRequest", FLATTENS),
    ("openai", 400, "Missing `call_id`", FLATTENS),
    (CHAT, 400, "This model only supports single tool-calls at once!", SPLIT_PARALLEL_CALLS),
    (CHAT, 500, "This model only supports single tool-calls at once!", SPLIT_PARALLEL_CALLS),
    (CHAT, 400, "System role not supported", MERGE_SYSTEM_INTO_PROMPT),
    (CHAT, 400, "Developer instruction is not enabled for models/gemma-3-27b-it", MERGE_SYSTEM_INTO_PROMPT),
    (
        CHAT,
        400,
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        MERGE_SYSTEM_INTO_PROMPT,
    ),
    (
        CHAT,
        400,
        "GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.",
        NAME_RESULTS,
    ),
    (
        CHAT,
        500,
        "Cannot pass both content and thinking in an assistant message with tool calls!",
        OMIT_REASONING_FIELDS,
    ),
    (CHAT, 400, "'messages.2' : property 'reasoning' is unsupported", OMIT_REASONING_FIELDS),
    (CHAT, 400, "Missing `reasoning_content` field in the assistant message at message index 1", ADD_EMPTY_REASONING),
    (CHAT, 400, "Function call is missing a thought_signature in functionCall parts.", ADD_PLACEHOLDER_SIGNATURES),
    (CHAT, 400, "Unexpected role 'user' after role 'tool'", ANSWER_RESULTS),
    (CHAT, 400, "Invalid request content: Each message must have at least one content element.", FLATTENS),
    (CHAT, 400, "An empty message was provided. Every message needs at least one non-empty content element.", FLATTENS),
    (CHAT, 400, "Unable to submit request because it must include at least one parts field", FLATTENS),
    (CHAT, 400, "Unable to submit request because it has an empty text parameter.", FLATTENS),
    (CHAT, 400, "1 validation error for ValidatorIterator 0.function.arguments", FLATTENS),
    (CHAT, 400, "No user query found in messages.", FLATTENS),
    (CHAT, 500, 'can only concatenate str (not "list") to str', FLATTENS),
    (CHAT, 400, "'dict object' has no attribute 'content'", FLATTENS),
    (CHAT, 500, "'str object' has no attribute 'items'", FLATTENS),
    (CHAT, 400, "list object has no element 0", FLATTENS),
    (CHAT, 500, "Object of type Undefined is not JSON serializable", FLATTENS),
    (CHAT, 400, "Expected 'content' to be a string or an array", FLATTENS),
    (CHAT, 400, "The messages parameter is illegal. Please check the documentation.", FLATTENS),
    (CHAT, 400, "<400> InternalError.Algo.InvalidParameter: The content field is a required field.", FLATTENS),
    (CHAT, 400, "invalid params, chat content is empty (2013)", FLATTENS),
    (CHAT, 400, "invalid params, function name or parameters is empty (2013)", FLATTENS),
    (CHAT, 400, "Base64 decoding failed for a signature", FLATTENS),
    ("ollama", 400, "invalid message content type: <nil>", FLATTENS),
    (CHAT, 500, "Error: Unknown (built-in) filter 'items' for type String", FLATTENS),
    (CHAT, 500, "Can only get item pairs from a mapping.", FLATTENS),
    (CHAT, 500, "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]", FLATTENS),
    (CHAT, 500, "Value is not callable: null at row 1, column 72", FLATTENS),
    (CHAT, 500, "Cannot have 2 or more assistant messages at the end of the list.", FLATTENS),
    (
        CHAT,
        400,
        "Invalid 'messages' in payload. Please check the structure of your 'messages' and try again.",
        FLATTENS,
    ),
    (
        CHAT,
        422,
        '[{"type": "string_type", "loc": ["body", "messages", 3, "content", "str"], "msg": "Input"}]',
        FLATTENS,
    ),
    (
        "openrouter",
        400,
        'Invalid Responses API request: [{"path": [\n      "input",\n      1,\n      "id"]}]',
        FLATTENS,
    ),
    ("ollama", 400, "json: cannot unmarshal array into Go struct field ChatRequest.messages.content", FLATTENS),
    ("ollama", 500, 'template: :108:130: executing "" at <index .Messages 3>: error calling index', FLATTENS),
]
UNANSWERED = [
    ("anthropic", 400, "Your credit balance is too low to access the Anthropic API."),
    ("anthropic", 400, "prompt is too long: 210000 tokens > 200000 maximum"),
    ("openai", 400, "Your input exceeds the context window of this model."),
    (CHAT, 400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"),
    (CHAT, 500, "Internal server error"),
    (CHAT, 500, "'NoneType' object has no attribute 'shape'"),
    (CHAT, 400, "tools.0.custom.input_schema: JSON schema is invalid"),
    ("ollama", 400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
]


def find_name(provider: str, status: int, words: str | dict[str, str]) -> str | None:
    """Return the name of what changes the request after a refusal, for a history with everything in it.

    Args:
        words: The message of the error, or the whole error.
    """
    peer = CASES_BY_PROVIDER.get(provider, ANTHROPIC)
    thoughts = [thinking_block("Hm.")] if provider == "anthropic" else reasoning_blocks(provider, 1)
    request = build_request(
        peer,
        user_message("Hi", turn="t0"),
        model_message("Hello.", turn="t0"),
        user_message("Look", turn="t1"),
        model_message(*thoughts, "I look.", tool_call("a"), tool_call("b"), turn="t1"),
        tool_result("a", turn="t1"),
        tool_result("b", turn="t1"),
        user_message("And?", turn="t2"),
    )
    body = json.dumps({"error": {"message": words} if isinstance(words, str) else words}).encode()
    error = error_from_response(peer.driver.label, status, {}, body, "")
    adjustment = peer.driver._find_adjustment(
        request, peer.driver._encode_body(request, frozenset()), error, frozenset()
    )
    return adjustment.name if adjustment else None


@pytest.mark.parametrize(("provider", "status", "words", "name"), REFUSALS)
def test_a_refusal_is_answered_by_what_helps(provider: str, status: int, words: str, name: str) -> None:
    assert find_name(provider, status, words) == name


def test_the_member_that_an_error_names_beside_its_words_is_understood() -> None:
    error = {"message": "Invalid input", "type": "invalid_request_error", "param": "messages.12.content"}
    assert find_name(CHAT, 400, error) == FLATTENS


@pytest.mark.parametrize(("provider", "status", "words"), UNANSWERED)
def test_a_refusal_of_something_else_is_no_refusal_of_the_history(provider: str, status: int, words: str) -> None:
    assert find_name(provider, status, words) is None


def test_an_adjustment_that_changes_nothing_is_not_tried(running: StartServer, connection: HttpConnection) -> None:
    """The same request would be refused again."""
    server = running(ANTHROPIC)
    server.rules.append(lambda _body: "messages.0: Invalid `signature` in `thinking` block")
    with pytest.raises(ProviderError):
        collect_parts(ANTHROPIC, build_request(ANTHROPIC, user_message("Hi")), connection, server)
    assert len(server.bodies) == 1


def test_a_template_that_refuses_with_500_is_not_asked_the_same_again(
    running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER[CHAT]
    server = running(peer)
    server.rules.append(lambda _body: "Jinja Exception: no")
    server.refusal_status = 500
    with pytest.raises(ProviderError) as caught:
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)
    assert not caught.value.retryable


def test_an_error_that_may_pass_is_no_refusal_by_a_template(running: StartServer, connection: HttpConnection) -> None:
    peer = CASES_BY_PROVIDER[CHAT]
    server = running(peer)
    server.rules.append(
        lambda _body: "An error occurred while executing the request. 'NoneType' object is not callable"
    )
    server.refusal_status = 500
    with pytest.raises(ProviderError) as caught:
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)
    assert caught.value.retryable


ROWS = (
    user_message("Hi", turn="t1"),
    model_message("I look.", tool_call("a"), tool_call("b", "insertHtml"), turn="t1"),
    tool_result("a", {"n": 1}, turn="t1"),
    tool_result("b", {"n": 2}, turn="t1"),
    user_message("And?", turn="t2"),
)


def answer_twice(server: StrictServer, connection: HttpConnection) -> None:
    """Ask two times: only the first request is refused."""
    peer = CASES_BY_PROVIDER[CHAT]
    for _ in range(2):
        server.script_chunks(peer.text_response("Fine."))
        collect_parts(peer, build_request(peer, *ROWS, volatile="Page: Home"), connection, server)
    assert len(server.refusals) == 1


def test_parallel_calls_are_split_for_a_template_that_takes_one(
    running: StartServer, connection: HttpConnection
) -> None:
    server = running(CASES_BY_PROVIDER[CHAT])
    server.rules.append(
        lambda body: (
            "This model only supports single tool-calls at once!"
            if any(len(message.get("tool_calls", ())) > 1 for message in body["messages"])
            else None
        )
    )
    answer_twice(server, connection)
    sent = server.bodies[-1]["messages"][2:-1]
    assert [(message["role"], message["content"]) for message in sent] == [
        ("assistant", "I look."),
        ("tool", '{"n":1}'),
        ("assistant", ""),
        ("tool", '{"n":2}'),
    ]


def test_instructions_precede_the_first_prompt_of_a_model_without_a_system_role(
    running: StartServer, connection: HttpConnection
) -> None:
    server = running(CASES_BY_PROVIDER[CHAT])
    server.rules.append(lambda body: "System role not supported" if body["messages"][0]["role"] == "system" else None)
    answer_twice(server, connection)
    assert server.bodies[-1]["messages"][0] == {"role": "user", "content": "You edit pages.\n\nHi"}


def test_results_are_named_for_a_server_that_asks_for_it(running: StartServer, connection: HttpConnection) -> None:
    server = running(CASES_BY_PROVIDER[CHAT])
    server.rules.append(
        lambda body: (
            "contents[2].parts[0].function_response.name: Name cannot be empty."
            if any(message["role"] == "tool" and "name" not in message for message in body["messages"])
            else None
        )
    )
    answer_twice(server, connection)
    assert [message["name"] for message in server.bodies[-1]["messages"] if message["role"] == "tool"] == ["x", "x"]
