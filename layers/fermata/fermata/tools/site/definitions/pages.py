"""Define the tools for pages, and for pages that serve as templates of others."""

from typing import Annotated, Literal

from pydantic import Field

from fermata.tools.input_types import NonEmptyText
from fermata.tools.site.definitions.shared_inputs import PageIdInput
from fermata.tools.site.permissions import CAN_EDIT_STRUCTURE
from fermata.tools.site.tool_factory import SITE_TOOL_FACTORY
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
    SITE_TOOL_FACTORY.browser_write(
        name="addPage",
        description="Creates an empty page and opens it; a slug that is taken gets a number. Returns the page's id "
        "and its root node's id, which is where to put the first HTML.",
        input_model=AddPageInput,
        permissions=CAN_EDIT_STRUCTURE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="deletePage",
        description="Deletes a page with all it holds; the last page of a site cannot be deleted.",
        input_model=PageIdInput,
        permissions=CAN_EDIT_STRUCTURE,
        risk=Risk.HIGH,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="renamePage",
        description="Changes a page's title and, where one is given, its slug; the page with the slug `index` is the "
        "homepage.",
        input_model=NamePageInput,
        permissions=CAN_EDIT_STRUCTURE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="duplicatePage",
        description="Copies a page with all its nodes and styles under a new title. Returns the copy's id.",
        input_model=NamePageInput,
        permissions=CAN_EDIT_STRUCTURE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="setPageTemplate",
        description="Makes a page a template, or changes what it is a template for: every page, the entries of some "
        "post types (their slugs in `tableSlugs`), or the 404 page. Its <instatic-outlet> is where their content "
        "goes; of several that fit, the one with the higher `priority` (100 by default) counts.",
        input_model=SetPageTemplateInput,
        permissions=CAN_EDIT_STRUCTURE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="clearPageTemplate",
        description="Makes a template an ordinary page again, without its target and its bindings to entries.",
        input_model=PageIdInput,
        permissions=CAN_EDIT_STRUCTURE,
    ),
)
