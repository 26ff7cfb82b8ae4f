"""The demo content system answers every question a tool asks, takes no other tokens, and acts once for each key."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fermata.domain.blocks import ToolCallBlock
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.hosts.auth import HostCaller, sign_host_token
from fermata.hosts.client import HostClient, HostConnectionPool
from fermata.hosts.errors import HostError
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.calls.runner import run_tool
from fermata.tools.registry import get_toolset
from fermata.tools.tool import ToolContext
from local.demo_host.demo_content import DemoContent
from local.demo_host.server import DemoHostServer
from local.seed import EDITOR_CAPABILITIES

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
def lines() -> Iterator[HostConnectionPool]:
    kept = HostConnectionPool(UrlGuard(loopback=True), 5.0)
    yield kept
    kept.close()


def opened(
    demo: DemoHostServer,
    lines: HostConnectionPool,
    caller: HostCaller = DEMO_CALLER,
    secret: str = SECRET,
    now: float | None = None,
) -> HostClient:
    return HostClient(
        demo.url, lambda: sign_host_token(caller, secret, "k", now or time.time()), lambda _seconds: lines
    )


def data(demo: DemoHostServer, lines: HostConnectionPool, scope: str, name: str, **given: Any) -> Any:
    context = ToolContext(
        tenant="local",
        user="you",
        capabilities=DEMO_CALLER.capabilities,
        scope=scope,
        turn="turn-1",
        effect_key="turn-1/1/0",
        host=lambda: opened(demo, lines),
    )
    call = ToolCallBlock(tool_call_id="c", tool_name=name, input=given)
    admitted = admit_call(get_toolset(scope), call, context)
    assert isinstance(admitted, AdmittedCall), admitted
    output = run_tool(admitted, context)
    assert output.ok, output.error
    return output.data


def test_every_tool_that_asks_gets_an_answer_it_understands(demo: DemoHostServer, lines: HostConnectionPool) -> None:
    def ask(name: str, **given: Any) -> Any:
        return data(demo, lines, "content", name, **given)

    collections = ask("list_collections")["collections"]
    assert [one["slug"] for one in collections] == ["posts", "recipes", "pages"]
    for collection in collections:
        assert ask("get_collection_schema", tableId=collection["id"])["collection"]["fields"]
        listed = ask("list_documents", tableId=collection["id"])
        assert listed["total"] == collection["rowCount"] == len(listed["documents"])
        for document in listed["documents"]:
            assert ask("get_document", documentId=document["id"])["document"]["fields"]["title"] == document["title"]
    assert [one["id"] for one in ask("search_documents", query="rye")["results"]] == ["doc-rye", "doc-rye-loaf"]
    assert len(ask("list_users")["users"]) == 3
    assert ask("list_media", query="rye", mimeType="image")["total"] == 1


def test_documents_are_filtered_and_paged(demo: DemoHostServer, lines: HostConnectionPool) -> None:
    drafts = data(demo, lines, "content", "list_documents", tableId="tbl-posts", status="draft")
    assert [one["id"] for one in drafts["documents"]] == ["doc-flour"]
    second = data(demo, lines, "content", "list_documents", tableId="tbl-posts", limit=1, offset=1)
    assert (second["total"], [one["id"] for one in second["documents"]]) == (4, ["doc-easter"])


def test_the_tables_serve_the_site_too(demo: DemoHostServer, lines: HostConnectionPool) -> None:
    assert [one["slug"] for one in data(demo, lines, "site", "list_post_types")["postTypes"]] == ["posts", "recipes"]
    assert len(data(demo, lines, "site", "list_loop_sources")["dataTables"]) == 4


def test_a_plugin_is_validated_and_activated(demo: DemoHostServer, lines: HostConnectionPool) -> None:
    assert not data(demo, lines, "plugin", "plugin_validate", localId="tip-jar")["ok"]
    done = data(demo, lines, "plugin", "plugin_activate", localId="opening-hours")
    assert done == {
        "activated": True,
        "skipped": False,
        "pluginId": "bakery.opening-hours",
        "version": "1.1.0",
        "upgrade": {"from": "1.0.0", "to": "1.1.0"},
    }
    assert data(demo, lines, "plugin", "plugin_list_plugins")["sitePlugins"][0]["activeVersion"] == "1.1.0"


def test_an_activation_asked_for_twice_with_one_key_happens_once_and_says_the_same(
    demo: DemoHostServer, lines: HostConnectionPool
) -> None:
    host = opened(demo, lines)
    first, again = [host.activate_plugin("opening-hours", effect_key="turn/1/0") for _ in range(2)]
    assert first == again
    assert demo.content.activations == [{"key": "turn/1/0", "plugin": "opening-hours", "asked": 2}]
    host.activate_plugin("opening-hours", effect_key="turn/2/0")
    assert [act["asked"] for act in demo.content.activations] == [2, 1]


@pytest.mark.parametrize(
    ("plugin", "outcome"), [("newsletter", "has to grant them first"), ("tip-jar", "does not build")]
)
def test_what_must_not_be_active_is_not_activated(
    demo: DemoHostServer, lines: HostConnectionPool, plugin: str, outcome: str
) -> None:
    host = opened(demo, lines)
    try:
        told = str(host.activate_plugin(plugin, effect_key="k"))
    except HostError as failure:
        told = str(failure)
    assert outcome in told
    assert all(one["activeVersion"] is None for one in host.list_plugins()["plugins"][1:])


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"secret": "another secret that is long enough to be one"}, "Signature verification failed"),
        ({"now": 1_000_000_000.0}, "expired"),
        ({"now": 4_000_000_000.0}, "not yet valid"),
        ({"caller": replace(DEMO_CALLER, tenant="florist")}, "another tenant"),
    ],
)
def test_a_token_that_is_not_right_opens_nothing(
    demo: DemoHostServer, lines: HostConnectionPool, how: Any, reason: str
) -> None:
    with pytest.raises(HostError, match=reason) as caught:
        opened(demo, lines, **how).list_tables()
    assert caught.value.status == 401


def test_activating_takes_the_capability_for_it(demo: DemoHostServer, lines: HostConnectionPool) -> None:
    visitor = replace(DEMO_CALLER, capabilities=frozenset({"ai.chat"}))
    with pytest.raises(HostError, match=r"does not let this user do that: This takes the capability plugins\.install"):
        opened(demo, lines, visitor).activate_plugin("opening-hours", effect_key="k")
    assert demo.content.activations == []
