"""Remote tools over HTTP: registered, shown without their secrets, changed, removed."""

import json
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict
from fermata.drivers.transport import url_guard
from fermata.remote_tools import tool_registry
from fermata.remote_tools.stored_tools import read_definitions, read_registered_tools
from fermata.remote_tools.tool_definition import open_tool_secrets
from functions.credentials import app
from tests.proxy_events import make_proxy_event
from tests.resources import TestClock
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.remote_tools.manifests import make_manifest_json

ADMIN = ["ai.chat", "ai.tools.manage"]
CALLER = Caller(tenant="bakery", user="ada", capabilities=frozenset(ADMIN))
ENDPOINT = "https://vendor.example/tools/getProduct"
KEY = "k-secret-of-the-vendor"
NEW: dict[str, Any] = {"manifest": make_manifest_json(), "endpoint": ENDPOINT, "staticHeaders": {"X-Api-Key": KEY}}


@pytest.fixture
def bakery(resources: Resources, deployed: None, monkeypatch: pytest.MonkeyPatch) -> TokenSigner:
    addresses = {"vendor.example": ("93.184.216.34",), "internal.example": ("10.0.0.5",)}
    monkeypatch.setattr(url_guard, "_resolve", lambda host, _port: addresses[host])
    return make_tenant(resources, "bakery")


def send(method: str, path: str, signer: TokenSigner, body: Any = None, **claims: Any) -> tuple[int, Any]:
    headers = signer.bearer_headers(**({"capabilities": ADMIN} | claims))
    answer = app.handler(make_proxy_event(method, path, headers, body), None)
    return answer["statusCode"], json.loads(answer["body"] or "null")


def register(signer: TokenSigner, **members: Any) -> Any:
    status, body = send("POST", "/tools/register", signer, NEW | members)
    assert status == 201, body
    return body


def test_a_tool_is_registered_and_listed_without_its_secrets(bakery: TokenSigner) -> None:
    body = register(bakery)
    assert body["signingSecret"].startswith("whsec_")
    assert body["tool"]["manifest"] == make_manifest_json(enabled=True, retryPolicy={"maxAttempts": 2, "backoffMs": 0})
    assert body["tool"]["headerNames"] == ["x-api-key"]
    status, listed = send("GET", "/tools", bakery)
    assert (status, listed) == (200, {"tools": [body["tool"]]})
    assert KEY not in json.dumps([body, listed])
    assert "signingSecret" not in json.dumps(listed)


def test_secrets_are_sealed_in_the_table(resources: Resources, bakery: TokenSigner) -> None:
    secret = register(bakery)["signingSecret"]
    items = resources.tables._client.scan(TableName=resources.settings.settings_table)["Items"]
    assert KEY not in json.dumps(items, default=str)
    assert secret not in json.dumps(items, default=str)


@pytest.mark.parametrize(
    ("members", "status", "says"),
    [
        ({"endpoint": "//x"}, 400, "not a URL"),
        ({"endpoint": "http://vendor.example/t"}, 400, "https"),
        ({"endpoint": "https://vendor.example:8443/t"}, 400, "port"),
        ({"endpoint": "https://internal.example/t"}, 400, "not public"),
        ({"endpoint": "https://a:b@vendor.example/t"}, 400, "password"),
        ({"endpoint": "ftp://vendor.example/t"}, 400, "URL"),
        ({"staticHeaders": {"Host": "x"}}, 400, "cannot be set"),
        ({"staticHeaders": {"webhook-signature": "x"}}, 400, "cannot be set"),
        ({"staticHeaders": {"x y": "x"}}, 400, "cannot be set"),
        ({"staticHeaders": {"x": "a\r\nb: c"}}, 400, "printable"),
        ({"staticHeaders": {"x": ""}}, 400, "printable"),
        ({"staticHeaders": {f"x-{number}": "x" * 4000 for number in range(2)}}, 400, "sealed"),
        ({"scopes": ["nowhere"]}, 400, "no scope nowhere"),
        ({"manifest": make_manifest_json(name="insertHtml")}, 409, "built-in"),
        ({"manifest": make_manifest_json(name=" SITE_insert_html ")}, 409, "built-in"),
        ({"manifest": make_manifest_json(name="unsplash.search"), "replace": True}, 409, "built-in"),
        ({"manifest": make_manifest_json(name="submit.edit.plan")}, 409, "built-in"),
        ({"surprise": 1}, 400, "surprise"),
    ],
)
def test_what_may_not_be_registered_is_refused(
    bakery: TokenSigner, members: dict[str, Any], status: int, says: str
) -> None:
    answered, body = send("POST", "/tools/register", bakery, NEW | members)
    assert answered == status
    assert says in body["error"]
    assert send("GET", "/tools", bakery) == (200, {"tools": []})


def test_a_wrong_manifest_is_refused_with_the_member(bakery: TokenSigner) -> None:
    manifest = make_manifest_json(retryPolicy={"maxAttempts": 6})
    status, body = send("POST", "/tools/register", bakery, NEW | {"manifest": manifest})
    assert (status, body["code"], body["field"]) == (400, "invalid_manifest", "retryPolicy.maxAttempts")


@pytest.mark.parametrize(("method", "path"), [("GET", "/tools"), ("POST", "/tools/register"), ("PATCH", "/tools/x"),
                                              ("DELETE", "/tools/x")])  # fmt: skip
def test_only_administrators_manage_tools(bakery: TokenSigner, method: str, path: str) -> None:
    assert send(method, path, bakery, {}, capabilities=["ai.chat", "ai.tools.write"])[0] == 403


def test_a_name_that_is_taken_is_replaced_only_on_request(bakery: TokenSigner) -> None:
    first = register(bakery)
    again = NEW | {"manifest": make_manifest_json(name="PIM.getProduct", description="Newer.")}
    assert send("POST", "/tools/register", bakery, again)[0] == 409
    replaced = register(bakery, **again, replace=True)
    assert "signingSecret" not in replaced  # it keeps the one it has
    assert replaced["tool"]["definition"] != first["tool"]["definition"]
    assert [tool["manifest"]["name"] for tool in send("GET", "/tools", bakery)[1]["tools"]] == ["PIM.getProduct"]


def test_a_tool_is_disabled_and_enabled(bakery: TokenSigner) -> None:
    tool = register(bakery)["tool"]
    status, body = send("PATCH", "/tools/PIM.GETPRODUCT", bakery, {"enabled": False})
    assert (status, body["tool"]["manifest"]["enabled"]) == (200, False)
    assert body["tool"]["definition"] == tool["definition"]
    assert send("PATCH", "/tools/pim.getProduct", bakery, {"enabled": True})[1]["tool"]["manifest"]["enabled"] is True


def test_headers_and_secret_are_replaced_while_running_turns_keep_theirs(
    resources: Resources, bakery: TokenSigner
) -> None:
    first = register(bakery)
    _, second = send("PATCH", "/tools/pim.getProduct", bakery, {"staticHeaders": {"x-new": "2"}})
    _, third = send("PATCH", "/tools/pim.getProduct", bakery, {"rotateSigningSecret": True})
    ids = [body["tool"]["definition"] for body in (first, second, third)]
    definitions = read_definitions(resources, "bakery", ids)
    secrets = [open_tool_secrets(resources, definitions[one]) for one in ids]
    assert [one.headers for one in secrets if one] == [{"x-api-key": KEY}, {"x-new": "2"}, {"x-new": "2"}]
    assert secrets[2] is not None
    assert secrets[2].signing_secrets == (first["signingSecret"], third["signingSecret"])


def test_a_tool_is_removed(bakery: TokenSigner) -> None:
    register(bakery)
    assert send("DELETE", "/tools/pim.getProduct", bakery) == (200, {"ok": True})
    assert send("DELETE", "/tools/pim.getProduct", bakery)[0] == 404
    assert send("PATCH", "/tools/pim.getProduct", bakery, {"enabled": True})[0] == 404
    assert send("GET", "/tools", bakery) == (200, {"tools": []})
    assert register(bakery)["signingSecret"]


def test_versions_that_no_turn_can_use_any_more_are_deleted(
    resources: Resources, bakery: TokenSigner, clock: TestClock
) -> None:
    def change(*, enabled: bool) -> None:
        tool_registry.change_tool(resources, CALLER, "pim.getProduct", tool_registry.ToolChange(enabled=enabled))

    manifest = make_manifest_json()
    old = tool_registry.register_tool(resources, CALLER, manifest, ENDPOINT).view["definition"]
    tool_registry.register_tool(resources, CALLER, manifest, ENDPOINT, replace=True)
    clock.advance(resources.settings.turn_lifetime_seconds - 10)
    change(enabled=False)
    assert old in read_definitions(resources, "bakery", [old])
    clock.advance(60)
    change(enabled=True)
    assert read_definitions(resources, "bakery", [old]) == {}


def test_of_two_changes_at_once_one_is_refused(
    resources: Resources, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(bakery)
    read = read_registered_tools
    seen = read(resources, "bakery")
    tool_registry.change_tool(resources, CALLER, "pim.getProduct", tool_registry.ToolChange(enabled=False))
    monkeypatch.setattr(tool_registry, "read_registered_tools", lambda *_: seen)
    with pytest.raises(Conflict):
        tool_registry.remove_tool(resources, CALLER, "pim.getProduct")
    monkeypatch.setattr(tool_registry, "read_registered_tools", read)
    assert [tool["manifest"]["enabled"] for tool in tool_registry.list_registered_tools(resources, "bakery")] == [False]


def test_another_tenant_sees_nothing(resources: Resources, bakery: TokenSigner) -> None:
    register(bakery)
    other = make_tenant(resources, "butcher")
    assert send("GET", "/tools", other) == (200, {"tools": []})
    assert send("DELETE", "/tools/pim.getProduct", other)[0] == 404


def test_a_tenant_has_a_limited_number_of_tools(bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_registry, "MAX_TOOLS", 1)
    register(bakery)
    status, body = send("POST", "/tools/register", bakery, NEW | {"manifest": make_manifest_json(name="other")})
    assert status == 400
    assert "1 tools at most" in body["error"]
