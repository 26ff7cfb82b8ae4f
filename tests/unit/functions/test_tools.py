"""The list of tools for a caller, with the names that its client knows."""

import json
from typing import Any

import pytest

from fermata.agents.registry import get_toolset, list_scopes_with_tools
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store
from fermata.domain.caller import Caller
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset
from functions.api import app
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import ALL_CAPABILITIES, TokenSigner, make_tenant
from tests.unit.conversations.message_builders import ThreadBuilder, make_call, store_messages
from tests.unit.tools.builders import SITE_TOOL_CONTRACT, make_tool

AI = "/admin/api/ai"
SITE = ("site.read", "site.structure.edit", "site.style.edit", "site.content.edit")


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources)


@pytest.fixture
def studio(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources, "studio", dialect="instatic", tool_names="prefixed")


def send_get(
    path: str, signer: TokenSigner, *capabilities: str, query: dict[str, str] | None = None, **headers: str
) -> tuple[int, Any]:
    claims = {"capabilities": capabilities} if capabilities else {}
    event = make_proxy_event(
        "GET",
        f"{AI}/{path}",
        signer.bearer_headers(**claims) | {name.replace("_", "-"): v for name, v in headers.items()},
    )
    answer = app.handler(event | {"queryStringParameters": query}, None)
    return answer["statusCode"], json.loads(answer["body"])


def get_tool_names(body: Any) -> list[str]:
    return [tool["name"] for tool in body["tools"]]


def test_a_caller_with_all_capabilities_sees_the_whole_toolset(bakery: TokenSigner) -> None:
    status, body = send_get("tools/site", bakery, *ALL_CAPABILITIES, *SITE)
    assert status == 200
    for told, known in zip(body["tools"], SITE_TOOL_CONTRACT, strict=True):
        assert told["name"] == known["name"]
        assert told["inputSchema"] == known["inputSchema"]
        assert told["execution"] == known["execution"]
        assert told["capability"] == ("write" if known["mutates"] else "read")
        assert told["permissions"] == sorted(known["permissions"])
        assert len(told["description"]) > 40


@pytest.mark.parametrize("scope", list_scopes_with_tools())
def test_the_list_is_what_a_model_is_offered(scope: str, bakery: TokenSigner) -> None:
    toolset = get_toolset(scope)
    rights = {"ai.chat", "ai.tools.write", *(right for tool in toolset.tools for right in tool.permissions)}
    _, body = send_get(f"tools/{scope}", bakery, *rights)
    offered = toolset.build_tool_specs(frozenset(rights), scope, tenant="bakery")
    told = [(tool["name"], tool["description"], tool["inputSchema"]) for tool in body["tools"]]
    assert told == [(spec.name, spec.description, spec.input_schema) for spec in offered]


def test_a_caller_sees_only_what_its_capabilities_allow(bakery: TokenSigner) -> None:
    assert get_tool_names(send_get("tools/site", bakery, "ai.chat")[1]) == ["getNodeHtml", "render_snapshot"]
    reader = send_get("tools/site", bakery, "ai.chat", "site.read")[1]
    assert {tool["capability"] for tool in reader["tools"]} == {"read"}


@pytest.mark.parametrize(
    ("tenant", "header", "name"),
    [
        ("bakery", "", "getNodeHtml"),
        ("bakery", "prefixed", "site_get_node_html"),
        ("studio", "", "site_get_node_html"),
        ("studio", "seed", "getNodeHtml"),
        ("studio", " Seed ", "getNodeHtml"),
    ],
)
def test_the_header_takes_precedence_over_the_tenants_setting(
    tenant: str, header: str, name: str, request: pytest.FixtureRequest
) -> None:
    signer: TokenSigner = request.getfixturevalue(tenant)
    headers = {"fermata_tool_names": header} if header else {}
    assert name in get_tool_names(send_get("tools/site", signer, "ai.chat", **headers)[1])


def test_unknown_tool_names_are_refused_with_a_reason(bakery: TokenSigner) -> None:
    status, body = send_get("tools/site", bakery, "ai.chat", fermata_tool_names="both")
    assert (status, body) == (
        400,
        {"error": "The header Fermata-Tool-Names says what tools are called: seed or prefixed."},
    )


def test_a_scope_without_tools_has_an_empty_list_and_an_unknown_one_a_404(bakery: TokenSigner) -> None:
    assert send_get("tools/data", bakery) == (200, {"tools": []})
    assert send_get("tools/nobody", bakery) == (404, {"error": "Not found"})


def test_listing_tools_needs_the_capability_to_chat(bakery: TokenSigner) -> None:
    assert send_get("tools/site", bakery, "ai.audit.read")[0] == 403


def test_the_tools_of_a_registered_toolset_are_listed(bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch) -> None:
    own = make_tool("mend", tenant="bakery", toolset="plugin")
    others = make_tool("break", tenant="studio", toolset="plugin")
    monkeypatch.setattr("fermata.tools.plugin.toolset.PLUGIN_TOOLSET", Toolset("plugin", (own, others)))
    assert get_tool_names(send_get("tools/plugin", bakery)[1]) == ["mend"]


@pytest.mark.parametrize("names", list(ToolNaming))
def test_a_conversation_has_the_tool_names_of_the_client(
    names: ToolNaming, resources: Resources, bakery: TokenSigner
) -> None:
    ada = Caller(tenant="bakery", user="ada", capabilities=frozenset({"ai.chat"}))
    made = conversation_store.create_conversation(resources, ada, "site", None, None, "m").id
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a").model_copy(update={"tool_name": "site_list_modules"}))
    thread.add_result("a")
    store_messages(resources, "bakery", made, thread.messages)
    _, body = send_get(f"conversations/{made}", bakery, fermata_tool_names=names.value)
    expected = "list_modules" if names is ToolNaming.CANONICAL else "site_list_modules"
    shown = [line for line in body["conversation"]["messages"] if line["role"] == "assistant"]
    assert [(line["toolName"], line["content"][0]["toolName"]) for line in shown] == [(expected, expected)]


def get_css_members(body: Any, name: str) -> list[str]:
    return next(list(tool["inputSchema"]["properties"]) for tool in body["tools"] if tool["name"] == name)


def test_a_generation_is_listed_with_its_schemas(studio: TokenSigner, bakery: TokenSigner) -> None:
    newest = ["operation", "css", "selectors", "properties"]
    rights = ("ai.chat", "ai.tools.write", *SITE)
    assert get_css_members(send_get("tools/site", studio, *rights)[1], "site_apply_css") == newest
    assert get_css_members(send_get("tools/site", bakery, *rights)[1], "applyCss") == ["css"]
    for generation, members in (("0.0.6", ["css"]), ("0.0.11", newest)):
        _, body = send_get("tools/site", studio, *rights, query={"generation": generation})
        assert get_css_members(body, "site_apply_css") == members
    assert send_get("tools/site", studio, *rights, query={"generation": "9"}) == (
        400,
        {"error": "'generation' says whose tools are listed: 0.0.6 or 0.0.11."},
    )
