"""Pages, and pages that are templates for others."""

from typing import Annotated, Literal

from pydantic import Field

from fermata.tools.site.definitions.shared_inputs import NonEmptyText, PageIdInput
from fermata.tools.site.factories import browser_write
from fermata.tools.tool import Risk, ToolInput


class AddPageInput(ToolInput):
    title: NonEmptyText
    slug: str | None = None


class NamePageInput(ToolInput):
    page_id: NonEmptyText
    title: NonEmptyText
    slug: str | None = None


class EverywhereTargetInput(ToolInput):
    kind: Literal["everywhere"]


class PostTypesTargetInput(ToolInput):
    kind: Literal["postTypes"]
    table_slugs: Annotated[tuple[NonEmptyText, ...], Field(min_length=1)]


class NotFoundTargetInput(ToolInput):
    kind: Literal["notFound"]


class SetPageTemplateInput(ToolInput):
    page_id: NonEmptyText
    target: EverywhereTargetInput | PostTypesTargetInput | NotFoundTargetInput
    priority: float | None = None


PAGE_TOOLS = (
    browser_write(
        "addPage",
        "Creates an empty page and opens it; a slug that is taken gets a number. Returns the page's id and its root "
        "node's id, which is where to put the first HTML.",
        AddPageInput,
    ),
    browser_write(
        "deletePage",
        "Deletes a page with all it holds; the last page of a site cannot be deleted.",
        PageIdInput,
        risk=Risk.HIGH,
    ),
    browser_write(
        "renamePage",
        "Changes a page's title and, where one is given, its slug; the page with the slug `index` is the homepage.",
        NamePageInput,
    ),
    browser_write(
        "duplicatePage",
        "Copies a page with all its nodes and styles under a new title. Returns the copy's id.",
        NamePageInput,
    ),
    browser_write(
        "setPageTemplate",
        "Makes a page a template, or changes what it is a template for: every page, the entries of some post types "
        "(their slugs in `tableSlugs`), or the 404 page. Its <instatic-outlet> is where their content goes; of several "
        "that fit, the one with the higher `priority` (100 by default) counts.",
        SetPageTemplateInput,
    ),
    browser_write(
        "clearPageTemplate",
        "Makes a template an ordinary page again, without its target and its bindings to entries.",
        PageIdInput,
    ),
)
