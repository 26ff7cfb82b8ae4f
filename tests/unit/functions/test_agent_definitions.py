"""Agents of a workspace over HTTP: pushed, listed, shown and removed, with secrets that are never shown."""

import base64
import json
from typing import Any

import pytest

from fermata.agents.definitions import definition_store
from fermata.agents.definitions.agent_list import read_agent_list
from fermata.agents.files.bundle_store import open_bundle
from fermata.aws import uploads
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict
from fermata.drivers.transport import url_guard
from functions.credentials import app
from functions.tool_result import app as tool_result
from tests.agent_definitions import make_definition
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.uploads import put_upload

ADMIN = ["ai.chat", "ai.agents.manage"]
CALLER = Caller(tenant="bakery", user="ada", capabilities=frozenset(ADMIN))
SECRET = "sk-ant-very-secret"
CONNECTIONS = [{"id": "claude", "type": "Anthropic", "properties": {"apiKey": {"_secret": "KEY"}}}]


@pytest.fixture
def bakery(resources: Resources, deployed: None, monkeypatch: pytest.MonkeyPatch) -> TokenSigner:
    addresses = {"tools.example": ("93.184.216.34",), "internal.example": ("10.0.0.5",)}
    monkeypatch.setattr(url_guard, "_resolve", lambda host, _port: addresses.get(host, (host,)))
    return make_tenant(resources, "bakery")


def send(
    method: str, path: str, signer: TokenSigner, body: Any = None, function: Any = app, **claims: Any
) -> tuple[int, Any]:
    headers = signer.bearer_headers(**({"capabilities": ADMIN} | claims))
    answer = function.handler(make_proxy_event(method, f"/admin/api/ai/{path}", headers, body), None)
    return answer["statusCode"], json.loads(answer["body"] or "null")


def agent(agent_id: str, instructions: str = "Help.", **members: Any) -> dict[str, Any]:
    properties = {"model": "m", "instructions": instructions} | members.pop("properties", {})
    return {"id": agent_id, "type": "ClaudeAgent", "connectionId": "claude", "properties": properties} | members


def push(signer: TokenSigner, *agents: Any, **members: Any) -> tuple[int, Any]:
    content = {"agents": list(agents), "connections": CONNECTIONS, "endpoints": members.pop("endpoints", [])}
    content |= members.pop("content", {})
    return send("PUT", "agent-definitions", signer, {"files": [{"name": "agents.yaml", "content": content}]} | members)


def list_ids(signer: TokenSigner) -> list[str]:
    return [one["id"] for one in send("GET", "agent-definitions", signer)[1]["agents"]]


def test_a_push_replaces_all_agents_and_says_what_has_changed(bakery: TokenSigner) -> None:
    status, first = push(bakery, agent("a"), agent("b"))
    assert (status, first["added"], first["version"]) == (200, ["a", "b"], 1)
    status, second = push(bakery, agent("a", "Help well."), agent("c"))
    names = ("added", "changed", "removed", "unchanged")
    assert (status, *(second[name] for name in names)) == (200, ["c"], ["a"], ["b"], [])
    assert second["differences"] == {
        "a": [{"path": "properties.instructions", "before": "Help.", "after": "Help well."}]
    }
    assert list_ids(bakery) == ["a", "c"]


def test_the_same_push_again_writes_nothing(bakery: TokenSigner) -> None:
    push(bakery, agent("a"))
    status, again = push(bakery, agent("a"))
    assert (status, again["unchanged"], again["version"]) == (200, ["a"], 1)


def test_a_push_that_has_seen_another_version_is_refused(bakery: TokenSigner) -> None:
    push(bakery, agent("a"))
    assert push(bakery, agent("b"), version=0)[0] == 409
    assert push(bakery, agent("b"), version=1)[0] == 200


def test_of_two_pushes_at_once_one_is_refused(
    resources: Resources, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = read_agent_list
    once = iter([True])

    def read_and_push(*given: Any) -> Any:
        seen = read(*given)
        if next(once, False):
            assert push(bakery, agent("faster"))[0] == 200
        return seen

    monkeypatch.setattr(definition_store, "read_agent_list", read_and_push)
    with pytest.raises(Conflict):
        definition_store.replace_agents(resources, CALLER, {"slower": make_definition("slower")})
    assert list_ids(bakery) == ["faster"]


def test_a_push_whose_answer_was_lost_can_be_sent_again(
    resources: Resources, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = type(resources.tables).write_items

    def write_twice(self: Any, *writes: Any) -> None:
        write(self, *writes)
        write(self, *writes)

    monkeypatch.setattr(type(resources.tables), "write_items", write_twice)
    assert definition_store.replace_agents(resources, CALLER, {"a": make_definition("a")}).added == ("a",)


def test_a_dry_run_changes_nothing(bakery: TokenSigner) -> None:
    push(bakery, agent("a"))
    status, planned = push(bakery, agent("a", "New."), agent("b"), dryRun=True)
    assert (status, planned["added"], planned["changed"], planned["version"]) == (200, ["b"], ["a"], 1)
    assert list_ids(bakery) == ["a"]


def test_mistakes_are_all_named_and_nothing_is_stored(bakery: TokenSigner) -> None:
    lines = {"agents[0].tools[0]": 12}
    file = {
        "name": "agents.yaml",
        "lines": lines,
        "content": {"agents": [agent("a", tools=["x"]), agent("b", mcp=[{}])]},
    }
    file["content"]["connections"] = CONNECTIONS
    status, body = send("PUT", "agent-definitions", bakery, {"files": [file]})
    assert (status, body["code"]) == (400, "invalid_agents")
    assert [(one["line"], one["path"]) for one in body["problems"]] == [
        (0, "agents[1].mcp[0]"),
        (12, "agents[0].tools[0]"),
    ]
    assert list_ids(bakery) == []


@pytest.mark.parametrize("url", ["https://internal.example/x", "https://127.0.0.1/x", "http://169.254.169.254/x"])
def test_addresses_inside_of_the_service_are_refused(bakery: TokenSigner, url: str) -> None:
    endpoint = {"id": "e", "description": "d", "payloadSchema": {}, "url": url}
    status, body = push(bakery, agent("a", tools=["e"]), endpoints=[endpoint])
    assert (status, body["problems"][0]["path"]) == (400, "a")
    connection = {"id": "claude", "type": "Anthropic", "properties": {"apiKey": {"_secret": "K"}, "baseURL": url}}
    assert push(bakery, agent("a"), content={"connections": [connection]})[0] == 400


def test_a_host_without_an_address_is_a_warning_and_an_address_may_have_a_query(
    bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(host: str, _port: int) -> tuple[str, ...]:
        if host == "later.example":
            raise OSError("no such host")
        return ("93.184.216.34",)

    monkeypatch.setattr(url_guard, "_resolve", resolve)
    mcp = [{"url": "https://later.example/mcp"}, {"url": "https://tools.example/mcp?key=1"}]
    status, body = push(bakery, agent("a", mcp=mcp))
    assert (status, body["added"]) == (200, ["a"])
    assert [one["message"] for one in body["warnings"] if "later.example" in one["message"]] == [
        "The address 'https://later.example/mcp' cannot be used: There is no host later.example. "
        "Check how it is spelled."
    ]
    assert "tools.example" not in str(body["warnings"])


def test_an_agent_is_shown_with_its_definition(bakery: TokenSigner) -> None:
    push(bakery, agent("a", title="Helper"), agent("b", agents=["a"]))
    status, shown = send("GET", "agent-definitions/b", bakery)
    child = send("GET", "agent-definitions/a", bakery)[1]["agent"]
    assert status == 200
    assert shown["definition"]["agents"][0]["version"] == child["version"]
    assert child["title"] == "Helper"
    assert send("GET", "agent-definitions/none", bakery)[0] == 404


def test_an_agent_is_removed_unless_another_one_asks_it(bakery: TokenSigner) -> None:
    push(bakery, agent("a"), agent("b", agents=["a"]))
    assert send("DELETE", "agent-definitions/a", bakery)[0] == 409
    assert send("DELETE", "agent-definitions/b", bakery)[0] == 200
    assert send("DELETE", "agent-definitions/a", bakery)[0] == 200
    assert send("DELETE", "agent-definitions/a", bakery)[0] == 404
    assert list_ids(bakery) == []


def test_files_of_an_agent_are_sent_along_and_stored_once(resources: Resources, bakery: TokenSigner) -> None:
    reader = agent("a", properties={"fileSystem": {"basePath": "./docs"}})
    assert push(bakery, reader)[1]["problems"][0]["path"] == "agents[0].properties.fileSystem.basePath"
    content = base64.b64encode(b"# Bread").decode()
    folders = {"./docs": [{"path": "bread.md", "content": content, "modifiedMs": 1}]}
    assert push(bakery, reader, folders=folders)[1]["added"] == ["a"]
    assert push(bakery, reader, folders=folders)[1]["unchanged"] == ["a"]
    key = send("GET", "agent-definitions/a", bakery)[1]["definition"]["files"]["bundle"]
    assert key.startswith("agents/bakery/files/")
    outside = {"./docs": [{"path": "../x", "content": content}]}
    assert push(bakery, reader, folders=outside)[0] == 400
    assert push(bakery, reader, folders={"./docs": [{"path": "x", "content": "?"}]})[0] == 400


def test_secrets_are_entered_and_named_and_never_shown(resources: Resources, bakery: TokenSigner) -> None:
    assert "KEY" in push(bakery, agent("a"))[1]["warnings"][0]["message"]
    status, entered = send("PUT", "secrets/KEY", bakery, {"value": SECRET})
    assert (status, entered["secret"]["name"]) == (200, "KEY")
    assert push(bakery, agent("a"))[1]["warnings"] == []
    shown = [send("GET", path, bakery) for path in ("secrets", "agent-definitions", "agent-definitions/a")]
    items = resources.tables._client.scan(TableName=resources.settings.settings_table)["Items"]
    assert SECRET not in json.dumps([entered, shown, items], default=str)
    assert send("DELETE", "secrets/KEY", bakery)[0] == 200
    assert send("DELETE", "secrets/KEY", bakery)[0] == 404
    assert send("PUT", "secrets/9", bakery, {"value": "x"})[0] == 400


def test_only_who_manages_agents_may_do_so(bakery: TokenSigner) -> None:
    requests = [
        ("GET", "agent-definitions"),
        ("GET", "agent-definitions/a"),
        ("GET", "secrets"),
        ("DELETE", "secrets/K"),
    ]
    for method, path in requests:
        assert send(method, path, bakery, capabilities=["ai.chat", "ai.tools.manage"])[0] == 403
    body = {"files": []}
    assert send("PUT", "agent-definitions", bakery, body, capabilities=["ai.chat"])[0] == 403


def test_users_see_the_agents_that_they_may_ask(bakery: TokenSigner) -> None:
    rules = {"auth": {"agents": {"roles": {"editor": ["staff"]}}}}
    endpoint = {"id": "look-up", "description": "Looks up.", "payloadSchema": {"type": "object"}}
    endpoint["url"] = "https://tools.example/x"
    staff, open_to_all = agent("staff"), agent("open", tools=["look-up"])
    assert push(bakery, staff, open_to_all, endpoints=[endpoint], content=rules)[0] == 200

    def list_seen(*capabilities: str) -> list[str]:
        found = send("GET", "agents", bakery, function=tool_result, capabilities=["ai.chat", *capabilities])[1]
        return [one["id"] for one in found["agents"] if one["id"] in ("staff", "open")]

    assert list_seen() == ["open"]
    assert list_seen("editor") == ["open", "staff"]
    hidden = send("GET", "agents/staff", bakery, function=tool_result, capabilities=["ai.chat"])
    assert hidden == send("GET", "agents/nobody", bakery, function=tool_result, capabilities=["ai.chat"])
    shown = send("GET", "agents/open", bakery, function=tool_result)[1]["agent"]
    assert [tool["name"] for tool in shown["tools"]] == ["look-up"]


def test_a_push_that_changes_nothing_stores_no_files(resources: Resources, bakery: TokenSigner) -> None:
    reader = agent("a", properties={"fileSystem": {"basePath": "docs"}})
    folders = {"docs": [{"path": "bread.md", "content": base64.b64encode(b"x" * 10).decode()}]}
    assert push(bakery, reader, folders=folders, dryRun=True)[0] == 200
    assert push(bakery, reader, agent("b", tools=["none"]), folders=folders)[0] == 400
    assert resources.blobs.list_keys("agents/bakery") == []
    assert push(bakery, reader, folders=folders)[1]["added"] == ["a"]
    key = send("GET", "agent-definitions/a", bakery)[1]["definition"]["files"]["bundle"]
    assert key in resources.blobs.list_keys("agents/bakery/files")


def make_folder_file(path: str, content: bytes = b"flour") -> dict[str, Any]:
    return {"path": path, "content": base64.b64encode(content).decode(), "modifiedMs": 1}


def put_folder(resources: Resources, *files: dict[str, Any], caller: Caller = CALLER) -> str:
    return put_upload(resources, caller, "agentFiles", json.dumps({"files": files}).encode())


def test_uploaded_parts_of_a_folder_are_the_same_files_as_those_in_the_request(
    resources: Resources, bakery: TokenSigner
) -> None:
    reader = agent("a", properties={"fileSystem": {"basePath": "docs"}})
    files = [make_folder_file(f"{number}.md", bytes([48 + number]) * 600_000) for number in range(3)]
    refs = [put_folder(resources, *files[:1]), put_folder(resources, *files[1:])]
    assert push(bakery, reader, folderUploads={"docs": refs})[1]["added"] == ["a"]
    assert push(bakery, reader, folders={"docs": files})[1]["unchanged"] == ["a"]
    mixed = {"folders": {"docs": files[1:]}, "folderUploads": {"docs": refs[:1]}}
    assert push(bakery, reader, **mixed)[1]["unchanged"] == ["a"]
    definition = definition_store.load_definition(
        resources, "bakery", f"a@{read_agent_list(resources, 'bakery').agents['a'].version}"
    )
    assert definition.files
    assert open_bundle(resources, definition.files.bundle).read_file("2.md").startswith("2222")


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"[]", 400, "The uploaded files of the folder 'docs' cannot be used. It must be a JSON object."),
        (b"{}", 400, "'docs' cannot be used. files: Field required"),
        (b'{"files": [{"path": "x"}]}', 400, "files.0.content: Field required"),
        (b'{"files": [{"path": "x", "content": "?"}]}', 400, "The content of 'x' is no Base64."),
        (b"\xff", 400, "It is not UTF-8."),
        (b'{"files": [' + b"[]," * 3_000_000 + b"[]]}", 413, "'docs' cannot be used."),
    ],
)
def test_an_upload_that_holds_no_files_is_refused_in_words(
    resources: Resources, bakery: TokenSigner, content: bytes, status: int, words: str
) -> None:
    reader = agent("a", properties={"fileSystem": {"basePath": "docs"}})
    ref = put_upload(resources, CALLER, "agentFiles", content)
    answered, body = push(bakery, reader, folderUploads={"docs": [ref]})
    assert (answered, words in body["error"]) == (status, True), body
    assert list_ids(bakery) == []


def test_uploads_of_others_of_other_kinds_and_too_many_bytes_are_refused(
    resources: Resources, bakery: TokenSigner
) -> None:
    reader = agent("a", properties={"fileSystem": {"basePath": "docs"}})
    theirs = put_folder(resources, make_folder_file("x"), caller=CALLER.model_copy(update={"user": "bob"}))
    image = put_upload(resources, CALLER, "image", b"x")
    announced = uploads.announce_upload(resources, "agentFiles", 16 * 1024 * 1024, "0" * 64).ref
    for refs, status in (([theirs], 404), ([image], 400), (["x"], 400), ([announced] * 10, 413)):
        assert push(bakery, reader, folderUploads={"docs": refs})[0] == status
    twice = put_folder(resources, make_folder_file("x"), make_folder_file("x"))
    assert "x is there twice" in push(bakery, reader, folderUploads={"docs": [twice]})[1]["error"]
