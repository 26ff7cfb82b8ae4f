"""The six tools that are answered here: from the snapshot, from what the editor always has, and from the tables.

What a tool does is loaded when it is first called.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from fermata.tools.site.factories import server_read
from fermata.tools.tool import NoInput, ToolContext, ToolInput

if TYPE_CHECKING:
    from fermata.tools.site.data_tables import DataTable


class ListModulesInput(ToolInput):
    category: str | None = None


class ListTokensInput(ToolInput):
    family: Literal["colors", "typography", "spacing", "fonts"] | None = None


def _list_documents(given: NoInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site import documents

    return documents.list_site_documents(context.snapshot)


def _list_modules(given: ListModulesInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site.node_types import listing

    return {"modules": listing.describe_node_types(given.category)}


def _list_tokens(given: ListTokensInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site.design_tokens import listing

    return {"tokens": listing.list_tokens(context.snapshot, given.family)}


def _list_post_types(given: NoInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site import data_tables

    return data_tables.describe_post_types(_tables_of(context))


def _list_loop_sources(given: NoInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site import data_tables

    return data_tables.describe_table_loop_sources(_tables_of(context))


def _tables_of(context: ToolContext) -> "Sequence[DataTable]":
    from fermata.tools import host_queries

    return host_queries.load_data_tables(context)


def _list_breakpoints(given: NoInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site import breakpoints

    return breakpoints.list_breakpoints(context.snapshot)


SERVER_READ_TOOLS = (
    server_read(
        "list_documents",
        "Lists every document of the site that can be edited (pages, templates, visual components) with its reference "
        "{type, id}, title, root node id, a short summary, and whether it is the one the user has open; use these "
        "references wherever a document is asked for.",
        _list_documents,
    ),
    server_read(
        "list_modules",
        "Lists the kinds of nodes a document is built of, with the props each one has, their types, choices and "
        "defaults, and whether it can hold children; look here before you change props. `category` (Layout, "
        "Interactive, Forms, Media, Typography, CMS, Components) narrows the list.",
        _list_modules,
        ListModulesInput,
    ),
    server_read(
        "list_tokens",
        "Lists the site's design tokens with their CSS variables, values and utility classes: colours with shades, "
        "tints and transparencies, the steps of the type and spacing scales, and fonts. `family` narrows the list to "
        "one kind.",
        _list_tokens,
        ListTokensInput,
    ),
    server_read(
        "list_post_types",
        "Lists the collections whose entries have pages of their own, with the slug that names each one as the target "
        "of a template.",
        _list_post_types,
        instant=False,
    ),
    server_read(
        "list_loop_sources",
        "Lists what a loop can repeat over, with the filters and orders of each source, and for every data table its "
        "id, fields and the exact {currentEntry.…} token of each field; call it before you write an <instatic-loop>.",
        _list_loop_sources,
        instant=False,
    ),
    server_read(
        "list_breakpoints",
        "Lists the screen widths the site is designed for, with their ids, widths and media queries, and which one "
        "the user looks at.",
        _list_breakpoints,
    ),
)
