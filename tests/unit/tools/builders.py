"""Build small tools, calls, contexts and snapshots for the tests of the package `tools`."""

import json
from pathlib import Path
from typing import Any

from fermata.aws.clock import Clock
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.tools import ToolOutput
from fermata.tools.calls import runner
from fermata.tools.calls.pipeline import AdmittedCall
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.tool import Access, Execution, Tool, ToolContext, ToolInput
from fermata.tools.tool_names import ToolNaming, get_wire_name
from fermata.tools.toolset import Toolset
from tests.tool_contract import TOOL_CONTRACT

FIXTURES = Path(__file__).parent / "fixtures"
CONTRACT_CASES: list[dict[str, Any]] = json.loads((FIXTURES / "cases.json").read_text())
SITE_TOOL_CONTRACT = TOOL_CONTRACT["site"]

ALL_CAPABILITIES = frozenset({"ai.chat", "ai.tools.write", "site.read", "site.structure.edit", "site.style.edit"})
ALL_CAPABILITIES |= {"site.content.edit"}


def contract_cases(*areas: str) -> list[Any]:
    """Return the contract cases of some areas, as (id, input, expected)."""
    return [(case["id"], case["input"], case["expected"]) for case in CONTRACT_CASES if case["area"] in areas]


def get_site_tool(name: str) -> Tool:
    tool = SITE_TOOLSET.find_tool(name)
    assert tool is not None
    return tool


SITE_INPUT_MODELS = {get_wire_name(tool, ToolNaming.PREFIXED): tool.input_model for tool in SITE_TOOLSET.tools}


class EchoInput(ToolInput):
    text: str = ""


def echo(defaults: EchoInput, context: ToolContext) -> dict[str, str]:
    return {"text": defaults.text}


def make_tool(name: str = "echo", **changes: Any) -> Tool:
    defaults = {
        "toolset": "toys",
        "description": "A toy.",
        "execution": Execution.SERVER,
        "access": Access.READ,
        "input_model": EchoInput,
        "handler": echo,
    }
    return Tool(name=name, **{**defaults, **changes})


def make_toolset(*tools: Tool) -> Toolset:
    return Toolset("toys", tools)


def make_call(name: str = "echo", arguments: Any = None, *, malformed: bool | None = None) -> ToolCallBlock:
    defaults = {} if arguments is None else arguments
    return ToolCallBlock(tool_call_id="c1", tool_name=name, input=defaults, malformed=malformed)


def make_context(**changes: Any) -> ToolContext:
    defaults = {"tenant": "tenant-1", "user": "user-1", "capabilities": ALL_CAPABILITIES, "scope": "site", "turn": "t1"}
    return ToolContext(**{**defaults, **changes})


PRIMARY_COLOR = {"id": "k1", "slug": "primary", "lightValue": "#3b82f6", "order": 0}


def make_site_snapshot(**settings: Any) -> dict[str, Any]:
    """Build the snapshot of a site with a page, a template and a component; `settings` has `framework` and `fonts`."""
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


class SleeplessClock(Clock):
    """Records sleeps instead of sleeping."""

    def __init__(self) -> None:
        self.sleeps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)


def run_tool(admitted: AdmittedCall, context: ToolContext, **options: Any) -> ToolOutput:
    """Run a tool on the clock of this process, unless `options` name another."""
    return runner.run_tool(admitted, context, **{"clock": Clock()} | options)
