import json
from collections.abc import Iterator
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.wire.auth.tenant import TenantLimits, normalize_origin
from fermata.wire.auth.tenant_store import (
    add_tenant,
    describe_tenant,
    get_tenant,
    is_registered_origin,
    rotate_tenant_secret,
    update_tenant,
)
from tests.late_writes import WriteRecorder, repeat_single_writes
from tests.resources import TestClock, resources_of_new_process

HERE: dict[str, Any] = {"issuer": "https://bakery.example", "audience": "fermata"}


def test_a_new_tenant_gets_a_strong_secret_that_is_stored_encrypted(resources: Resources) -> None:
    _, secret = add_tenant(resources, "bakery", **HERE)
    assert secret is not None
    assert len(secret) >= 43
    stored = resources.tables.get_item("settings", "t#bakery", "tenant")
    assert stored is not None
    assert secret not in str(stored)
    assert secret.encode() not in bytes(stored["secrets"][0]["sealed"])


def test_a_described_tenant_has_no_secrets(resources: Resources) -> None:
    _, secret = add_tenant(resources, "bakery", **HERE, origins=["https://Bakery.example/"], dialect="instatic")
    shown = describe_tenant(resources, "bakery")
    assert secret is not None
    assert shown["issuer"] == "https://bakery.example"
    assert shown["origins"] == ["https://bakery.example"]
    assert shown["dialect"] == "instatic"
    assert [set(entry) for entry in shown["secrets"]] == [{"id", "createdAt", "until"}]
    assert secret not in json.dumps(shown)


def test_a_tenant_may_have_a_given_secret(resources: Resources) -> None:
    mine = "correct horse battery staple, and then some"
    assert add_tenant(resources, "bakery", **HERE, secret=mine)[1] == mine


@pytest.mark.parametrize(
    "weak", ["short", "x" * 64, "abcabcabc" * 8, "-----BEGIN PUBLIC KEY-----" + "0123456789abcdef" * 3]
)
def test_a_weak_secret_is_refused(resources: Resources, weak: str) -> None:
    with pytest.raises(InvalidRequest):
        add_tenant(resources, "bakery", **HERE, secret=weak)
    with pytest.raises(NotFound):
        describe_tenant(resources, "bakery")


def test_a_name_is_unique(resources: Resources) -> None:
    add_tenant(resources, "bakery", **HERE)
    with pytest.raises(Conflict, match="already"):
        add_tenant(resources, "bakery", issuer="https://other.example", audience="fermata")


def test_an_issuer_belongs_to_one_tenant_only(resources: Resources) -> None:
    add_tenant(resources, "bakery", **HERE)
    with pytest.raises(Conflict, match="belongs to tenant 'bakery'"):
        add_tenant(resources, "florist", **HERE)
    with pytest.raises(NotFound):
        describe_tenant(resources, "florist")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": "Bakery"}, "name"),
        ({"name": "a#b"}, "name"),
        ({"name": ""}, "name"),
        ({"issuer": "http://bakery.example"}, "issuer must be an https URL"),
        ({"issuer": "bakery"}, "issuer must be an https URL"),
        ({"issuer": "https://user@bakery.example"}, "issuer must name a host"),
        ({"audience": ""}, "audience"),
        ({"audience": "a\nb"}, "audience"),
        ({"jwks_url": "http://bakery.example/keys"}, "JWKS URL must be an https URL"),
        ({"jwks_url": "https://bakery.example/keys", "secret": "s" * 40}, "not both"),
        ({"origins": ["*"]}, "not an origin"),
        ({"origins": ["null"]}, "not an origin"),
        ({"origins": ["https://bakery.example/editor"]}, "not an origin"),
        ({"origins": ["http://bakery.example"]}, "must be https"),
        ({"origins": [f"https://{n}.example" for n in range(21)]}, "20 origins"),
    ],
)
def test_an_unsafe_value_is_refused_with_a_reason(resources: Resources, wrong: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"name": "bakery", **HERE} | wrong
    with pytest.raises(InvalidRequest, match=says):
        add_tenant(resources, given.pop("name"), **given)


def test_plain_http_is_allowed_on_the_local_stage(resources: Resources) -> None:
    local = resources_of_new_process(resources, fermata_stage="local")
    tenant, _ = add_tenant(local, "bakery", issuer="http://127.0.0.1:8787", audience="fermata")
    assert tenant.issuer == "http://127.0.0.1:8787"


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("https://Bakery.Example", "https://bakery.example"),
        ("https://bakery.example:443/", "https://bakery.example"),
        ("http://localhost:5173", "http://localhost:5173"),
        ("http://[::1]:5173", "http://[::1]:5173"),
        ("https://bakery.example:8443", "https://bakery.example:8443"),
        ("https://bakery.example:99999", None),
        ("https://bakery.example.", "https://bakery.example."),
        ("https://bakery.example/x", None),
        ("https://bakery.example?x", None),
        ("https://a@bakery.example", None),
        ("https://", None),
        ("null", None),
        ("", None),
        ("ftp://bakery.example", None),
        ("https://bakery.example\r\nx: y", None),
        ("https://[::1", None),
    ],
)
def test_origins_are_normalized_to_what_browsers_send(text: str, normal: str | None) -> None:
    assert normalize_origin(text) == normal


def test_an_origin_is_registered_when_any_tenant_lists_it(resources: Resources) -> None:
    assert not is_registered_origin(resources, "https://shared.example")
    add_tenant(resources, "bakery", **HERE, origins=["https://shared.example"])
    add_tenant(resources, "florist", issuer="https://florist.example", audience="f", origins=["https://shared.example"])
    assert is_registered_origin(resources, "https://shared.example")
    assert not is_registered_origin(resources, "https://elsewhere.example")


def test_a_removed_origin_is_unregistered_a_minute_later(resources: Resources, clock: TestClock) -> None:
    add_tenant(resources, "bakery", **HERE, origins=["https://old.example", "https://kept.example"])
    assert is_registered_origin(resources, "https://old.example")
    update_tenant(resources, "bakery", origins=["https://kept.example", "https://new.example"])
    clock.advance(61)
    assert not is_registered_origin(resources, "https://old.example")
    assert is_registered_origin(resources, "https://kept.example")
    assert is_registered_origin(resources, "https://new.example")


def test_an_update_leaves_other_values(resources: Resources) -> None:
    add_tenant(resources, "bakery", **HERE, origins=["https://bakery.example"], limits=TenantLimits(token_seconds=600))
    update_tenant(resources, "bakery", limits=TenantLimits(max_rounds=7))
    changed = get_tenant(resources, "bakery")
    assert changed.limits == TenantLimits(max_rounds=7, token_seconds=600)
    assert changed.origins == ("https://bakery.example",)
    assert len(changed.secrets) == 1


def test_the_default_tool_names_are_those_without_prefix(resources: Resources) -> None:
    add_tenant(resources, "bakery", **HERE)
    assert get_tenant(resources, "bakery").tool_names == "seed"
    update_tenant(resources, "bakery", tool_names="prefixed")
    assert get_tenant(resources, "bakery").tool_names == "prefixed"
    assert update_tenant(resources, "bakery", dialect="instatic").tool_names == "prefixed"
    assert describe_tenant(resources, "bakery")["toolNames"] == "prefixed"


def test_a_tenant_is_cached_for_a_minute(resources: Resources, clock: TestClock) -> None:
    add_tenant(resources, "bakery", **HERE)
    assert get_tenant(resources, "bakery").dialect == "fermata"
    elsewhere = resources_of_new_process(resources)
    update_tenant(elsewhere, "bakery", dialect="instatic")
    clock.advance(59)
    assert get_tenant(resources, "bakery").dialect == "fermata"
    clock.advance(2)
    assert get_tenant(resources, "bakery").dialect == "instatic"


def test_a_rotated_secret_is_valid_during_the_overlap(resources: Resources, clock: TestClock) -> None:
    tenant, first = add_tenant(resources, "bakery", **HERE)
    second = rotate_tenant_secret(resources, "bakery", overlap_seconds=100)
    assert second != first
    rotated = get_tenant(resources, "bakery")
    assert [secret.id for secret in rotated.list_valid_secrets(clock.time())][1:] == [tenant.secrets[0].id]
    assert len(rotated.list_valid_secrets(clock.time() + 101)) == 1


def test_a_second_rotation_removes_the_first_secret(resources: Resources, clock: TestClock) -> None:
    tenant, _ = add_tenant(resources, "bakery", **HERE)
    rotate_tenant_secret(resources, "bakery")
    rotate_tenant_secret(resources, "bakery")
    ids = [secret.id for secret in get_tenant(resources, "bakery").list_valid_secrets(clock.time())]
    assert len(ids) == 2
    assert tenant.secrets[0].id not in ids


def test_a_rotation_without_overlap_ends_the_old_secret_at_once(resources: Resources, clock: TestClock) -> None:
    add_tenant(resources, "bakery", **HERE)
    rotate_tenant_secret(resources, "bakery", overlap_seconds=0)
    assert len(get_tenant(resources, "bakery").secrets) == 1


def test_keys_of_a_jwks_url_cannot_be_rotated(resources: Resources) -> None:
    _, secret = add_tenant(resources, "bakery", **HERE, jwks_url="https://bakery.example/keys")
    assert secret is None
    with pytest.raises(InvalidRequest, match="Rotate them there"):
        rotate_tenant_secret(resources, "bakery")


def test_of_two_concurrent_updates_one_is_a_conflict(resources: Resources) -> None:
    add_tenant(resources, "bakery", **HERE)

    def rotate_while_origins_are_read() -> Iterator[str]:
        rotate_tenant_secret(resources, "bakery")
        yield "https://new.example"

    with pytest.raises(Conflict, match="changed by another request"):
        update_tenant(resources, "bakery", origins=rotate_while_origins_are_read())
    unchanged = get_tenant(resources, "bakery")
    assert unchanged.origins == ()
    assert len(unchanged.secrets) == 2
    assert not is_registered_origin(resources, "https://new.example")


def test_an_unknown_tenant_is_not_found(resources: Resources) -> None:
    for function in (describe_tenant, rotate_tenant_secret, update_tenant):
        with pytest.raises(NotFound, match="no tenant 'nobody'"):
            function(resources, "nobody")


def test_changes_of_a_tenant_whose_writes_are_repeated_because_responses_are_lost_take_effect_once(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_tenant(resources, "bakery", **HERE)
    repeat_single_writes(resources, monkeypatch)
    assert rotate_tenant_secret(resources, "bakery")
    update_tenant(resources, "bakery", dialect="instatic")
    shown = describe_tenant(resources, "bakery")
    assert (shown["dialect"], len(shown["secrets"]), shown["version"]) == ("instatic", 2, 3)


def test_changes_of_a_tenant_that_land_again_later_change_nothing(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_tenant(resources, "bakery", **HERE)
    recorder = WriteRecorder(resources, monkeypatch)
    update_tenant(resources, "bakery", dialect="instatic")
    rotate_tenant_secret(resources, "bakery")
    update_tenant(resources, "bakery", dialect="fermata")
    shown = describe_tenant(resources, "bakery")
    assert len(recorder.requests) == 3

    def check_tenant() -> None:
        assert describe_tenant(resources, "bakery") == shown

    recorder.land_again(check_tenant)
