"""Pages, and pages that are templates for others."""

from typing import Annotated, Literal

from pydantic import Field

from fermata.tools.site.inputs import PageOnly, Text
from fermata.tools.site.records import browser_write
from fermata.tools.tool import Risk, ToolInput


class AddPage(ToolInput):
    title: Text
    slug: str | None = None


class NamedPage(ToolInput):
    page_id: Text
    title: Text
    slug: str | None = None


class Everywhere(ToolInput):
    kind: Literal["everywhere"]


class PostTypes(ToolInput):
    kind: Literal["postTypes"]
    table_slugs: Annotated[tuple[Text, ...], Field(min_length=1)]


class NotFoundPage(ToolInput):
    kind: Literal["notFound"]


class SetPageTemplate(ToolInput):
    page_id: Text
    target: Everywhere | PostTypes | NotFoundPage
    priority: float | None = None


PAGES = (
    browser_write(
        "addPage",
        "Creates an empty page and opens it; a slug that is taken gets a number. Returns the page's id and its root "
        "node's id, which is where to put the first HTML.",
        AddPage,
    ),
    browser_write(
        "deletePage",
        "Deletes a page with all it holds; the last page of a site cannot be deleted.",
        PageOnly,
        risk=Risk.HIGH,
    ),
    browser_write(
        "renamePage",
        "Changes a page's title and, where one is given, its slug; the page with the slug `index` is the homepage.",
        NamedPage,
    ),
    browser_write(
        "duplicatePage",
        "Copies a page with all its nodes and styles under a new title. Returns the copy's id.",
        NamedPage,
    ),
    browser_write(
        "setPageTemplate",
        "Makes a page a template, or changes what it is a template for: every page, the entries of some post types "
        "(their slugs in `tableSlugs`), or the 404 page. Its <instatic-outlet> is where their content goes; of several "
        "that fit, the one with the higher `priority` (100 by default) counts.",
        SetPageTemplate,
    ),
    browser_write(
        "clearPageTemplate",
        "Makes a template an ordinary page again, without its target and its bindings to entries.",
        PageOnly,
    ),
)
