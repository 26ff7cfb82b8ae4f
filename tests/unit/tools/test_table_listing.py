"""A tenant's data tables, described as post types for templates and as sources of loops."""

from typing import Any

import pytest

from fermata.tools.data_table_models import DataTable
from fermata.tools.site.table_listing import describe_post_types, describe_table_loop_sources


def make_table(**members: Any) -> DataTable:
    defaults = {
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
    return DataTable.from_wire({**defaults, **members})


def describe_table(**members: Any) -> dict[str, Any]:
    (described,) = describe_table_loop_sources([make_table(**members)])["dataTables"]
    assert isinstance(described, dict)
    return described


def find_field(described: dict[str, Any], field_id: str) -> dict[str, Any]:
    (matching,) = [field for field in described["fields"] if field["id"] == field_id]
    assert isinstance(matching, dict)
    return matching


def test_post_types_are_the_tables_whose_rows_have_pages() -> None:
    tables = [
        make_table(),
        make_table(id="t2", slug="tags", routeBase=" "),
        make_table(id="t3", slug="team", kind="data"),
    ]
    assert describe_post_types(tables) == {
        "postTypes": [
            {"slug": "posts", "label": "Blog posts", "routeBase": "/blog", "kind": "postType"},
            {"slug": "team", "label": "Blog posts", "routeBase": "/blog", "kind": "data"},
        ]
    }


@pytest.mark.parametrize("plural", ["", None])
def test_a_table_without_a_plural_label_is_labelled_by_its_name(plural: str | None) -> None:
    assert describe_post_types([make_table(pluralLabel=plural)])["postTypes"][0]["label"] == "Posts"


def test_a_tenant_without_tables_still_has_the_loop_sources() -> None:
    result = describe_table_loop_sources([])
    assert result["dataTables"] == []
    assert [source["id"] for source in result["sources"]] == ["data.rows", "site.pages", "site.media"]
    assert set(result["usage"]) == {"loopElement", "tokenSyntax", "invalidTokenSyntax"}


def test_each_loop_source_has_its_fields_filters_and_orders() -> None:
    rows, pages, media = describe_table_loop_sources([make_table()])["sources"]
    assert [item["id"] for item in rows["orderByOptions"]] == ["publishedAt", "createdAt", "updatedAt", "slug"]
    assert rows["filterSchema"]["tableId"]["options"] == [{"label": "Blog posts", "value": "tbl_posts"}]
    generic = ["slug", "title", "authorName", "authorRoleName", "body", "featuredMedia", "firstImage", "seoTitle"]
    generic += ["seoDescription", "permalink", "publishedAt", "publishedByName", "publishedByRoleName"]
    assert [item["id"] for item in rows["fields"]] == [*generic, "createdAt", "updatedAt"]
    assert list(pages["filterSchema"]) == ["excludeTemplates", "templateOnly"]
    assert [item["id"] for item in pages["orderByOptions"]] == ["definition", "title", "slug"]
    assert [item["id"] for item in pages["fields"]] == ["title", "slug", "permalink"]
    kinds = [item["value"] for item in media["filterSchema"]["mimePrefix"]["options"]]
    assert kinds == ["", "image/", "video/", "audio/"]
    assert [item["id"] for item in media["orderByOptions"]] == ["createdAt", "filename"]
    assert [item["id"] for item in media["fields"]] == ["filename", "path", "url", "src", "mimeType", "createdAt"]
    assert all(source["requestDependent"] is source["perVisitor"] is False for source in (rows, pages, media))


def test_a_table_lists_its_own_fields_before_those_of_every_row() -> None:
    posts = describe_table(fields=[{"id": "subtitle", "label": "Subtitle", "type": "text"}])
    assert posts["fields"][0] == {
        "id": "subtitle",
        "label": "Subtitle",
        "token": "{currentEntry.subtitle}",
        "type": "text",
    }
    assert find_field(posts, "permalink") == {
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


def test_a_field_that_every_row_has_replaces_one_of_the_same_id_in_place() -> None:
    fields = [{"id": "title", "label": "Headline", "type": "text"}, {"id": "lead", "label": "Lead", "type": "longText"}]
    posts = describe_table(fields=fields)
    assert [item["id"] for item in posts["fields"]][:3] == ["title", "lead", "slug"]
    assert posts["fields"][0] == {"id": "title", "label": "Title", "token": "{currentEntry.title}"}
    assert len(posts["fields"]) == 16


@pytest.mark.parametrize(
    ("kind", "format_"), [("richText", "html"), ("url", "url"), ("media", "media"), ("text", None), ("number", None)]
)
def test_the_type_of_a_field_decides_the_format_of_its_token(kind: str, format_: str | None) -> None:
    posts = describe_table(fields=[{"id": "own", "label": "Own", "type": kind}])
    assert find_field(posts, "own").get("format") == format_


def test_a_relation_to_an_unknown_table_is_left_out() -> None:
    fields = [
        {"id": "author", "type": "relation", "targetTableId": "tbl_gone"},
        {"id": "related", "type": "relation", "targetTableId": "tbl_posts"},
        {"id": "loose", "type": "relation"},
    ]
    named = [item["id"] for item in describe_table(fields=fields)["fields"]]
    assert "related" in named
    assert not {"author", "loose"} & set(named)


def test_plain_rows_are_neither_routable_nor_versioned() -> None:
    rows = describe_table(kind="data", routeBase="")
    assert (rows["routable"], rows["versioned"]) == (False, False)
