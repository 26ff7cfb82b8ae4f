"""A new credential becomes the default where there is none."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.credentials import credential_store, initial_defaults, scope_defaults
from fermata.credentials.credential import Credential
from fermata.domain.caller import Caller
from fermata.domain.model_info import ModelCapabilities, ModelInfo
from fermata.domain.scopes import SCOPES
from tests.strict.model_lists import ACCEPTED_KEY, ModelListServer
from tests.unit.credentials.log_records import get_warnings, pop_audit_records

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())


@pytest.fixture
def claude(near: Resources, server: ModelListServer) -> Credential:
    names = ("claude-sonnet-5", "claude-opus-5", "claude-opus-4-8")
    server.set_response("/v1/models", {"data": [{"id": name} for name in names]})
    return credential_store.create_credential(near, ADA, "anthropic", "apiKey", "Mine", ACCEPTED_KEY)


def listed_model(name: str, **members: Any) -> ModelInfo:
    calls = members.pop("calls", True)
    return ModelInfo(
        id=name, label=name, capabilities=ModelCapabilities(tool_calling=calls, vision_input=False), **members
    )


def models(resources: Resources) -> dict[str, str]:
    return {
        scope: default["modelId"] for scope, default in scope_defaults.get_defaults_view(resources, "bakery").items()
    }


def test_every_scope_without_a_default_gets_the_smartest_model(
    near: Resources, claude: Credential, caplog: pytest.LogCaptureFixture
) -> None:
    pop_audit_records(caplog)
    initial_defaults.set_missing_defaults(near, ADA, claude)
    assert models(near) == dict.fromkeys(SCOPES, "claude-opus-5")
    told = [(line["event"], line["scope"], line["auto"]) for line in pop_audit_records(caplog)]
    assert told == [("ai.default.updated", scope, True) for scope in SCOPES]


def test_a_default_that_was_chosen_stays(near: Resources, claude: Credential) -> None:
    scope_defaults.set_default(near, ADA, "content", claude.id, "chosen")
    initial_defaults.set_missing_defaults(near, ADA, claude)
    assert models(near) == dict.fromkeys(SCOPES, "claude-opus-5") | {"content": "chosen"}


def test_where_every_scope_has_one_the_provider_is_not_asked(
    near: Resources, claude: Credential, server: ModelListServer
) -> None:
    initial_defaults.set_missing_defaults(near, ADA, claude)
    server.requests.clear()
    initial_defaults.set_missing_defaults(near, ADA, claude)
    assert server.requests == []


def test_a_usual_model_that_nobody_listed_never_becomes_a_default(near: Resources, server: ModelListServer) -> None:
    server.accepts_any_key = True
    server.set_response("/api/tags", {"models": []})
    ollama = credential_store.create_credential(near, ADA, "ollama", "baseUrl", "Mine", None, server.url)
    initial_defaults.set_missing_defaults(near, ADA, ollama)
    assert models(near) == {}


@pytest.mark.parametrize("trouble", ["refused", "gone", "bug"])
def test_whatever_goes_wrong_is_only_told_to_us(
    near: Resources,
    claude: Credential,
    server: ModelListServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: str,
) -> None:
    if trouble == "refused":
        server.key = "another"
    elif trouble == "gone":
        credential_store.delete_credential(near, ADA, claude.id)
    else:
        monkeypatch.setattr(initial_defaults, "choose_default_model", lambda offered: offered["no such thing"])
    initial_defaults.set_missing_defaults(near, ADA, claude)
    assert models(near) == {}
    assert "defaults.not_filled" in get_warnings(caplog)
    assert ACCEPTED_KEY not in caplog.text


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ([listed_model("a"), listed_model("b", tier="smartest"), listed_model("c", tier="smartest")], "b"),
        ([listed_model("a", tier="fast"), listed_model("b")], "a"),
        ([listed_model("a", calls=False), listed_model("b")], "b"),
        ([listed_model("a", calls=False, tier="smartest"), listed_model("b", tier="fast")], "b"),
        ([listed_model("a", calls=False)], "a"),
        ([], None),
    ],
)
def test_the_best_is_the_first_of_the_smartest_that_can_call_tools(found: list[ModelInfo], best: str | None) -> None:
    chosen = initial_defaults.choose_default_model(found)
    assert (chosen.id if chosen else None) == best
