"""A tenant's host: named, moved, given another secret, taken away; and opened for a turn."""

from typing import Any

import jwt
import pytest

from fermata.aws.dynamodb import Put
from fermata.aws.resources import Resources
from fermata.aws.vault import SecretUndecryptable
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.hosts import registry
from fermata.hosts.client import open_host_client
from fermata.hosts.errors import HostError
from tests.resources import TestClock, resources_of_new_process
from tests.scripted_host import HOST_CALLER, ScriptedHost
from tests.tenant_tokens import make_tenant

URL = "https://8.8.8.8/cms/"


@pytest.fixture
def bakery(resources: Resources) -> Resources:
    make_tenant(resources, "bakery")
    return resources


@pytest.fixture
def at_home(bakery: Resources, host: ScriptedHost) -> tuple[Resources, str]:
    """A local stage whose tenant has the scripted host, and that host's secret."""
    resources = resources_of_new_process(bakery, fermata_stage="local")
    secret = registry.register_host(resources, "bakery", host.url)[1]
    assert secret is not None
    return resources, secret


def signed_with(host: ScriptedHost, resources: Resources) -> tuple[str, str]:
    """The token that a turn of this process sends now, and the name of its secret."""
    host.script_response("GET users", {"users": []})
    opened = open_host_client(resources, HOST_CALLER)
    assert opened is not None
    opened.list_users()
    token = host.requests[-1].headers["authorization"].removeprefix("Bearer ")
    return token, jwt.get_unverified_header(token)["kid"]


def is_of(token: str, secret: str) -> bool:
    try:
        jwt.decode(
            token, secret, algorithms=["HS256"], audience="host", options={"verify_exp": False, "verify_iat": False}
        )
    except jwt.InvalidSignatureError:
        return False
    return True


def test_a_tenant_without_a_host_has_none_to_open(bakery: Resources) -> None:
    assert open_host_client(bakery, HOST_CALLER) is None
    assert registry.describe_host(bakery, "bakery") is None


def test_a_new_host_is_told_its_secret_once_and_nobody_is_shown_it(bakery: Resources) -> None:
    record, secret = registry.register_host(bakery, "bakery", URL)
    assert secret is not None
    assert len(secret) >= 43
    assert record.url == "https://8.8.8.8/cms"
    shown = registry.describe_host(bakery, "bakery")
    assert shown is not None
    assert shown["url"] == record.url
    assert [set(one) for one in shown["secrets"]] == [{"id", "since", "createdAt"}]
    assert secret not in str(shown) + str(bakery.tables.query_items(bakery.settings.settings_table, "t#bakery"))


def test_a_host_that_moves_keeps_its_secret(bakery: Resources) -> None:
    first, _ = registry.register_host(bakery, "bakery", URL)
    moved, secret = registry.register_host(bakery, "bakery", "https://1.1.1.1")
    assert (moved.url, secret) == ("https://1.1.1.1", None)
    assert moved.secrets == first.secrets


def test_only_a_tenant_can_have_a_host(resources: Resources) -> None:
    with pytest.raises(NotFound, match="There is no tenant 'bakery'"):
        registry.register_host(resources, "bakery", URL)
    for act in (registry.rotate_host_secret, registry.remove_host):
        with pytest.raises(NotFound, match="has no host"):
            act(resources, "bakery")


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
def test_an_address_that_must_not_be_asked_is_not_stored(bakery: Resources, url: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        registry.register_host(bakery, "bakery", url)
    assert registry.read_host(bakery, "bakery") is None


def test_requests_are_signed_with_the_hosts_secret(at_home: tuple[Resources, str], host: ScriptedHost) -> None:
    resources, secret = at_home
    token, _ = signed_with(host, resources)
    assert is_of(token, secret)


def test_after_a_rotation_the_old_secret_signs_until_the_host_can_have_the_new_one(
    at_home: tuple[Resources, str], host: ScriptedHost, clock: TestClock
) -> None:
    resources, first = at_home
    second = registry.rotate_host_secret(resources, "bakery")
    assert is_of(signed_with(host, resources)[0], first)
    clock.advance(registry.HOST_SECRET_OVERLAP_SECONDS)
    assert is_of(signed_with(host, resources)[0], second)


def test_a_rotation_without_overlap_counts_at_once(at_home: tuple[Resources, str], host: ScriptedHost) -> None:
    resources, _ = at_home
    second = registry.rotate_host_secret(resources, "bakery", overlap_seconds=0)
    assert is_of(signed_with(host, resources)[0], second)
    record = registry.read_host(resources, "bakery")
    assert record is not None
    assert len(record.secrets) == 1


def test_a_second_rotation_forgets_the_secret_that_never_signed(
    at_home: tuple[Resources, str], host: ScriptedHost, clock: TestClock
) -> None:
    resources, first = at_home
    never, third = registry.rotate_host_secret(resources, "bakery"), registry.rotate_host_secret(resources, "bakery")
    record = registry.read_host(resources, "bakery")
    assert record is not None
    assert len(record.secrets) == 2
    assert is_of(signed_with(host, resources)[0], first)
    clock.advance(registry.HOST_SECRET_OVERLAP_SECONDS)
    token, _ = signed_with(host, resources)
    assert (is_of(token, third), is_of(token, never)) == (True, False)


def test_a_host_that_was_taken_away_is_asked_for_a_minute_at_most(
    at_home: tuple[Resources, str], host: ScriptedHost, clock: TestClock
) -> None:
    resources, _ = at_home
    signed_with(host, resources)
    registry.remove_host(resources_of_new_process(resources), "bakery")
    assert open_host_client(resources, HOST_CALLER) is not None
    clock.advance(registry.HOST_CACHE_SECONDS)
    assert open_host_client(resources, HOST_CALLER) is None


def test_two_who_change_one_host_are_told(bakery: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.register_host(bakery, "bakery", URL)
    stale = registry.read_host(bakery, "bakery")
    registry.rotate_host_secret(bakery, "bakery")
    monkeypatch.setattr(registry, "read_host", lambda *_: stale)
    for act in (
        registry.rotate_host_secret,
        registry.remove_host,
        lambda resources, name: registry.register_host(resources, name, URL),
    ):
        with pytest.raises(Conflict, match="changed by somebody else"):
            act(bakery, "bakery")


def test_a_host_that_fails_is_one_line_for_the_operator_without_its_words(
    at_home: tuple[Resources, str], host: ScriptedHost, caplog: pytest.LogCaptureFixture
) -> None:
    resources, _ = at_home
    host.script_response("GET users", {"error": "words that are nobody's business"}, status=503)
    opened = open_host_client(resources, HOST_CALLER)
    assert opened is not None
    with pytest.raises(HostError):
        opened.list_users()
    (line,) = [vars(record) for record in caplog.records if getattr(record, "event", "") == "host.failed"]
    facts = {"tenant": "bakery", "turn": "turn-1", "host": "127.0.0.1", "method": "GET", "status": 503, "passing": True}
    assert facts.items() <= line.items()
    assert "nobody's business" not in str(line)


def test_a_host_secret_opens_for_nothing_else(at_home: tuple[Resources, str]) -> None:
    resources, secret = at_home
    record = registry.read_host(resources, "bakery")
    assert record is not None
    kept = record.secrets[0]
    assert resources.vault.open_secret(kept.sealed, purpose="host-secret", tenant="bakery", name=kept.id) == secret
    others: list[Any] = [("caller-secret", "bakery"), ("provider-key", "bakery"), ("host-secret", "florist")]
    for purpose, tenant in others:
        with pytest.raises(SecretUndecryptable):
            resources.vault.open_secret(kept.sealed, purpose=purpose, tenant=tenant, name=kept.id)


def test_a_secret_that_cannot_be_opened_any_more_is_said_to_be_lost(
    at_home: tuple[Resources, str], host: ScriptedHost
) -> None:
    resources, _ = at_home
    record = registry.read_host(resources, "bakery")
    assert record is not None
    foreign = record.secrets[0].model_copy(update={"sealed": b"never sealed by anybody"})
    resources.tables.write_items(
        Put(resources.settings.settings_table, record.model_copy(update={"secrets": (foreign,)}).to_item())
    )
    opened = open_host_client(resources, HOST_CALLER)
    assert opened is not None
    with pytest.raises(HostError, match="An administrator has to rotate it"):
        opened.list_users()
    assert host.requests == []
