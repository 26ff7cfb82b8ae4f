"""When a credential was last used, noted cheaply and never in anybody's way."""

import pytest
from botocore.exceptions import ClientError

from fermata.aws.resources import Resources
from fermata.credentials import credential_store
from fermata.credentials.credential import Credential
from fermata.credentials.last_used import get_credential_view, list_credential_views, record_use
from fermata.domain.caller import Caller
from tests.resources import TestClock, resources_of_new_process
from tests.unit.credentials.log_records import get_warnings

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())


@pytest.fixture
def credential(resources: Resources) -> Credential:
    return credential_store.create_credential(resources, ADA, "anthropic", "apiKey", "Mine", "sk-ant-secret")


def last_used(resources: Resources, credential: Credential) -> str | None:
    shown: str | None = get_credential_view(resources, credential)["lastUsedAt"]
    return shown


def puts(resources: Resources) -> list[str]:
    made: list[str] = []
    resources.tables._client.meta.events.register("before-call", lambda model, **_: made.append(model.name))
    return made


def test_one_that_was_never_used_says_so(resources: Resources, credential: Credential) -> None:
    assert last_used(resources, credential) is None
    assert [shown["lastUsedAt"] for shown in list_credential_views(resources, ADA)] == [None]


def test_a_use_is_shown_and_a_later_one_replaces_it(
    resources: Resources, credential: Credential, clock: TestClock
) -> None:
    record_use(resources, "bakery", credential.id)
    assert last_used(resources, credential) == clock.now_iso()
    clock.advance(301)
    record_use(resources, "bakery", credential.id)
    assert last_used(resources, credential) == clock.now_iso()
    assert [shown["lastUsedAt"] for shown in list_credential_views(resources, ADA)] == [clock.now_iso()]


def test_in_five_minutes_a_process_notes_it_once(
    resources: Resources, credential: Credential, clock: TestClock
) -> None:
    made = puts(resources)
    for _ in range(50):
        record_use(resources, "bakery", credential.id)
        clock.advance(5)
    assert made == ["PutItem"]
    record_use(resources_of_new_process(resources), "bakery", credential.id)
    assert last_used(resources, credential) == clock.now_iso()


def test_each_credential_has_its_own_and_so_has_each_tenant(resources: Resources, credential: Credential) -> None:
    other = credential_store.create_credential(resources, ADA, "anthropic", "apiKey", "Other", "sk-ant-other")
    record_use(resources, "bakery", other.id)
    record_use(resources, "florist", credential.id)
    assert last_used(resources, credential) is None
    assert last_used(resources, other) == resources.clock.now_iso()


def test_a_use_that_cannot_be_noted_is_told_to_us_and_tried_again(
    resources: Resources, credential: Credential, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def throttled(*_: object) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "PutItem")

    with monkeypatch.context() as broken:
        broken.setattr(type(resources.tables), "write_items", throttled)
        record_use(resources, "bakery", credential.id)
    assert get_warnings(caplog) == ["credential.touch_failed"]
    record_use(resources, "bakery", credential.id)
    assert last_used(resources, credential) == resources.clock.now_iso()


def test_an_empty_list_asks_for_no_uses(resources: Resources) -> None:
    made = puts(resources)
    assert list_credential_views(resources, ADA) == []
    assert made == ["Query"]
