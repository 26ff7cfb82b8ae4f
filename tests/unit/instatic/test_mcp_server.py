"""Assistants that speak MCP: the client of the `mcp` package over a socket, and an editor that carries calls out."""

import threading
from collections.abc import Callable
from typing import Any

import anyio
import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from fermata.agents.approval_policy import ApprovalPolicy, PolicyRule
from fermata.agents.policy_store import set_policy
from tests.agent_definitions import make_definition, push_definitions
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.instatic.live_service import AdjustableClock
from tests.unit.instatic.open_editor import AI, OpenEditor
from tests.unit.tools.builders import make_site_snapshot
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

pytestmark = pytest.mark.exhaustive  # each test runs a client of the mcp package

CAPABILITIES = ["ai.chat", "ai.tools.write", "site.read", "site.structure.edit", "site.style.edit", "content.manage"]
CONNECTORS = f"{AI}/mcp/connectors"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture
def signer(stage: Stage) -> TokenSigner:
    return make_tenant(stage.resources, dialect="instatic", tool_names="prefixed")


@pytest.fixture
def ada(service: str, signer: TokenSigner) -> dict[str, str]:
    """The headers of a user who manages providers and edits the site."""
    return signer.bearer_headers(capabilities=[*CAPABILITIES, "ai.providers.manage"], sub="ada")


@pytest.fixture
def connect(service: str, ada: dict[str, str]) -> Callable[..., str]:
    """Creates a connector and returns its token."""

    def create(**members: Any) -> str:
        body = {"label": "Desktop", "type": "local", "capabilities": CAPABILITIES} | members
        answer = httpx.post(service + CONNECTORS, headers=ada, json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    return create


def ask(service: str, token: str, work: Callable[[ClientSession], Any], path: str = "/mcp") -> Any:
    """Let the real client do some work in a session of its own."""

    async def run() -> Any:
        headers = {"authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=20) as http,
            streamable_http_client(service + path, http_client=http) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            return await work(session)

    return anyio.run(run)


def call(service: str, token: str, name: str, **arguments: Any) -> Any:
    return ask(service, token, lambda session: session.call_tool(name, arguments))


def post(service: str, token: str, body: Any, **headers: str) -> httpx.Response:
    return httpx.post(
        f"{service}/mcp",
        headers={"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"} | headers,
        json=body,
    )


def succeed(_event: dict[str, Any]) -> dict[str, Any]:
    return {"ok": True, "data": {"nodeIds": ["n1"]}}


class TestConnectors:
    def test_a_token_is_shown_once_and_the_connector_is_listed_until_it_is_revoked(
        self, service: str, ada: dict[str, str], connect: Callable[..., str]
    ) -> None:
        token = connect()
        [view] = httpx.get(service + CONNECTORS, headers=ada).json()["connectors"]
        assert token.startswith("imcp_")
        assert token.split("_", 3)[3] not in str(view)
        assert (view["authMode"], view["revoked"], view["lastUsedAt"]) == ("bearer", False, None)
        assert view["expiresAt"] > view["createdAt"]
        assert post(service, token, INITIALIZE).status_code == 200
        revoked = httpx.delete(f"{service}{CONNECTORS}/{view['id']}", headers=ada)
        assert (revoked.status_code, revoked.json()) == (200, {"revoked": True})
        assert post(service, token, INITIALIZE).status_code == 401
        [view] = httpx.get(service + CONNECTORS, headers=ada).json()["connectors"]
        assert view["revoked"] is True
        assert view["lastUsedAt"] is not None

    def test_nobody_grants_what_they_lack_or_what_only_people_do(self, service: str, ada: dict[str, str]) -> None:
        for capability, status in (("ai.audit.read", 403), ("ai.tools.approve", 400)):
            body = {"label": "x", "type": "local", "capabilities": [capability]}
            assert httpx.post(service + CONNECTORS, headers=ada, json=body).status_code == status

    def test_a_connector_is_its_users_own(
        self, service: str, ada: dict[str, str], connect: Callable[..., str], signer: TokenSigner
    ) -> None:
        connect()
        bob = signer.bearer_headers(capabilities=["ai.providers.manage"], sub="bob")
        [view] = httpx.get(service + CONNECTORS, headers=ada).json()["connectors"]
        assert httpx.get(service + CONNECTORS, headers=bob).json() == {"connectors": []}
        assert httpx.delete(f"{service}{CONNECTORS}/{view['id']}", headers=bob).status_code == 404

    def test_it_expires_and_opens_nothing_but_the_endpoint(
        self, service: str, connect: Callable[..., str], clock: AdjustableClock
    ) -> None:
        token = connect(ttlDays=1)
        headers = {"authorization": f"Bearer {token}"}
        assert httpx.get(f"{service}{AI}/conversations?scope=site", headers=headers).status_code == 401
        assert post(service, token, INITIALIZE).status_code == 200
        clock.advance(2 * 86_400)
        assert post(service, token, INITIALIZE).status_code == 401


class TestProtocol:
    def test_the_client_lists_tools_with_schemas_and_hints(self, service: str, connect: Callable[..., str]) -> None:
        listed = ask(service, connect(), lambda session: session.list_tools()).tools
        tools = {tool.name: tool for tool in listed}
        assert {"site_insert_html", "site_list_documents"} <= tools.keys()
        assert tools["site_insert_html"].input_schema["required"]
        assert tools["site_insert_html"].annotations.read_only_hint is False
        assert "open editor" in tools["site_insert_html"].description
        assert tools["site_read_document"].annotations.read_only_hint is True

    def test_a_connector_without_the_right_to_write_lists_no_tool_that_writes(
        self, service: str, connect: Callable[..., str]
    ) -> None:
        token = connect(capabilities=["ai.chat", "site.read"])
        listed = ask(service, token, lambda session: session.list_tools()).tools
        assert listed
        assert all(tool.annotations.read_only_hint for tool in listed)
        body = {"name": "site_insert_html", "arguments": {"html": "<p>x</p>"}}
        refused = post(service, token, {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": body}).json()
        assert refused["error"] == {"code": -32602, "message": "Unknown tool: site_insert_html"}

    @pytest.mark.parametrize(
        ("asked", "agreed"),
        [("2024-11-05", "2024-11-05"), ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25")],
    )
    def test_versions_are_negotiated(self, service: str, connect: Callable[..., str], asked: str, agreed: str) -> None:
        body = INITIALIZE | {"params": {"protocolVersion": asked}}
        assert post(service, connect(), body).json()["result"]["protocolVersion"] == agreed

    def test_a_client_that_looks_for_a_newer_way_to_agree_falls_back(
        self, service: str, connect: Callable[..., str]
    ) -> None:
        token = connect()

        async def run() -> Any:
            async with (
                httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=20) as http,
                Client(streamable_http_client(f"{service}/_instatic/mcp", http_client=http)) as client,
            ):
                return client.protocol_version, await client.list_tools()

        version, listed = anyio.run(run)
        assert version == "2025-11-25"
        assert listed.tools

    def test_messages_that_are_none_are_refused_as_the_protocol_says(
        self, service: str, connect: Callable[..., str]
    ) -> None:
        token = connect()
        assert post(service, token, [INITIALIZE]).json()["error"]["code"] == -32600
        assert post(service, token, {"jsonrpc": "2.0", "id": 2, "method": "no/such"}).json()["error"]["code"] == -32601
        ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
        for wrong in ({"id": None}, {"id": {}}, {"id": True}, {"method": 7}):
            refused = post(service, token, ping | wrong)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)
        assert post(service, token, ping).json() == {"jsonrpc": "2.0", "id": "p", "result": {}}
        late = post(service, token, ping, **{"mcp-protocol-version": "1999-01-01"})
        assert (late.status_code, late.json()["error"]["code"]) == (400, -32022)
        note = post(service, token, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (note.status_code, note.content) == (202, b"")
        answer = httpx.get(f"{service}/mcp", headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == 405

    def test_pages_of_other_origins_and_cookies_are_refused(
        self, service: str, connect: Callable[..., str], ada: dict[str, str]
    ) -> None:
        assert post(service, connect(), INITIALIZE, origin="https://evil.example").status_code == 403
        token = ada["authorization" if "authorization" in ada else "Authorization"].partition(" ")[2]
        cookie = {"cookie": f"instatic_admin_session={token}"}
        assert httpx.post(f"{service}/mcp", headers=cookie, json=INITIALIZE).status_code == 401

    def test_a_client_without_a_token_is_told_where_the_workspace_issues_them(
        self, service: str, stage: Stage, signer: TokenSigner
    ) -> None:
        plain = httpx.post(f"{service}/mcp", json=INITIALIZE)
        assert (plain.status_code, plain.headers["www-authenticate"]) == (401, "Bearer")
        other = make_tenant(stage.resources, "shop", issuer="https://id.example", jwks_url="https://id.example/keys")
        del other
        answer = httpx.post(f"{service}/mcp/shop", json=INITIALIZE)
        url = answer.headers["www-authenticate"].partition('resource_metadata="')[2].rstrip('"')
        path = "/" + url.split("/", 3)[3]
        metadata = httpx.get(service + path).json()
        assert metadata["authorization_servers"] == ["https://id.example"]
        assert metadata["resource"].endswith("/mcp/shop")


class TestOpenEditor:
    def test_a_call_of_a_browser_tool_is_carried_out_by_the_open_editor(
        self, service: str, ada: dict[str, str], connect: Callable[..., str]
    ) -> None:
        token = connect()
        with OpenEditor(service, ada, succeed) as editor:
            result = call(service, token, "site_insert_html", parentId="root", html="<p>x</p>")
        assert result.structured_content == {"nodeIds": ["n1"]}
        [request] = editor.lines[1:]
        assert (request["toolName"], request["input"]["html"]) == ("site_insert_html", "<p>x</p>")
        assert [answer.status_code for answer in editor.answers] == [200]

    def test_a_client_that_takes_no_events_has_the_answer_as_json(
        self, service: str, ada: dict[str, str], connect: Callable[..., str]
    ) -> None:
        body = {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "site_read_document"}}
        token = connect()
        with OpenEditor(service, ada, succeed):
            answer = post(service, token, body, accept="application/json")
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["result"]["structuredContent"] == {"nodeIds": ["n1"]}

    def test_without_an_open_editor_the_client_is_told_so(self, service: str, connect: Callable[..., str]) -> None:
        result = call(service, connect(), "site_insert_html", parentId="root", html="<p>x</p>")
        assert result.is_error
        assert "No site editor is open" in result.content[0].text

    def test_wrong_arguments_reach_no_editor(
        self, service: str, ada: dict[str, str], connect: Callable[..., str]
    ) -> None:
        token = connect()
        with OpenEditor(service, ada, succeed) as editor:
            result = call(service, token, "site_insert_html", html=7)
        assert result.is_error
        assert len(editor.lines) == 1

    def test_of_two_open_editors_the_one_opened_last_is_asked(
        self, service: str, ada: dict[str, str], connect: Callable[..., str], clock: AdjustableClock
    ) -> None:
        token = connect()
        with OpenEditor(service, ada, succeed) as first:
            clock.advance(1)
            with OpenEditor(service, ada, succeed) as second:
                call(service, token, "site_read_document")
                assert (len(first.lines), len(second.lines)) == (1, 2)
            call(service, token, "site_read_document")
            assert len(first.lines) == 2

    def test_an_editor_that_is_closed_in_mid_call_ends_the_call(
        self, service: str, ada: dict[str, str], connect: Callable[..., str]
    ) -> None:
        token, asked = connect(), threading.Event()
        editor = OpenEditor(service, ada, lambda _event: asked.set())
        results: list[Any] = []
        with editor:
            thread = threading.Thread(target=lambda: results.append(call(service, token, "site_read_document")))
            thread.start()
            assert asked.wait(20)
        thread.join(20)
        assert results[0].is_error
        assert "closed before it answered" in results[0].content[0].text
        late = httpx.post(
            f"{service}{AI}/tool-result",
            headers=ada,
            json={"bridgeId": editor.bridge_id, "requestId": "7", "result": {"ok": True}},
        )
        assert late.status_code == 404

    def test_the_same_answer_again_is_taken_and_another_one_refused(
        self, service: str, ada: dict[str, str], connect: Callable[..., str], signer: TokenSigner
    ) -> None:
        token = connect()
        with OpenEditor(service, ada, succeed) as editor:
            call(service, token, "site_read_document")
            again = editor.answer("1", succeed({}))
            other = editor.answer("1", {"ok": False, "error": "no"})
            bob = signer.bearer_headers(capabilities=CAPABILITIES, sub="bob")
            body = {"bridgeId": editor.bridge_id, "requestId": "1", "result": succeed({})}
            stranger = httpx.post(f"{service}{AI}/tool-result", headers=bob, json=body)
        assert (again.status_code, other.status_code, stranger.status_code) == (200, 409, 404)

    def test_two_calls_at_once_are_both_answered(
        self, service: str, ada: dict[str, str], connect: Callable[..., str]
    ) -> None:
        token = connect()

        async def call_twice(session: ClientSession) -> list[Any]:
            results: list[Any] = []

            async def one(identifier: str) -> None:
                results.append(await session.call_tool("site_get_node_html", {"nodeId": identifier}))

            async with anyio.create_task_group() as group:
                group.start_soon(one, "a")
                group.start_soon(one, "b")
            return results

        with OpenEditor(service, ada, lambda event: {"ok": True, "data": event["input"]}) as editor:
            results = ask(service, token, call_twice)
        assert {result.structured_content["nodeId"] for result in results} == {"a", "b"}
        assert len(editor.lines) == 3

    def test_an_editor_that_does_not_answer_in_time_ends_the_call(
        self, service: str, ada: dict[str, str], connect: Callable[..., str], clock: AdjustableClock
    ) -> None:
        token = connect()
        with OpenEditor(service, ada, lambda _event: clock.advance(100)):
            result = call(service, token, "site_read_document")
        assert result.is_error
        assert "did not answer in time" in result.content[0].text

    def test_tools_of_the_service_read_what_the_editor_has_posted(
        self, service: str, ada: dict[str, str], connect: Callable[..., str]
    ) -> None:
        token = connect()
        with OpenEditor(service, ada, succeed) as editor:
            editor.snapshot = make_site_snapshot()
            call(service, token, "site_read_document")
            result = call(service, token, "site_list_documents")
        assert "Home" in result.content[0].text

    def test_the_bridge_is_refused_without_a_connector_and_with_too_many_editors(
        self, service: str, ada: dict[str, str], connect: Callable[..., str], clock: AdjustableClock
    ) -> None:
        bridge = f"{service}{AI}/editor-bridge"
        without = httpx.get(bridge, params={"scope": "site"}, headers=ada)
        assert (without.status_code, without.headers["cache-control"]) == (403, "private, max-age=300")
        stranger = httpx.get(bridge, params={"scope": "site"})
        assert (stranger.status_code, stranger.headers["cache-control"]) == (403, "private, max-age=3600")
        assert httpx.get(bridge, params={"scope": "plugin"}, headers=ada).status_code == 400


def test_an_agent_is_asked_and_its_last_words_are_the_result(
    service: str, stage: Stage, ada: dict[str, str], connect: Callable[..., str]
) -> None:
    definition = make_definition(credential=stage.credential.id, description="Answers questions about bread.")
    push_definitions(stage.resources, stage.caller, definition)
    token = connect()
    stage.script_replies("Rye.")
    listed = ask(service, token, lambda session: session.list_tools()).tools
    assert "Answers questions about bread." in [tool.description for tool in listed if tool.name == "ask_helper"]
    result = call(service, token, "ask_helper", prompt="Which bread?")
    assert result.content[0].text == "Rye."


def test_an_agent_that_waits_for_a_person_keeps_no_assistant_waiting(
    service: str, stage: Stage, connect: Callable[..., str]
) -> None:
    endpoint = {
        "id": "order",
        "description": "Orders.",
        "payloadSchema": {"type": "object"},
        "url": "https://x.example",
    }
    tools = [{"endpointId": "order", "name": "order"}]
    members: Any = {"description": "Orders bread.", "tools": tools, "endpoints": {"order": endpoint}}
    definition = make_definition(credential=stage.credential.id, **members)
    push_definitions(stage.resources, stage.caller, definition)
    rule = PolicyRule(effect="ask", tools=("order",))
    set_policy(stage.resources, stage.caller, ApprovalPolicy(rules=(rule,)))
    stage.script_replies(reply_with_calls(tool_call_block("order")))
    result = call(service, connect(), "ask_helper", prompt="Order it.")
    assert "waits until a person has decided" in result.content[0].text
    assert "in the conversation " in result.content[0].text
