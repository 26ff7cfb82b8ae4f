"""When a credential was last used, noted cheaply and never in anybody's way."""

import pytest
from botocore.exceptions import ClientError

from fermata.aws.desk import Desk
from fermata.credentials import keyring
from fermata.credentials.credential import Credential
from fermata.credentials.using import touch, view, views
from fermata.words.caller import Caller
from tests.desk import TestClock, another_process
from tests.unit.credentials.lines import warned

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())


@pytest.fixture
def credential(desk: Desk) -> Credential:
    return keyring.create(desk, ADA, "anthropic", "apiKey", "Mine", "sk-ant-secret")


def last_used(desk: Desk, credential: Credential) -> str | None:
    shown: str | None = view(desk, credential)["lastUsedAt"]
    return shown


def puts(desk: Desk) -> list[str]:
    made: list[str] = []
    desk.tables._client.meta.events.register("before-call", lambda model, **_: made.append(model.name))
    return made


def test_one_that_was_never_used_says_so(desk: Desk, credential: Credential) -> None:
    assert last_used(desk, credential) is None
    assert [shown["lastUsedAt"] for shown in views(desk, ADA)] == [None]


def test_a_use_is_shown_and_a_later_one_replaces_it(desk: Desk, credential: Credential, clock: TestClock) -> None:
    touch(desk, "bakery", credential.id)
    assert last_used(desk, credential) == clock.instant()
    clock.go_on(301)
    touch(desk, "bakery", credential.id)
    assert last_used(desk, credential) == clock.instant()
    assert [shown["lastUsedAt"] for shown in views(desk, ADA)] == [clock.instant()]


def test_in_five_minutes_a_process_notes_it_once(desk: Desk, credential: Credential, clock: TestClock) -> None:
    made = puts(desk)
    for _ in range(50):
        touch(desk, "bakery", credential.id)
        clock.go_on(5)
    assert made == ["PutItem"]
    touch(another_process(desk), "bakery", credential.id)
    assert last_used(desk, credential) == clock.instant()


def test_each_credential_has_its_own_and_so_has_each_tenant(desk: Desk, credential: Credential) -> None:
    other = keyring.create(desk, ADA, "anthropic", "apiKey", "Other", "sk-ant-other")
    touch(desk, "bakery", other.id)
    touch(desk, "florist", credential.id)
    assert last_used(desk, credential) is None
    assert last_used(desk, other) == desk.clock.instant()


def test_a_use_that_cannot_be_noted_is_told_to_us_and_tried_again(
    desk: Desk, credential: Credential, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def throttled(*_: object) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "PutItem")

    with monkeypatch.context() as broken:
        broken.setattr(type(desk.tables), "write", throttled)
        touch(desk, "bakery", credential.id)
    assert warned(caplog) == ["credential.touch_failed"]
    touch(desk, "bakery", credential.id)
    assert last_used(desk, credential) == desk.clock.instant()


def test_an_empty_list_asks_for_no_uses(desk: Desk) -> None:
    made = puts(desk)
    assert views(desk, ADA) == []
    assert made == ["Query"]
