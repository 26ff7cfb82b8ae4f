"""A new credential becomes the default where there is none."""

from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.credentials import defaults, keyring, seeding
from fermata.credentials.credential import Credential
from fermata.words.caller import Caller
from fermata.words.offered import Capabilities, Offered
from fermata.words.scopes import SCOPES
from tests.strict.listings import KEY, Listings
from tests.unit.credentials.lines import audited, warned

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())


@pytest.fixture
def claude(near: Desk, server: Listings) -> Credential:
    names = ("claude-sonnet-5", "claude-opus-5", "claude-opus-4-8")
    server.lists("/v1/models", {"data": [{"id": name} for name in names]})
    return keyring.create(near, ADA, "anthropic", "apiKey", "Mine", KEY)


def offered(name: str, **members: Any) -> Offered:
    calls = members.pop("calls", True)
    return Offered(id=name, label=name, capabilities=Capabilities(tool_calling=calls, vision_input=False), **members)


def models(desk: Desk) -> dict[str, str]:
    return {scope: default["modelId"] for scope, default in defaults.defaults_view(desk, "bakery").items()}


def test_every_scope_without_a_default_gets_the_smartest_model(
    near: Desk, claude: Credential, caplog: pytest.LogCaptureFixture
) -> None:
    audited(caplog)
    seeding.fill_empty_defaults(near, ADA, claude)
    assert models(near) == dict.fromkeys(SCOPES, "claude-opus-5")
    told = [(line["event"], line["scope"], line["auto"]) for line in audited(caplog)]
    assert told == [("ai.default.updated", scope, True) for scope in SCOPES]


def test_a_default_that_was_chosen_stays(near: Desk, claude: Credential) -> None:
    defaults.set_default(near, ADA, "content", claude.id, "chosen")
    seeding.fill_empty_defaults(near, ADA, claude)
    assert models(near) == dict.fromkeys(SCOPES, "claude-opus-5") | {"content": "chosen"}


def test_where_every_scope_has_one_the_provider_is_not_asked(near: Desk, claude: Credential, server: Listings) -> None:
    seeding.fill_empty_defaults(near, ADA, claude)
    server.asked.clear()
    seeding.fill_empty_defaults(near, ADA, claude)
    assert server.asked == []


def test_a_usual_model_that_nobody_listed_never_becomes_a_default(near: Desk, server: Listings) -> None:
    server.open_to_all = True
    server.lists("/api/tags", {"models": []})
    ollama = keyring.create(near, ADA, "ollama", "baseUrl", "Mine", None, server.url)
    seeding.fill_empty_defaults(near, ADA, ollama)
    assert models(near) == {}


@pytest.mark.parametrize("trouble", ["refused", "gone", "bug"])
def test_whatever_goes_wrong_is_only_told_to_us(
    near: Desk,
    claude: Credential,
    server: Listings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: str,
) -> None:
    if trouble == "refused":
        server.key = "another"
    elif trouble == "gone":
        keyring.remove(near, ADA, claude.id)
    else:
        monkeypatch.setattr(seeding, "choose", lambda offered: offered["no such thing"])
    seeding.fill_empty_defaults(near, ADA, claude)
    assert models(near) == {}
    assert "defaults.not_filled" in warned(caplog)
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ([offered("a"), offered("b", tier="smartest"), offered("c", tier="smartest")], "b"),
        ([offered("a", tier="fast"), offered("b")], "a"),
        ([offered("a", calls=False), offered("b")], "b"),
        ([offered("a", calls=False, tier="smartest"), offered("b", tier="fast")], "b"),
        ([offered("a", calls=False)], "a"),
        ([], None),
    ],
)
def test_the_best_is_the_first_of_the_smartest_that_can_call_tools(found: list[Offered], best: str | None) -> None:
    chosen = seeding.choose(found)
    assert (chosen.id if chosen else None) == best
