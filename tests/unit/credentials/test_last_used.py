"""Uses are recorded rarely, and never fail a turn."""

import pytest
from botocore.exceptions import ClientError

from fermata.aws.resources import Resources
from fermata.credentials import credential_store
from fermata.credentials.credential import Credential
from fermata.credentials.credential_views import get_credential_view, list_credential_views
from fermata.credentials.last_used import record_use
from fermata.domain.caller import Caller
from tests.late_writes import WriteRecorder
from tests.resources import TestClock, resources_of_new_process
from tests.unit.credentials.captured_log_records import get_warnings

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())


@pytest.fixture
def credential(resources: Resources) -> Credential:
    return credential_store.create_credential(resources, ADA, "anthropic", "apiKey", "Mine", "sk-ant-secret")


def last_used(resources: Resources, credential: Credential) -> str | None:
    view: str | None = get_credential_view(resources, credential)["lastUsedAt"]
    return view


def puts(resources: Resources) -> list[str]:
    puts_made: list[str] = []
    resources.tables._client.meta.events.register("before-call", lambda model, **_: puts_made.append(model.name))
    return puts_made


def test_a_credential_that_was_never_used_has_no_instant(resources: Resources, credential: Credential) -> None:
    assert last_used(resources, credential) is None
    assert [view["lastUsedAt"] for view in list_credential_views(resources, ADA)] == [None]


def test_a_use_is_shown_and_a_later_one_replaces_it(
    resources: Resources, credential: Credential, clock: TestClock
) -> None:
    record_use(resources, "bakery", credential.id)
    assert last_used(resources, credential) == clock.now_iso()
    clock.advance(301)
    record_use(resources, "bakery", credential.id)
    assert last_used(resources, credential) == clock.now_iso()
    assert [view["lastUsedAt"] for view in list_credential_views(resources, ADA)] == [clock.now_iso()]


def test_a_process_records_a_use_once_in_five_minutes(
    resources: Resources, credential: Credential, clock: TestClock
) -> None:
    puts_made = puts(resources)
    for _ in range(50):
        record_use(resources, "bakery", credential.id)
        clock.advance(5)
    assert puts_made == ["PutItem"]
    record_use(resources_of_new_process(resources), "bakery", credential.id)
    assert last_used(resources, credential) == clock.now_iso()


def test_uses_are_recorded_per_credential_and_tenant(resources: Resources, credential: Credential) -> None:
    other = credential_store.create_credential(resources, ADA, "anthropic", "apiKey", "Other", "sk-ant-other")
    record_use(resources, "bakery", other.id)
    record_use(resources, "florist", credential.id)
    assert last_used(resources, credential) is None
    assert last_used(resources, other) == resources.clock.now_iso()


def test_a_use_that_cannot_be_recorded_is_logged_and_retried(
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


def test_an_empty_list_reads_no_uses(resources: Resources) -> None:
    puts_made = puts(resources)
    assert list_credential_views(resources, ADA) == []
    assert puts_made == ["Query"]


def test_an_earlier_use_that_is_recorded_again_later_does_not_replace_the_latest(
    resources: Resources, credential: Credential, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = WriteRecorder(resources, monkeypatch)
    record_use(resources, "bakery", credential.id)
    clock.advance(600)
    record_use(resources_of_new_process(resources), "bakery", credential.id)
    latest = last_used(resources, credential)
    recorder.land_again()
    assert (last_used(resources, credential), len(recorder.requests)) == (latest, 1)
