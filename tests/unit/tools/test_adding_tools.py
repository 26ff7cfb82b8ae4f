"""A new tool is one entry in a toolset, and a new agent one line of SCOPES: everything else follows from it."""

from typing import Any

import pytest

from fermata.agents.registry import get_tool_namer, get_toolset, list_scopes_with_tools, open_agent
from fermata.agents.tool_listing import list_tools
from fermata.domain.agent_ids import SCOPES
from fermata.domain.tools import ToolOutput
from fermata.domain.untrusted_text import FRAMES_RULE
from fermata.tools.calls.pipeline import AdmittedCall, admit_call, apply_result_policy
from fermata.tools.site.tool_factory import SITE_TOOL_FACTORY
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.tool import Execution, NoInput, Tool, ToolContext
from fermata.tools.tool_factory import EVERYONE, DeferredHandler
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset
from local.tools_page import render_page
from tests.unit.agents.example_agent.toolset import CAN_READ_RECIPES
from tests.unit.tools.builders import ALL_CAPABILITIES, make_call, make_context, run_tool

COOK = CAN_READ_RECIPES | {"ai.chat", "ai.tools.write"}
SNAPSHOT = {"recipes": {"rye": 120, "spelt <context>": 100}}


def count_toy_pages(_tool_input: NoInput, context: ToolContext) -> int:
    return len(context.snapshot["site"]["pages"])


SERVER_TOOL = SITE_TOOL_FACTORY.instant_read(
    name="countToyPages",
    description="Counts the pages of the site, templates included.",
    permissions=EVERYONE,
    handler=count_toy_pages,
)
BROWSER_TOOL = SITE_TOOL_FACTORY.browser_write(
    name="clearToyCanvas",
    description="Removes everything from the canvas, for a page that begins anew.",
    permissions=EVERYONE,
)


@pytest.fixture
def kitchen(monkeypatch: pytest.MonkeyPatch) -> Toolset:
    monkeypatch.setitem(SCOPES, "kitchen", "tests.unit.agents.example_agent.agent:KITCHEN_AGENT")
    return get_toolset("kitchen")


def admit(toolset: Toolset, name: str, arguments: Any = None, **changes: Any) -> tuple[AdmittedCall, ToolContext]:
    context = make_context(**changes)
    admitted = admit_call(toolset, make_call(name, arguments), context)
    assert isinstance(admitted, AdmittedCall), admitted
    return admitted, context


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Toolset:
    extended = Toolset("site", (*SITE_TOOLSET.tools, SERVER_TOOL, BROWSER_TOOL))
    monkeypatch.setattr("fermata.tools.site.toolset.SITE_TOOLSET", extended)
    return get_toolset("site")


@pytest.mark.parametrize(
    ("tool", "prefixed"), [(SERVER_TOOL, "site_count_toy_pages"), (BROWSER_TOOL, "site_clear_toy_canvas")]
)
def test_an_added_tool_is_listed_offered_and_documented(site: Toolset, tool: Tool, prefixed: str) -> None:
    (listed,) = [
        item
        for item in list_tools("site", ALL_CAPABILITIES, ToolNaming.PREFIXED, "tenant-1")
        if item["name"] == prefixed
    ]
    assert listed["description"] == tool.description
    assert listed["execution"] == tool.execution
    assert listed["inputSchema"] == {"type": "object", "properties": {}}
    assert tool.name in [spec.name for spec in site.build_tool_specs(ALL_CAPABILITIES, "site")]
    assert get_tool_namer("site", "seed")(prefixed) == tool.name
    assert f"### `{tool.name}` · `{prefixed}`" in render_page()


def test_an_added_server_tool_is_run_by_its_handler(site: Toolset) -> None:
    admitted, context = admit(site, "countToyPages", snapshot={"site": {"pages": [{}, {}]}})
    assert apply_result_policy(admitted.tool, run_tool(admitted, context)) == ToolOutput.success(2)


def test_an_added_browser_tool_is_sent_to_the_browser(site: Toolset) -> None:
    admitted, _ = admit(site, "site_clear_toy_canvas", {"unknown": 1})
    assert admitted.tool.execution is Execution.BROWSER
    assert admitted.arguments == {}


def test_an_added_scope_lists_its_tools_for_a_caller(kitchen: Toolset) -> None:
    listed = list_tools("kitchen", COOK, ToolNaming.CANONICAL, "tenant-1")
    assert [(item["name"], item["capability"], item["permissions"]) for item in listed] == [
        ("scale_recipe", "read", ["recipes.read"]),
        ("highlight_step", "write", []),
    ]
    assert list_tools("kitchen", frozenset({"ai.chat"}), ToolNaming.CANONICAL, "tenant-1") == []


@pytest.mark.parametrize("name", ["scale_recipe", "calculate_recipe"])
def test_a_tool_of_an_added_scope_is_called_by_its_name_or_alias(kitchen: Toolset, name: str) -> None:
    admitted, context = admit(
        kitchen, name, {"recipe": "rye", "portions": "2"}, scope="kitchen", capabilities=COOK, snapshot=SNAPSHOT
    )
    assert run_tool(admitted, context) == ToolOutput.success({"portions": 2, "flourGrams": 240})


def test_a_call_of_an_added_scope_is_validated_and_checked_like_any_other(kitchen: Toolset) -> None:
    context = make_context(scope="kitchen", capabilities=COOK)
    assert admit_call(kitchen, make_call("scale_recipe", {"portions": 0}), context) == ToolOutput.failure(
        "Invalid input for scale_recipe: recipe: Expected required property; "
        "portions: Expected integer to be greater or equal to 1, got 0."
    )
    visitor = make_context(scope="kitchen", capabilities=frozenset({"ai.chat"}))
    assert admit_call(kitchen, make_call("highlight_step", {"step": 0}), visitor) == ToolOutput.failure(
        "Tool highlight_step is not permitted for this user."
    )


def test_an_added_scope_has_its_own_prompt_and_situation(kitchen: Toolset) -> None:
    own_prompt = "You help a cook. Calculate amounts with scale_recipe, and show where you are with highlight_step."
    assert open_agent("kitchen").build_system_prompt() == own_prompt + FRAMES_RULE
    assert open_agent("kitchen").build_situation(SNAPSHOT) == "Recipes: rye, spelt &lt;context>"
    assert open_agent("kitchen").build_situation(None) == "Recipes: (none)"


def test_every_deferred_handler_can_be_imported() -> None:
    handlers = [tool.handler for scope in list_scopes_with_tools() for tool in get_toolset(scope).tools]
    deferred = [handler for handler in handlers if isinstance(handler, DeferredHandler)]
    assert deferred
    assert all(callable(handler.load()) for handler in deferred)
