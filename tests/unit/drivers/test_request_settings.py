"""Settings of a request that an agent makes: sampling, the choice of a tool, the schema of the answer."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fermata.domain.errors import ProviderError
from fermata.domain.model_io import ModelRequest, SamplingSettings
from fermata.domain.run_settings import NamedToolChoice, OutputFormat
from fermata.domain.tools import ToolSpec
from fermata.drivers.adjustments import NO_ADJUSTMENTS
from fermata.drivers.registry import get_model_traits, get_provider
from fermata.drivers.sampling_fields import list_unsupported_sampling
from tests.unit.drivers.conversation_builders import model_request, user_message

ALL = SamplingSettings(
    temperature=1.5, top_p=0.9, top_k=40, frequency_penalty=0.1, presence_penalty=0.2, seed=7, stop_sequences=("END",)
)
EVERYWHERE = {"temperature": 1.5, "top_p": 0.9}
CHAT = {**EVERYWHERE, "top_k": 40, "frequency_penalty": 0.1, "presence_penalty": 0.2, "seed": 7, "stop": ["END"]}
MODELS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-4.1", "openrouter": "some/model", "ollama": "llama3.3"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = ToolSpec(name="search", description="Searches.", input_schema={"type": "object", "properties": {}})


def build_request(provider: str, **changes: Any) -> ModelRequest:
    request: ModelRequest = model_request(user_message("Hello"), model=MODELS.get(provider, "some-model"))
    return request.model_copy(update=changes)


def build_body(provider: str, request: ModelRequest) -> dict[str, Any]:
    encoded = get_provider(provider)._encode_body(request, NO_ADJUSTMENTS)
    body: dict[str, Any] = json.loads(encoded)
    return body


def select(body: Mapping[str, Any], names: Any) -> dict[str, Any]:
    return {name: body[name] for name in names if name in body}


@pytest.mark.parametrize(
    ("provider", "sent", "unsupported"),
    [
        (
            "anthropic",
            {"temperature": 1.0, "top_k": 40, "stop_sequences": ["END"]},
            ["topP", "frequencyPenalty", "presencePenalty", "seed"],
        ),
        ("openai", EVERYWHERE, ["topK", "frequencyPenalty", "presencePenalty", "seed", "stopSequences"]),
        (
            "openrouter",
            select(CHAT, [name for name in CHAT if name not in ("seed", "stop")]),
            ["seed", "stopSequences"],
        ),
        ("openai-compatible", CHAT, []),
    ],
)
def test_a_request_has_the_sampling_that_its_protocol_knows(
    provider: str, sent: dict[str, Any], unsupported: list[str]
) -> None:
    request = build_request(provider, sampling=ALL)
    body = build_body(provider, request)
    assert select(body, [*CHAT, "stop_sequences"]) == sent
    fields = get_model_traits(provider).get_sampling_fields(request)
    assert list_unsupported_sampling(request, fields) == unsupported


def test_ollama_has_its_sampling_among_the_options() -> None:
    body = build_body("ollama", build_request("ollama", sampling=ALL))
    assert select(body, CHAT) == {}
    assert select(body["options"], CHAT) == CHAT
    assert {"num_ctx", "num_predict"} <= body["options"].keys()


def test_gemini_has_its_sampling_in_its_generation_config() -> None:
    config = build_body("gemini", build_request("gemini", sampling=ALL))["generationConfig"]
    assert (config["temperature"], config["topP"], config["topK"], config["stopSequences"]) == (1.5, 0.9, 40, ["END"])
    assert (config["frequencyPenalty"], config["presencePenalty"], config["seed"]) == (0.1, 0.2, 7)


@pytest.mark.parametrize(("provider", "words"), [("ollama", "invalid option: seed"), ("gemini", "topK is not valid")])
def test_a_nested_setting_that_a_server_refuses_is_left_out_too(provider: str, words: str) -> None:
    request = build_request(provider, sampling=ALL)
    error = ProviderError("provider_request", words, retryable=False, status=400)
    error.detail = words
    found = get_provider(provider)._find_adjustment(request, b"", error, NO_ADJUSTMENTS)
    assert found is not None
    encoded = json.loads(get_provider(provider)._encode_body(request, frozenset({found.name})))
    assert found.drops not in encoded.get("options", encoded.get("generationConfig"))


@pytest.mark.parametrize(("provider", "model"), [("openai", "o3-mini"), ("anthropic", "claude-opus-5-0")])
def test_a_model_that_reasons_decides_by_itself(provider: str, model: str) -> None:
    request = build_request(provider, sampling=SamplingSettings(temperature=0.3)).model_copy(update={"model": model})
    assert "temperature" not in build_body(provider, request)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter", "gemini", "ollama", "openai-compatible"])
def test_a_request_without_settings_is_what_it_was(provider: str) -> None:
    body = build_body(provider, build_request(provider))
    unset = {"temperature", "top_p", "tool_choice", "response_format", "text", "output_config", "format", "stop"} | {
        "toolConfig"
    }
    assert not unset & body.keys()


@pytest.mark.parametrize(
    ("provider", "any_tool", "one_tool"),
    [
        ("anthropic", {"type": "any"}, {"type": "tool", "name": "search"}),
        ("openai", "required", {"type": "function", "name": "search"}),
        ("openrouter", "required", {"type": "function", "name": "search"}),
        ("openai-compatible", "required", {"type": "function", "function": {"name": "search"}}),
        (
            "gemini",
            {"functionCallingConfig": {"mode": "ANY"}},
            {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["search"]}},
        ),
        ("ollama", None, None),
    ],
)
def test_a_model_is_made_to_call_a_tool_in_the_words_of_its_protocol(
    provider: str, any_tool: Any, one_tool: Any
) -> None:
    named = NamedToolChoice(tool_name="search")
    for choice, expected in (("required", any_tool), (named, one_tool)):
        request = build_request(provider, tools=(TOOL,), tool_choice=choice)
        body = build_body(provider, request)
        assert body.get("tool_choice", body.get("toolConfig")) == expected
        without_tools = build_request(provider, tools=(), tool_choice=choice)
        assert "tool_choice" not in build_body(provider, without_tools)
    assert get_model_traits(provider).are_calls_forceable is (any_tool is not None)


def test_a_model_that_has_to_call_a_tool_is_not_asked_to_think_first() -> None:
    request = build_request("anthropic", tools=(TOOL,), tool_choice="required", thinking_tokens=4096)
    assert "thinking" not in build_body("anthropic", request)


@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ("anthropic", ("output_config", "format", "schema")),
        ("openai", ("text", "format", "schema")),
        ("openrouter", ("text", "format", "schema")),
        ("openai-compatible", ("response_format", "json_schema", "schema")),
        ("gemini", ("generationConfig", "responseJsonSchema")),
        ("ollama", ("format",)),
    ],
)
def test_the_schema_of_an_answer_is_sent_where_a_provider_enforces_one(provider: str, path: tuple[str, ...]) -> None:
    request = build_request(provider, tools=(), output=OutputFormat(json_schema=SCHEMA))
    value: Any = build_body(provider, request)
    for name in path:
        value = value[name]
    assert value == SCHEMA


@pytest.mark.parametrize(
    ("words", "dropped"),
    [
        ("Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
        ("Unrecognized request argument supplied: top_k", "top_k"),
        ("property 'seed' is unsupported", "seed"),
        ("frequency_penalty: Extra inputs are not permitted", "frequency_penalty"),
    ],
)
def test_a_setting_that_a_server_refuses_is_left_out(words: str, dropped: str) -> None:
    provider = get_provider("openai-compatible")
    request = build_request("openai-compatible", sampling=ALL)
    body = provider._encode_body(request, NO_ADJUSTMENTS)
    error = ProviderError("provider_request", words, retryable=False, status=400)
    error.detail = words
    adjustment = provider._find_adjustment(request, body, error, NO_ADJUSTMENTS)
    assert adjustment is not None
    assert adjustment.drops == dropped
