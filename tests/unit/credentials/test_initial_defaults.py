"""A new credential becomes the default where there is none."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.credentials import credential_store, initial_defaults, scope_defaults
from fermata.credentials.credential import Credential
from fermata.domain.agent_ids import SCOPES
from fermata.domain.caller import Caller
from fermata.domain.model_info import ModelCapabilities, ModelInfo
from tests.strict.model_lists import ACCEPTED_KEY, ModelListServer
from tests.unit.credentials.captured_log_records import get_warnings, pop_audit_records

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())


@pytest.fixture
def claude(local_resources: Resources, server: ModelListServer) -> Credential:
    names = ("claude-sonnet-5", "claude-opus-5", "claude-opus-4-8")
    server.set_response("/v1/models", {"data": [{"id": name} for name in names]})
    return credential_store.create_credential(local_resources, ADA, "anthropic", "apiKey", "Mine", ACCEPTED_KEY)


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
    local_resources: Resources, claude: Credential, caplog: pytest.LogCaptureFixture
) -> None:
    pop_audit_records(caplog)
    initial_defaults.set_missing_defaults(local_resources, ADA, claude)
    assert models(local_resources) == dict.fromkeys(SCOPES, "claude-opus-5")
    records = [(line["event"], line["scope"], line["auto"]) for line in pop_audit_records(caplog)]
    assert records == [("ai.default.updated", scope, True) for scope in SCOPES]


def test_a_default_that_was_chosen_stays(local_resources: Resources, claude: Credential) -> None:
    scope_defaults.set_default(local_resources, ADA, "content", claude.id, "chosen")
    initial_defaults.set_missing_defaults(local_resources, ADA, claude)
    assert models(local_resources) == dict.fromkeys(SCOPES, "claude-opus-5") | {"content": "chosen"}


def test_the_provider_is_not_asked_if_every_scope_has_a_default(
    local_resources: Resources, claude: Credential, server: ModelListServer
) -> None:
    initial_defaults.set_missing_defaults(local_resources, ADA, claude)
    server.requests.clear()
    initial_defaults.set_missing_defaults(local_resources, ADA, claude)
    assert server.requests == []


def test_a_fallback_model_never_becomes_a_default(local_resources: Resources, server: ModelListServer) -> None:
    server.accepts_any_key = True
    server.set_response("/api/tags", {"models": []})
    ollama = credential_store.create_credential(local_resources, ADA, "ollama", "baseUrl", "Mine", None, server.url)
    initial_defaults.set_missing_defaults(local_resources, ADA, ollama)
    assert models(local_resources) == {}


@pytest.mark.parametrize("trouble", ["refused", "gone", "bug"])
def test_every_failure_is_only_logged(
    local_resources: Resources,
    claude: Credential,
    server: ModelListServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: str,
) -> None:
    if trouble == "refused":
        server.key = "another"
    elif trouble == "gone":
        credential_store.delete_credential(local_resources, ADA, claude.id)
    else:
        monkeypatch.setattr(initial_defaults, "choose_default_model", lambda offered: offered["no such thing"])
    initial_defaults.set_missing_defaults(local_resources, ADA, claude)
    assert models(local_resources) == {}
    assert "defaults.not_filled" in get_warnings(caplog)
    assert ACCEPTED_KEY not in caplog.text


@pytest.mark.parametrize(
    ("models", "best"),
    [
        ([listed_model("a"), listed_model("b", tier="smartest"), listed_model("c", tier="smartest")], "b"),
        ([listed_model("a", tier="fast"), listed_model("b")], "a"),
        ([listed_model("a", calls=False), listed_model("b")], "b"),
        ([listed_model("a", calls=False, tier="smartest"), listed_model("b", tier="fast")], "b"),
        ([listed_model("a", calls=False)], "a"),
        ([], None),
    ],
)
def test_the_best_model_is_the_first_of_the_smartest_that_can_call_tools(
    models: list[ModelInfo], best: str | None
) -> None:
    chosen = initial_defaults.choose_default_model(models)
    assert (chosen.id if chosen else None) == best
