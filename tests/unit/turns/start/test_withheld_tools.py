"""Tools that need the tenant's content system are offered only where there is one, or the snapshot can stand in."""

from typing import Any

import pytest

from fermata.agents.registry import get_toolset
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.hosts.host_record import HostRecord
from fermata.turns.start.build_turn import NO_BROWSER_TOOLS_NOTE
from tests.unit.turns.stage import ADA, Stage, reply_with_calls, tool_call_block

HOST_TOOLS = {"list_post_types", "list_loop_sources"}
TABLES = {"dataTables": [{"id": "t1", "slug": "posts", "kind": "postType"}]}


def offered_names(stage: Stage, snapshot: Any = None, **members: Any) -> set[str]:
    stage.start_turn("Go", snapshot=snapshot, **members)
    stage.script_replies("Done.")
    stage.run_workflow()
    return {tool.name for tool in stage.driver.requests[-1].tools}


def test_a_tenant_without_a_host_is_not_offered_what_would_only_fail(stage: Stage) -> None:
    names = offered_names(stage, {"site": {}})
    assert HOST_TOOLS.isdisjoint(names)
    assert "list_documents" in names


def test_a_snapshot_with_tables_stands_in_for_a_host(stage: Stage) -> None:
    assert offered_names(stage, TABLES) >= HOST_TOOLS


def test_a_tenant_with_a_host_is_offered_everything(stage: Stage) -> None:
    host = HostRecord(tenant=ADA.tenant, url="https://cms.example", secrets=(), created_at="", updated_at="")
    stage.resources.tables.write_items(Put(stage.resources.settings.settings_table, host.to_item()))
    assert offered_names(stage, {"site": {}}) >= HOST_TOOLS


@pytest.mark.parametrize(
    ("scope", "snapshot", "withheld"),
    [
        (
            "content",
            None,
            {
                "list_collections",
                "get_collection_schema",
                "list_documents",
                "get_document",
                "search_documents",
                "list_users",
                "list_media",
            },
        ),
        (
            "content",
            {"collections": [{"id": "t1"}], "activeDocument": {"id": "d1", "tableId": "t1"}},
            {"list_documents", "search_documents", "list_users", "list_media"},
        ),
        (
            "content",
            TABLES,
            {"list_documents", "get_document", "search_documents", "list_users", "list_media"},
        ),
        ("plugin", None, {"plugin_list_plugins", "plugin_validate", "plugin_activate"}),
        ("plugin", {"localId": "p1"}, {"plugin_validate", "plugin_activate"}),
        ("site", "no object", HOST_TOOLS),
        ("data", None, set()),
    ],
)
def test_what_a_snapshot_stands_in_for(scope: str, snapshot: Any, withheld: set[str]) -> None:
    assert set(get_toolset(scope).list_tools_without_host(snapshot)) == withheld


def test_a_client_without_an_editor_is_offered_no_tools_of_the_browser(stage: Stage) -> None:
    browser_tools = set(get_toolset("site").list_browser_tools())
    assert {"read_document", "insertHtml"} <= browser_tools
    names = offered_names(stage, TABLES, has_browser_tools=False)
    assert names >= HOST_TOOLS
    assert browser_tools.isdisjoint(names)
    assert NO_BROWSER_TOOLS_NOTE in stage.turn.situation


def test_a_call_that_no_editor_would_carry_out_is_refused_at_once(stage: Stage) -> None:
    stage.start_turn("Go", has_browser_tools=False)
    stage.script_replies(reply_with_calls(tool_call_block("read_document")), "I can only talk.")
    stage.run_workflow()
    assert stage.tool_requests() == []
    assert "No editor is connected" in str(stage.results_sent_to_model()[0])
    assert [event.type for event in stage.terminal_events()] == ["done"]
