"""API keys over HTTP: created, shown once, used, limited, rotated, revoked (decision 0256)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Put
from fermata.aws.resources import Resources
from fermata.credentials import last_used
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Conflict, InvalidRequest, NotFound, Unauthorized
from fermata.wire.auth import api_key_store
from fermata.wire.auth.api_key_store import create_api_key, list_api_keys, revoke_api_key, rotate_api_key
from fermata.wire.auth.authenticate_api_key import authenticate_api_key, record_api_key_use
from fermata.wire.http.api_gateway import request_from_event
from fermata.wire.http.dispatch import handle_request
from functions.api import app as api
from functions.credentials import app
from tests.proxy_events import make_proxy_event
from tests.resources import TestClock, resources_of_new_process
from tests.tenant_tokens import TokenSigner, make_tenant

KEYS = "/admin/api/ai/api-keys"
CONVERSATIONS = "/admin/api/ai/conversations"
NEW = {"label": "Importer", "capabilities": ["ai.chat"]}


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources, "bakery")


def send(method: str, path: str, signer: TokenSigner, body: Any = None, **claims: Any) -> tuple[int, Any]:
    answer = app.handler(make_proxy_event(method, path, signer.bearer_headers(**claims), body), None)
    return answer["statusCode"], json.loads(answer["body"] or "null")


def create_key(signer: TokenSigner, **members: Any) -> tuple[Any, str]:
    status, body = send("POST", KEYS, signer, NEW | members)
    assert status == 201, body
    return body["apiKey"], body["key"]


def call(key: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Call the function `api` as a server that has a key."""
    answer = api.handler(make_proxy_event(method, path, {"authorization": f"Bearer {key}"}, body), None)
    return answer["statusCode"], json.loads(answer["body"] or "null")


MANAGER = Caller(tenant="bakery", user="ada", capabilities=frozenset({"ai.chat", "ai.keys.manage"}))


def list_raw_rows(resources: Resources) -> str:
    items = resources.tables._client.scan(TableName=resources.settings.settings_table)["Items"]
    return json.dumps(items, default=str)


def test_a_server_calls_with_a_key_and_owns_what_it_creates(resources: Resources, bakery: TokenSigner) -> None:
    view, key = create_key(bakery)
    assert key.startswith(f"fmk_bakery_{view['id']}_")
    assert view["user"] == f"apikey:{view['id']}"
    status, body = call(key, "POST", CONVERSATIONS, {"scope": "site"})
    assert status == 201
    assert call(key, "GET", f"{CONVERSATIONS}/{body['conversation']['id']}")[0] == 200
    _, other_key = create_key(bakery)
    assert call(other_key, "GET", f"{CONVERSATIONS}/{body['conversation']['id']}")[0] == 404


def test_the_secret_is_shown_once_and_stored_as_a_hash(resources: Resources, bakery: TokenSigner) -> None:
    view, key = create_key(bakery)
    secret = key.rpartition(f"{view['id']}_")[2]
    assert len(secret) == 43
    status, body = send("GET", KEYS, bakery)
    assert status == 200
    assert [listed["id"] for listed in body["apiKeys"]] == [view["id"]]
    assert secret not in json.dumps(body)
    assert secret not in list_raw_rows(resources)


def test_a_key_may_do_what_it_was_given_and_no_more(bakery: TokenSigner) -> None:
    _, key = create_key(bakery, capabilities=["ai.chat"])
    assert call(key, "GET", "/admin/api/ai/audit")[0] == 403
    _, auditor = create_key(bakery, capabilities=["ai.audit.read"])
    assert call(auditor, "GET", "/admin/api/ai/audit")[0] == 200
    assert call(auditor, "POST", CONVERSATIONS, {"scope": "site"})[0] == 403


def test_nobody_gives_a_key_what_they_may_not_do_and_no_key_manages_keys(bakery: TokenSigner) -> None:
    managed_only = {"capabilities": (str(Capability.KEYS),)}
    assert send("POST", KEYS, bakery, NEW, **managed_only)[0] == 403
    assert send("POST", KEYS, bakery, NEW | {"capabilities": ["ai.keys.manage"]})[0] == 400
    assert send("POST", KEYS, bakery, NEW, capabilities=("ai.chat",))[0] == 403


def test_a_key_for_one_scope_is_refused_in_another(bakery: TokenSigner) -> None:
    _, key = create_key(bakery, scopes=["content"])
    assert call(key, "POST", CONVERSATIONS, {"scope": "content"})[0] == 201
    assert call(key, "POST", CONVERSATIONS, {"scope": "site"})[0] == 403
    assert call(key, "GET", "/admin/api/ai/tools/content")[0] == 200
    assert call(key, "GET", "/admin/api/ai/tools/site")[0] == 403


def test_a_rotated_key_has_two_secrets_for_a_while_and_stays_the_same_user(
    resources: Resources, clock: TestClock
) -> None:
    key, old = create_api_key(resources, MANAGER, "Importer", ["ai.chat"])
    _, new = rotate_api_key(resources, MANAGER, key.id, overlap_seconds=600)
    assert authenticate_api_key(resources, old) == authenticate_api_key(resources, new) == key.to_caller()
    clock.advance(601)
    assert authenticate_api_key(resources, new) == key.to_caller()
    with pytest.raises(Unauthorized):
        authenticate_api_key(resources, old)


def test_a_rotation_without_overlap_ends_the_old_secret(resources: Resources, bakery: TokenSigner) -> None:
    view, old = create_key(bakery)
    assert send("POST", f"{KEYS}/{view['id']}/rotate", bakery, {"overlapSeconds": 0})[0] == 200
    with pytest.raises(Unauthorized):
        authenticate_api_key(resources_of_new_process(resources), old)


def test_a_revoked_key_is_refused_and_stays_listed(resources: Resources, bakery: TokenSigner) -> None:
    view, key = create_key(bakery)
    for _ in range(2):
        assert send("DELETE", f"{KEYS}/{view['id']}", bakery) == (200, {"ok": True})
    assert send("GET", KEYS, bakery)[1]["apiKeys"][0]["revokedAt"]
    assert send("POST", f"{KEYS}/{view['id']}/rotate", bakery)[0] == 404
    with pytest.raises(Unauthorized):
        authenticate_api_key(resources_of_new_process(resources), key)


def test_a_process_that_has_read_a_key_accepts_it_for_a_minute_after_its_end(
    resources: Resources, clock: TestClock
) -> None:
    key, text = create_api_key(resources, MANAGER, "Importer", ["ai.chat"])
    warm = resources_of_new_process(resources)
    assert authenticate_api_key(warm, text)
    revoke_api_key(resources, "bakery", key.id)
    clock.advance(59)
    assert authenticate_api_key(warm, text), "documented in docs/api-keys.md"
    clock.advance(2)
    with pytest.raises(Unauthorized):
        authenticate_api_key(warm, text)


@pytest.mark.parametrize("other", ["bakery-2", "baker", "bakery-", "b"])
def test_no_key_is_mistaken_for_that_of_a_tenant_with_a_similar_name(
    resources: Resources, bakery: TokenSigner, other: str
) -> None:
    make_tenant(resources, other)
    _, key = create_key(bakery)
    for changed in (key.replace("fmk_bakery_", f"fmk_{other}_"), key.replace("fmk_bakery_", f"fmk_bakery_{other}_")):
        assert call(changed, "GET", CONVERSATIONS)[0] == 401


def test_a_write_that_lands_again_does_not_make_a_revoked_key_valid(resources: Resources, bakery: TokenSigner) -> None:
    """The creation and the rotation of a key are repeated after its end."""
    view, key = create_key(bakery)
    table, partition = resources.settings.settings_table, "t#bakery#apikeys"
    created = resources.tables.get_item(table, partition, view["id"])
    _, rotated_body = send("POST", f"{KEYS}/{view['id']}/rotate", bakery)
    rotated = resources.tables.get_item(table, partition, view["id"])
    assert created
    assert rotated
    send("DELETE", f"{KEYS}/{view['id']}", bakery)
    with pytest.raises(ConditionFailed):
        resources.tables.write_items(Put(table, created, if_absent=True))
    late_rotation = Put(table, rotated, condition="version = :version", values={":version": created["version"]})
    with pytest.raises(ConditionFailed):
        resources.tables.write_items(late_rotation)
    for text in (key, rotated_body["key"]):
        with pytest.raises(Unauthorized):
            authenticate_api_key(resources_of_new_process(resources), text)


def act_before_the_next_write(resources: Resources, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    write, acted = resources.tables.write_items, list[bool]()

    def act_and_write(*writes: Any) -> None:
        if not acted:
            acted.append(True)
            act()
        write(*writes)

    monkeypatch.setattr(resources.tables, "write_items", act_and_write)


def test_a_key_that_is_rotated_while_it_is_revoked_is_revoked(
    resources: Resources, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, text = create_api_key(resources, MANAGER, "Importer", ["ai.chat"])
    act_before_the_next_write(resources, monkeypatch, lambda: rotate_api_key(resources, MANAGER, key.id))
    revoke_api_key(resources, "bakery", key.id)
    with pytest.raises(Unauthorized):
        authenticate_api_key(resources_of_new_process(resources), text)


def test_a_key_is_revoked_however_often_it_is_rotated_meanwhile(
    resources: Resources, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who has the key's rights rotates it before every write of whoever revokes it."""
    key, _ = create_api_key(resources, MANAGER, "Importer", ["ai.chat"])
    other, texts, write = resources_of_new_process(resources), list[str](), resources.tables.write_items

    def rotate_and_write(*writes: Any) -> None:
        texts.append(rotate_api_key(other, MANAGER, key.id)[1])
        write(*writes)

    monkeypatch.setattr(resources.tables, "write_items", rotate_and_write)
    revoke_api_key(resources, "bakery", key.id)
    with pytest.raises(Unauthorized):
        authenticate_api_key(resources_of_new_process(resources), texts[-1])
    with pytest.raises(NotFound):
        rotate_api_key(other, MANAGER, key.id)


def test_whoever_rotates_a_key_that_is_revoked_meanwhile_is_told_that_it_is_gone(
    resources: Resources, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No "try again": there is nothing to try."""
    key, _ = create_api_key(resources, MANAGER, "Importer", ["ai.chat"])
    other = resources_of_new_process(resources)
    act_before_the_next_write(resources, monkeypatch, lambda: revoke_api_key(other, "bakery", key.id))
    with pytest.raises(NotFound):
        rotate_api_key(resources, MANAGER, key.id)


def test_of_two_rotations_at_once_one_is_told_so(
    resources: Resources, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, _ = create_api_key(resources, MANAGER, "Importer", ["ai.chat"])
    other = resources_of_new_process(resources)
    act_before_the_next_write(resources, monkeypatch, lambda: rotate_api_key(other, MANAGER, key.id))
    with pytest.raises(Conflict, match="changed by another request"):
        rotate_api_key(resources, MANAGER, key.id)


def test_a_key_that_is_revoked_again_keeps_the_time_of_its_end(resources: Resources, clock: TestClock) -> None:
    key, _ = create_api_key(resources, MANAGER, "Importer", ["ai.chat"])
    revoke_api_key(resources, "bakery", key.id)
    [revoked] = list_api_keys(resources, "bakery")
    clock.advance(60)
    revoke_api_key(resources, "bakery", key.id)
    assert list_api_keys(resources, "bakery")[0].revoked_at == revoked.revoked_at
    with pytest.raises(NotFound):
        revoke_api_key(resources, "bakery", "0" * 16)


def test_keys_that_are_created_at_once_are_no_more_than_a_tenant_may_have(
    resources: Resources, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_key_store, "MAX_API_KEYS", 2)
    create_api_key(resources, MANAGER, "first", ["ai.chat"])
    other = resources_of_new_process(resources)
    act_before_the_next_write(resources, monkeypatch, lambda: create_api_key(other, MANAGER, "second", ["ai.chat"]))
    with pytest.raises(InvalidRequest, match="2 keys at most"):
        create_api_key(resources, MANAGER, "third", ["ai.chat"])
    assert sorted(key.label for key in list_api_keys(resources, "bakery")) == ["first", "second"]


def test_an_expired_key_is_refused_also_while_it_is_cached(resources: Resources, clock: TestClock) -> None:
    _, key = create_api_key(resources, MANAGER, "Importer", ["ai.chat"], expires_in_seconds=60)
    clock.advance(59)
    assert authenticate_api_key(resources, key)
    clock.advance(1)
    with pytest.raises(Unauthorized):
        authenticate_api_key(resources, key)


def test_rows_of_revoked_keys_go_after_a_month(resources: Resources, clock: TestClock) -> None:
    old, _ = create_api_key(resources, MANAGER, "Old", ["ai.chat"])
    revoke_api_key(resources, "bakery", old.id)
    clock.advance(31 * 86_400)
    new, _ = create_api_key(resources, MANAGER, "New", ["ai.chat"])
    assert [key.id for key in list_api_keys(resources, "bakery")] == [new.id]


@pytest.mark.parametrize("change", [lambda key: key[:-1] + ("A" if key[-1] != "A" else "B"), lambda key: key[:-1]])
def test_a_key_with_another_secret_is_refused(bakery: TokenSigner, change: Any) -> None:
    _, key = create_key(bakery)
    assert call(change(key), "GET", CONVERSATIONS)[0] == 401


@pytest.mark.parametrize("text", ["fmk_", "fmk_bakery_0000000000000000_" + "a" * 43, "fmk_Ä_x_y", "fmk_" + "a" * 9000])
def test_what_is_no_key_is_refused(bakery: TokenSigner, text: str) -> None:
    assert call(text.encode().decode("latin-1"), "GET", CONVERSATIONS)[0] == 401


def test_a_key_of_one_tenant_is_none_of_another(resources: Resources, bakery: TokenSigner) -> None:
    make_tenant(resources, "florist")
    _, key = create_key(bakery)
    assert call(key.replace("_bakery_", "_florist_"), "GET", CONVERSATIONS)[0] == 401


def test_a_request_with_a_key_reads_one_row_more_than_the_tenant_and_the_next_reads_none(
    resources: Resources, bakery: TokenSigner
) -> None:
    _, key = create_key(bakery)
    fresh = resources_of_new_process(resources)
    calls: list[str] = []
    fresh.tables._client.meta.events.register("before-call.dynamodb", lambda model, **_: calls.append(model.name))
    for _ in range(2):
        caller = authenticate_api_key(fresh, key)
        record_api_key_use(fresh, caller)
    assert calls == ["GetItem", "PutItem"]


def test_a_last_use_expires_also_when_its_key_is_gone(resources: Resources, bakery: TokenSigner) -> None:
    caller = create_api_key(resources, MANAGER, "Importer", ["ai.chat"])[0].to_caller()
    record_api_key_use(resources, caller)
    last_used.record_use(resources, "bakery", "credential-1")
    rows = [row for row in resources.tables.scan_page("usage", None)[0] if "last_used_at" in row]
    assert [row["ttl"] - int(resources.clock.time()) for row in rows] == [400 * 86_400] * 2


def test_the_last_use_is_shown(bakery: TokenSigner) -> None:
    _, key = create_key(bakery)
    assert send("GET", KEYS, bakery)[1]["apiKeys"][0]["lastUsedAt"] is None
    assert call(key, "GET", f"{CONVERSATIONS}/none")[0] == 404
    assert send("GET", KEYS, bakery)[1]["apiKeys"][0]["lastUsedAt"]


def test_a_key_in_a_cookie_is_no_token(bakery: TokenSigner) -> None:
    _, key = create_key(bakery)
    answer = api.handler(make_proxy_event("GET", CONVERSATIONS, {"cookie": f"fermata_session={key}.a.b"}), None)
    assert answer["statusCode"] == 401


def test_nobody_gets_the_secret_of_a_key_that_may_do_more_than_they(bakery: TokenSigner) -> None:
    view, old = create_key(bakery, capabilities=["ai.audit.read"])
    managed_only = {"capabilities": (str(Capability.KEYS),)}
    assert send("POST", f"{KEYS}/{view['id']}/rotate", bakery, **managed_only)[0] == 403
    assert call(old, "GET", "/admin/api/ai/audit")[0] == 200
    assert send("DELETE", f"{KEYS}/{view['id']}", bakery, **managed_only)[0] == 200, "ending one gives nothing away"


TENANT_WIDE = ["ai.providers.manage", "ai.audit.read", "ai.data.manage"]


@pytest.mark.parametrize("capability", TENANT_WIDE)
def test_a_key_for_one_scope_is_not_given_what_concerns_all(bakery: TokenSigner, capability: str) -> None:
    body = NEW | {"scopes": ["content"], "capabilities": ["ai.chat", capability]}
    status, answer = send("POST", KEYS, bakery, body)
    assert status == 400
    assert capability in answer["error"]


@pytest.mark.parametrize("capability", TENANT_WIDE)
def test_a_stored_key_for_one_scope_does_not_act_on_all(resources: Resources, capability: str) -> None:
    """A row from before creation refused it."""
    key, text = create_api_key(resources, MANAGER, "Importer", ["ai.chat"], scopes=["content"])
    table, partition = resources.settings.settings_table, "t#bakery#apikeys"
    row = resources.tables.get_item(table, partition, key.id)
    assert row
    resources.tables.write_items(Put(table, row | {"capabilities": ["ai.chat", capability]}))
    assert authenticate_api_key(resources, text).capabilities == {"ai.chat"}


def test_a_key_of_a_tenant_that_is_gone_is_no_key(resources: Resources, bakery: TokenSigner) -> None:
    _, key = create_key(bakery)
    resources.tables.batch_delete(resources.settings.settings_table, [("t#bakery", "tenant")])
    fresh = resources_of_new_process(resources)
    request = request_from_event(make_proxy_event("GET", CONVERSATIONS, {"authorization": f"Bearer {key}"}))
    assert handle_request(fresh, api.router.routes, request).status == 401


def test_a_token_of_a_tenant_that_is_gone_is_no_token(resources: Resources, bakery: TokenSigner) -> None:
    """The row of its issuer is still cached, or was put again by a late write."""
    resources.tables.batch_delete(resources.settings.settings_table, [("t#bakery", "tenant")])
    request = request_from_event(make_proxy_event("GET", CONVERSATIONS, bakery.bearer_headers()))
    assert handle_request(resources_of_new_process(resources), api.router.routes, request).status == 401
