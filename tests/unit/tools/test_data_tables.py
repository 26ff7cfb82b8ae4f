"""A tenant's data tables, as post types for templates and as what a loop can repeat over."""

from typing import Any

import pytest

from fermata.tools.data_tables import DataTable
from fermata.tools.site.table_listing import describe_post_types, describe_table_loop_sources


def table(**members: Any) -> DataTable:
    posted = {
        "id": "tbl_posts",
        "slug": "posts",
        "name": "Posts",
        "kind": "postType",
        "singularLabel": "Post",
        "pluralLabel": "Blog posts",
        "primaryFieldId": "title",
        "routeBase": "/blog",
        "rowCount": 12,
        "fields": [],
    }
    return DataTable.from_wire({**posted, **members})


def told(**members: Any) -> dict[str, Any]:
    (only,) = describe_table_loop_sources([table(**members)])["dataTables"]
    assert isinstance(only, dict)
    return only


def field(told_table: dict[str, Any], field_id: str) -> dict[str, Any]:
    (found,) = [field for field in told_table["fields"] if field["id"] == field_id]
    assert isinstance(found, dict)
    return found


def test_post_types_are_the_tables_whose_rows_have_pages() -> None:
    tables = [table(), table(id="t2", slug="tags", routeBase=" "), table(id="t3", slug="team", kind="data")]
    assert describe_post_types(tables) == {
        "postTypes": [
            {"slug": "posts", "label": "Blog posts", "routeBase": "/blog", "kind": "postType"},
            {"slug": "team", "label": "Blog posts", "routeBase": "/blog", "kind": "data"},
        ]
    }


@pytest.mark.parametrize("plural", ["", None])
def test_a_table_without_a_plural_is_called_by_its_name(plural: str | None) -> None:
    assert describe_post_types([table(pluralLabel=plural)])["postTypes"][0]["label"] == "Posts"


def test_a_tenant_without_tables_still_has_the_sources() -> None:
    answer = describe_table_loop_sources([])
    assert answer["dataTables"] == []
    assert [source["id"] for source in answer["sources"]] == ["data.rows", "site.pages", "site.media"]
    assert set(answer["usage"]) == {"loopElement", "tokenSyntax", "invalidTokenSyntax"}


def test_each_source_tells_its_fields_filters_and_orders() -> None:
    rows, pages, media = describe_table_loop_sources([table()])["sources"]
    assert [one["id"] for one in rows["orderByOptions"]] == ["publishedAt", "createdAt", "updatedAt", "slug"]
    assert rows["filterSchema"]["tableId"]["options"] == [{"label": "Blog posts", "value": "tbl_posts"}]
    generic = ["slug", "title", "authorName", "authorRoleName", "body", "featuredMedia", "firstImage", "seoTitle"]
    generic += ["seoDescription", "permalink", "publishedAt", "publishedByName", "publishedByRoleName"]
    assert [one["id"] for one in rows["fields"]] == [*generic, "createdAt", "updatedAt"]
    assert list(pages["filterSchema"]) == ["excludeTemplates", "templateOnly"]
    assert [one["id"] for one in pages["orderByOptions"]] == ["definition", "title", "slug"]
    assert [one["id"] for one in pages["fields"]] == ["title", "slug", "permalink"]
    kinds = [one["value"] for one in media["filterSchema"]["mimePrefix"]["options"]]
    assert kinds == ["", "image/", "video/", "audio/"]
    assert [one["id"] for one in media["orderByOptions"]] == ["createdAt", "filename"]
    assert [one["id"] for one in media["fields"]] == ["filename", "path", "url", "src", "mimeType", "createdAt"]
    assert all(source["requestDependent"] is source["perVisitor"] is False for source in (rows, pages, media))


def test_a_table_lists_its_own_fields_and_then_those_of_every_row() -> None:
    posts = told(fields=[{"id": "subtitle", "label": "Subtitle", "type": "text"}])
    assert posts["fields"][0] == {
        "id": "subtitle",
        "label": "Subtitle",
        "token": "{currentEntry.subtitle}",
        "type": "text",
    }
    assert field(posts, "permalink") == {
        "id": "permalink",
        "label": "Permalink",
        "token": "{currentEntry.permalink}",
        "format": "url",
    }
    assert {name: posts[name] for name in posts if name != "fields"} == {
        "id": "tbl_posts",
        "slug": "posts",
        "name": "Posts",
        "kind": "postType",
        "singularLabel": "Post",
        "pluralLabel": "Blog posts",
        "primaryFieldId": "title",
        "routable": True,
        "versioned": True,
        "rowCount": 12,
    }


def test_of_two_fields_of_one_id_the_one_of_every_row_counts_at_the_first_place() -> None:
    fields = [{"id": "title", "label": "Headline", "type": "text"}, {"id": "lead", "label": "Lead", "type": "longText"}]
    posts = told(fields=fields)
    assert [one["id"] for one in posts["fields"]][:3] == ["title", "lead", "slug"]
    assert posts["fields"][0] == {"id": "title", "label": "Title", "token": "{currentEntry.title}"}
    assert len(posts["fields"]) == 16


@pytest.mark.parametrize(
    ("kind", "format_"), [("richText", "html"), ("url", "url"), ("media", "media"), ("text", None), ("number", None)]
)
def test_a_field_is_bound_as_its_type_asks_for(kind: str, format_: str | None) -> None:
    posts = told(fields=[{"id": "own", "label": "Own", "type": kind}])
    assert field(posts, "own").get("format") == format_


def test_a_relation_to_a_table_that_is_not_there_is_left_out() -> None:
    fields = [
        {"id": "author", "type": "relation", "targetTableId": "tbl_gone"},
        {"id": "related", "type": "relation", "targetTableId": "tbl_posts"},
        {"id": "loose", "type": "relation"},
    ]
    named = [one["id"] for one in told(fields=fields)["fields"]]
    assert "related" in named
    assert not {"author", "loose"} & set(named)


def test_plain_rows_are_neither_routable_nor_versioned() -> None:
    rows = told(kind="data", routeBase="")
    assert (rows["routable"], rows["versioned"]) == (False, False)
