"""Register, move, rotate and remove a tenant's host, and open a client of it for a turn."""

from typing import Any

import jwt
import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.aws.vault import SecretUndecryptable
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.hosts import registry
from fermata.hosts.errors import HostError
from fermata.hosts.open_content_host import open_content_host
from tests.late_writes import WriteRecorder, repeat_single_writes
from tests.resources import TestClock, resources_of_new_process
from tests.scripted_host import HOST_CALLER, ScriptedHost
from tests.tenant_tokens import make_tenant

URL = "https://8.8.8.8/cms/"


@pytest.fixture
def bakery(resources: Resources) -> Resources:
    make_tenant(resources, "bakery")
    return resources


@pytest.fixture
def local_host(bakery: Resources, host: ScriptedHost) -> tuple[Resources, str]:
    """A local stage whose tenant has the scripted host, and that host's secret."""
    resources = resources_of_new_process(bakery, fermata_stage="local")
    secret = registry.register_host(resources, "bakery", host.url)[1]
    assert secret is not None
    return resources, secret


def read_sent_token(host: ScriptedHost, resources: Resources) -> tuple[str, str]:
    """Send a request as a turn of this process; returns its token and the id of the secret that signed it."""
    host.script_response("GET users", {"users": []})
    client = open_content_host(resources, HOST_CALLER)
    assert client is not None
    client.list_users()
    token = host.requests[-1].headers["authorization"].removeprefix("Bearer ")
    return token, jwt.get_unverified_header(token)["kid"]


def is_signed_with(token: str, secret: str) -> bool:
    try:
        jwt.decode(
            token, secret, algorithms=["HS256"], audience="host", options={"verify_exp": False, "verify_iat": False}
        )
    except jwt.InvalidSignatureError:
        return False
    return True


def test_a_tenant_without_a_host_has_none_to_open(bakery: Resources) -> None:
    assert open_content_host(bakery, HOST_CALLER) is None
    assert registry.describe_host(bakery, "bakery") is None


def test_a_new_hosts_secret_is_returned_once_and_never_shown_again(bakery: Resources) -> None:
    record, secret = registry.register_host(bakery, "bakery", URL)
    assert secret is not None
    assert len(secret) >= 43
    assert record.url == "https://8.8.8.8/cms"
    view = registry.describe_host(bakery, "bakery")
    assert view is not None
    assert view["url"] == record.url
    assert [set(one) for one in view["secrets"]] == [{"id", "since", "createdAt"}]
    assert secret not in str(view) + str(bakery.tables.query_items(bakery.settings.settings_table, "t#bakery"))


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
def test_a_url_that_is_not_allowed_is_not_stored(bakery: Resources, url: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        registry.register_host(bakery, "bakery", url)
    assert registry.read_host(bakery, "bakery") is None


def test_requests_are_signed_with_the_hosts_secret(local_host: tuple[Resources, str], host: ScriptedHost) -> None:
    resources, secret = local_host
    token, _ = read_sent_token(host, resources)
    assert is_signed_with(token, secret)


def test_after_a_rotation_the_old_secret_signs_until_the_host_can_have_the_new_one(
    local_host: tuple[Resources, str], host: ScriptedHost, clock: TestClock
) -> None:
    resources, first = local_host
    second = registry.rotate_host_secret(resources, "bakery")
    assert is_signed_with(read_sent_token(host, resources)[0], first)
    clock.advance(registry.HOST_SECRET_OVERLAP_SECONDS)
    assert is_signed_with(read_sent_token(host, resources)[0], second)


def test_a_rotation_without_overlap_takes_effect_at_once(local_host: tuple[Resources, str], host: ScriptedHost) -> None:
    resources, _ = local_host
    second = registry.rotate_host_secret(resources, "bakery", overlap_seconds=0)
    assert is_signed_with(read_sent_token(host, resources)[0], second)
    record = registry.read_host(resources, "bakery")
    assert record is not None
    assert len(record.secrets) == 1


def test_a_second_rotation_drops_the_secret_that_never_signed(
    local_host: tuple[Resources, str], host: ScriptedHost, clock: TestClock
) -> None:
    resources, first = local_host
    never, third = registry.rotate_host_secret(resources, "bakery"), registry.rotate_host_secret(resources, "bakery")
    record = registry.read_host(resources, "bakery")
    assert record is not None
    assert len(record.secrets) == 2
    assert is_signed_with(read_sent_token(host, resources)[0], first)
    clock.advance(registry.HOST_SECRET_OVERLAP_SECONDS)
    token, _ = read_sent_token(host, resources)
    assert (is_signed_with(token, third), is_signed_with(token, never)) == (True, False)


def test_a_removed_host_is_used_for_another_minute_at_most(
    local_host: tuple[Resources, str], host: ScriptedHost, clock: TestClock
) -> None:
    resources, _ = local_host
    read_sent_token(host, resources)
    registry.remove_host(resources_of_new_process(resources), "bakery")
    assert open_content_host(resources, HOST_CALLER) is not None
    clock.advance(registry.HOST_CACHE_SECONDS)
    assert open_content_host(resources, HOST_CALLER) is None


def test_a_concurrent_change_of_a_host_is_a_conflict(bakery: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.register_host(bakery, "bakery", URL)
    stale = registry.read_host(bakery, "bakery")
    registry.rotate_host_secret(bakery, "bakery")
    monkeypatch.setattr(registry, "read_host", lambda *_: stale)
    for act in (
        registry.rotate_host_secret,
        registry.remove_host,
        lambda resources, name: registry.register_host(resources, name, URL),
    ):
        with pytest.raises(Conflict, match="changed by another request"):
            act(bakery, "bakery")


def test_a_failed_request_is_one_log_line_without_the_hosts_text(
    local_host: tuple[Resources, str], host: ScriptedHost, caplog: pytest.LogCaptureFixture
) -> None:
    resources, _ = local_host
    host.script_response("GET users", {"error": "words that are nobody's business"}, status=503)
    client = open_content_host(resources, HOST_CALLER)
    assert client is not None
    with pytest.raises(HostError):
        client.list_users()
    (line,) = [vars(record) for record in caplog.records if getattr(record, "event", "") == "host.failed"]
    facts = {
        "tenant": "bakery",
        "turn": "turn-1",
        "host": "127.0.0.1",
        "method": "GET",
        "status": 503,
        "transient": True,
    }
    assert facts.items() <= line.items()
    assert "nobody's business" not in str(line)


def test_a_host_secret_opens_for_nothing_else(local_host: tuple[Resources, str]) -> None:
    resources, secret = local_host
    record = registry.read_host(resources, "bakery")
    assert record is not None
    host_secret = record.secrets[0]
    assert (
        resources.vault.open_secret(host_secret.sealed, purpose="host-secret", tenant="bakery", name=host_secret.id)
        == secret
    )
    others: list[Any] = [("caller-secret", "bakery"), ("provider-key", "bakery"), ("host-secret", "florist")]
    for purpose, tenant in others:
        with pytest.raises(SecretUndecryptable):
            resources.vault.open_secret(host_secret.sealed, purpose=purpose, tenant=tenant, name=host_secret.id)


def test_a_secret_that_cannot_be_opened_is_reported_as_lost(
    local_host: tuple[Resources, str], host: ScriptedHost
) -> None:
    resources, _ = local_host
    record = registry.read_host(resources, "bakery")
    assert record is not None
    foreign = record.secrets[0].model_copy(update={"sealed": b"never sealed"})
    resources.tables.write_items(
        Put(resources.settings.settings_table, record.model_copy(update={"secrets": (foreign,)}).to_item())
    )
    client = open_content_host(resources, HOST_CALLER)
    assert client is not None
    with pytest.raises(HostError, match="An administrator has to rotate it"):
        client.list_users()
    assert host.requests == []


def test_changes_of_a_host_whose_writes_are_repeated_because_responses_are_lost_take_effect_once(
    bakery: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.register_host(bakery, "bakery", URL)
    repeat_single_writes(bakery, monkeypatch)
    registry.register_host(bakery, "bakery", "https://8.8.4.4/cms")
    assert registry.rotate_host_secret(bakery, "bakery", overlap_seconds=0)
    record = registry.read_host(bakery, "bakery")
    assert record is not None
    assert (record.url, record.version) == ("https://8.8.4.4/cms", 3)
    registry.remove_host(bakery, "bakery")
    assert registry.read_host(bakery, "bakery") is None


def test_writes_of_a_host_that_was_removed_do_not_change_its_successor_when_they_land_again(
    bakery: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = WriteRecorder(bakery, monkeypatch)
    registry.register_host(bakery, "bakery", URL)
    registry.register_host(bakery, "bakery", "https://8.8.4.4/cms")
    registry.remove_host(bakery, "bakery")
    clock.advance(1)
    registry.register_host(bakery, "bakery", "https://1.1.1.1/cms")

    def check_host() -> None:
        record = registry.read_host(bakery, "bakery")
        assert record is not None
        assert record.url == "https://1.1.1.1/cms"

    recorder.land_again(check_host)
