from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.aws.vault import CannotOpen
from fermata.credentials import keyring
from fermata.credentials.credential import Credential
from fermata.words.caller import Caller
from fermata.words.errors import Conflict, Invalid, NotFound
from tests.desk import TestClock, another_process, make_key

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())
BOB = Caller(tenant="bakery", user="bob", capabilities=frozenset())
EVE = Caller(tenant="florist", user="ada", capabilities=frozenset())
KEY = "sk-ant-secret"


def enter(desk: Desk, caller: Caller = ADA, label: str = "Mine", key: str | None = KEY) -> Credential:
    return keyring.create(desk, caller, "anthropic", "apiKey", label, key)


def test_a_key_is_stored_only_sealed_and_opens_again(desk: Desk) -> None:
    credential = enter(desk)
    stored = desk.tables.get("settings", "t#bakery", f"credential#{credential.id}")
    assert stored is not None
    assert KEY not in str(stored)
    assert KEY.encode() not in bytes(stored["sealed"])
    assert keyring.open_key(desk, "bakery", credential.id, 1) == KEY


def test_a_sealed_key_opens_only_where_it_belongs(desk: Desk) -> None:
    credential = enter(desk)
    for elsewhere in (
        {"purpose": "caller-secret", "tenant": "bakery", "name": credential.id},
        {"purpose": "provider-key", "tenant": "florist", "name": credential.id},
        {"purpose": "provider-key", "tenant": "bakery", "name": "another"},
    ):
        with pytest.raises(CannotOpen):
            desk.vault.open(credential.sealed, **elsewhere)  # type: ignore[arg-type]  # a dict of literals


def test_the_view_is_the_contracts_and_holds_nothing_of_the_key(desk: Desk) -> None:
    view = enter(desk).view(desk.settings.key_id)
    assert view == {
        "id": view["id"],
        "providerId": "anthropic",
        "authMode": "apiKey",
        "displayLabel": "Mine",
        "baseUrl": None,
        "keyFingerprintCurrent": True,
        "createdAt": view["createdAt"],
        "lastUsedAt": None,
    }


def test_a_key_sealed_under_another_kms_key_is_not_current_and_says_so_when_used(desk: Desk) -> None:
    credential = enter(desk)
    moved = another_process(desk, key_id=make_key())
    assert credential.view(moved.settings.key_id)["keyFingerprintCurrent"] is False


@pytest.mark.parametrize(
    ("provider", "mode"), [("openai", "apiKey"), ("anthropic", "baseUrl"), ("ollama", "baseUrl"), ("", "apiKey")]
)
def test_a_provider_that_is_not_served_is_refused_with_those_that_are(desk: Desk, provider: str, mode: Any) -> None:
    with pytest.raises(Invalid, match=r"is not served\. Served: anthropic with apiKey\."):
        keyring.create(desk, ADA, provider, mode, "Mine", KEY)


def test_a_credential_needs_its_key(desk: Desk) -> None:
    with pytest.raises(Invalid, match="apiKey"):
        enter(desk, key=None)


def test_a_label_is_taken_once_per_user_and_provider(desk: Desk) -> None:
    enter(desk)
    with pytest.raises(Conflict, match="You have a credential 'Mine' for anthropic already"):
        enter(desk)
    enter(desk, label="Another")
    enter(desk, caller=BOB)
    enter(desk, caller=EVE)
    assert len(keyring.of_caller(desk, ADA)) == 2


def test_the_list_has_the_callers_own_newest_first(desk: Desk, clock: TestClock) -> None:
    for label in ("first", "second"):
        enter(desk, label=label)
        clock.go_on(1)
    enter(desk, caller=BOB, label="bobs")
    assert [credential.display_label for credential in keyring.of_caller(desk, ADA)] == ["second", "first"]


@pytest.mark.parametrize("stranger", [BOB, EVE])
def test_somebody_elses_credential_is_as_absent_as_a_missing_one(desk: Desk, stranger: Caller) -> None:
    credential = enter(desk)
    for verb in (
        lambda: keyring.own(desk, stranger, credential.id),
        lambda: keyring.change(desk, stranger, credential.id, "Theirs", None),
        lambda: keyring.remove(desk, stranger, credential.id),
        lambda: keyring.own(desk, ADA, "missing"),
    ):
        with pytest.raises(NotFound, match="no longer accessible"):
            verb()
    assert keyring.own(desk, ADA, credential.id) == credential


def test_another_tenants_key_cannot_be_opened_by_its_id(desk: Desk) -> None:
    credential = enter(desk)
    with pytest.raises(NotFound):
        keyring.open_key(desk, "florist", credential.id, 1)


class TestChanging:
    def test_a_new_key_is_a_new_version(self, desk: Desk) -> None:
        credential = keyring.change(desk, ADA, enter(desk).id, None, "sk-newer")
        assert (credential.version, credential.display_label) == (2, "Mine")
        assert keyring.open_key(desk, "bakery", credential.id, 2) == "sk-newer"

    def test_a_new_label_is_not(self, desk: Desk) -> None:
        credential = keyring.change(desk, ADA, enter(desk).id, "Renamed", None)
        assert (credential.version, credential.display_label) == (1, "Renamed")
        assert keyring.open_key(desk, "bakery", credential.id, 1) == KEY

    def test_the_old_label_is_free_again_and_the_new_one_is_not(self, desk: Desk) -> None:
        keyring.change(desk, ADA, enter(desk).id, "Renamed", None)
        enter(desk)
        with pytest.raises(Conflict):
            enter(desk, label="Renamed")

    def test_a_label_of_another_credential_is_refused_and_nothing_changes(self, desk: Desk) -> None:
        enter(desk, label="Taken")
        credential = enter(desk)
        with pytest.raises(Conflict, match="'Taken'"):
            keyring.change(desk, ADA, credential.id, "Taken", "sk-newer")
        assert keyring.own(desk, ADA, credential.id) == credential

    def test_saying_the_same_again_changes_nothing(self, desk: Desk) -> None:
        credential = enter(desk)
        assert keyring.change(desk, ADA, credential.id, "Mine", None) == credential


class TestOpening:
    def test_a_warm_round_asks_aws_nothing(self, desk: Desk) -> None:
        credential = enter(desk)
        keyring.open_key(desk, "bakery", credential.id, 1)
        calls: list[str] = []
        for part in (desk.tables, desk.vault):
            part._client.meta.events.register("before-call", lambda model, **_: calls.append(model.name))
        assert keyring.open_key(desk, "bakery", credential.id, 1) == KEY
        assert calls == []

    def test_a_running_turn_uses_the_new_key_within_five_minutes(self, desk: Desk, clock: TestClock) -> None:
        credential = enter(desk)
        assert keyring.open_key(desk, "bakery", credential.id, 1) == KEY
        keyring.change(another_process(desk), ADA, credential.id, None, "sk-newer")
        clock.go_on(301)
        assert keyring.open_key(desk, "bakery", credential.id, 1) == "sk-newer"

    def test_a_turn_started_after_the_change_never_gets_the_old_key(self, desk: Desk) -> None:
        credential = enter(desk)
        assert keyring.open_key(desk, "bakery", credential.id, 1) == KEY
        keyring.change(another_process(desk), ADA, credential.id, None, "sk-newer")
        assert keyring.open_key(desk, "bakery", credential.id, 2) == "sk-newer"

    def test_a_removed_credential_is_no_longer_accessible(self, desk: Desk) -> None:
        credential = enter(desk)
        keyring.remove(desk, ADA, credential.id)
        with pytest.raises(NotFound, match="no longer accessible"):
            keyring.open_key(desk, "bakery", credential.id, 1)

    def test_a_key_that_no_longer_opens_must_be_entered_again(self, desk: Desk) -> None:
        credential = enter(desk)
        foreign = desk.vault.seal("sk-other", purpose="provider-key", tenant="florist", name=credential.id)
        row = credential.model_copy(update={"sealed": foreign}).item()
        desk.tables.write(Put(desk.settings.settings_table, row))
        with pytest.raises(Conflict, match="'Mine' can no longer be opened"):
            keyring.open_key(desk, "bakery", credential.id, 1)


def test_a_removed_credential_frees_its_label(desk: Desk) -> None:
    keyring.remove(desk, ADA, enter(desk).id)
    assert keyring.of_caller(desk, ADA) == []
    enter(desk)
