"""Where the site's post types and loop sources come from: the tenant's content system, else the snapshot."""

from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.calls.runner import run_tool
from fermata.tools.site.toolset import SITE_TOOLSET
from tests.scripted_host import ScriptedHost
from tests.unit.tools.builders import make_call, make_context, make_site_snapshot
from tests.unit.tools.content_samples import PAGES, PEOPLE, POSTS, TABLES


def answer(name: str, **situation: Any) -> ToolOutput:
    where = make_context(**situation)
    admitted = admit_call(SITE_TOOLSET, make_call(name), where)
    assert isinstance(admitted, AdmittedCall)
    return run_tool(admitted, where, sleep=lambda _seconds: None)


POST_TYPES = {"postTypes": [{"slug": "posts", "label": "Posts", "routeBase": "/blog", "kind": "postType"}]}


def test_post_types_are_the_content_systems(host: ScriptedHost) -> None:
    host.script_response("GET tables", {"error": "busy"}, status=503)
    host.script_response("GET tables", TABLES)
    assert answer("list_post_types", host=host.open_client).data == POST_TYPES


def test_loop_sources_name_every_table_of_the_content_system(host: ScriptedHost) -> None:
    host.script_response("GET tables", TABLES)
    found = answer("list_loop_sources", host=host.open_client).data
    assert [table["id"] for table in found["dataTables"]] == ["t-posts", "t-pages", "t-people"]


def test_tables_that_the_snapshot_carries_stand_in_for_it() -> None:
    carrying = make_site_snapshot() | {"dataTables": [POSTS, PAGES, PEOPLE]}
    assert answer("list_post_types", snapshot=carrying).data == POST_TYPES


@pytest.mark.parametrize("name", ["list_post_types", "list_loop_sources"])
def test_where_nobody_knows_the_tables_the_missing_setting_is_named(name: str) -> None:
    refused = answer(name, snapshot=make_site_snapshot())
    assert "fermata tenant host tenant-1 --url" in str(refused.error)
