"""MCP clients ask the agents of the content store in the space that their connector or their address names."""

from typing import Any

import httpx
import pytest

from fermata.content.content_space import SpaceKey
from fermata.content.documents.read_document import find_document_by_slug
from fermata.conversations.conversation_store import list_conversations
from fermata.credentials import scope_defaults
from fermata.domain.errors import NotFound
from fermata.wire.auth.mcp_connector_store import create_connector
from tests.unit.client_protocols.conftest import Requester
from tests.unit.client_protocols.test_mcp_direct_calls import ask, call
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block
from tests.unit.turns.test_cms_turns import SHOP, add_space

RIGHTS = ("ai.chat", "ai.tools.write", "ai.content.write")
BLOG = SpaceKey("bakery", "blog", "staging")


class McpClient:
    """An MCP client with a connector, or with its user's token, at an address."""

    def __init__(self, requester: Requester, path: str = "/mcp", token: str = "") -> None:
        self._requester, self._path, self._token = requester, path, token

    def send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        """Send a request to the client's own address instead."""
        token = {"authorization": f"Bearer {self._token}"} if self._token else {}
        return self._requester.send(method, self._path, **parts | {"headers": parts.get("headers", {}) | token})

    def list_agents(self) -> set[str]:
        found = ask(self, "tools/list")["tools"]
        return {tool["name"] for tool in found if tool["name"].startswith("ask_")}

    def ask_cms(self, prompt: str) -> tuple[bool, str]:
        return call(self, "ask_cms", prompt=prompt)

    def read_error(self, **parameters: Any) -> str:
        return str(ask(self, "tools/call", **parameters)["error"]["message"])


@pytest.fixture
def spaces(stage: Stage) -> Stage:
    for space in (SHOP, BLOG):
        add_space(stage, space)
    scope_defaults.set_default(stage.resources, stage.caller, "cms", stage.credential.id, "model-1")
    return stage


@pytest.fixture
def editor(requester: Requester) -> Requester:
    return Requester(requester.signer, RIGHTS)


def connect(stage: Stage, *capabilities: str, space: str = "") -> str:
    caller = stage.caller.model_copy(update={"capabilities": frozenset(RIGHTS)})
    return create_connector(
        stage.resources, caller, "Desktop", "local", capabilities or RIGHTS, expires_in_seconds=None, space=space
    )[1]


def test_the_cms_agent_works_in_the_space_of_its_connector(spaces: Stage, editor: Requester) -> None:
    client = McpClient(editor, token=connect(spaces, space="blog/staging"))
    assert client.list_agents() == {"ask_cms", "ask_studio"}
    spaces.script_replies(reply_with_calls(tool_call_block("cms_createPage", name="About")), "It is there.")
    assert client.ask_cms("Create a page about us") == (True, "It is there.")
    assert find_document_by_slug(spaces.resources, BLOG, "page", "about").user == "ada"
    with pytest.raises(NotFound):
        find_document_by_slug(spaces.resources, SHOP, "page", "about")


def test_a_client_without_a_connectors_space_names_it_in_its_address(spaces: Stage, editor: Requester) -> None:
    for client in (McpClient(editor, "/mcp?space=shop"), McpClient(editor, "/mcp?space=shop/main", connect(spaces))):
        spaces.script_replies("Fine.")
        assert client.ask_cms("Anything new?") == (True, "Fine.")
        assert "Site: shop" in spaces.driver.requests[-1].volatile
    assert McpClient(editor).list_agents() == set(), "without a space they are not offered"


def test_a_connector_is_for_its_space_only(spaces: Stage, editor: Requester) -> None:
    token = connect(spaces, space="blog/staging")
    message = McpClient(editor, "/mcp?space=shop", token).read_error(name="ask_cms", arguments={"prompt": "Hi"})
    assert message == "This connector is for the content space blog/staging only."
    assert McpClient(editor, "/mcp?space=blog/staging", token).list_agents() == {"ask_cms", "ask_studio"}


@pytest.mark.parametrize("name", ["ghost", "shop/ghost", "../shop", "smithy#s#shop"])
def test_a_space_that_is_none_answers_with_words(spaces: Stage, editor: Requester, name: str) -> None:
    ok, words = McpClient(editor, f"/mcp?space={name.replace('#', '%23')}").ask_cms("Hi")
    assert not ok
    assert "no site" in words or "lower-case" in words
    listed = list_conversations(spaces.resources, spaces.caller, "cms", limit=1)
    assert not listed.conversations, "A refused task leaves no conversation."


def test_a_connector_without_a_right_on_content_is_not_offered_the_agents(spaces: Stage, editor: Requester) -> None:
    client = McpClient(editor, token=connect(spaces, "ai.chat", space="shop/main"))
    assert client.list_agents() == set()
    assert "Unknown tool" in client.read_error(name="ask_cms", arguments={"prompt": "Hi"})
