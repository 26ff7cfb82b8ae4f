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
from tests.resources import TestClock, resources_of_new_process

HERE: dict[str, Any] = {"issuer": "https://bakery.example", "audience": "fermata"}


def test_a_new_tenant_gets_a_strong_secret_that_is_stored_only_sealed(resources: Resources) -> None:
    _, secret = add_tenant(resources, "bakery", **HERE)
    assert secret is not None
    assert len(secret) >= 43
    stored = resources.tables.get_item("settings", "t#bakery", "tenant")
    assert stored is not None
    assert secret not in str(stored)
    assert secret.encode() not in bytes(stored["secrets"][0]["sealed"])


def test_showing_a_tenant_tells_everything_but_its_secrets(resources: Resources) -> None:
    _, secret = add_tenant(resources, "bakery", **HERE, origins=["https://Bakery.example/"], dialect="instatic")
    shown = describe_tenant(resources, "bakery")
    assert secret is not None
    assert shown["issuer"] == "https://bakery.example"
    assert shown["origins"] == ["https://bakery.example"]
    assert shown["dialect"] == "instatic"
    assert [set(entry) for entry in shown["secrets"]] == [{"id", "createdAt", "until"}]
    assert secret not in json.dumps(shown)


def test_a_tenant_may_bring_its_own_secret(resources: Resources) -> None:
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


def test_a_name_is_taken_once(resources: Resources) -> None:
    add_tenant(resources, "bakery", **HERE)
    with pytest.raises(Conflict, match="already"):
        add_tenant(resources, "bakery", issuer="https://other.example", audience="fermata")


def test_an_issuer_speaks_for_one_tenant_only(resources: Resources) -> None:
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
def test_what_would_be_unsafe_is_refused_with_a_reason(resources: Resources, wrong: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"name": "bakery", **HERE} | wrong
    with pytest.raises(InvalidRequest, match=says):
        add_tenant(resources, given.pop("name"), **given)


def test_on_the_local_stage_plain_http_will_do(resources: Resources) -> None:
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
def test_origins_compare_as_browsers_send_them(text: str, normal: str | None) -> None:
    assert normalize_origin(text) == normal


def test_an_origin_is_known_as_soon_as_any_tenant_lists_it(resources: Resources) -> None:
    assert not is_registered_origin(resources, "https://shared.example")
    add_tenant(resources, "bakery", **HERE, origins=["https://shared.example"])
    add_tenant(resources, "florist", issuer="https://florist.example", audience="f", origins=["https://shared.example"])
    assert is_registered_origin(resources, "https://shared.example")
    assert not is_registered_origin(resources, "https://elsewhere.example")


def test_an_origin_taken_away_is_unknown_a_minute_later(resources: Resources, clock: TestClock) -> None:
    add_tenant(resources, "bakery", **HERE, origins=["https://old.example", "https://kept.example"])
    assert is_registered_origin(resources, "https://old.example")
    update_tenant(resources, "bakery", origins=["https://kept.example", "https://new.example"])
    clock.advance(61)
    assert not is_registered_origin(resources, "https://old.example")
    assert is_registered_origin(resources, "https://kept.example")
    assert is_registered_origin(resources, "https://new.example")


def test_changing_one_thing_leaves_the_rest(resources: Resources) -> None:
    add_tenant(resources, "bakery", **HERE, origins=["https://bakery.example"], limits=TenantLimits(token_seconds=600))
    update_tenant(resources, "bakery", limits=TenantLimits(max_rounds=7))
    changed = get_tenant(resources, "bakery")
    assert changed.limits == TenantLimits(max_rounds=7, token_seconds=600)
    assert changed.origins == ("https://bakery.example",)
    assert len(changed.secrets) == 1


def test_the_names_of_tools_are_the_seeds_until_somebody_says_otherwise(resources: Resources) -> None:
    add_tenant(resources, "bakery", **HERE)
    assert get_tenant(resources, "bakery").tool_names == "seed"
    update_tenant(resources, "bakery", tool_names="prefixed")
    assert get_tenant(resources, "bakery").tool_names == "prefixed"
    assert update_tenant(resources, "bakery", dialect="instatic").tool_names == "prefixed"
    assert describe_tenant(resources, "bakery")["toolNames"] == "prefixed"


def test_a_tenant_is_remembered_for_a_minute(resources: Resources, clock: TestClock) -> None:
    add_tenant(resources, "bakery", **HERE)
    assert get_tenant(resources, "bakery").dialect == "fermata"
    elsewhere = resources_of_new_process(resources)
    update_tenant(elsewhere, "bakery", dialect="instatic")
    clock.advance(59)
    assert get_tenant(resources, "bakery").dialect == "fermata"
    clock.advance(2)
    assert get_tenant(resources, "bakery").dialect == "instatic"


def test_rotating_keeps_the_last_secret_for_the_overlap_and_no_longer(resources: Resources, clock: TestClock) -> None:
    tenant, first = add_tenant(resources, "bakery", **HERE)
    second = rotate_tenant_secret(resources, "bakery", overlap_seconds=100)
    assert second != first
    rotated = get_tenant(resources, "bakery")
    assert [secret.id for secret in rotated.list_valid_secrets(clock.time())][1:] == [tenant.secrets[0].id]
    assert len(rotated.list_valid_secrets(clock.time() + 101)) == 1


def test_a_third_secret_pushes_the_first_one_out(resources: Resources, clock: TestClock) -> None:
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


def test_keys_behind_a_jwks_url_are_not_rotated_here(resources: Resources) -> None:
    _, secret = add_tenant(resources, "bakery", **HERE, jwks_url="https://bakery.example/keys")
    assert secret is None
    with pytest.raises(InvalidRequest, match="Rotate them there"):
        rotate_tenant_secret(resources, "bakery")


def test_of_two_changes_at_once_one_is_told_to_look_again(resources: Resources) -> None:
    add_tenant(resources, "bakery", **HERE)

    def origins_read_while_somebody_rotates() -> Iterator[str]:
        rotate_tenant_secret(resources, "bakery")
        yield "https://new.example"

    with pytest.raises(Conflict, match="changed by somebody else"):
        update_tenant(resources, "bakery", origins=origins_read_while_somebody_rotates())
    unchanged = get_tenant(resources, "bakery")
    assert unchanged.origins == ()
    assert len(unchanged.secrets) == 2
    assert not is_registered_origin(resources, "https://new.example")


def test_an_unknown_tenant_is_not_found(resources: Resources) -> None:
    for verb in (describe_tenant, rotate_tenant_secret, update_tenant):
        with pytest.raises(NotFound, match="no tenant 'nobody'"):
            verb(resources, "nobody")
