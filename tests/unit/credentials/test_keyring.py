from pathlib import Path

import pytest

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.aws.vault import CannotOpen
from fermata.credentials import defaults, keyring
from fermata.credentials.credential import Credential
from fermata.words.caller import Caller
from fermata.words.errors import Conflict, Invalid, NotFound
from tests.desk import TestClock, another_process, make_key
from tests.seam import Seam
from tests.strict.listings import Listings
from tests.unit.credentials.lines import audited

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
    view = enter(desk).view(desk.settings.key_id, None)
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
    assert credential.view(moved.settings.key_id, None)["keyFingerprintCurrent"] is False


class TestForms:
    """The two ways of contract §1.2: a key for a provider everybody knows, or an address of one's own."""

    @pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter"])
    def test_a_known_provider_takes_a_key(self, desk: Desk, provider: str) -> None:
        credential = keyring.create(desk, ADA, provider, "apiKey", "Mine", KEY)
        assert (credential.provider_id, credential.base_url) == (provider, None)

    @pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter", "ollama", "openai-compatible"])
    @pytest.mark.parametrize("key", [None, "", KEY])
    def test_any_provider_may_be_reached_at_an_address_of_ones_own(
        self, near: Desk, server: Listings, provider: str, key: str | None
    ) -> None:
        credential = keyring.create(near, ADA, provider, "baseUrl", "Mine", key, server.url)
        assert credential.base_url == server.url
        assert keyring.opened(near, "bakery", credential.id, 1) == (credential, key or "")
        view = credential.view(near.settings.key_id, None)
        assert (view["baseUrl"], view["keyFingerprintCurrent"]) == (server.url, True)

    def test_without_a_key_there_is_none_to_lose(self, near: Desk, server: Listings) -> None:
        credential = keyring.create(near, ADA, "ollama", "baseUrl", "Mine", None, server.url)
        moved = another_process(near, key_id=make_key())
        assert credential.view(moved.settings.key_id, None)["keyFingerprintCurrent"] is True
        assert keyring.open_key(moved, "bakery", credential.id, 1) == ""

    @pytest.mark.parametrize("provider", ["", "Anthropic", "requesty", "x" * 200])
    def test_a_provider_that_is_not_served_is_told_which_are(self, desk: Desk, provider: str) -> None:
        with pytest.raises(Invalid, match=r"Use one of: anthropic, .*openrouter"):
            keyring.create(desk, ADA, provider, "apiKey", "Mine", KEY)

    @pytest.mark.parametrize("provider", ["ollama", "openai-compatible"])
    def test_a_server_of_ones_own_needs_its_address(self, desk: Desk, provider: str) -> None:
        with pytest.raises(Invalid, match=f"{provider} is a server of your own: send authMode 'baseUrl'"):
            keyring.create(desk, ADA, provider, "apiKey", "Mine", KEY)

    @pytest.mark.parametrize("key", [None, ""])
    def test_the_form_with_a_key_needs_it(self, desk: Desk, key: str | None) -> None:
        with pytest.raises(Invalid, match="Send the provider's key as 'apiKey'"):
            enter(desk, key=key)

    def test_the_form_with_an_address_needs_that(self, desk: Desk) -> None:
        with pytest.raises(Invalid, match="Send the server's address as 'baseUrl'"):
            keyring.create(desk, ADA, "ollama", "baseUrl", "Mine", None)

    def test_the_two_forms_do_not_mix(self, desk: Desk) -> None:
        with pytest.raises(Invalid, match="send authMode 'baseUrl' for an address of your own"):
            keyring.create(desk, ADA, "openai", "apiKey", "Mine", KEY, "https://models.example")

    @pytest.mark.parametrize(
        ("url", "says"),
        [
            ("http://models.example", "must begin with https"),
            ("https://user:pw@models.example", "must not hold a user name"),
            ("https://models.example:8443", "port 443"),
            ("https://127.0.0.1", "not public"),
            ("https://169.254.169.254/latest", "not public"),
            ("https://2130706433", "not public"),
            ("http://localhost:11434", "must begin with https"),
        ],
    )
    def test_an_address_that_is_not_for_users_is_refused_before_anything_is_stored(
        self, desk: Desk, url: str, says: str
    ) -> None:
        with pytest.raises(Invalid, match=says):
            keyring.create(desk, ADA, "ollama", "baseUrl", "Mine", None, url)
        assert keyring.of_caller(desk, ADA) == []


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


@pytest.mark.parametrize("odd", ["", "x" * 2_000, "a/b", "é", "\0", "c#d"])
def test_what_is_no_id_of_ours_is_not_found_and_not_looked_for(desk: Desk, odd: str) -> None:
    with pytest.raises(NotFound, match="no longer accessible"):
        keyring.own(desk, ADA, odd)


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


class TestMoving:
    """Changing the address, the key, or both, of a credential with an address of its own."""

    @pytest.fixture
    def home(self, near: Desk, server: Listings) -> Credential:
        return keyring.create(near, ADA, "ollama", "baseUrl", "Mine", KEY, server.url)

    def test_another_path_on_the_same_host_keeps_the_key(self, near: Desk, home: Credential) -> None:
        moved = keyring.change(near, ADA, home.id, None, None, f"{home.base_url}/v1")
        assert (moved.base_url, moved.version) == (f"{home.base_url}/v1", 2)
        assert keyring.open_key(near, "bakery", home.id, 2) == KEY

    def test_a_key_never_follows_to_another_host(self, near: Desk, home: Credential) -> None:
        with pytest.raises(Invalid, match=r"on another host\. Send its key along"):
            keyring.change(near, ADA, home.id, None, None, "http://127.0.0.1:9/v1")
        assert keyring.own(near, ADA, home.id) == home

    @pytest.mark.parametrize("key", ["", "sk-newer"])
    def test_with_its_key_it_moves_anywhere(self, near: Desk, home: Credential, key: str) -> None:
        moved = keyring.change(near, ADA, home.id, None, key, "http://127.0.0.1:9")
        assert keyring.opened(near, "bakery", home.id, moved.version) == (moved, key)

    def test_without_a_key_it_moves_freely(self, near: Desk, server: Listings) -> None:
        bare = keyring.create(near, ADA, "ollama", "baseUrl", "Bare", None, server.url)
        assert keyring.change(near, ADA, bare.id, None, None, "http://127.0.0.1:9").base_url == "http://127.0.0.1:9"

    def test_the_new_address_passes_the_same_guard(self, near: Desk, home: Credential) -> None:
        with pytest.raises(Invalid, match="not public"):
            keyring.change(near, ADA, home.id, None, "", "https://10.0.0.1")

    def test_an_empty_key_takes_the_key_away(self, near: Desk, home: Credential) -> None:
        bare = keyring.change(near, ADA, home.id, None, "")
        assert (bare.sealed, bare.key_id, bare.version) == (None, None, 2)
        stored = near.tables.get("settings", "t#bakery", f"credential#{home.id}")
        assert stored is not None
        assert "sealed" not in stored

    def test_a_credential_that_is_nothing_but_its_key_keeps_it(self, desk: Desk) -> None:
        with pytest.raises(Invalid, match="'apiKey' must not be empty"):
            keyring.change(desk, ADA, enter(desk).id, None, "")

    def test_the_form_stays_what_it_was(self, desk: Desk) -> None:
        with pytest.raises(Invalid, match="has no address of its own"):
            keyring.change(desk, ADA, enter(desk).id, None, None, "https://models.example")


class TestOpening:
    def test_a_warm_round_asks_aws_nothing(self, desk: Desk) -> None:
        credential = enter(desk)
        keyring.open_key(desk, "bakery", credential.id, 1)
        calls: list[str] = []
        for part in (desk.tables, desk.vault):
            part._client.meta.events.register("before-call", lambda model, **_: calls.append(model.name))
        assert keyring.open_key(desk, "bakery", credential.id, 1) == KEY
        assert calls == []

    def test_a_cold_one_asks_for_the_row_once_and_kms_once(self, desk: Desk) -> None:
        credential, cold = enter(desk), another_process(desk)
        calls: list[str] = []
        for part in (cold.tables, cold.vault):
            part._client.meta.events.register("before-call", lambda model, **_: calls.append(model.name))
        for _ in range(50):
            keyring.open_key(cold, "bakery", credential.id, 1)
        assert calls == ["GetItem", "Decrypt"]

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


class TestRemovingWhileSomebodyElseActs:
    @pytest.fixture
    def seam(self, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seam:
        return Seam(desk, tmp_path, monkeypatch)

    def test_one_that_was_renamed_stays_so_that_no_label_is_taken_by_nobody(self, desk: Desk, seam: Seam) -> None:
        credential = enter(desk)
        write = "dynamodb.TransactWriteItems"
        seam.meanwhile(write, lambda: keyring.change(desk, ADA, credential.id, "Renamed", None))
        with pytest.raises(Conflict, match="changed by somebody else just now"):
            keyring.remove(desk, ADA, credential.id)
        keyring.remove(desk, ADA, credential.id)
        for label in ("Mine", "Renamed"):
            enter(desk, label=label)

    def test_one_that_was_removed_is_not_found(self, desk: Desk, seam: Seam) -> None:
        credential = enter(desk)
        seam.meanwhile("dynamodb.TransactWriteItems", lambda: keyring.remove(desk, ADA, credential.id))
        with pytest.raises(NotFound):
            keyring.remove(desk, ADA, credential.id)

    def test_one_that_became_a_default_stays(self, desk: Desk, seam: Seam) -> None:
        credential = enter(desk)
        write = "dynamodb.TransactWriteItems"
        seam.meanwhile(write, lambda: defaults.set_default(desk, ADA, "site", credential.id, "m"))
        with pytest.raises(Conflict, match="the default of site"):
            keyring.remove(desk, ADA, credential.id)


def test_every_change_is_a_line_of_the_audit_and_holds_no_key(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    credential = enter(desk)
    keyring.change(desk, ADA, credential.id, "Renamed", "sk-ant-newer")
    keyring.remove(desk, ADA, credential.id)
    told = audited(caplog)
    assert [line["event"] for line in told] == [
        "ai.credential.created",
        "ai.credential.updated",
        "ai.credential.deleted",
    ]
    for line in told:
        assert (line["tenant"], line["user"], line["credential"]) == ("bakery", "ada", credential.id)
        assert "sk-ant" not in str(line)


def test_what_was_refused_is_not_in_the_audit(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    enter(desk)
    audited(caplog)
    with pytest.raises(Conflict):
        enter(desk)
    assert audited(caplog) == []
