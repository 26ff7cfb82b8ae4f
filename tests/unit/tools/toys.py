"""Small tools, contexts and snapshots that the tests of this room share."""

import json
from pathlib import Path
from typing import Any

from fermata.tools.names import Names, wire_name
from fermata.tools.site.tools import SITE
from fermata.tools.tool import Access, Execution, Tool, ToolContext, ToolInput
from fermata.tools.toolset import Toolset
from fermata.words.blocks import ToolCallBlock

FIXTURES = Path(__file__).parent / "fixtures"
CASES: list[dict[str, Any]] = json.loads((FIXTURES / "cases.json").read_text())
SITE_TOOLS: list[dict[str, Any]] = json.loads((FIXTURES / "site_tools.json").read_text())

EVERYTHING = frozenset({"ai.chat", "ai.tools.write", "site.read", "site.structure.edit", "site.style.edit"})
EVERYTHING |= {"site.content.edit"}


def cases(*areas: str) -> list[Any]:
    """Cases of these areas, as (id, input, expected)."""
    return [(case["id"], case["input"], case["expected"]) for case in CASES if case["area"] in areas]


def site_tool(name: str) -> Tool:
    tool = SITE.find(name)
    assert tool is not None
    return tool


INPUTS = {wire_name(tool, Names.PREFIXED): tool.input for tool in SITE.tools}


class Echo(ToolInput):
    text: str = ""


def echo(given: Echo, context: ToolContext) -> dict[str, str]:
    return {"text": given.text}


def toy(name: str = "echo", **changes: Any) -> Tool:
    given = {
        "toolset": "toys",
        "description": "A toy.",
        "execution": Execution.SERVER,
        "capability": Access.READ,
        "input": Echo,
        "run": echo,
    }
    return Tool(name=name, **{**given, **changes})


def box(*tools: Tool) -> Toolset:
    return Toolset("toys", tools)


def call(name: str = "echo", arguments: Any = None, *, malformed: bool | None = None) -> ToolCallBlock:
    given = {} if arguments is None else arguments
    return ToolCallBlock(tool_call_id="c1", tool_name=name, input=given, malformed=malformed)


def context(**changes: Any) -> ToolContext:
    given = {"tenant": "tenant-1", "user": "user-1", "capabilities": EVERYTHING, "scope": "site", "turn": "t1"}
    return ToolContext(**{**given, **changes})


PRIMARY = {"id": "k1", "slug": "primary", "lightValue": "#3b82f6", "order": 0}


def snapshot(**settings: Any) -> dict[str, Any]:
    """A site with a home page, a template, a component and the given `framework` and `fonts` settings."""
    home = {"id": "p1", "slug": "index", "title": "Home", "rootNodeId": "r1", "nodes": {}}
    chrome = {
        "id": "p2",
        "slug": "chrome",
        "title": "Chrome",
        "rootNodeId": "r2",
        "nodes": {},
        "template": {"enabled": True, "target": {"kind": "everywhere"}, "priority": 100},
    }
    card = {"id": "v1", "name": "Card", "tree": {"rootNodeId": "r3", "nodes": {}}, "params": [], "classIds": []}
    return {
        "page": home,
        "currentDocument": {"type": "page", "id": "p1"},
        "selectedNodeId": None,
        "activeBreakpointId": "desktop",
        "site": {
            "id": "s1",
            "name": "Shop",
            "breakpoints": [{"id": "desktop", "label": "Desktop", "width": 1440, "icon": "monitor"}],
            "settings": {"shortcuts": {}, **settings},
            "pages": [home, chrome],
            "visualComponents": [card],
        },
    }
