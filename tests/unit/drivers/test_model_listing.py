"""The model lists of all providers, read over real sockets."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from fermata.domain.errors import ProviderError
from fermata.domain.model_info import ModelInfo
from fermata.drivers import model_listing
from fermata.drivers.provider import TEXT_AND_TOOLS, VISION_AND_TOOLS
from fermata.drivers.providers import gemini, ollama
from fermata.drivers.registry import PROVIDER_MODULES
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict.model_lists import ACCEPTED_KEY, ModelListServer, run_model_list_server


@pytest.fixture
def server() -> Iterator[ModelListServer]:
    with run_model_list_server() as server:
        yield server


def list_models_of(
    connection: HttpConnection, server: ModelListServer, provider: str, path: str = "", key: str = ACCEPTED_KEY
) -> tuple[ModelInfo, ...]:
    return model_listing.list_models(provider, connection, AuthenticatedEndpoint(server.url + path, SecretStr(key)))


def model_ids(models: tuple[ModelInfo, ...]) -> list[str]:
    return [model.id for model in models]


LIST_PATHS = {"gemini": "/v1beta/models"}
"""Where a list is not at the usual path."""


def listing_body(*names: str, **members: Any) -> dict[str, Any]:
    return {"data": [{"id": name, **members} for name in names]}


class TestAnthropic:
    def test_names_labels_and_tiers_come_in_the_providers_order(
        self, connection: HttpConnection, server: ModelListServer
    ) -> None:
        listed = [
            {"id": "claude-opus-5", "display_name": "Claude Opus 5"},
            {"id": "claude-sonnet-5", "display_name": "Claude Sonnet 5", "max_input_tokens": 300_000},
            {"id": "claude-haiku-5", "display_name": None},
            {"id": "claude-opus-4-8"},
            {"id": "claude-muse-1", "display_name": "Claude Muse"},
        ]
        server.set_response("/v1/models", {"data": listed, "has_more": False})
        found = list_models_of(connection, server, "anthropic")
        assert [(model.id, model.label, model.tier) for model in found] == [
            ("claude-opus-5", "Claude Opus 5", "smartest"),
            ("claude-sonnet-5", "Claude Sonnet 5", "balanced"),
            ("claude-haiku-5", "Claude Haiku 5", "fast"),
            ("claude-opus-4-8", "Claude Opus 4.8", "smart"),
            ("claude-muse-1", "Claude Muse", None),
        ]
        assert found[1].context_window == 300_000
        assert server.requests[0].path == "/v1/models?limit=1000"

    def test_its_models_have_all_capabilities(self, connection: HttpConnection, server: ModelListServer) -> None:
        server.set_response("/v1/models", listing_body("claude-opus-5"))
        assert list_models_of(connection, server, "anthropic")[0].capabilities.to_wire() == {
            "toolCalling": True,
            "visionInput": True,
            "toolResultImages": True,
            "promptCache": True,
            "streaming": True,
        }


class TestOpenAI:
    def test_only_chat_models_are_listed_by_tier_and_newest_name(
        self, connection: HttpConnection, server: ModelListServer
    ) -> None:
        chats = ["gpt-5", "gpt-5-mini", "gpt-5.2", "gpt-5-nano", "o4-mini", "chatgpt-4o-latest", "o3"]
        others = [
            "text-embedding-3-large",
            "whisper-1",
            "tts-1",
            "gpt-4o-audio-preview",
            "gpt-realtime",
            "gpt-image-1",
            "gpt-4o-transcribe",
            "omni-moderation-latest",
            "gpt-4o-search-preview",
            "dall-e-3",
            "babbage-002",
            "o-1",
        ]
        server.set_response("/v1/models", listing_body(*chats, *others))
        found = list_models_of(connection, server, "openai")
        assert [(model.id, model.tier) for model in found] == [
            ("o3", "smartest"),
            ("gpt-5.2", "smartest"),
            ("gpt-5", "smartest"),
            ("chatgpt-4o-latest", "smartest"),
            ("o4-mini", "fast"),
            ("gpt-5-mini", "fast"),
            ("gpt-5-nano", "cheap"),
        ]
        assert all(model.capabilities == VISION_AND_TOOLS for model in found)

    def test_the_key_goes_as_a_bearer_and_the_base_may_end_with_its_version(
        self, connection: HttpConnection, server: ModelListServer
    ) -> None:
        server.set_response("/v1/models", listing_body("gpt-5"))
        assert model_ids(list_models_of(connection, server, "openai", "/v1/")) == ["gpt-5"]
        (asked,) = server.requests
        assert (asked.path, asked.headers["authorization"]) == ("/v1/models", f"Bearer {ACCEPTED_KEY}")


class TestOpenRouter:
    def test_each_entry_has_price_window_and_capabilities(
        self, connection: HttpConnection, server: ModelListServer
    ) -> None:
        entry = {
            "id": "google/gemini-3.1-pro",
            "name": "Google: Gemini 3.1 Pro",
            "context_length": 1_048_576,
            "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
            "supported_parameters": ["tools"],
            "pricing": {"prompt": "0.000002", "completion": "0.000012"},
        }
        server.set_response("/api/v1/models", {"data": [entry]})
        (found,) = list_models_of(connection, server, "openrouter", "/api")
        assert (found.label, found.context_window) == ("Google: Gemini 3.1 Pro", 1_048_576)
        assert (found.capabilities.vision_input, found.capabilities.tool_calling) == (True, True)
        assert found.per_token == ("0.000002", "0.000012")
        assert "perToken" not in found.to_wire()

    def test_vision_is_off_and_tools_are_on_by_default(
        self, connection: HttpConnection, server: ModelListServer
    ) -> None:
        server.set_response("/v1/models", {"data": [{"id": "a/b"}, {"id": "c/d", "supported_parameters": ["top_p"]}]})
        first, second = list_models_of(connection, server, "openrouter")
        assert (first.capabilities.vision_input, first.capabilities.tool_calling) == (False, True)
        assert not second.capabilities.tool_calling

    def test_a_model_that_only_generates_images_is_left_out(
        self, connection: HttpConnection, server: ModelListServer
    ) -> None:
        painter = {"id": "a/painter", "architecture": {"output_modalities": ["image"]}}
        server.set_response("/v1/models", {"data": [painter, {"id": "a/b"}]})
        assert model_ids(list_models_of(connection, server, "openrouter")) == ["a/b"]

    def test_the_key_is_checked_separately_because_the_list_is_public(
        self, connection: HttpConnection, server: ModelListServer
    ) -> None:
        server.accepts_any_key = True
        server.set_response("/v1/models", listing_body("a/b"))
        server.set_response("/v1/key", {"data": {"label": "mine"}})
        wrong, right = (AuthenticatedEndpoint(server.url, SecretStr(key)) for key in ("wrong", ACCEPTED_KEY))
        model_listing.check_api_key("openrouter", connection, right)
        assert model_listing.list_models("openrouter", connection, wrong)
        with pytest.raises(ProviderError, match="OpenRouter authentication failed"):
            model_listing.check_api_key("openrouter", connection, wrong)

    def test_a_gateway_without_that_path_and_other_providers_check_nothing(
        self, connection: HttpConnection, server: ModelListServer
    ) -> None:
        endpoint = AuthenticatedEndpoint(server.url, SecretStr(ACCEPTED_KEY))
        model_listing.check_api_key("openrouter", connection, endpoint)
        model_listing.check_api_key("openai", connection, endpoint)
        assert len(server.requests) == 1


class TestOllama:
    @pytest.fixture(autouse=True)
    def nobody_needs_a_key(self, server: ModelListServer) -> None:
        server.accepts_any_key = True

    def test_each_model_is_shown_with_what_it_can_do(self, connection: HttpConnection, server: ModelListServer) -> None:
        server.set_response("/api/tags", {"models": [{"name": "qwen3-vl:8b", "model": "qwen3-vl:8b"}, {"name": "phi"}]})
        server.set_model_details("qwen3-vl:8b", {"capabilities": ["completion", "vision", "tools"]})
        server.set_model_details("phi", {"capabilities": ["completion"]})
        first, second = list_models_of(connection, server, "ollama", key="")
        assert (first.id, first.capabilities.vision_input, first.capabilities.tool_calling) == (
            "qwen3-vl:8b",
            True,
            True,
        )
        assert (second.id, second.capabilities.vision_input, second.capabilities.tool_calling) == ("phi", False, False)
        assert first.context_window is None
        assert "authorization" not in server.requests[0].headers

    @pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
    def test_its_own_paths_do_not_follow_the_version(
        self, connection: HttpConnection, server: ModelListServer, path: str
    ) -> None:
        server.set_response("/api/tags", {"models": [{"name": "phi"}]})
        assert model_ids(list_models_of(connection, server, "ollama", path)) == ["phi"]

    def test_a_model_that_makes_embeddings_is_left_out(
        self, connection: HttpConnection, server: ModelListServer
    ) -> None:
        server.set_response("/api/tags", {"models": [{"name": "nomic-embed-text"}, {"name": "phi"}]})
        server.set_model_details("nomic-embed-text", {"capabilities": ["embedding"]})
        assert model_ids(list_models_of(connection, server, "ollama")) == ["phi"]

    @pytest.mark.parametrize("entry", [None, {}, {"capabilities": None}, [], "no"])
    def test_without_declared_capabilities_vision_is_off_and_tools_are_on(
        self, connection: HttpConnection, server: ModelListServer, entry: Any
    ) -> None:
        server.set_response("/api/tags", {"models": [{"name": "phi"}]})
        if entry is not None:
            server.set_model_details("phi", entry)
        (found,) = list_models_of(connection, server, "ollama")
        assert found.capabilities == TEXT_AND_TOOLS
        assert not found.capabilities.vision_input

    def test_a_limited_number_of_models_is_described(
        self, connection: HttpConnection, server: ModelListServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ollama, "MAX_DESCRIBED_MODELS", 2)
        server.set_response("/api/tags", {"models": [{"name": f"m{number}"} for number in range(5)]})
        assert len(list_models_of(connection, server, "ollama")) == 5
        assert [asked.body["model"] for asked in server.requests[1:]] == ["m0", "m1"]

    def test_a_key_is_sent_if_there_is_one(self, connection: HttpConnection, server: ModelListServer) -> None:
        server.accepts_any_key = False
        server.set_response("/api/tags", {"models": [{"name": "phi"}]})
        assert model_ids(list_models_of(connection, server, "ollama")) == ["phi"]


class TestGemini:
    LISTED = (
        ("gemini-3-pro", "Gemini 3 Pro", "smartest"),
        ("gemini-3.8-flash", "Gemini 3.8 Flash", "fast"),
        ("gemini-2.5-flash-lite", "Gemini 2.5 Flash-Lite", "cheap"),
    )

    def entry(self, name: str, label: str, *methods: str) -> dict[str, Any]:
        named = {"name": f"models/{name}", "displayName": label, "inputTokenLimit": 1_048_576}
        return named | {"supportedGenerationMethods": [*(methods or ("generateContent", "countTokens"))]}

    def test_models_that_answer_in_words_are_listed_by_the_name_that_requests_use(
        self, connection: HttpConnection, server: ModelListServer
    ) -> None:
        others = [
            self.entry("gemini-embedding-001", "Embedding", "embedContent"),
            self.entry("gemini-2.5-flash-image", "Image"),
            self.entry("gemini-2.5-flash-preview-tts", "Speech"),
        ]
        models = [self.entry(name, label) for name, label, _ in self.LISTED]
        server.set_response("/v1beta/models", {"models": [*others, *models]})
        found = list_models_of(connection, server, "gemini")
        assert [(model.id, model.label, model.tier) for model in found] == list(self.LISTED)
        assert {model.context_window for model in found} == {1_048_576}
        assert server.requests[0].headers["x-goog-api-key"] == ACCEPTED_KEY
        assert ACCEPTED_KEY not in server.requests[0].path

    def test_a_list_of_several_pages_is_read_to_its_end_or_to_a_limit(
        self, connection: HttpConnection, server: ModelListServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gemini, "MAX_LIST_PAGES", 3)
        server.set_response("/v1beta/models", {"models": [self.entry("gemini-x", "X")], "nextPageToken": "a/b&c"})
        assert model_ids(list_models_of(connection, server, "gemini")) == ["gemini-x"] * 3
        assert [asked.path.partition("?")[2] for asked in server.requests] == [
            "pageSize=1000",
            *["pageSize=1000&pageToken=a%2Fb%26c"] * 2,
        ]

    def test_gemma_calls_no_tools(self, connection: HttpConnection, server: ModelListServer) -> None:
        server.set_response("/v1beta/models", {"models": [self.entry("gemma-3-27b-it", "Gemma 3 27B")]})
        (found,) = list_models_of(connection, server, "gemini")
        assert not found.capabilities.tool_calling


class TestCompatible:
    @pytest.mark.parametrize(
        ("members", "window", "sees"),
        [
            ({"max_model_len": 32_768}, 32_768, False),
            ({"context_window": 131_072, "capabilities": {"vision": True}}, 131_072, True),
            ({"context_length": 8_192, "architecture": {"input_modalities": ["text", "image"]}}, 8_192, True),
            ({"capabilities": ["completion", "multimodal"]}, None, True),
            ({"context_length": "8192", "capabilities": {"vision": "yes"}}, None, False),
            ({"context_length": True, "capabilities": None}, None, False),
        ],
    )
    def test_servers_declare_window_and_vision_in_several_ways(
        self,
        connection: HttpConnection,
        server: ModelListServer,
        members: dict[str, Any],
        window: int | None,
        sees: bool,
    ) -> None:
        server.set_response("/v1/models", listing_body("local-model", **members))
        (found,) = list_models_of(connection, server, "openai-compatible")
        assert (found.context_window, found.capabilities.vision_input) == (window, sees)
        assert (found.tier, found.capabilities.tool_calling) == (None, True)

    @pytest.mark.parametrize(
        "listing", [[{"id": "m"}], {"models": [{"id": "m"}]}, {"data": None, "models": [{"id": "m"}]}]
    )
    def test_lists_have_several_wrappers(
        self, connection: HttpConnection, server: ModelListServer, listing: Any
    ) -> None:
        server.set_response("/v1/models", listing)
        assert model_ids(list_models_of(connection, server, "openai-compatible")) == ["m"]

    def test_a_base_with_another_version_keeps_it(self, connection: HttpConnection, server: ModelListServer) -> None:
        server.set_response("/api/paas/v4/models", listing_body("m"))
        assert model_ids(list_models_of(connection, server, "openai-compatible", "/api/paas/v4")) == ["m"]


@pytest.mark.parametrize("provider", [name for name in PROVIDER_MODULES if name != "ollama"])
class TestWhatGoesWrong:
    def test_a_refused_key_is_reported_without_the_key(
        self, connection: HttpConnection, server: ModelListServer, provider: str
    ) -> None:
        with pytest.raises(ProviderError) as failure:
            list_models_of(connection, server, provider, key="sk-wrong-key-12345")
        assert failure.value.code == "provider_auth"
        assert "authentication failed" in failure.value.message
        assert "sk-wrong" not in failure.value.message

    def test_an_overloaded_provider_is_retryable(
        self, connection: HttpConnection, server: ModelListServer, provider: str
    ) -> None:
        server.set_error(
            LIST_PATHS.get(provider, "/v1/models"),
            529,
            {"error": {"type": "overloaded_error", "message": f"busy, {ACCEPTED_KEY}"}},
        )
        with pytest.raises(ProviderError, match=r"service error \(529\): busy, \[redacted\]") as failure:
            list_models_of(connection, server, provider)
        assert failure.value.retryable

    @pytest.mark.parametrize(
        "body",
        [b"<html>welcome</html>", b"", b"[" * 100_000, b'{"data": [{"id": "m"}', b"[" + b"{}," * 300_000 + b"{}]"],
    )
    def test_a_response_that_is_not_json_points_at_the_address(
        self, connection: HttpConnection, server: ModelListServer, provider: str, body: bytes
    ) -> None:
        server.set_response(LIST_PATHS.get(provider, "/v1/models"), body)
        with pytest.raises(ProviderError, match=r"not JSON\. Check its address") as failure:
            list_models_of(connection, server, provider)
        assert not failure.value.retryable

    @pytest.mark.parametrize(
        "body", [{}, {"data": {}}, {"data": [None, 7, {}, {"id": ""}, {"id": 7}, {"id": "x" * 999}]}, 7]
    )
    def test_entries_without_a_name_are_skipped(
        self, connection: HttpConnection, server: ModelListServer, provider: str, body: Any
    ) -> None:
        server.set_response(LIST_PATHS.get(provider, "/v1/models"), body)
        assert list_models_of(connection, server, provider) == ()

    def test_a_list_without_end_is_cut(
        self, connection: HttpConnection, server: ModelListServer, provider: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(model_listing, "MAX_LISTED_MODELS", 3)
        server.set_response(
            LIST_PATHS.get(provider, "/v1/models"), listing_body(*[f"gpt-{number}" for number in range(9)])
        )
        assert len(list_models_of(connection, server, provider)) == 3

    def test_a_closed_port_is_unreachable(
        self, connection: HttpConnection, server: ModelListServer, provider: str
    ) -> None:
        with pytest.raises(ProviderError, match="could not be reached") as failure:
            model_listing.list_models(
                provider, connection, AuthenticatedEndpoint("http://127.0.0.1:9", SecretStr(ACCEPTED_KEY))
            )
        assert failure.value.code == "provider_unreachable"


class TestFallback:
    def test_ollama_has_fallback_models_when_it_lists_none_or_is_unreachable(self) -> None:
        away = ProviderError("provider_unreachable", "away", retryable=True)
        for problem in (None, away):
            found = model_listing.get_fallback_models("ollama", problem)
            assert model_ids(found) == ["llama4", "llama3.3", "qwen3"]
            assert {model.catalogue_source for model in found} == {"fallback"}
            assert [model.capabilities.vision_input for model in found] == [True, False, False]

    def test_ollama_has_no_fallback_models_when_it_refuses(self) -> None:
        assert model_listing.get_fallback_models("ollama", ProviderError("provider_auth", "no", retryable=False)) == ()

    @pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter", "openai-compatible"])
    def test_no_other_provider_has_fallback_models(self, provider: str) -> None:
        assert model_listing.get_fallback_models(provider, None) == ()
