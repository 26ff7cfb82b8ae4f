"""Small tools, contexts and snapshots that the tests of this room share."""

import json
from pathlib import Path
from typing import Any

from fermata.domain.blocks import ToolCallBlock
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.tool import Access, Execution, Tool, ToolContext, ToolInput
from fermata.tools.tool_names import ToolNaming, get_wire_name
from fermata.tools.toolset import Toolset

FIXTURES = Path(__file__).parent / "fixtures"
CONTRACT_CASES: list[dict[str, Any]] = json.loads((FIXTURES / "cases.json").read_text())
SITE_TOOL_CONTRACT: list[dict[str, Any]] = json.loads((FIXTURES / "site_tools.json").read_text())

ALL_CAPABILITIES = frozenset({"ai.chat", "ai.tools.write", "site.read", "site.structure.edit", "site.style.edit"})
ALL_CAPABILITIES |= {"site.content.edit"}


def contract_cases(*areas: str) -> list[Any]:
    """Cases of these areas, as (id, input, expected)."""
    return [(case["id"], case["input"], case["expected"]) for case in CONTRACT_CASES if case["area"] in areas]


def get_site_tool(name: str) -> Tool:
    tool = SITE_TOOLSET.find_tool(name)
    assert tool is not None
    return tool


SITE_INPUT_MODELS = {get_wire_name(tool, ToolNaming.PREFIXED): tool.input_model for tool in SITE_TOOLSET.tools}


class EchoInput(ToolInput):
    text: str = ""


def echo(given: EchoInput, context: ToolContext) -> dict[str, str]:
    return {"text": given.text}


def make_tool(name: str = "echo", **changes: Any) -> Tool:
    given = {
        "toolset": "toys",
        "description": "A toy.",
        "execution": Execution.SERVER,
        "capability": Access.READ,
        "input_model": EchoInput,
        "handler": echo,
    }
    return Tool(name=name, **{**given, **changes})


def make_toolset(*tools: Tool) -> Toolset:
    return Toolset("toys", tools)


def make_call(name: str = "echo", arguments: Any = None, *, malformed: bool | None = None) -> ToolCallBlock:
    given = {} if arguments is None else arguments
    return ToolCallBlock(tool_call_id="c1", tool_name=name, input=given, malformed=malformed)


def make_context(**changes: Any) -> ToolContext:
    given = {"tenant": "tenant-1", "user": "user-1", "capabilities": ALL_CAPABILITIES, "scope": "site", "turn": "t1"}
    return ToolContext(**{**given, **changes})


PRIMARY_COLOR = {"id": "k1", "slug": "primary", "lightValue": "#3b82f6", "order": 0}


def make_site_snapshot(**settings: Any) -> dict[str, Any]:
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
