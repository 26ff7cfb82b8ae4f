"""The demo content system answers every query of the tools, refuses other tokens, and acts once per effect key."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fermata.agents.registry import get_toolset
from fermata.domain.blocks import ToolCallBlock
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.hosts.auth import HostCaller, sign_host_token
from fermata.hosts.client import HostClient, HostConnectionPool
from fermata.hosts.errors import HostError
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.tool import ToolContext
from local.demo_host.demo_content import DemoContent
from local.demo_host.server import DemoHostServer
from local.seed import EDITOR_CAPABILITIES
from tests.unit.tools.builders import run_tool

SECRET = "as long and as secret as a secret of a machine is"
DEMO_CALLER = HostCaller("local", "you", frozenset(("ai.tools.write", *EDITOR_CAPABILITIES)), "content", "turn-1")


@pytest.fixture
def demo() -> Iterator[DemoHostServer]:
    with DemoHostServer(DemoContent.load_content(), "local", SECRET) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def pool() -> Iterator[HostConnectionPool]:
    pool = HostConnectionPool(UrlGuard(loopback=True), 5.0)
    yield pool
    pool.close()


def open_client(
    demo: DemoHostServer,
    pool: HostConnectionPool,
    caller: HostCaller = DEMO_CALLER,
    secret: str = SECRET,
    now: float | None = None,
) -> HostClient:
    return HostClient(demo.url, lambda: sign_host_token(caller, secret, "k", now or time.time()), lambda _seconds: pool)


def read_data(demo: DemoHostServer, pool: HostConnectionPool, scope: str, name: str, **arguments: Any) -> Any:
    context = ToolContext(
        tenant="local",
        user="you",
        capabilities=DEMO_CALLER.capabilities,
        scope=scope,
        turn="turn-1",
        effect_key="turn-1/1/0",
        open_host=lambda: open_client(demo, pool),
    )
    call = ToolCallBlock(tool_call_id="c", tool_name=name, input=arguments)
    admitted = admit_call(get_toolset(scope), call, context)
    assert isinstance(admitted, AdmittedCall), admitted
    output = run_tool(admitted, context)
    assert output.ok, output.error
    return output.data


def test_every_tool_can_read_the_answers_of_the_demo_host(demo: DemoHostServer, pool: HostConnectionPool) -> None:
    def ask(name: str, **arguments: Any) -> Any:
        return read_data(demo, pool, "content", name, **arguments)

    collections = ask("list_collections")["collections"]
    assert [item["slug"] for item in collections] == ["posts", "recipes", "pages"]
    for collection in collections:
        assert ask("get_collection_schema", tableId=collection["id"])["collection"]["fields"]
        page = ask("list_documents", tableId=collection["id"])
        assert page["total"] == collection["rowCount"] == len(page["documents"])
        for document in page["documents"]:
            assert ask("get_document", documentId=document["id"])["document"]["fields"]["title"] == document["title"]
    assert [item["id"] for item in ask("search_documents", query="rye")["results"]] == ["doc-rye", "doc-rye-loaf"]
    assert len(ask("list_users")["users"]) == 3
    assert ask("list_media", query="rye", mimeType="image")["total"] == 1


def test_documents_are_filtered_and_paged(demo: DemoHostServer, pool: HostConnectionPool) -> None:
    drafts = read_data(demo, pool, "content", "list_documents", tableId="tbl-posts", status="draft")
    assert [item["id"] for item in drafts["documents"]] == ["doc-flour"]
    page = read_data(demo, pool, "content", "list_documents", tableId="tbl-posts", limit=1, offset=1)
    assert (page["total"], [item["id"] for item in page["documents"]]) == (4, ["doc-easter"])


def test_the_site_tools_read_the_tables_of_the_demo_host(demo: DemoHostServer, pool: HostConnectionPool) -> None:
    assert [item["slug"] for item in read_data(demo, pool, "site", "list_post_types")["postTypes"]] == [
        "posts",
        "recipes",
    ]
    assert len(read_data(demo, pool, "site", "list_loop_sources")["dataTables"]) == 4


def test_a_plugin_is_validated_and_activated(demo: DemoHostServer, pool: HostConnectionPool) -> None:
    assert not read_data(demo, pool, "plugin", "plugin_validate", localId="tip-jar")["ok"]
    result = read_data(demo, pool, "plugin", "plugin_activate", localId="opening-hours")
    assert result == {
        "activated": True,
        "skipped": False,
        "pluginId": "bakery.opening-hours",
        "version": "1.1.0",
        "upgrade": {"from": "1.0.0", "to": "1.1.0"},
    }
    assert read_data(demo, pool, "plugin", "plugin_list_plugins")["sitePlugins"][0]["activeVersion"] == "1.1.0"


def test_a_repeated_activation_with_one_effect_key_happens_once(demo: DemoHostServer, pool: HostConnectionPool) -> None:
    host = open_client(demo, pool)
    first, second = [host.activate_plugin("opening-hours", effect_key="turn/1/0") for _ in range(2)]
    assert first == second
    assert demo.content.activations == [{"key": "turn/1/0", "plugin": "opening-hours", "asked": 2}]
    host.activate_plugin("opening-hours", effect_key="turn/2/0")
    assert [act["asked"] for act in demo.content.activations] == [2, 1]


@pytest.mark.parametrize(
    ("plugin", "outcome"), [("newsletter", "has to grant them first"), ("tip-jar", "does not build")]
)
def test_a_plugin_that_does_not_build_or_lacks_permissions_is_not_activated(
    demo: DemoHostServer, pool: HostConnectionPool, plugin: str, outcome: str
) -> None:
    host = open_client(demo, pool)
    try:
        outcome_text = str(host.activate_plugin(plugin, effect_key="k"))
    except HostError as failure:
        outcome_text = str(failure)
    assert outcome in outcome_text
    assert all(item["activeVersion"] is None for item in host.list_plugins()["plugins"][1:])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"secret": "another secret that is long enough to be one"}, "Signature verification failed"),
        ({"now": 1_000_000_000.0}, "expired"),
        ({"now": 4_000_000_000.0}, "not yet valid"),
        ({"caller": replace(DEMO_CALLER, tenant="florist")}, "another tenant"),
    ],
)
def test_an_invalid_token_is_refused(demo: DemoHostServer, pool: HostConnectionPool, changes: Any, reason: str) -> None:
    with pytest.raises(HostError, match=reason) as error_info:
        open_client(demo, pool, **changes).list_tables()
    assert error_info.value.status == 401


def test_activating_a_plugin_requires_its_capability(demo: DemoHostServer, pool: HostConnectionPool) -> None:
    visitor = replace(DEMO_CALLER, capabilities=frozenset({"ai.chat"}))
    with pytest.raises(HostError, match=r"does not let this user do that: This takes the capability plugins\.install"):
        open_client(demo, pool, visitor).activate_plugin("opening-hours", effect_key="k")
    assert demo.content.activations == []
