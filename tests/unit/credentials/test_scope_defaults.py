import pytest

from fermata.aws.resources import Resources
from fermata.credentials import credential_store
from fermata.credentials.credential import Credential
from fermata.credentials.model_choice import ModelChoice, resolve_model_choice
from fermata.credentials.scope_defaults import (
    check_scope,
    clear_default,
    get_defaults_view,
    set_default,
    set_default_if_absent,
)
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from tests.late_writes import WriteRecorder
from tests.resources import TestClock, create_kms_key, resources_of_new_process
from tests.strict.model_lists import ModelListServer
from tests.unit.credentials.captured_log_records import pop_audit_records

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())
EVE = Caller(tenant="florist", user="eve", capabilities=frozenset())


@pytest.fixture
def credential(resources: Resources) -> Credential:
    return credential_store.create_credential(resources, ADA, "anthropic", "apiKey", "Mine", "sk-ant-secret")


class TestDefaults:
    def test_a_default_says_who_set_it_and_when(self, resources: Resources, credential: Credential) -> None:
        default = set_default(resources, ADA, "site", credential.id, "model-1")
        assert default.to_wire() == {
            "scope": "site",
            "credentialId": credential.id,
            "modelId": "model-1",
            "updatedAt": resources.clock.now_iso(),
            "updatedBy": "ada",
        }

    def test_only_scopes_with_a_default_are_shown(self, resources: Resources, credential: Credential) -> None:
        assert get_defaults_view(resources, "bakery") == {}
        set_default(resources, ADA, "site", credential.id, "old")
        set_default(resources, ADA, "site", credential.id, "new")
        assert get_defaults_view(resources, "bakery") == {"site": {"credentialId": credential.id, "modelId": "new"}}
        assert get_defaults_view(resources, "florist") == {}

    def test_a_missing_credential_cannot_be_a_default(self, resources: Resources) -> None:
        with pytest.raises(InvalidRequest, match=r"^Credential not found\. Pick an existing credential\.$"):
            set_default(resources, ADA, "site", "missing", "model-1")
        assert get_defaults_view(resources, "bakery") == {}

    def test_another_tenants_credential_cannot_be_a_default(self, resources: Resources, credential: Credential) -> None:
        with pytest.raises(InvalidRequest, match="Credential not found"):
            set_default(resources, EVE, "site", credential.id, "model-1")

    def test_clearing_is_done_once_or_often(self, resources: Resources, credential: Credential) -> None:
        set_default(resources, ADA, "site", credential.id, "model-1")
        for _ in range(2):
            clear_default(resources, ADA, "site")
        assert get_defaults_view(resources, "bakery") == {}

    def test_a_credential_stays_while_a_default_points_at_it(
        self, resources: Resources, credential: Credential
    ) -> None:
        set_default(resources, ADA, "content", credential.id, "model-1")
        with pytest.raises(Conflict, match="is the default of content"):
            credential_store.delete_credential(resources, ADA, credential.id)
        clear_default(resources, ADA, "content")
        credential_store.delete_credential(resources, ADA, credential.id)

    def test_an_unknown_scope_is_refused_with_a_list_of_the_known_ones(self) -> None:
        assert check_scope("plugin") == "plugin"
        with pytest.raises(InvalidRequest, match="site, content, data, plugin"):
            check_scope("shop")


class TestFilling:
    def test_a_missing_default_is_set_and_an_existing_one_stays(
        self, resources: Resources, credential: Credential
    ) -> None:
        set_default(resources, ADA, "site", credential.id, "chosen")
        for scope in ("site", "content"):
            set_default_if_absent(resources, ADA, scope, credential.id, "filled")
        models = {scope: default["modelId"] for scope, default in get_defaults_view(resources, "bakery").items()}
        assert models == {"site": "chosen", "content": "filled"}

    def test_a_credential_that_was_deleted_meanwhile_sets_no_default(
        self, resources: Resources, credential: Credential
    ) -> None:
        credential_store.delete_credential(resources, ADA, credential.id)
        set_default_if_absent(resources, ADA, "site", credential.id, "filled")
        assert get_defaults_view(resources, "bakery") == {}


def test_changes_of_defaults_are_audit_records(
    resources: Resources, credential: Credential, caplog: pytest.LogCaptureFixture
) -> None:
    pop_audit_records(caplog)
    set_default(resources, ADA, "site", credential.id, "chosen")
    set_default_if_absent(resources, ADA, "site", credential.id, "filled")
    set_default_if_absent(resources, ADA, "content", credential.id, "filled")
    for _ in range(2):
        clear_default(resources, ADA, "site")
    records = [
        (line["event"], line["scope"], line.get("model"), line.get("auto")) for line in pop_audit_records(caplog)
    ]
    assert records == [
        ("ai.default.updated", "site", "chosen", False),
        ("ai.default.updated", "content", "filled", True),
        ("ai.default.cleared", "site", None, None),
    ]


class TestChoosing:
    def test_a_conversation_that_names_both_needs_no_default(
        self, resources: Resources, credential: Credential
    ) -> None:
        chosen = resolve_model_choice(resources, "bakery", "site", credential.id, "model-1")
        assert chosen == ModelChoice(credential_id=credential.id, version=1, provider="anthropic", model="model-1")

    def test_a_conversation_that_names_nothing_gets_the_scopes_default(
        self, resources: Resources, credential: Credential
    ) -> None:
        set_default(resources, ADA, "site", credential.id, "model-1")
        assert resolve_model_choice(resources, "bakery", "site", None, "").model == "model-1"
        with pytest.raises(InvalidRequest):
            resolve_model_choice(resources, "bakery", "content", None, "")

    def test_a_conversation_that_names_only_a_model_gets_the_defaults_credential(
        self, resources: Resources, credential: Credential
    ) -> None:
        set_default(resources, ADA, "site", credential.id, "model-1")
        assert resolve_model_choice(resources, "bakery", "site", None, "model-2").model == "model-2"

    def test_a_conversation_that_names_the_defaults_credential_gets_its_model(
        self, resources: Resources, credential: Credential
    ) -> None:
        set_default(resources, ADA, "site", credential.id, "model-1")
        assert resolve_model_choice(resources, "bakery", "site", credential.id, None).model == "model-1"

    def test_a_conversation_that_names_another_credential_must_name_the_model(
        self, resources: Resources, credential: Credential
    ) -> None:
        other = credential_store.create_credential(resources, ADA, "anthropic", "apiKey", "Other", "sk-other")
        set_default(resources, ADA, "site", credential.id, "model-1")
        with pytest.raises(InvalidRequest, match="Name the model too"):
            resolve_model_choice(resources, "bakery", "site", other.id, None)

    def test_without_any_credential_the_answer_says_where_to_set_one(self, resources: Resources) -> None:
        with pytest.raises(InvalidRequest, match="PUT /admin/api/ai/defaults/site"):
            resolve_model_choice(resources, "bakery", "site", None, None)

    def test_a_deleted_credential_is_not_found(self, resources: Resources) -> None:
        with pytest.raises(NotFound, match=r"^Credential not found or no longer accessible\.$"):
            resolve_model_choice(resources, "bakery", "site", "gone", "model-1")

    def test_another_tenants_credential_is_not_found(self, resources: Resources, credential: Credential) -> None:
        with pytest.raises(NotFound):
            resolve_model_choice(resources, "florist", "site", credential.id, "model-1")

    def test_a_key_that_can_no_longer_be_opened_is_a_conflict(
        self, resources: Resources, credential: Credential
    ) -> None:
        moved = resources_of_new_process(resources, key_id=create_kms_key())
        with pytest.raises(Conflict, match="Enter it again"):
            resolve_model_choice(moved, "bakery", "site", credential.id, "model-1")

    def test_the_version_of_the_key_is_pinned(self, resources: Resources, credential: Credential) -> None:
        credential_store.update_credential(resources, ADA, credential.id, None, "sk-newer")
        assert resolve_model_choice(resources, "bakery", "site", credential.id, "model-1").version == 2

    def test_a_credential_without_a_key_can_always_be_chosen(
        self, local_resources: Resources, server: ModelListServer
    ) -> None:
        bare = credential_store.create_credential(local_resources, ADA, "ollama", "baseUrl", "Bare", None, server.url)
        moved = resources_of_new_process(local_resources, key_id=create_kms_key())
        assert resolve_model_choice(moved, "bakery", "site", bare.id, "phi").provider == "ollama"


def test_removing_a_default_that_lands_again_later_leaves_the_next_default(
    resources: Resources, credential: Credential, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_default(resources, ADA, "site", credential.id, "old")
    recorder = WriteRecorder(resources, monkeypatch)
    clear_default(resources, ADA, "site")
    assert get_defaults_view(resources, "bakery") == {}
    clock.advance(60)
    set_default(resources, ADA, "site", credential.id, "new")
    recorder.land_again()
    assert get_defaults_view(resources, "bakery") == {"site": {"credentialId": credential.id, "modelId": "new"}}
