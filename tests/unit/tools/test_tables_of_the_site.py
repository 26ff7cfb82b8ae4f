"""Where the site's post types and loop sources come from: the tenant's content system, else the snapshot."""

from typing import Any

import pytest

from fermata.tools.pipeline import Admitted, admit
from fermata.tools.running import run
from fermata.tools.site.tools import SITE
from fermata.words.tools import ToolOutput
from tests.hosts import ScriptedHost
from tests.unit.tools.bakery import PAGES, PEOPLE, POSTS, TABLES
from tests.unit.tools.toys import call, context, snapshot


def answer(name: str, **situation: Any) -> ToolOutput:
    where = context(**situation)
    admitted = admit(SITE, call(name), where)
    assert isinstance(admitted, Admitted)
    return run(admitted, where, sleep=lambda _seconds: None)


POST_TYPES = {"postTypes": [{"slug": "posts", "label": "Posts", "routeBase": "/blog", "kind": "postType"}]}


def test_post_types_are_the_content_systems(host: ScriptedHost) -> None:
    host.says("GET tables", {"error": "busy"}, status=503)
    host.says("GET tables", TABLES)
    assert answer("list_post_types", host=host.opened).data == POST_TYPES


def test_loop_sources_name_every_table_of_the_content_system(host: ScriptedHost) -> None:
    host.says("GET tables", TABLES)
    found = answer("list_loop_sources", host=host.opened).data
    assert [table["id"] for table in found["dataTables"]] == ["t-posts", "t-pages", "t-people"]


def test_tables_that_the_snapshot_carries_stand_in_for_it() -> None:
    carrying = snapshot() | {"dataTables": [POSTS, PAGES, PEOPLE]}
    assert answer("list_post_types", snapshot=carrying).data == POST_TYPES


@pytest.mark.parametrize("name", ["list_post_types", "list_loop_sources"])
def test_where_nobody_knows_the_tables_the_missing_setting_is_named(name: str) -> None:
    refused = answer(name, snapshot=snapshot())
    assert "fermata tenant host tenant-1 --url" in str(refused.error)
