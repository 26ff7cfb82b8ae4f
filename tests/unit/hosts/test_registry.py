"""A tenant's host: named, moved, given another secret, taken away; and opened for a turn."""

from typing import Any

import jwt
import pytest

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.aws.vault import CannotOpen
from fermata.hosts import registry
from fermata.hosts.failures import HostFailure
from fermata.hosts.host import open_host
from fermata.words.errors import Conflict, Invalid, NotFound
from tests.callers import make_tenant
from tests.desk import TestClock, another_process
from tests.hosts import ERRAND, ScriptedHost

URL = "https://8.8.8.8/cms/"


@pytest.fixture
def bakery(desk: Desk) -> Desk:
    make_tenant(desk, "bakery")
    return desk


@pytest.fixture
def at_home(bakery: Desk, host: ScriptedHost) -> tuple[Desk, str]:
    """A local stage whose tenant has the scripted host, and that host's secret."""
    desk = another_process(bakery, fermata_stage="local")
    secret = registry.register(desk, "bakery", host.url)[1]
    assert secret is not None
    return desk, secret


def signed_with(host: ScriptedHost, desk: Desk) -> tuple[str, str]:
    """The token that a turn of this process sends now, and the name of its secret."""
    host.says("GET users", {"users": []})
    opened = open_host(desk, ERRAND)
    assert opened is not None
    opened.users()
    token = host.asked[-1].headers["authorization"].removeprefix("Bearer ")
    return token, jwt.get_unverified_header(token)["kid"]


def is_of(token: str, secret: str) -> bool:
    try:
        jwt.decode(
            token, secret, algorithms=["HS256"], audience="host", options={"verify_exp": False, "verify_iat": False}
        )
    except jwt.InvalidSignatureError:
        return False
    return True


def test_a_tenant_without_a_host_has_none_to_open(bakery: Desk) -> None:
    assert open_host(bakery, ERRAND) is None
    assert registry.show(bakery, "bakery") is None


def test_a_new_host_is_told_its_secret_once_and_nobody_is_shown_it(bakery: Desk) -> None:
    record, secret = registry.register(bakery, "bakery", URL)
    assert secret is not None
    assert len(secret) >= 43
    assert record.url == "https://8.8.8.8/cms"
    shown = registry.show(bakery, "bakery")
    assert shown is not None
    assert shown["url"] == record.url
    assert [set(one) for one in shown["secrets"]] == [{"id", "since", "createdAt"}]
    assert secret not in str(shown) + str(bakery.tables.query(bakery.settings.settings_table, "t#bakery"))


def test_a_host_that_moves_keeps_its_secret(bakery: Desk) -> None:
    first, _ = registry.register(bakery, "bakery", URL)
    moved, secret = registry.register(bakery, "bakery", "https://1.1.1.1")
    assert (moved.url, secret) == ("https://1.1.1.1", None)
    assert moved.secrets == first.secrets


def test_only_a_tenant_can_have_a_host(desk: Desk) -> None:
    with pytest.raises(NotFound, match="There is no tenant 'bakery'"):
        registry.register(desk, "bakery", URL)
    for act in (registry.rotate, registry.remove):
        with pytest.raises(NotFound, match="has no host"):
            act(desk, "bakery")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://8.8.8.8", "must begin with https"),
        ("https://8.8.8.8:8443", "must use port 443"),
        ("https://127.0.0.1", "not public"),
        ("https://169.254.169.254/latest", "not public"),
        ("https://10.1.2.3", "not public"),
        ("http://127.0.0.1:8000", "must begin with https"),
        ("https://ada:secret@8.8.8.8", "must not hold a user name"),
        ("https://8.8.8.8/?tenant=1", "must end with its path"),
        ("cms.example", "not a URL"),
    ],
)
def test_an_address_that_must_not_be_asked_is_not_stored(bakery: Desk, url: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        registry.register(bakery, "bakery", url)
    assert registry.read(bakery, "bakery") is None


def test_requests_are_signed_with_the_hosts_secret(at_home: tuple[Desk, str], host: ScriptedHost) -> None:
    desk, secret = at_home
    token, _ = signed_with(host, desk)
    assert is_of(token, secret)


def test_after_a_rotation_the_old_secret_signs_until_the_host_can_have_the_new_one(
    at_home: tuple[Desk, str], host: ScriptedHost, clock: TestClock
) -> None:
    desk, first = at_home
    second = registry.rotate(desk, "bakery")
    assert is_of(signed_with(host, desk)[0], first)
    clock.go_on(registry.OVERLAP)
    assert is_of(signed_with(host, desk)[0], second)


def test_a_rotation_without_overlap_counts_at_once(at_home: tuple[Desk, str], host: ScriptedHost) -> None:
    desk, _ = at_home
    second = registry.rotate(desk, "bakery", overlap=0)
    assert is_of(signed_with(host, desk)[0], second)
    record = registry.read(desk, "bakery")
    assert record is not None
    assert len(record.secrets) == 1


def test_a_second_rotation_forgets_the_secret_that_never_signed(
    at_home: tuple[Desk, str], host: ScriptedHost, clock: TestClock
) -> None:
    desk, first = at_home
    never, third = registry.rotate(desk, "bakery"), registry.rotate(desk, "bakery")
    record = registry.read(desk, "bakery")
    assert record is not None
    assert len(record.secrets) == 2
    assert is_of(signed_with(host, desk)[0], first)
    clock.go_on(registry.OVERLAP)
    token, _ = signed_with(host, desk)
    assert (is_of(token, third), is_of(token, never)) == (True, False)


def test_a_host_that_was_taken_away_is_asked_for_a_minute_at_most(
    at_home: tuple[Desk, str], host: ScriptedHost, clock: TestClock
) -> None:
    desk, _ = at_home
    signed_with(host, desk)
    registry.remove(another_process(desk), "bakery")
    assert open_host(desk, ERRAND) is not None
    clock.go_on(registry.REMEMBERED)
    assert open_host(desk, ERRAND) is None


def test_two_who_change_one_host_are_told(bakery: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.register(bakery, "bakery", URL)
    stale = registry.read(bakery, "bakery")
    registry.rotate(bakery, "bakery")
    monkeypatch.setattr(registry, "read", lambda *_: stale)
    for act in (registry.rotate, registry.remove, lambda desk, name: registry.register(desk, name, URL)):
        with pytest.raises(Conflict, match="changed by somebody else"):
            act(bakery, "bakery")


def test_a_host_that_fails_is_one_line_for_the_operator_without_its_words(
    at_home: tuple[Desk, str], host: ScriptedHost, caplog: pytest.LogCaptureFixture
) -> None:
    desk, _ = at_home
    host.says("GET users", {"error": "words that are nobody's business"}, status=503)
    opened = open_host(desk, ERRAND)
    assert opened is not None
    with pytest.raises(HostFailure):
        opened.users()
    (line,) = [vars(record) for record in caplog.records if getattr(record, "event", "") == "host.failed"]
    facts = {"tenant": "bakery", "turn": "turn-1", "host": "127.0.0.1", "method": "GET", "status": 503, "passing": True}
    assert facts.items() <= line.items()
    assert "nobody's business" not in str(line)


def test_a_host_secret_opens_for_nothing_else(at_home: tuple[Desk, str]) -> None:
    desk, secret = at_home
    record = registry.read(desk, "bakery")
    assert record is not None
    kept = record.secrets[0]
    assert desk.vault.open(kept.sealed, purpose="host-secret", tenant="bakery", name=kept.id) == secret
    others: list[Any] = [("caller-secret", "bakery"), ("provider-key", "bakery"), ("host-secret", "florist")]
    for purpose, tenant in others:
        with pytest.raises(CannotOpen):
            desk.vault.open(kept.sealed, purpose=purpose, tenant=tenant, name=kept.id)


def test_a_secret_that_cannot_be_opened_any_more_is_said_to_be_lost(
    at_home: tuple[Desk, str], host: ScriptedHost
) -> None:
    desk, _ = at_home
    record = registry.read(desk, "bakery")
    assert record is not None
    foreign = record.secrets[0].model_copy(update={"sealed": b"never sealed by anybody"})
    desk.tables.write(Put(desk.settings.settings_table, record.model_copy(update={"secrets": (foreign,)}).item()))
    opened = open_host(desk, ERRAND)
    assert opened is not None
    with pytest.raises(HostFailure, match="An administrator has to rotate it"):
        opened.users()
    assert host.asked == []
