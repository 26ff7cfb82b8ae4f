"""The records of the site tools. What a tool does is loaded when it is first called."""

from typing import Any

from fermata.tools.site import inputs
from fermata.tools.tool import Access, Execution, NoInput, ResultPolicy, Risk, Tool, ToolContext, ToolInput
from fermata.tools.toolset import Toolset

_SITE = frozenset({"site"})
_READ = frozenset({"site.read"})
_STRUCTURE = frozenset({"site.structure.edit"})
_STYLE = frozenset({"site.style.edit"})
_HEAVY = ResultPolicy(heavy=True)


def _list_documents(given: NoInput, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site import documents

    return documents.list_documents(context.snapshot)


def _list_tokens(given: inputs.ListTokens, context: ToolContext) -> dict[str, Any]:
    from fermata.tools.site import tokens

    return {"tokens": tokens.list_tokens(context.snapshot, given.family)}


def _browser_read(name: str, description: str, takes: type[ToolInput], permissions: frozenset[str]) -> Tool:
    return Tool(
        name=name,
        toolset="site",
        description=description,
        execution=Execution.BROWSER,
        capability=Access.READ,
        input=takes,
        permissions=permissions,
        scopes=_SITE,
        idempotent=True,
        result=_HEAVY,
    )


def _browser_write(
    name: str, description: str, takes: type[ToolInput], permissions: frozenset[str], risk: Risk = Risk.MODERATE
) -> Tool:
    return Tool(
        name=name,
        toolset="site",
        description=description,
        execution=Execution.BROWSER,
        capability=Access.WRITE,
        input=takes,
        permissions=permissions,
        scopes=_SITE,
        risk=risk,
    )


SITE = Toolset(
    "site",
    (
        Tool(
            name="list_documents",
            toolset="site",
            description=(
                "Lists every document of the site that can be edited: pages, templates and visual components, each "
                "with its reference ({type, id}), title, root node id, a short summary, and whether it is the one the "
                "user has open. Use the references with the document reading tool; never make one up."
            ),
            execution=Execution.SERVER,
            capability=Access.READ,
            permissions=_READ,
            scopes=_SITE,
            run=_list_documents,
            idempotent=True,
        ),
        Tool(
            name="list_tokens",
            toolset="site",
            description=(
                "Lists the site's design tokens with their CSS variables, values and utility classes: colours with "
                "their shades, tints and transparencies, the steps of the type and spacing scales, and fonts. Prefer "
                "var(--token) over literal values. `family` narrows the list to one kind."
            ),
            execution=Execution.SERVER,
            capability=Access.READ,
            input=inputs.ListTokens,
            permissions=_READ,
            scopes=_SITE,
            run=_list_tokens,
            idempotent=True,
        ),
        _browser_write(
            "insertHtml",
            "Adds HTML inside the node `parentId`, at the 0-based position `index` among its children or at the end. "
            "The elements become editable nodes; a <style> element in the same HTML becomes style rules. Insert one "
            "section at a time. Scripts and event handler attributes are removed. Returns the ids of the new nodes.",
            inputs.InsertHtml,
            _STRUCTURE,
        ),
        _browser_read(
            "getNodeHtml",
            "Returns the current HTML of one node with everything inside it. Use it to look at a part closely before "
            "changing it.",
            inputs.NodeOnly,
            frozenset(),
        ),
        _browser_read(
            "read_document",
            "Reads a page, template or visual component as HTML in which every element carries its node id in a `uid` "
            "attribute, with the CSS that applies to it. Without `document` it reads the one the user has open. Long "
            "documents come in parts: ask again with `part` set to pageInfo.nextPart until that is null.",
            inputs.ReadDocument,
            _READ,
        ),
        _browser_write(
            "replaceNodeHtml",
            "Replaces what is inside a node by new HTML. The old content of the node is gone afterwards, so include "
            "whatever should stay. Returns the ids of the new nodes.",
            inputs.ReplaceNodeHtml,
            _STRUCTURE,
        ),
        _browser_write(
            "deleteNode",
            "Removes a node with everything inside it. Make sure of the id by reading the document first.",
            inputs.NodeOnly,
            _STRUCTURE,
            Risk.HIGH,
        ),
        _browser_write(
            "applyCss",
            "Creates or changes style rules from plain CSS text: any selector, at-rules such as @media included. A "
            "rule whose selector already exists is merged with it, property by property. Returns how many rules were "
            "created and updated.",
            inputs.ApplyCss,
            _STYLE,
        ),
    ),
)
