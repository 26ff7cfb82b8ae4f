"""Define the site tools that the server answers from the snapshot, from static data, or from the data tables.

The handlers import what they need when they are called.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from fermata.tools.site.permissions import CAN_READ_SITE
from fermata.tools.site.tool_factory import SITE_TOOL_FACTORY
from fermata.tools.tool import NoInput, ToolContext, ToolInput
from fermata.tools.tool_factory import SnapshotCheck

if TYPE_CHECKING:
    from fermata.tools.data_table_models import DataTable


HAS_SNAPSHOT_TABLES = SnapshotCheck("fermata.tools.host_queries:read_snapshot_tables")


class ListModulesInput(ToolInput):
    category: str | None = None


class ListTokensInput(ToolInput):
    family: Literal["colors", "typography", "spacing", "fonts"] | None = None


def _list_documents(_tool_input: NoInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site.document_listing import list_site_documents

    return list_site_documents(context.snapshot)


def _list_modules(tool_input: ListModulesInput, _context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site.node_types.listing import describe_node_types

    return {"modules": describe_node_types(tool_input.category)}


def _list_tokens(tool_input: ListTokensInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site.design_tokens.listing import list_tokens

    return {"tokens": list_tokens(context.snapshot, tool_input.family)}


def _list_post_types(_tool_input: NoInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site.table_listing import describe_post_types

    return describe_post_types(_load_tables(context))


def _list_loop_sources(_tool_input: NoInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site.table_listing import describe_table_loop_sources

    return describe_table_loop_sources(_load_tables(context))


def _load_tables(context: ToolContext) -> "Sequence[DataTable]":
    from fermata.tools.host_queries import load_data_tables

    return load_data_tables(context)


def _list_breakpoints(_tool_input: NoInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site.breakpoints import list_breakpoints

    return list_breakpoints(context.snapshot)


SERVER_READ_TOOLS = (
    SITE_TOOL_FACTORY.instant_read(
        name="list_documents",
        description="Lists the documents of the site that can be edited: pages, templates, visual components. Each has "
        "its reference {type, id}, title, root node id, a short summary, and whether the user has it open. Use these "
        "references wherever a document is asked for.",
        permissions=CAN_READ_SITE,
        handler=_list_documents,
    ),
    SITE_TOOL_FACTORY.instant_read(
        name="list_modules",
        description="Lists the kinds of nodes a document is built of, and which can hold children. Of each kind it "
        "gives the props with their types, choices and defaults. Look here before you change props. `category` "
        "(Layout, Interactive, Forms, Media, Typography, CMS, Components) narrows the list.",
        input_model=ListModulesInput,
        permissions=CAN_READ_SITE,
        handler=_list_modules,
    ),
    SITE_TOOL_FACTORY.instant_read(
        name="list_tokens",
        description="Lists the site's design tokens with their CSS variables, values and utility classes: colours "
        "with shades, tints and transparencies, the steps of the type and spacing scales, and fonts. `family` narrows "
        "the list to one kind.",
        input_model=ListTokensInput,
        permissions=CAN_READ_SITE,
        handler=_list_tokens,
    ),
    SITE_TOOL_FACTORY.host_read(
        name="list_post_types",
        description="Lists the collections whose entries have pages of their own, with the slug that names each one "
        "as the target of a template.",
        permissions=CAN_READ_SITE,
        handler=_list_post_types,
        works_without_host=HAS_SNAPSHOT_TABLES,
    ),
    SITE_TOOL_FACTORY.host_read(
        name="list_loop_sources",
        description="Lists what a loop can repeat over, with the filters and orders of each source. For every data "
        "table it gives the id, the fields and the exact {currentEntry.…} token of each field. Call it before you "
        "write an <instatic-loop>.",
        permissions=CAN_READ_SITE,
        handler=_list_loop_sources,
        works_without_host=HAS_SNAPSHOT_TABLES,
    ),
    SITE_TOOL_FACTORY.instant_read(
        name="list_breakpoints",
        description="Lists the screen widths the site is designed for, with their ids, widths and media queries, and "
        "which one the user looks at.",
        permissions=CAN_READ_SITE,
        handler=_list_breakpoints,
    ),
)
