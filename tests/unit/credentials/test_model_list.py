"""The models that a credential opens, and what is known of them."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.credentials import credential_store, model_list
from fermata.credentials.credential import Credential
from fermata.credentials.known_capabilities import get_choice_capabilities, store_listed_capabilities
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.blocks import ImageBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import BadGateway, Conflict, InvalidRequest, NotFound, ServiceUnavailable, Unprocessable
from fermata.domain.model_info import ModelCapabilities, ModelInfo
from fermata.pricing import catalogue
from fermata.turns.start.model_checks import check_model_abilities
from tests.late_writes import WriteRecorder
from tests.resources import TestClock, create_kms_key, resources_of_new_process
from tests.strict.model_lists import ACCEPTED_KEY, ModelListServer
from tests.unit.credentials.captured_log_records import pop_audit_records
from tests.unit.pricing.recorded_cases import catalogue_body, catalogue_entry

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())
BOB = Caller(tenant="bakery", user="bob", capabilities=frozenset())
EVE = Caller(tenant="florist", user="eve", capabilities=frozenset())


def enter_credential(
    resources: Resources, provider: str = "anthropic", key: str = ACCEPTED_KEY, url: str | None = None
) -> Credential:
    mode: Any = "baseUrl" if url else "apiKey"
    return credential_store.create_credential(resources, ADA, provider, mode, f"Mine for {provider}", key, url)


def list_models_of(
    resources: Resources, credential: Credential, caller: Caller = ADA, provider: str | None = None
) -> list[ModelInfo]:
    return model_list.list_credential_models(resources, caller, provider or credential.provider_id, credential.id)


@pytest.fixture
def claude(local_resources: Resources, server: ModelListServer) -> Credential:
    server.set_response("/v1/models", {"data": [{"id": "claude-opus-4-8-20260514", "display_name": "Claude Opus 4.8"}]})
    return enter_credential(local_resources)


class TestEnriching:
    @pytest.fixture(autouse=True)
    def priced(self, local_resources: Resources) -> None:
        offers = (
            catalogue_entry("anthropic/claude-opus-4.8", "0.000005", "0.000025"),
            catalogue_entry(
                "openai/gpt-5", "0.00000125", architecture={"input_modalities": ["text"]}, supported_parameters=[]
            ),
        )
        catalogue.store_catalogue(local_resources, catalogue.parse_catalogue(catalogue_body(*offers), 7))

    def test_a_listed_model_has_its_price_and_window(self, local_resources: Resources, claude: Credential) -> None:
        (model,) = list_models_of(local_resources, claude)
        assert model.to_wire() == {
            "id": "claude-opus-4-8-20260514",
            "label": "Claude Opus 4.8",
            "capabilities": {
                "toolCalling": True,
                "visionInput": True,
                "toolResultImages": True,
                "promptCache": True,
                "streaming": True,
            },
            "tier": "smartest",
            "pricing": {"inputPerMTok": 5.0, "outputPerMTok": 25.0},
            "contextWindow": 200_000,
            "catalogueSource": "live",
        }

    def test_a_model_that_is_not_in_the_catalogue_has_neither(
        self, local_resources: Resources, server: ModelListServer
    ) -> None:
        server.set_response("/v1/models", {"data": [{"id": "claude-muse-1"}]})
        model = list_models_of(local_resources, enter_credential(local_resources))[0].to_wire()
        assert not {"pricing", "contextWindow", "tier"} & set(model)

    def test_what_the_catalogue_says_a_model_can_do_counts(
        self, local_resources: Resources, server: ModelListServer
    ) -> None:
        server.set_response("/v1/models", {"data": [{"id": "gpt-5"}]})
        (model,) = list_models_of(local_resources, enter_credential(local_resources, "openai"))
        assert (model.capabilities.vision_input, model.capabilities.tool_calling) == (False, False)

    def test_openrouters_prices_come_from_its_list(self, local_resources: Resources, server: ModelListServer) -> None:
        entries = [
            {"id": "anthropic/claude-opus-4.8", "pricing": {"prompt": "0.000006", "completion": "0.00003"}},
            {"id": "openrouter/auto", "pricing": {"prompt": "-1", "completion": "-1"}},
        ]
        server.set_response("/api/v1/models", {"data": entries})
        first, second = list_models_of(local_resources, enter_credential(local_resources, "openrouter"))
        assert first.to_wire()["pricing"] == {"inputPerMTok": 6.0, "outputPerMTok": 30.0}
        assert "pricing" not in second.to_wire()

    @pytest.mark.parametrize("provider", ["ollama", "openai-compatible"])
    def test_a_customers_own_server_has_no_list_price(
        self, local_resources: Resources, server: ModelListServer, provider: str
    ) -> None:
        server.set_response("/v1/models", {"data": [{"id": "gpt-5"}]})
        server.set_response("/api/tags", {"models": [{"name": "gpt-5"}]})
        model = list_models_of(local_resources, enter_credential(local_resources, provider, url=server.url))[
            0
        ].to_wire()
        assert not {"pricing", "contextWindow"} & set(model)

    def test_without_a_catalogue_the_models_are_listed_without_prices(
        self, resources: Resources, local_resources: Resources, claude: Credential
    ) -> None:
        resources.tables._client.delete_item(
            TableName="pricing", Key={"pk": {"S": "catalogue"}, "sk": {"S": "current"}}
        )
        local_resources.cache.invalidate("catalogue")
        local_resources.cache.invalidate("catalogue, if any")
        assert "pricing" not in list_models_of(local_resources, claude)[0].to_wire()


class TestPicturesForAListedModel:
    """The list's vision flag decides whether a turn with an image is refused."""

    SERVERS = (
        (
            "openrouter",
            "/api/v1/models",
            {
                "data": [
                    {"id": "x/sees", "architecture": {"input_modalities": ["text", "image"]}},
                    {"id": "x/blind", "architecture": {"input_modalities": ["text"]}},
                    {"id": "x/unsaid"},
                ]
            },
        ),
        (
            "openai-compatible",
            "/v1/models",
            {"data": [{"id": "x/sees", "capabilities": ["vision"]}, {"id": "x/blind"}]},
        ),
        ("ollama", "/api/tags", {"models": [{"name": "llama4"}, {"name": "x/blind"}]}),
    )

    @pytest.mark.parametrize(("provider", "path", "answer"), SERVERS, ids=[server[0] for server in SERVERS])
    def test_a_turn_with_an_image_is_refused_exactly_where_the_list_says_so(
        self, local_resources: Resources, server: ModelListServer, provider: str, path: str, answer: Any
    ) -> None:
        server.set_response(path, answer)
        credential = enter_credential(local_resources, provider, url=None if provider == "openrouter" else server.url)
        models = {model.id: model.capabilities.vision_input for model in list_models_of(local_resources, credential)}
        assert set(models.values()) == {True, False}
        assert {
            name: lets_through(resources_of_new_process(local_resources), credential, name) for name in models
        } == models

    def test_without_a_list_the_catalogue_counts_for_openrouters_models(self, local_resources: Resources) -> None:
        text = {"architecture": {"input_modalities": ["text"]}}
        offers = (
            catalogue_entry("openai/gpt-5"),
            catalogue_entry("google/blind", **text),
            catalogue_entry("google/unsaid"),
        )
        catalogue.store_catalogue(local_resources, catalogue.parse_catalogue(catalogue_body(*offers), 7))
        credential = enter_credential(local_resources, "openrouter")
        assert [lets_through(local_resources, credential, name) for name in ("google/blind", "google/unsaid")] == [
            False,
            True,
        ]

    def test_what_another_address_listed_does_not_count(
        self, local_resources: Resources, server: ModelListServer
    ) -> None:
        server.set_response("/v1/models", {"data": [{"id": "m"}]})
        credential = enter_credential(local_resources, "openai-compatible", url=server.url)
        list_models_of(local_resources, credential)
        assert not lets_through(local_resources, credential, "m")
        changed = credential_store.update_credential(
            local_resources, ADA, credential.id, None, ACCEPTED_KEY, f"{server.url}/v1"
        )
        assert lets_through(local_resources, changed, "m")

    def test_a_deleted_credential_leaves_no_list(self, local_resources: Resources, server: ModelListServer) -> None:
        server.set_response("/v1/models", {"data": [{"id": "m"}]})
        credential = enter_credential(local_resources, "openai-compatible", url=server.url)
        list_models_of(local_resources, credential)
        credential_store.delete_credential(local_resources, ADA, credential.id)
        rows = local_resources.tables.query_items(local_resources.settings.settings_table, f"t#{ADA.tenant}")
        assert [row["sk"] for row in rows] == ["removals"]


def lets_through(resources: Resources, credential: Credential, name: str) -> bool:
    """Return whether a turn with an image may start."""
    chosen = ModelChoice(
        credential_id=credential.id, version=credential.version, provider=credential.provider_id, model=name
    )
    try:
        check_model_abilities(resources, ADA, chosen, "site", (ImageBlock(mime_type="image/png", data="eA=="),))
    except Unprocessable:
        return False
    return True


class TestAsking:
    def test_a_model_list_is_cached_for_five_minutes(
        self, local_resources: Resources, server: ModelListServer, claude: Credential, clock: TestClock
    ) -> None:
        for _ in range(3):
            list_models_of(local_resources, claude)
            clock.advance(99)
        assert len(server.requests) == 1
        clock.advance(10)
        list_models_of(local_resources, claude)
        assert len(server.requests) == 2

    def test_a_new_key_is_not_answered_from_the_cache(
        self, local_resources: Resources, server: ModelListServer, claude: Credential
    ) -> None:
        list_models_of(local_resources, claude)
        server.key = "sk-newer-0123456789"
        credential_store.update_credential(local_resources, ADA, claude.id, None, server.key)
        assert list_models_of(local_resources, claude)
        assert len(server.requests) == 2

    def test_every_user_of_the_tenant_may_list_and_no_other(
        self, local_resources: Resources, claude: Credential
    ) -> None:
        assert list_models_of(local_resources, claude, BOB)
        with pytest.raises(NotFound, match="no longer accessible"):
            list_models_of(local_resources, claude, EVE)

    def test_an_unknown_provider_is_refused_with_a_list_of_the_known_ones(
        self, local_resources: Resources, claude: Credential
    ) -> None:
        with pytest.raises(InvalidRequest, match=r"^Unknown provider: requesty\. Use one of: .*anthropic"):
            list_models_of(local_resources, claude, provider="requesty")

    def test_a_credential_of_another_provider_is_refused(self, local_resources: Resources, claude: Credential) -> None:
        with pytest.raises(InvalidRequest, match="This credential is for anthropic, not for openai"):
            list_models_of(local_resources, claude, provider="openai")

    def test_a_key_that_can_no_longer_be_opened_must_be_entered_again(
        self, local_resources: Resources, claude: Credential
    ) -> None:
        with pytest.raises(Conflict, match=r"can no longer be opened\. Enter it again"):
            list_models_of(resources_of_new_process(local_resources, key_id=create_kms_key()), claude)

    def test_a_provider_that_says_no_is_a_bad_gateway(
        self, local_resources: Resources, claude: Credential, server: ModelListServer
    ) -> None:
        server.key = "another"
        with pytest.raises(BadGateway, match="Anthropic authentication failed"):
            list_models_of(local_resources, claude)

    def test_an_overloaded_provider_is_unavailable(
        self, local_resources: Resources, claude: Credential, server: ModelListServer
    ) -> None:
        server.set_error(
            "/v1/models", 529, {"error": {"type": "overloaded_error", "message": f"key {ACCEPTED_KEY} must wait"}}
        )
        with pytest.raises(ServiceUnavailable, match=r"key \[redacted\] must wait") as refusal:
            list_models_of(local_resources, claude)
        assert refusal.value.retry_after
        server.set_response("/v1/models", {"data": [{"id": "claude-opus-5"}]})
        assert list_models_of(local_resources, claude)

    def test_an_unreachable_provider_is_unavailable(self, resources: Resources) -> None:
        with pytest.raises(ServiceUnavailable, match="Anthropic request failed: it could not be reached"):
            list_models_of(resources, enter_credential(resources))

    def test_an_address_that_has_become_private_is_not_followed(
        self, local_resources: Resources, server: ModelListServer
    ) -> None:
        server.accepts_any_key = True
        server.set_response("/v1/models", {"data": [{"id": "m"}]})
        credential = enter_credential(local_resources, "openai-compatible", url=server.url)
        deployed = resources_of_new_process(local_resources, fermata_stage="prod", provider_urls="{}")
        with pytest.raises(BadGateway, match="must begin with https"):
            list_models_of(deployed, credential)
        assert server.requests == []


class TestFallback:
    def test_ollama_without_models_lists_fallback_models(
        self, local_resources: Resources, server: ModelListServer
    ) -> None:
        server.accepts_any_key = True
        server.set_response("/api/tags", {"models": []})
        models = list_models_of(local_resources, enter_credential(local_resources, "ollama", "", server.url))
        assert (models[0].id, models[0].catalogue_source) == ("llama4", "fallback")

    def test_an_unreachable_ollama_lists_fallback_models_and_is_asked_again_the_next_time(
        self, local_resources: Resources, server: ModelListServer
    ) -> None:
        gone = enter_credential(local_resources, "ollama", "", "http://127.0.0.1:9")
        assert {model.catalogue_source for model in list_models_of(local_resources, gone)} == {"fallback"}
        back = credential_store.update_credential(local_resources, ADA, gone.id, None, "", server.url)
        server.accepts_any_key = True
        server.set_response("/api/tags", {"models": [{"name": "phi"}]})
        assert [model.id for model in list_models_of(local_resources, back)] == ["phi"]

    def test_an_ollama_that_refuses_is_an_error(self, local_resources: Resources, server: ModelListServer) -> None:
        with pytest.raises(BadGateway, match="Ollama authentication failed"):
            list_models_of(local_resources, enter_credential(local_resources, "ollama", "", server.url))

    def test_other_providers_may_offer_nothing(
        self, local_resources: Resources, server: ModelListServer, claude: Credential
    ) -> None:
        server.set_response("/v1/models", {"data": []})
        assert list_models_of(local_resources, claude) == []


class TestTryingOut:
    def test_a_valid_key_counts_its_models(self, local_resources: Resources, claude: Credential) -> None:
        assert model_list.try_credential(local_resources, ADA, claude.id) == {"ok": True, "modelCount": 1}

    def test_it_asks_the_provider_each_time(
        self, local_resources: Resources, claude: Credential, server: ModelListServer
    ) -> None:
        list_models_of(local_resources, claude)
        model_list.try_credential(local_resources, ADA, claude.id)
        model_list.try_credential(local_resources, ADA, claude.id)
        assert len(server.requests) == 3

    @pytest.mark.parametrize(
        ("status", "message", "says"),
        [
            (
                401,
                f"no such key {ACCEPTED_KEY}",
                "Anthropic authentication failed. Check your API key in /admin/ai/providers.",
            ),
            (
                500,
                f"key {ACCEPTED_KEY} broke us",
                "Anthropic service error (500): key [redacted] broke us. Please try again.",
            ),
            (400, "Bearer abc.def is odd", "Anthropic error (400): [redacted] is odd."),
            (400, "sk-other-99 is odd", "Anthropic error (400): [redacted] is odd."),
        ],
    )
    def test_an_invalid_key_is_reported_with_the_reason_and_without_the_key(
        self,
        local_resources: Resources,
        claude: Credential,
        server: ModelListServer,
        status: int,
        message: str,
        says: str,
    ) -> None:
        server.set_error("/v1/models", status, {"error": {"message": message}})
        assert model_list.try_credential(local_resources, ADA, claude.id) == {"ok": False, "error": says}

    def test_fallbacks_do_not_count(self, local_resources: Resources, server: ModelListServer) -> None:
        server.accepts_any_key = True
        server.set_response("/api/tags", {"models": []})
        result = model_list.try_credential(
            local_resources, ADA, enter_credential(local_resources, "ollama", "", server.url).id
        )
        assert result == {"ok": False, "error": "No model is offered there."}

    def test_openrouters_public_list_does_not_validate_a_wrong_key(
        self, local_resources: Resources, server: ModelListServer
    ) -> None:
        server.accepts_any_key = True
        server.set_response("/api/v1/models", {"data": [{"id": "a/b"}]})
        server.set_response("/api/v1/key", {"data": {}})
        right, wrong = (
            enter_credential(local_resources, "openrouter"),
            credential_store.create_credential(local_resources, ADA, "openrouter", "apiKey", "Wrong", "sk-wrong-1"),
        )
        assert model_list.try_credential(local_resources, ADA, right.id) == {"ok": True, "modelCount": 1}
        assert "authentication failed" in model_list.try_credential(local_resources, ADA, wrong.id)["error"]

    def test_a_key_that_can_no_longer_be_opened_is_a_result_too(
        self, local_resources: Resources, claude: Credential
    ) -> None:
        moved = resources_of_new_process(local_resources, key_id=create_kms_key())
        result = model_list.try_credential(moved, ADA, claude.id)
        assert (result["ok"], "Enter it again" in result["error"]) == (False, True)

    @pytest.mark.parametrize("stranger", [BOB, EVE])
    def test_only_its_user_may_try_a_credential(
        self, local_resources: Resources, claude: Credential, stranger: Caller
    ) -> None:
        with pytest.raises(NotFound):
            model_list.try_credential(local_resources, stranger, claude.id)

    def test_every_try_is_an_audit_record(
        self, local_resources: Resources, claude: Credential, server: ModelListServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        pop_audit_records(caplog)
        model_list.try_credential(local_resources, ADA, claude.id)
        server.set_error("/v1/models", 500, {"error": ACCEPTED_KEY})
        model_list.try_credential(local_resources, ADA, claude.id)
        good, bad = pop_audit_records(caplog)
        assert (good["event"], good["ok"], good["credential"]) == ("ai.credential.tested", True, claude.id)
        assert (bad["ok"], ACCEPTED_KEY in str(bad["error"])) == (False, False)


def test_a_list_that_is_stored_again_later_does_not_replace_a_newer_one(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    credential = enter_credential(resources, "openrouter")
    choice = ModelChoice(provider="openrouter", model="m", credential_id=credential.id, version=credential.version)
    recorder = WriteRecorder(resources, monkeypatch)
    for sees in (False, True):
        capabilities = ModelCapabilities(vision_input=sees, tool_calling=True)
        store_listed_capabilities(resources, credential, [ModelInfo(id="m", label="M", capabilities=capabilities)])
        clock.advance(60)
    recorder.land_again()
    assert len(recorder.requests) == 2
    assert get_choice_capabilities(resources, "bakery", choice).vision_input is True
