"""Which models a credential opens, and what is known of them."""

from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.credentials import keyring, models
from fermata.credentials.choosing import Chosen
from fermata.credentials.credential import Credential
from fermata.pricing import catalogue
from fermata.turns.gates import check_abilities
from fermata.words.blocks import ImageBlock
from fermata.words.caller import Caller
from fermata.words.errors import BadGateway, Conflict, Invalid, NotFound, Unavailable, Unprocessable
from fermata.words.offered import Offered
from tests.desk import TestClock, another_process, make_key
from tests.strict.listings import KEY, Listings
from tests.unit.credentials.lines import audited
from tests.unit.pricing.recorded import listing, model

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())
BOB = Caller(tenant="bakery", user="bob", capabilities=frozenset())
EVE = Caller(tenant="florist", user="eve", capabilities=frozenset())


def enter(desk: Desk, provider: str = "anthropic", key: str = KEY, url: str | None = None) -> Credential:
    mode: Any = "baseUrl" if url else "apiKey"
    return keyring.create(desk, ADA, provider, mode, f"Mine for {provider}", key, url)


def ask(desk: Desk, credential: Credential, caller: Caller = ADA, provider: str | None = None) -> list[Offered]:
    return models.of_credential(desk, caller, provider or credential.provider_id, credential.id)


@pytest.fixture
def claude(near: Desk, server: Listings) -> Credential:
    server.lists("/v1/models", {"data": [{"id": "claude-opus-4-8-20260514", "display_name": "Claude Opus 4.8"}]})
    return enter(near)


class TestEnriching:
    @pytest.fixture(autouse=True)
    def priced(self, near: Desk) -> None:
        offers = (
            model("anthropic/claude-opus-4.8", "0.000005", "0.000025"),
            model("openai/gpt-5", "0.00000125", architecture={"input_modalities": ["text"]}, supported_parameters=[]),
        )
        catalogue.keep(near, catalogue.parse(listing(*offers), 7))

    def test_a_known_model_has_its_price_and_its_window_in_the_contracts_shape(
        self, near: Desk, claude: Credential
    ) -> None:
        (found,) = ask(near, claude)
        assert found.wire() == {
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

    def test_one_that_the_catalogue_does_not_hold_has_neither(self, near: Desk, server: Listings) -> None:
        server.lists("/v1/models", {"data": [{"id": "claude-muse-1"}]})
        shown = ask(near, enter(near))[0].wire()
        assert not {"pricing", "contextWindow", "tier"} & set(shown)

    def test_what_the_catalogue_says_a_model_can_do_counts(self, near: Desk, server: Listings) -> None:
        server.lists("/v1/models", {"data": [{"id": "gpt-5"}]})
        (found,) = ask(near, enter(near, "openai"))
        assert (found.capabilities.vision_input, found.capabilities.tool_calling) == (False, False)

    def test_openrouter_says_its_prices_itself(self, near: Desk, server: Listings) -> None:
        told = [
            {"id": "anthropic/claude-opus-4.8", "pricing": {"prompt": "0.000006", "completion": "0.00003"}},
            {"id": "openrouter/auto", "pricing": {"prompt": "-1", "completion": "-1"}},
        ]
        server.lists("/api/v1/models", {"data": told})
        first, second = ask(near, enter(near, "openrouter"))
        assert first.wire()["pricing"] == {"inputPerMTok": 6.0, "outputPerMTok": 30.0}
        assert "pricing" not in second.wire()

    @pytest.mark.parametrize("provider", ["ollama", "openai-compatible"])
    def test_a_server_of_ones_own_has_no_list_price(self, near: Desk, server: Listings, provider: str) -> None:
        server.lists("/v1/models", {"data": [{"id": "gpt-5"}]})
        server.lists("/api/tags", {"models": [{"name": "gpt-5"}]})
        shown = ask(near, enter(near, provider, url=server.url))[0].wire()
        assert not {"pricing", "contextWindow"} & set(shown)

    def test_without_a_catalogue_the_models_are_shown_all_the_same(
        self, desk: Desk, near: Desk, claude: Credential
    ) -> None:
        desk.tables._client.delete_item(TableName="pricing", Key={"pk": {"S": "catalogue"}, "sk": {"S": "current"}})
        near.memory.forget("catalogue")
        near.memory.forget("catalogue, if any")
        assert "pricing" not in ask(near, claude)[0].wire()


class TestPicturesForAListedModel:
    """What the list says of a model's eyes and what a turn is refused for are the same."""

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
    def test_a_turn_with_a_picture_is_refused_exactly_where_the_list_says_so(
        self, near: Desk, server: Listings, provider: str, path: str, answer: Any
    ) -> None:
        server.lists(path, answer)
        credential = enter(near, provider, url=None if provider == "openrouter" else server.url)
        found = {model.id: model.capabilities.vision_input for model in ask(near, credential)}
        assert set(found.values()) == {True, False}
        assert {name: lets_through(another_process(near), credential, name) for name in found} == found

    def test_before_anything_was_listed_what_the_catalogue_says_of_openrouters_models_counts(self, near: Desk) -> None:
        text = {"architecture": {"input_modalities": ["text"]}}
        offers = (model("openai/gpt-5"), model("google/blind", **text), model("google/unsaid"))
        catalogue.keep(near, catalogue.parse(listing(*offers), 7))
        credential = enter(near, "openrouter")
        assert [lets_through(near, credential, name) for name in ("google/blind", "google/unsaid")] == [False, True]

    def test_what_another_address_listed_says_nothing_of_this_one(self, near: Desk, server: Listings) -> None:
        server.lists("/v1/models", {"data": [{"id": "m"}]})
        credential = enter(near, "openai-compatible", url=server.url)
        ask(near, credential)
        assert not lets_through(near, credential, "m")
        changed = keyring.change(near, ADA, credential.id, None, KEY, f"{server.url}/v1")
        assert lets_through(near, changed, "m")

    def test_a_credential_that_is_removed_leaves_no_list(self, near: Desk, server: Listings) -> None:
        server.lists("/v1/models", {"data": [{"id": "m"}]})
        credential = enter(near, "openai-compatible", url=server.url)
        ask(near, credential)
        keyring.remove(near, ADA, credential.id)
        assert list(near.tables.query(near.settings.settings_table, f"t#{ADA.tenant}")) == []


def lets_through(desk: Desk, credential: Credential, name: str) -> bool:
    """Whether a turn with a picture may start."""
    chosen = Chosen(
        credential_id=credential.id, version=credential.version, provider=credential.provider_id, model=name
    )
    try:
        check_abilities(desk, ADA, chosen, "site", (ImageBlock(mime_type="image/png", data="eA=="),))
    except Unprocessable:
        return False
    return True


class TestAsking:
    def test_what_a_provider_said_counts_for_five_minutes(
        self, near: Desk, server: Listings, claude: Credential, clock: TestClock
    ) -> None:
        for _ in range(3):
            ask(near, claude)
            clock.go_on(99)
        assert len(server.asked) == 1
        clock.go_on(10)
        ask(near, claude)
        assert len(server.asked) == 2

    def test_a_new_key_is_asked_about_anew(self, near: Desk, server: Listings, claude: Credential) -> None:
        ask(near, claude)
        server.key = "sk-newer-0123456789"
        keyring.change(near, ADA, claude.id, None, server.key)
        assert ask(near, claude)
        assert len(server.asked) == 2

    def test_whoever_may_chat_in_the_tenant_may_ask_and_nobody_else(self, near: Desk, claude: Credential) -> None:
        assert ask(near, claude, BOB)
        with pytest.raises(NotFound, match="no longer accessible"):
            ask(near, claude, EVE)

    def test_an_unknown_provider_is_told_which_there_are(self, near: Desk, claude: Credential) -> None:
        with pytest.raises(Invalid, match=r"^Unknown provider: requesty\. Use one of: anthropic"):
            ask(near, claude, provider="requesty")

    def test_a_credential_of_another_provider_is_told_whose_it_is(self, near: Desk, claude: Credential) -> None:
        with pytest.raises(Invalid, match="This credential is for anthropic, not for openai"):
            ask(near, claude, provider="openai")

    def test_a_key_that_can_no_longer_be_opened_must_be_entered_again(self, near: Desk, claude: Credential) -> None:
        with pytest.raises(Conflict, match=r"can no longer be opened\. Enter it again"):
            ask(another_process(near, key_id=make_key()), claude)

    def test_a_provider_that_says_no_is_a_bad_gateway(self, near: Desk, claude: Credential, server: Listings) -> None:
        server.key = "another"
        with pytest.raises(BadGateway, match="Anthropic authentication failed"):
            ask(near, claude)

    def test_a_provider_in_trouble_is_unavailable_for_a_while(
        self, near: Desk, claude: Credential, server: Listings
    ) -> None:
        server.fails("/v1/models", 529, {"error": {"type": "overloaded_error", "message": f"key {KEY} must wait"}})
        with pytest.raises(Unavailable, match=r"key \[redacted\] must wait") as refusal:
            ask(near, claude)
        assert refusal.value.retry_after
        server.lists("/v1/models", {"data": [{"id": "claude-opus-5"}]})
        assert ask(near, claude)

    def test_nobody_at_home_is_unavailable(self, desk: Desk) -> None:
        with pytest.raises(Unavailable, match="Anthropic request failed: it could not be reached"):
            ask(desk, enter(desk))

    def test_an_address_that_has_become_private_is_not_followed(self, near: Desk, server: Listings) -> None:
        server.open_to_all = True
        server.lists("/v1/models", {"data": [{"id": "m"}]})
        mine = enter(near, "openai-compatible", url=server.url)
        deployed = another_process(
            near,
            fermata_stage="prod",
            anthropic_url="https://api.anthropic.com",
            openai_url="https://api.openai.com",
            openrouter_url="https://openrouter.ai/api",
        )
        with pytest.raises(BadGateway, match="must begin with https"):
            ask(deployed, mine)
        assert server.asked == []


class TestFallback:
    def test_ollama_without_models_shows_what_is_usual_and_says_so(self, near: Desk, server: Listings) -> None:
        server.open_to_all = True
        server.lists("/api/tags", {"models": []})
        found = ask(near, enter(near, "ollama", "", server.url))
        assert (found[0].id, found[0].catalogue_source) == ("llama4", "fallback")

    def test_an_ollama_that_is_switched_off_too_and_it_is_asked_again_the_next_time(
        self, near: Desk, server: Listings
    ) -> None:
        gone = enter(near, "ollama", "", "http://127.0.0.1:9")
        assert {model.catalogue_source for model in ask(near, gone)} == {"fallback"}
        back = keyring.change(near, ADA, gone.id, None, "", server.url)
        server.open_to_all = True
        server.lists("/api/tags", {"models": [{"name": "phi"}]})
        assert [model.id for model in ask(near, back)] == ["phi"]

    def test_one_that_refuses_is_an_error(self, near: Desk, server: Listings) -> None:
        with pytest.raises(BadGateway, match="Ollama authentication failed"):
            ask(near, enter(near, "ollama", "", server.url))

    def test_other_providers_may_offer_nothing(self, near: Desk, server: Listings, claude: Credential) -> None:
        server.lists("/v1/models", {"data": []})
        assert ask(near, claude) == []


class TestTryingOut:
    def test_a_good_key_counts_its_models(self, near: Desk, claude: Credential) -> None:
        assert models.try_out(near, ADA, claude.id) == {"ok": True, "modelCount": 1}

    def test_it_asks_the_provider_each_time(self, near: Desk, claude: Credential, server: Listings) -> None:
        ask(near, claude)
        models.try_out(near, ADA, claude.id)
        models.try_out(near, ADA, claude.id)
        assert len(server.asked) == 3

    @pytest.mark.parametrize(
        ("status", "message", "says"),
        [
            (401, f"no such key {KEY}", "Anthropic authentication failed. Check your API key in /admin/ai/providers."),
            (500, f"key {KEY} broke us", "Anthropic service error (500): key [redacted] broke us. Please try again."),
            (400, "Bearer abc.def is odd", "Anthropic error (400): [redacted] is odd."),
            (400, "sk-other-99 is odd", "Anthropic error (400): [redacted] is odd."),
        ],
    )
    def test_a_bad_one_is_told_why_and_never_what_it_is(
        self, near: Desk, claude: Credential, server: Listings, status: int, message: str, says: str
    ) -> None:
        server.fails("/v1/models", status, {"error": {"message": message}})
        assert models.try_out(near, ADA, claude.id) == {"ok": False, "error": says}

    def test_fallbacks_do_not_count(self, near: Desk, server: Listings) -> None:
        server.open_to_all = True
        server.lists("/api/tags", {"models": []})
        told = models.try_out(near, ADA, enter(near, "ollama", "", server.url).id)
        assert told == {"ok": False, "error": "No model is offered there."}

    def test_openrouters_open_list_does_not_make_a_wrong_key_good(self, near: Desk, server: Listings) -> None:
        server.open_to_all = True
        server.lists("/api/v1/models", {"data": [{"id": "a/b"}]})
        server.lists("/api/v1/key", {"data": {}})
        right, wrong = (
            enter(near, "openrouter"),
            keyring.create(near, ADA, "openrouter", "apiKey", "Wrong", "sk-wrong-1"),
        )
        assert models.try_out(near, ADA, right.id) == {"ok": True, "modelCount": 1}
        assert "authentication failed" in models.try_out(near, ADA, wrong.id)["error"]

    def test_a_key_that_can_no_longer_be_opened_is_an_answer_too(self, near: Desk, claude: Credential) -> None:
        moved = another_process(near, key_id=make_key())
        told = models.try_out(moved, ADA, claude.id)
        assert (told["ok"], "Enter it again" in told["error"]) == (False, True)

    @pytest.mark.parametrize("stranger", [BOB, EVE])
    def test_only_who_entered_it_may_try_it(self, near: Desk, claude: Credential, stranger: Caller) -> None:
        with pytest.raises(NotFound):
            models.try_out(near, stranger, claude.id)

    def test_every_try_is_a_line_of_the_audit(
        self, near: Desk, claude: Credential, server: Listings, caplog: pytest.LogCaptureFixture
    ) -> None:
        audited(caplog)
        models.try_out(near, ADA, claude.id)
        server.fails("/v1/models", 500, {"error": KEY})
        models.try_out(near, ADA, claude.id)
        good, bad = audited(caplog)
        assert (good["event"], good["ok"], good["credential"]) == ("ai.credential.tested", True, claude.id)
        assert (bad["ok"], KEY in str(bad["error"])) == (False, False)
