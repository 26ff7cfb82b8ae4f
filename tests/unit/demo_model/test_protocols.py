"""The same model in every provider's protocol: the same rules, scripts and faults, heard by the real drivers."""

from decimal import Decimal
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from fermata.domain.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelRequest, ModelResponse, ReasoningDelta, StreamPart, TextDelta
from fermata.drivers.registry import PROVIDER_MODULES, get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from tests.unit.demo_model.editor_tab import EditorTab, run_demo_turn
from tests.unit.drivers.conversation_builders import message_from_response, model_request, tool_result, user_message

EACH = pytest.mark.parametrize("provider", PROVIDER_MODULES)
THINKING = {"openai": "gpt-5-demo"}
"""A name OpenAI's driver takes for a model that thinks."""
SEALED = "c2VhbGVkO"
"""How `sealed:` begins in base64."""
PAGE = "<html><body><h1>Notes</h1><p>Some words.</p></body></html>"


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    return "".join(letter for letter in f"key-{request.node.name}" if letter.isalnum() or letter == "-")


@pytest.fixture
def reached(provider: str, url: str, key: str) -> AuthenticatedEndpoint:
    """OpenRouter's addresses begin with /api, here as there."""
    return AuthenticatedEndpoint(f"{url}/api" if provider == "openrouter" else url, SecretStr(key))


def set_script(http: httpx.Client, endpoint: AuthenticatedEndpoint, *steps: dict[str, Any]) -> None:
    posted = http.post("/demo/script", json={"key": endpoint.plain_key, "steps": steps})
    assert posted.status_code == 200, posted.text


def heard(
    provider: str, asked: ModelRequest, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> list[StreamPart]:
    return list(get_provider(provider).stream(asked, line, endpoint))


def reply(provider: str, asked: ModelRequest, line: HttpConnection, endpoint: AuthenticatedEndpoint) -> ModelResponse:
    last = heard(provider, asked, line, endpoint)[-1]
    assert isinstance(last, ModelResponse)
    return last


def called(of: ModelResponse) -> ToolCallBlock:
    return next(block for block in of.blocks if isinstance(block, ToolCallBlock))


@EACH
def test_a_whole_turn_edits_the_page_as_the_prompt_asks(
    provider: str, line: HttpConnection, reached: AuthenticatedEndpoint
) -> None:
    tab = EditorTab(PAGE)
    said = run_demo_turn('Change the heading to "Tea notes"', tab, line, reached, provider)
    assert next(node for node in tab.root.iter_descendants() if node.tag == "h1").text == "Tea notes"
    assert said.tool_names[:2] == [["list_documents", "list_tokens"], ["read_document"]]
    assert "not an AI" in said.texts[-1]


@EACH
def test_a_tool_that_fails_is_reported(provider: str, line: HttpConnection, reached: AuthenticatedEndpoint) -> None:
    tab = EditorTab(PAGE, broken={"read_document": "The page is locked"})
    assert "The page is locked" in run_demo_turn("Add a pricing section", tab, line, reached, provider).texts[-1]


@EACH
def test_on_the_last_round_it_only_talks(provider: str, line: HttpConnection, reached: AuthenticatedEndpoint) -> None:
    said = run_demo_turn("Add a pricing section", EditorTab(PAGE), line, reached, provider, call_tools=False)
    assert said.rounds == []


@EACH
def test_a_step_can_send_byte_by_byte(
    provider: str, http: httpx.Client, line: HttpConnection, reached: AuthenticatedEndpoint
) -> None:
    calls = [{"name": "read_document", "input": {"city": "杭州"}}]
    set_script(http, reached, {"text": "那个你好🦀", "toolCalls": calls, "singleBytes": True})
    said = reply(provider, model_request(user_message("Hi")), line, reached)
    assert said.blocks[0] == TextBlock(text="那个你好🦀")
    assert called(said).input == {"city": "杭州"}


@EACH
def test_a_step_can_be_cut_off_at_the_token_limit(
    provider: str, http: httpx.Client, line: HttpConnection, reached: AuthenticatedEndpoint
) -> None:
    calls = [{"name": "read_document"}, {"name": "insertHtml", "raw": '{"html":"<p'}]
    set_script(http, reached, {"toolCalls": calls, "stop": "max_tokens"})
    cut = reply(provider, model_request(user_message("Hi")), line, reached)
    assert cut.stop is FinishReason.MAX_TOKENS
    assert [block.malformed for block in cut.blocks if isinstance(block, ToolCallBlock)] == [None, True]


@EACH
def test_a_step_can_refuse(
    provider: str, http: httpx.Client, line: HttpConnection, reached: AuthenticatedEndpoint
) -> None:
    set_script(http, reached, {"text": "No.", "stop": "refusal"})
    stop = reply(provider, model_request(user_message("Hi")), line, reached).stop
    assert stop is (FinishReason.END if provider == "ollama" else FinishReason.REFUSAL)


@EACH
@pytest.mark.parametrize(
    ("step", "code", "retry_after"),
    [
        ({"status": 401}, "provider_auth", None),
        ({"status": 429, "retryAfter": 7}, "provider_quota", 7.0),
        ({"status": 529}, "provider_overloaded", None),
    ],
)
def test_a_step_can_be_a_status(
    step: Any,
    code: str,
    retry_after: Any,
    provider: str,
    http: httpx.Client,
    line: HttpConnection,
    reached: AuthenticatedEndpoint,
) -> None:
    set_script(http, reached, step)
    with pytest.raises(ProviderError) as caught:
        heard(provider, model_request(user_message("Hi")), line, reached)
    assert (caught.value.code, caught.value.retry_after) == (code, retry_after)


@EACH
@pytest.mark.parametrize(
    ("fault", "codes"),
    [
        ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, {"provider_overloaded", "provider_error"}),
        ({"cut": True}, {"provider_unreachable"}),
    ],
    ids=["error event", "cut"],
)
def test_a_step_can_fail_after_so_many_characters(
    fault: Any, codes: set[str], provider: str, http: httpx.Client, line: HttpConnection, reached: AuthenticatedEndpoint
) -> None:
    set_script(http, reached, {"text": "Partial answer", "after": 7, "chunks": 1, **fault})
    pieces: list[StreamPart] = []
    with pytest.raises(ProviderError) as caught:
        pieces.extend(get_provider(provider).stream(model_request(user_message("Hi")), line, reached))
    assert pieces == [TextDelta(text="Partial")]
    assert caught.value.retryable
    assert caught.value.code in codes


@EACH
def test_thinking_comes_back_as_it_was(
    provider: str, http: httpx.Client, line: HttpConnection, reached: AuthenticatedEndpoint
) -> None:
    set_script(http, reached, {"thinking": "Look first.", "toolCalls": [{"name": "read_document"}]}, {"text": "Done"})
    asked = model_request(user_message("Hi"), model=THINKING.get(provider, "fermata-demo"), thinking_tokens=2000)
    pieces = heard(provider, asked, line, reached)
    first = pieces[-1]
    assert isinstance(first, ModelResponse)
    assert "".join(piece.text for piece in pieces if isinstance(piece, ReasoningDelta)) == "Look first."
    assert isinstance(first.blocks[0], ReasoningBlock)
    rows = (user_message("Hi"), message_from_response(first), tool_result(called(first).tool_call_id))
    second = reply(provider, asked.model_copy(update={"messages": rows}), line, reached)
    assert second.blocks == (TextBlock(text="Done"),)
    seen = http.get("/demo/requests", params={"key": reached.plain_key}).json()["requests"][-1]["body"]
    assert any(mark in str(seen) for mark in ("Look first.", "sealed:", SEALED))


@EACH
def test_usage_counts_what_an_earlier_request_left_in_the_cache(
    provider: str, http: httpx.Client, line: HttpConnection, reached: AuthenticatedEndpoint
) -> None:
    set_script(http, reached, {"toolCalls": [{"name": "read_document"}]}, {"text": "Done"})
    asked = model_request(user_message("A prompt that is long enough to be counted " * 20))
    first = reply(provider, asked, line, reached)
    rows = (*asked.messages, message_from_response(first), tool_result(called(first).tool_call_id, "x" * 400))
    second = reply(provider, asked.model_copy(update={"messages": rows}), line, reached)
    assert first.tokens.cache_read == 0
    assert second.tokens.cache_read >= first.tokens.context_tokens - 1
    assert second.tokens.context_tokens > second.tokens.cache_read + 90
    assert second.tokens.completion > 0


def test_openrouter_says_what_an_answer_cost(http: httpx.Client, url: str, line: HttpConnection, key: str) -> None:
    endpoint = AuthenticatedEndpoint(f"{url}/api", SecretStr(key))
    usage = {"input_tokens": 600, "cache_read_input_tokens": 400, "output_tokens": 20}
    set_script(http, endpoint, {"text": "Hi", "usage": usage})
    tokens = reply("openrouter", model_request(user_message("Hi")), line, endpoint).tokens
    assert (tokens.prompt, tokens.cache_read, tokens.completion) == (1000, 400, 20)
    assert tokens.reported_cost == Decimal("0.00074")


def test_ollama_refuses_a_prompt_that_does_not_fit_or_cuts_it_where_it_may(
    http: httpx.Client, url: str, line: HttpConnection, key: str
) -> None:
    endpoint = AuthenticatedEndpoint(url, SecretStr(key))
    long = model_request(user_message("word " * 15_000), window_tokens=4096)
    with pytest.raises(ProviderError) as caught:
        heard("ollama", long, line, endpoint)
    assert caught.value.code == "provider_overflow"
    body = {"model": "m", "messages": [{"role": "user", "content": "word " * 15_000}], "stream": False}
    assert http.post("/api/chat", json=body).json()["prompt_eval_count"] == 2050


@pytest.mark.parametrize(
    ("path", "body", "found"),
    [
        ("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]}, "output"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}, "choices"),
        ("/api/chat", {"messages": [{"role": "user", "content": "Hi"}], "stream": False}, "message"),
    ],
)
def test_without_stream_the_answer_comes_in_one_piece(
    path: str, body: dict[str, Any], found: str, http: httpx.Client
) -> None:
    answer = http.post(path, json=body | {"model": "m"}, headers={"authorization": "Bearer k"}).json()
    assert "not an AI" in str(answer[found])


@pytest.mark.parametrize(
    ("path", "error"),
    [("/v1/responses", "error"), ("/v1/chat/completions", "error"), ("/api/chat", "error"), ("/v1/messages", "error")],
)
def test_what_is_no_request_is_refused_in_the_protocols_own_way(path: str, error: str, http: httpx.Client) -> None:
    response = http.post(path, content=b"{", headers={"authorization": "Bearer k", "x-api-key": "k"})
    assert response.status_code == 400
    assert error in response.json()


def test_models_are_listed_in_each_providers_way(http: httpx.Client) -> None:
    bearer = {"authorization": "Bearer k"}
    assert [one["id"] for one in http.get("/v1/models", headers=bearer).json()["data"]] == [
        "fermata-demo",
        "gpt-fermata-demo",
        "fermata-demo-embedding",
    ]
    assert [one["name"] for one in http.get("/api/tags").json()["models"]] == ["fermata-demo"]
    assert "tools" in http.post("/api/show", json={"model": "fermata-demo"}).json()["capabilities"]
    assert http.get("/api/v1/models").json()["data"]
    assert http.get("/api/v1/key").status_code == 401
    assert http.get("/api/v1/key", headers=bearer).json()["data"]["label"] == "demo"
