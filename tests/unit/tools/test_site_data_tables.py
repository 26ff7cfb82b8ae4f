"""The site's post types and loop sources come from the content system or from the snapshot."""

from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.site.toolset import SITE_TOOLSET
from tests.scripted_host import ScriptedHost
from tests.unit.tools.builders import SleeplessClock, make_call, make_context, make_site_snapshot, run_tool
from tests.unit.tools.content_samples import PAGES, PEOPLE, POSTS, TABLES


def call_tool(name: str, **situation: Any) -> ToolOutput:
    context = make_context(**situation)
    admitted = admit_call(SITE_TOOLSET, make_call(name), context)
    assert isinstance(admitted, AdmittedCall)
    return run_tool(admitted, context, clock=SleeplessClock())


POST_TYPES = {"postTypes": [{"slug": "posts", "label": "Posts", "routeBase": "/blog", "kind": "postType"}]}


def test_post_types_are_read_from_the_content_system(host: ScriptedHost) -> None:
    host.script_response("GET tables", {"error": "busy"}, status=503)
    host.script_response("GET tables", TABLES)
    assert call_tool("list_post_types", open_host=host.open_client).data == POST_TYPES


def test_loop_sources_list_every_table_of_the_content_system(host: ScriptedHost) -> None:
    host.script_response("GET tables", TABLES)
    result = call_tool("list_loop_sources", open_host=host.open_client).data
    assert [table["id"] for table in result["dataTables"]] == ["t-posts", "t-pages", "t-people"]


def test_data_tables_in_the_snapshot_replace_the_content_system() -> None:
    snapshot = make_site_snapshot() | {"dataTables": [POSTS, PAGES, PEOPLE]}
    assert call_tool("list_post_types", snapshot=snapshot).data == POST_TYPES


@pytest.mark.parametrize("name", ["list_post_types", "list_loop_sources"])
def test_without_tables_the_failure_names_the_command_that_registers_a_content_system(name: str) -> None:
    output = call_tool(name, snapshot=make_site_snapshot())
    assert "fermata tenant host tenant-1 --url" in str(output.error)
