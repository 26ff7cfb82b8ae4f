from pathlib import Path

import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.aws.vault import SecretUndecryptable
from fermata.credentials import credential_store, scope_defaults
from fermata.credentials.credential import Credential
from fermata.credentials.open_credential import open_api_key, open_credential
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from tests.faults import FaultScript
from tests.resources import TestClock, create_kms_key, resources_of_new_process
from tests.strict.model_lists import ModelListServer
from tests.unit.credentials.captured_log_records import pop_audit_records

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())
BOB = Caller(tenant="bakery", user="bob", capabilities=frozenset())
EVE = Caller(tenant="florist", user="ada", capabilities=frozenset())
KEY = "sk-ant-secret"


def enter_credential(
    resources: Resources, caller: Caller = ADA, label: str = "Mine", key: str | None = KEY
) -> Credential:
    return credential_store.create_credential(resources, caller, "anthropic", "apiKey", label, key)


def test_a_key_is_stored_encrypted_and_can_be_opened(resources: Resources) -> None:
    credential = enter_credential(resources)
    row = resources.tables.get_item("settings", "t#bakery", f"credential#{credential.id}")
    assert row is not None
    assert KEY not in str(row)
    assert KEY.encode() not in bytes(row["sealed"])
    assert open_api_key(resources, "bakery", credential.id, 1) == KEY


def test_an_encrypted_key_opens_only_for_its_own_credential(resources: Resources) -> None:
    credential = enter_credential(resources)
    for elsewhere in (
        {"purpose": "caller-secret", "tenant": "bakery", "name": credential.id},
        {"purpose": "provider-key", "tenant": "florist", "name": credential.id},
        {"purpose": "provider-key", "tenant": "bakery", "name": "another"},
    ):
        with pytest.raises(SecretUndecryptable):
            resources.vault.open_secret(credential.sealed_key, **elsewhere)  # type: ignore[arg-type]  # a dict of literals


def test_the_view_holds_nothing_of_the_key(resources: Resources) -> None:
    view = enter_credential(resources).to_view(resources.settings.key_id, None)
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


def test_a_key_encrypted_with_another_kms_key_is_not_current(resources: Resources) -> None:
    credential = enter_credential(resources)
    moved = resources_of_new_process(resources, key_id=create_kms_key())
    assert credential.to_view(moved.settings.key_id, None)["keyFingerprintCurrent"] is False


class TestForms:
    """A credential is a key for a provider's default URL, or a customer's own address."""

    @pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter", "gemini"])
    def test_a_provider_with_a_default_url_takes_a_key(self, resources: Resources, provider: str) -> None:
        credential = credential_store.create_credential(resources, ADA, provider, "apiKey", "Mine", KEY)
        assert (credential.provider_id, credential.base_url) == (provider, None)

    @pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter", "gemini", "ollama", "openai-compatible"])
    @pytest.mark.parametrize("key", [None, "", KEY])
    def test_any_provider_may_have_a_customers_own_address(
        self, local_resources: Resources, server: ModelListServer, provider: str, key: str | None
    ) -> None:
        credential = credential_store.create_credential(
            local_resources, ADA, provider, "baseUrl", "Mine", key, server.url
        )
        assert credential.base_url == server.url
        assert open_credential(local_resources, "bakery", credential.id, 1) == (credential, key or "")
        view = credential.to_view(local_resources.settings.key_id, None)
        assert (view["baseUrl"], view["keyFingerprintCurrent"]) == (server.url, True)

    def test_a_credential_without_a_key_is_always_current(
        self, local_resources: Resources, server: ModelListServer
    ) -> None:
        credential = credential_store.create_credential(
            local_resources, ADA, "ollama", "baseUrl", "Mine", None, server.url
        )
        moved = resources_of_new_process(local_resources, key_id=create_kms_key())
        assert credential.to_view(moved.settings.key_id, None)["keyFingerprintCurrent"] is True
        assert open_api_key(moved, "bakery", credential.id, 1) == ""

    @pytest.mark.parametrize("provider", ["", "Anthropic", "requesty", "x" * 200])
    def test_an_unknown_provider_is_refused_with_a_list_of_the_known_ones(
        self, resources: Resources, provider: str
    ) -> None:
        with pytest.raises(InvalidRequest, match=r"Use one of: .*anthropic, .*openrouter"):
            credential_store.create_credential(resources, ADA, provider, "apiKey", "Mine", KEY)

    @pytest.mark.parametrize("provider", ["ollama", "openai-compatible"])
    def test_a_customers_own_server_needs_its_address(self, resources: Resources, provider: str) -> None:
        with pytest.raises(InvalidRequest, match=f"{provider} is a server of your own: send authMode 'baseUrl'"):
            credential_store.create_credential(resources, ADA, provider, "apiKey", "Mine", KEY)

    @pytest.mark.parametrize("key", [None, ""])
    def test_the_form_with_a_key_needs_it(self, resources: Resources, key: str | None) -> None:
        with pytest.raises(InvalidRequest, match="Send the provider's key as 'apiKey'"):
            enter_credential(resources, key=key)

    def test_the_form_with_an_address_needs_that(self, resources: Resources) -> None:
        with pytest.raises(InvalidRequest, match="Send the server's address as 'baseUrl'"):
            credential_store.create_credential(resources, ADA, "ollama", "baseUrl", "Mine", None)

    def test_the_two_forms_do_not_mix(self, resources: Resources) -> None:
        with pytest.raises(InvalidRequest, match="send authMode 'baseUrl' for an address of your own"):
            credential_store.create_credential(
                resources, ADA, "openai", "apiKey", "Mine", KEY, "https://models.example"
            )

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
    def test_a_private_address_is_refused_before_anything_is_stored(
        self, resources: Resources, url: str, says: str
    ) -> None:
        with pytest.raises(InvalidRequest, match=says):
            credential_store.create_credential(resources, ADA, "ollama", "baseUrl", "Mine", None, url)
        assert credential_store.list_credentials(resources, ADA) == []


def test_a_label_is_taken_once_per_user_and_provider(resources: Resources) -> None:
    enter_credential(resources)
    with pytest.raises(Conflict, match="You have a credential 'Mine' for anthropic already"):
        enter_credential(resources)
    enter_credential(resources, label="Another")
    enter_credential(resources, caller=BOB)
    enter_credential(resources, caller=EVE)
    assert len(credential_store.list_credentials(resources, ADA)) == 2


def test_the_list_has_the_callers_own_newest_first(resources: Resources, clock: TestClock) -> None:
    for label in ("first", "second"):
        enter_credential(resources, label=label)
        clock.advance(1)
    enter_credential(resources, caller=BOB, label="bobs")
    assert [credential.display_label for credential in credential_store.list_credentials(resources, ADA)] == [
        "second",
        "first",
    ]


@pytest.mark.parametrize("stranger", [BOB, EVE])
def test_another_users_credential_is_not_found(resources: Resources, stranger: Caller) -> None:
    credential = enter_credential(resources)
    for verb in (
        lambda: credential_store.get_own_credential(resources, stranger, credential.id),
        lambda: credential_store.update_credential(resources, stranger, credential.id, "Theirs", None),
        lambda: credential_store.delete_credential(resources, stranger, credential.id),
        lambda: credential_store.get_own_credential(resources, ADA, "missing"),
    ):
        with pytest.raises(NotFound, match="no longer accessible"):
            verb()
    assert credential_store.get_own_credential(resources, ADA, credential.id) == credential


@pytest.mark.parametrize("odd", ["", "x" * 2_000, "a/b", "é", "\0", "c#d"])
def test_an_invalid_id_is_not_found_without_a_read(resources: Resources, odd: str) -> None:
    with pytest.raises(NotFound, match="no longer accessible"):
        credential_store.get_own_credential(resources, ADA, odd)


def test_another_tenants_key_cannot_be_opened_by_its_id(resources: Resources) -> None:
    credential = enter_credential(resources)
    with pytest.raises(NotFound):
        open_api_key(resources, "florist", credential.id, 1)


class TestChanging:
    def test_a_new_key_is_a_new_version(self, resources: Resources) -> None:
        credential = credential_store.update_credential(
            resources, ADA, enter_credential(resources).id, None, "sk-newer"
        )
        assert (credential.version, credential.display_label) == (2, "Mine")
        assert open_api_key(resources, "bakery", credential.id, 2) == "sk-newer"

    def test_a_new_label_is_not(self, resources: Resources) -> None:
        credential = credential_store.update_credential(resources, ADA, enter_credential(resources).id, "Renamed", None)
        assert (credential.version, credential.display_label) == (1, "Renamed")
        assert open_api_key(resources, "bakery", credential.id, 1) == KEY

    def test_the_old_label_is_free_again_and_the_new_one_is_not(self, resources: Resources) -> None:
        credential_store.update_credential(resources, ADA, enter_credential(resources).id, "Renamed", None)
        enter_credential(resources)
        with pytest.raises(Conflict):
            enter_credential(resources, label="Renamed")

    def test_a_label_of_another_credential_is_refused_and_nothing_changes(self, resources: Resources) -> None:
        enter_credential(resources, label="Taken")
        credential = enter_credential(resources)
        with pytest.raises(Conflict, match="'Taken'"):
            credential_store.update_credential(resources, ADA, credential.id, "Taken", "sk-newer")
        assert credential_store.get_own_credential(resources, ADA, credential.id) == credential

    def test_repeating_a_label_changes_nothing(self, resources: Resources) -> None:
        credential = enter_credential(resources)
        assert credential_store.update_credential(resources, ADA, credential.id, "Mine", None) == credential


class TestMoving:
    """The address and the key of a credential with its own address can change."""

    @pytest.fixture
    def home(self, local_resources: Resources, server: ModelListServer) -> Credential:
        return credential_store.create_credential(local_resources, ADA, "ollama", "baseUrl", "Mine", KEY, server.url)

    def test_another_path_on_the_same_host_keeps_the_key(self, local_resources: Resources, home: Credential) -> None:
        moved = credential_store.update_credential(local_resources, ADA, home.id, None, None, f"{home.base_url}/v1")
        assert (moved.base_url, moved.version) == (f"{home.base_url}/v1", 2)
        assert open_api_key(local_resources, "bakery", home.id, 2) == KEY

    def test_a_key_never_follows_to_another_host(self, local_resources: Resources, home: Credential) -> None:
        with pytest.raises(InvalidRequest, match=r"on another host\. Send its key along"):
            credential_store.update_credential(local_resources, ADA, home.id, None, None, "http://127.0.0.1:9/v1")
        assert credential_store.get_own_credential(local_resources, ADA, home.id) == home

    @pytest.mark.parametrize("key", ["", "sk-newer"])
    def test_with_its_key_the_address_may_change_to_any_host(
        self, local_resources: Resources, home: Credential, key: str
    ) -> None:
        moved = credential_store.update_credential(local_resources, ADA, home.id, None, key, "http://127.0.0.1:9")
        assert open_credential(local_resources, "bakery", home.id, moved.version) == (moved, key)

    def test_without_a_key_the_address_may_change_freely(
        self, local_resources: Resources, server: ModelListServer
    ) -> None:
        bare = credential_store.create_credential(local_resources, ADA, "ollama", "baseUrl", "Bare", None, server.url)
        assert (
            credential_store.update_credential(local_resources, ADA, bare.id, None, None, "http://127.0.0.1:9").base_url
            == "http://127.0.0.1:9"
        )

    def test_the_new_address_is_checked_too(self, local_resources: Resources, home: Credential) -> None:
        with pytest.raises(InvalidRequest, match="not public"):
            credential_store.update_credential(local_resources, ADA, home.id, None, "", "https://10.0.0.1")

    def test_an_empty_key_removes_the_key(self, local_resources: Resources, home: Credential) -> None:
        bare = credential_store.update_credential(local_resources, ADA, home.id, None, "")
        assert (bare.sealed_key, bare.kms_key_id, bare.version) == (None, None, 2)
        row = local_resources.tables.get_item("settings", "t#bakery", f"credential#{home.id}")
        assert row is not None
        assert "sealed" not in row

    def test_the_key_of_a_credential_without_an_address_cannot_be_removed(self, resources: Resources) -> None:
        with pytest.raises(InvalidRequest, match="'apiKey' must not be empty"):
            credential_store.update_credential(resources, ADA, enter_credential(resources).id, None, "")

    def test_a_credential_without_an_address_gets_none(self, resources: Resources) -> None:
        with pytest.raises(InvalidRequest, match="has no address of its own"):
            credential_store.update_credential(
                resources, ADA, enter_credential(resources).id, None, None, "https://models.example"
            )


class TestOpening:
    def test_a_warm_process_makes_no_aws_call(self, resources: Resources) -> None:
        credential = enter_credential(resources)
        open_api_key(resources, "bakery", credential.id, 1)
        calls: list[str] = []
        for part in (resources.tables, resources.vault):
            part._client.meta.events.register("before-call", lambda model, **_: calls.append(model.name))
        assert open_api_key(resources, "bakery", credential.id, 1) == KEY
        assert calls == []

    def test_a_cold_process_reads_the_row_once_and_calls_kms_once(self, resources: Resources) -> None:
        credential, cold = enter_credential(resources), resources_of_new_process(resources)
        calls: list[str] = []
        for part in (cold.tables, cold.vault):
            part._client.meta.events.register("before-call", lambda model, **_: calls.append(model.name))
        for _ in range(50):
            open_api_key(cold, "bakery", credential.id, 1)
        assert calls == ["GetItem", "Decrypt"]

    def test_a_running_turn_uses_the_new_key_within_five_minutes(self, resources: Resources, clock: TestClock) -> None:
        credential = enter_credential(resources)
        assert open_api_key(resources, "bakery", credential.id, 1) == KEY
        credential_store.update_credential(resources_of_new_process(resources), ADA, credential.id, None, "sk-newer")
        clock.advance(301)
        assert open_api_key(resources, "bakery", credential.id, 1) == "sk-newer"

    def test_a_turn_started_after_the_change_never_gets_the_old_key(self, resources: Resources) -> None:
        credential = enter_credential(resources)
        assert open_api_key(resources, "bakery", credential.id, 1) == KEY
        credential_store.update_credential(resources_of_new_process(resources), ADA, credential.id, None, "sk-newer")
        assert open_api_key(resources, "bakery", credential.id, 2) == "sk-newer"

    def test_a_removed_credential_is_no_longer_accessible(self, resources: Resources) -> None:
        credential = enter_credential(resources)
        credential_store.delete_credential(resources, ADA, credential.id)
        with pytest.raises(NotFound, match="no longer accessible"):
            open_api_key(resources, "bakery", credential.id, 1)

    def test_a_key_that_no_longer_opens_must_be_entered_again(self, resources: Resources) -> None:
        credential = enter_credential(resources)
        foreign = resources.vault.seal_secret("sk-other", purpose="provider-key", tenant="florist", name=credential.id)
        row = credential.model_copy(update={"sealed_key": foreign}).to_row()
        resources.tables.write_items(Put(resources.settings.settings_table, row))
        with pytest.raises(Conflict, match="'Mine' can no longer be opened"):
            open_api_key(resources, "bakery", credential.id, 1)


def test_a_removed_credential_frees_its_label(resources: Resources) -> None:
    credential_store.delete_credential(resources, ADA, enter_credential(resources).id)
    assert credential_store.list_credentials(resources, ADA) == []
    enter_credential(resources)


class TestRemovingWhileAnotherRequestActs:
    @pytest.fixture
    def faults(self, resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FaultScript:
        return FaultScript(resources, tmp_path, monkeypatch)

    def test_a_credential_that_was_renamed_meanwhile_is_not_deleted(
        self, resources: Resources, faults: FaultScript
    ) -> None:
        credential = enter_credential(resources)
        write = "dynamodb.TransactWriteItems"
        faults.interrupt(
            write, lambda: credential_store.update_credential(resources, ADA, credential.id, "Renamed", None)
        )
        with pytest.raises(Conflict, match="changed by another request"):
            credential_store.delete_credential(resources, ADA, credential.id)
        credential_store.delete_credential(resources, ADA, credential.id)
        for label in ("Mine", "Renamed"):
            enter_credential(resources, label=label)

    def test_a_credential_that_was_deleted_meanwhile_is_not_found(
        self, resources: Resources, faults: FaultScript
    ) -> None:
        credential = enter_credential(resources)
        faults.interrupt(
            "dynamodb.TransactWriteItems", lambda: credential_store.delete_credential(resources, ADA, credential.id)
        )
        with pytest.raises(NotFound):
            credential_store.delete_credential(resources, ADA, credential.id)

    def test_a_credential_that_became_a_default_meanwhile_is_not_deleted(
        self, resources: Resources, faults: FaultScript
    ) -> None:
        credential = enter_credential(resources)
        write = "dynamodb.TransactWriteItems"
        faults.interrupt(write, lambda: scope_defaults.set_default(resources, ADA, "site", credential.id, "m"))
        with pytest.raises(Conflict, match="the default of site"):
            credential_store.delete_credential(resources, ADA, credential.id)


def test_every_change_is_an_audit_record_without_the_key(
    resources: Resources, caplog: pytest.LogCaptureFixture
) -> None:
    credential = enter_credential(resources)
    credential_store.update_credential(resources, ADA, credential.id, "Renamed", "sk-ant-newer")
    credential_store.delete_credential(resources, ADA, credential.id)
    records = pop_audit_records(caplog)
    assert [line["event"] for line in records] == [
        "ai.credential.created",
        "ai.credential.updated",
        "ai.credential.deleted",
    ]
    for line in records:
        assert (line["tenant"], line["user"], line["credential"]) == ("bakery", "ada", credential.id)
        assert "sk-ant" not in str(line)


def test_a_refused_change_is_not_in_the_audit(resources: Resources, caplog: pytest.LogCaptureFixture) -> None:
    enter_credential(resources)
    pop_audit_records(caplog)
    with pytest.raises(Conflict):
        enter_credential(resources)
    assert pop_audit_records(caplog) == []
