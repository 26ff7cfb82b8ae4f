import pytest

from fermata.aws.desk import Desk
from fermata.credentials import keyring
from fermata.credentials.choosing import Chosen, resolve
from fermata.credentials.credential import Credential
from fermata.credentials.defaults import clear_default, defaults_view, fill, known_scope, set_default
from fermata.words.caller import Caller
from fermata.words.errors import Conflict, Invalid, NotFound
from tests.desk import another_process, make_key
from tests.strict.listings import Listings
from tests.unit.credentials.lines import audited

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())
EVE = Caller(tenant="florist", user="eve", capabilities=frozenset())


@pytest.fixture
def credential(desk: Desk) -> Credential:
    return keyring.create(desk, ADA, "anthropic", "apiKey", "Mine", "sk-ant-secret")


class TestDefaults:
    def test_a_default_says_who_set_it_and_when(self, desk: Desk, credential: Credential) -> None:
        default = set_default(desk, ADA, "site", credential.id, "model-1")
        assert default.wire() == {
            "scope": "site",
            "credentialId": credential.id,
            "modelId": "model-1",
            "updatedAt": desk.clock.instant(),
            "updatedBy": "ada",
        }

    def test_only_scopes_with_a_default_are_shown(self, desk: Desk, credential: Credential) -> None:
        assert defaults_view(desk, "bakery") == {}
        set_default(desk, ADA, "site", credential.id, "old")
        set_default(desk, ADA, "site", credential.id, "new")
        assert defaults_view(desk, "bakery") == {"site": {"credentialId": credential.id, "modelId": "new"}}
        assert defaults_view(desk, "florist") == {}

    def test_a_credential_that_is_not_there_cannot_be_a_default(self, desk: Desk) -> None:
        with pytest.raises(Invalid, match=r"^Credential not found\. Pick an existing credential\.$"):
            set_default(desk, ADA, "site", "missing", "model-1")
        assert defaults_view(desk, "bakery") == {}

    def test_another_tenants_credential_cannot_be_a_default(self, desk: Desk, credential: Credential) -> None:
        with pytest.raises(Invalid, match="Credential not found"):
            set_default(desk, EVE, "site", credential.id, "model-1")

    def test_clearing_is_done_once_or_often(self, desk: Desk, credential: Credential) -> None:
        set_default(desk, ADA, "site", credential.id, "model-1")
        for _ in range(2):
            clear_default(desk, ADA, "site")
        assert defaults_view(desk, "bakery") == {}

    def test_a_credential_stays_while_a_default_points_at_it(self, desk: Desk, credential: Credential) -> None:
        set_default(desk, ADA, "content", credential.id, "model-1")
        with pytest.raises(Conflict, match="is the default of content"):
            keyring.remove(desk, ADA, credential.id)
        clear_default(desk, ADA, "content")
        keyring.remove(desk, ADA, credential.id)

    def test_an_unknown_scope_is_told_the_four(self) -> None:
        assert known_scope("plugin") == "plugin"
        with pytest.raises(Invalid, match="site, content, data, plugin"):
            known_scope("shop")


class TestFilling:
    def test_where_there_is_none_it_is_set_and_where_there_is_one_it_stays(
        self, desk: Desk, credential: Credential
    ) -> None:
        set_default(desk, ADA, "site", credential.id, "chosen")
        for scope in ("site", "content"):
            fill(desk, ADA, scope, credential.id, "filled")
        shown = {scope: default["modelId"] for scope, default in defaults_view(desk, "bakery").items()}
        assert shown == {"site": "chosen", "content": "filled"}

    def test_a_credential_that_went_meanwhile_fills_nothing(self, desk: Desk, credential: Credential) -> None:
        keyring.remove(desk, ADA, credential.id)
        fill(desk, ADA, "site", credential.id, "filled")
        assert defaults_view(desk, "bakery") == {}


def test_changes_of_defaults_are_lines_of_the_audit(
    desk: Desk, credential: Credential, caplog: pytest.LogCaptureFixture
) -> None:
    audited(caplog)
    set_default(desk, ADA, "site", credential.id, "chosen")
    fill(desk, ADA, "site", credential.id, "filled")
    fill(desk, ADA, "content", credential.id, "filled")
    for _ in range(2):
        clear_default(desk, ADA, "site")
    told = [(line["event"], line["scope"], line.get("model"), line.get("auto")) for line in audited(caplog)]
    assert told == [
        ("ai.default.updated", "site", "chosen", False),
        ("ai.default.updated", "content", "filled", True),
        ("ai.default.cleared", "site", None, None),
    ]


class TestChoosing:
    def test_a_conversation_that_names_both_needs_no_default(self, desk: Desk, credential: Credential) -> None:
        chosen = resolve(desk, "bakery", "site", credential.id, "model-1")
        assert chosen == Chosen(credential_id=credential.id, version=1, provider="anthropic", model="model-1")

    def test_one_that_names_nothing_gets_the_scopes_default(self, desk: Desk, credential: Credential) -> None:
        set_default(desk, ADA, "site", credential.id, "model-1")
        assert resolve(desk, "bakery", "site", None, "").model == "model-1"
        with pytest.raises(Invalid):
            resolve(desk, "bakery", "content", None, "")

    def test_one_that_names_only_a_model_gets_the_defaults_credential(self, desk: Desk, credential: Credential) -> None:
        set_default(desk, ADA, "site", credential.id, "model-1")
        assert resolve(desk, "bakery", "site", None, "model-2").model == "model-2"

    def test_one_that_names_the_defaults_credential_gets_its_model(self, desk: Desk, credential: Credential) -> None:
        set_default(desk, ADA, "site", credential.id, "model-1")
        assert resolve(desk, "bakery", "site", credential.id, None).model == "model-1"

    def test_one_that_names_another_credential_must_name_the_model(self, desk: Desk, credential: Credential) -> None:
        other = keyring.create(desk, ADA, "anthropic", "apiKey", "Other", "sk-other")
        set_default(desk, ADA, "site", credential.id, "model-1")
        with pytest.raises(Invalid, match="Name the model too"):
            resolve(desk, "bakery", "site", other.id, None)

    def test_without_any_credential_the_answer_says_where_to_set_one(self, desk: Desk) -> None:
        with pytest.raises(Invalid, match="PUT /admin/api/ai/defaults/site"):
            resolve(desk, "bakery", "site", None, None)

    def test_a_credential_that_is_gone_is_no_longer_accessible(self, desk: Desk) -> None:
        with pytest.raises(NotFound, match=r"^Credential not found or no longer accessible\.$"):
            resolve(desk, "bakery", "site", "gone", "model-1")

    def test_another_tenants_credential_is_as_good_as_gone(self, desk: Desk, credential: Credential) -> None:
        with pytest.raises(NotFound):
            resolve(desk, "florist", "site", credential.id, "model-1")

    def test_one_whose_key_can_no_longer_be_opened_is_a_conflict(self, desk: Desk, credential: Credential) -> None:
        moved = another_process(desk, key_id=make_key())
        with pytest.raises(Conflict, match="Enter it again"):
            resolve(moved, "bakery", "site", credential.id, "model-1")

    def test_the_version_of_the_key_is_pinned(self, desk: Desk, credential: Credential) -> None:
        keyring.change(desk, ADA, credential.id, None, "sk-newer")
        assert resolve(desk, "bakery", "site", credential.id, "model-1").version == 2

    def test_a_server_without_a_key_can_always_be_chosen(self, near: Desk, server: Listings) -> None:
        bare = keyring.create(near, ADA, "ollama", "baseUrl", "Bare", None, server.url)
        moved = another_process(near, key_id=make_key())
        assert resolve(moved, "bakery", "site", bare.id, "phi").provider == "ollama"
