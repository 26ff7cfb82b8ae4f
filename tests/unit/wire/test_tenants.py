import json
from collections.abc import Iterator
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.wire.tenant import Limits, normal_origin
from fermata.wire.tenants import add_tenant, change_tenant, origin_is_known, rotate_secret, show_tenant, tenant_of
from fermata.words.errors import Conflict, Invalid, NotFound
from tests.desk import TestClock, another_process

HERE: dict[str, Any] = {"issuer": "https://bakery.example", "audience": "fermata"}


def test_a_new_tenant_gets_a_strong_secret_that_is_stored_only_sealed(desk: Desk) -> None:
    _, secret = add_tenant(desk, "bakery", **HERE)
    assert secret is not None
    assert len(secret) >= 43
    stored = desk.tables.get("settings", "t#bakery", "tenant")
    assert stored is not None
    assert secret not in str(stored)
    assert secret.encode() not in bytes(stored["secrets"][0]["sealed"])


def test_showing_a_tenant_tells_everything_but_its_secrets(desk: Desk) -> None:
    _, secret = add_tenant(desk, "bakery", **HERE, origins=["https://Bakery.example/"], dialect="instatic")
    shown = show_tenant(desk, "bakery")
    assert secret is not None
    assert shown["issuer"] == "https://bakery.example"
    assert shown["origins"] == ["https://bakery.example"]
    assert shown["dialect"] == "instatic"
    assert [set(entry) for entry in shown["secrets"]] == [{"id", "createdAt", "until"}]
    assert secret not in json.dumps(shown)


def test_a_tenant_may_bring_its_own_secret(desk: Desk) -> None:
    mine = "correct horse battery staple, and then some"
    assert add_tenant(desk, "bakery", **HERE, secret=mine)[1] == mine


@pytest.mark.parametrize(
    "weak", ["short", "x" * 64, "abcabcabc" * 8, "-----BEGIN PUBLIC KEY-----" + "0123456789abcdef" * 3]
)
def test_a_weak_secret_is_refused(desk: Desk, weak: str) -> None:
    with pytest.raises(Invalid):
        add_tenant(desk, "bakery", **HERE, secret=weak)
    with pytest.raises(NotFound):
        show_tenant(desk, "bakery")


def test_a_name_is_taken_once(desk: Desk) -> None:
    add_tenant(desk, "bakery", **HERE)
    with pytest.raises(Conflict, match="already"):
        add_tenant(desk, "bakery", issuer="https://other.example", audience="fermata")


def test_an_issuer_speaks_for_one_tenant_only(desk: Desk) -> None:
    add_tenant(desk, "bakery", **HERE)
    with pytest.raises(Conflict, match="belongs to tenant 'bakery'"):
        add_tenant(desk, "florist", **HERE)
    with pytest.raises(NotFound):
        show_tenant(desk, "florist")


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
def test_what_would_be_unsafe_is_refused_with_a_reason(desk: Desk, wrong: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"name": "bakery", **HERE} | wrong
    with pytest.raises(Invalid, match=says):
        add_tenant(desk, given.pop("name"), **given)


def test_on_the_local_stage_plain_http_will_do(desk: Desk) -> None:
    local = another_process(desk, fermata_stage="local")
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
    assert normal_origin(text) == normal


def test_an_origin_is_known_as_soon_as_any_tenant_lists_it(desk: Desk) -> None:
    assert not origin_is_known(desk, "https://shared.example")
    add_tenant(desk, "bakery", **HERE, origins=["https://shared.example"])
    add_tenant(desk, "florist", issuer="https://florist.example", audience="f", origins=["https://shared.example"])
    assert origin_is_known(desk, "https://shared.example")
    assert not origin_is_known(desk, "https://elsewhere.example")


def test_an_origin_taken_away_is_unknown_a_minute_later(desk: Desk, clock: TestClock) -> None:
    add_tenant(desk, "bakery", **HERE, origins=["https://old.example", "https://kept.example"])
    assert origin_is_known(desk, "https://old.example")
    change_tenant(desk, "bakery", origins=["https://kept.example", "https://new.example"])
    clock.go_on(61)
    assert not origin_is_known(desk, "https://old.example")
    assert origin_is_known(desk, "https://kept.example")
    assert origin_is_known(desk, "https://new.example")


def test_changing_one_thing_leaves_the_rest(desk: Desk) -> None:
    add_tenant(desk, "bakery", **HERE, origins=["https://bakery.example"], limits=Limits(token_seconds=600))
    change_tenant(desk, "bakery", limits=Limits(max_rounds=7))
    changed = tenant_of(desk, "bakery")
    assert changed.limits == Limits(max_rounds=7, token_seconds=600)
    assert changed.origins == ("https://bakery.example",)
    assert len(changed.secrets) == 1


def test_the_names_of_tools_are_the_seeds_until_somebody_says_otherwise(desk: Desk) -> None:
    add_tenant(desk, "bakery", **HERE)
    assert tenant_of(desk, "bakery").tool_names == "seed"
    change_tenant(desk, "bakery", tool_names="prefixed")
    assert tenant_of(desk, "bakery").tool_names == "prefixed"
    assert change_tenant(desk, "bakery", dialect="instatic").tool_names == "prefixed"
    assert show_tenant(desk, "bakery")["toolNames"] == "prefixed"


def test_a_tenant_is_remembered_for_a_minute(desk: Desk, clock: TestClock) -> None:
    add_tenant(desk, "bakery", **HERE)
    assert tenant_of(desk, "bakery").dialect == "fermata"
    elsewhere = another_process(desk)
    change_tenant(elsewhere, "bakery", dialect="instatic")
    clock.go_on(59)
    assert tenant_of(desk, "bakery").dialect == "fermata"
    clock.go_on(2)
    assert tenant_of(desk, "bakery").dialect == "instatic"


def test_rotating_keeps_the_last_secret_for_the_overlap_and_no_longer(desk: Desk, clock: TestClock) -> None:
    tenant, first = add_tenant(desk, "bakery", **HERE)
    second = rotate_secret(desk, "bakery", overlap=100)
    assert second != first
    rotated = tenant_of(desk, "bakery")
    assert [secret.id for secret in rotated.valid_secrets(clock.time())][1:] == [tenant.secrets[0].id]
    assert len(rotated.valid_secrets(clock.time() + 101)) == 1


def test_a_third_secret_pushes_the_first_one_out(desk: Desk, clock: TestClock) -> None:
    tenant, _ = add_tenant(desk, "bakery", **HERE)
    rotate_secret(desk, "bakery")
    rotate_secret(desk, "bakery")
    ids = [secret.id for secret in tenant_of(desk, "bakery").valid_secrets(clock.time())]
    assert len(ids) == 2
    assert tenant.secrets[0].id not in ids


def test_a_rotation_without_overlap_ends_the_old_secret_at_once(desk: Desk, clock: TestClock) -> None:
    add_tenant(desk, "bakery", **HERE)
    rotate_secret(desk, "bakery", overlap=0)
    assert len(tenant_of(desk, "bakery").secrets) == 1


def test_keys_behind_a_jwks_url_are_not_rotated_here(desk: Desk) -> None:
    _, secret = add_tenant(desk, "bakery", **HERE, jwks_url="https://bakery.example/keys")
    assert secret is None
    with pytest.raises(Invalid, match="Rotate them there"):
        rotate_secret(desk, "bakery")


def test_of_two_changes_at_once_one_is_told_to_look_again(desk: Desk) -> None:
    add_tenant(desk, "bakery", **HERE)

    def origins_read_while_somebody_rotates() -> Iterator[str]:
        rotate_secret(desk, "bakery")
        yield "https://new.example"

    with pytest.raises(Conflict, match="changed by somebody else"):
        change_tenant(desk, "bakery", origins=origins_read_while_somebody_rotates())
    unchanged = tenant_of(desk, "bakery")
    assert unchanged.origins == ()
    assert len(unchanged.secrets) == 2
    assert not origin_is_known(desk, "https://new.example")


def test_an_unknown_tenant_is_not_found(desk: Desk) -> None:
    for verb in (show_tenant, rotate_secret, change_tenant):
        with pytest.raises(NotFound, match="no tenant 'nobody'"):
            verb(desk, "nobody")
