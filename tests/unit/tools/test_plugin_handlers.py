"""Plugin tools ask the content system, and an activation is requested only once."""

from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call, needs_started_mark
from fermata.tools.plugin.toolset import PLUGIN_TOOLSET
from tests.scripted_host import ScriptedHost
from tests.unit.tools.builders import SleeplessClock, make_call, make_context, run_tool

CAPABILITIES = frozenset(
    {permission for tool in PLUGIN_TOOLSET.tools for permission in tool.permissions} | {"ai.tools.write"}
)
SEO_PLUGIN = {
    "localId": "seo",
    "pluginId": "bakery.seo",
    "name": "SEO",
    "state": "active",
    "version": "1.1.0",
    "activeVersion": "1.0.0",
    "declaredPermissions": ["pages.read"],
    "grantedPermissions": ["pages.read"],
}
OPEN_PLUGIN = {"localId": "seo", "pluginId": "bakery.seo", "files": [], "state": "active", "activeVersion": None}


def call_tool(name: str, arguments: Any = None, **situation: Any) -> ToolOutput:
    context = make_context(scope="plugin", capabilities=CAPABILITIES, effect_key="turn/3/0", **situation)
    admitted = admit_call(PLUGIN_TOOLSET, make_call(name, arguments), context)
    assert isinstance(admitted, AdmittedCall), admitted
    return run_tool(admitted, context, clock=SleeplessClock())


def test_plugins_are_listed_with_state_versions_and_permissions(host: ScriptedHost) -> None:
    host.script_response("GET plugins", {"plugins": [SEO_PLUGIN | {"source": "passed over"}, {"localId": "new"}]})
    result = call_tool("plugin_list_plugins", open_host=host.open_client).data
    assert result["sitePlugins"][0] == {
        **SEO_PLUGIN,
        "declaredPermissions": ("pages.read",),
        "grantedPermissions": ("pages.read",),
    }
    assert result["sitePlugins"][1]["activeVersion"] is None


def test_without_a_content_system_only_the_open_plugin_is_listed() -> None:
    result = call_tool("plugin_list_plugins", snapshot=OPEN_PLUGIN).data
    assert [plugin["localId"] for plugin in result["sitePlugins"]] == ["seo"]
    assert "Only the plugin that is open" in result["note"]
    assert "fermata tenant host tenant-1" in str(call_tool("plugin_list_plugins").error)


@pytest.mark.parametrize(("arguments", "plugin"), [({}, "seo"), ({"localId": "other"}, "other")])
def test_a_failed_build_is_a_success_with_diagnostics(host: ScriptedHost, arguments: Any, plugin: str) -> None:
    host.script_response(
        f"POST plugins/{plugin}/validate", {"ok": False, "diagnostics": [{"path": "a.ts", "message": "no"}]}
    )
    output = call_tool("plugin_validate", arguments, open_host=host.open_client, snapshot=OPEN_PLUGIN)
    assert output.ok
    assert output.data == {"ok": False, "diagnostics": ({"path": "a.ts", "message": "no"},)}


@pytest.mark.parametrize("name", ["plugin_validate", "plugin_activate"])
def test_a_plugin_that_is_not_named_or_not_found_is_a_failure(host: ScriptedHost, name: str) -> None:
    assert "No plugin is open." in str(call_tool(name, open_host=host.open_client).error)
    assert call_tool(name, {"localId": "gone"}, open_host=host.open_client).error == "Plugin gone not found."
    assert "fermata tenant host tenant-1" in str(call_tool(name, {"localId": "seo"}).error)


@pytest.mark.parametrize(
    ("host_answer", "expected"),
    [
        (
            {"activated": True, "pluginId": "p", "version": "2.0.0", "upgrade": {"from": "1.0.0"}, "other": 1},
            {"activated": True, "skipped": False, "pluginId": "p", "version": "2.0.0", "upgrade": {"from": "1.0.0"}},
        ),
        (
            {"activated": False, "skipped": True, "pluginId": "p", "warning": "Grants changed."},
            {"activated": False, "skipped": True, "pluginId": "p", "version": None, "warning": "Grants changed."},
        ),
    ],
)
def test_an_activation_reports_its_outcome(host: ScriptedHost, host_answer: Any, expected: Any) -> None:
    host.script_response("POST plugins/seo/activate", host_answer)
    assert call_tool("plugin_activate", open_host=host.open_client, snapshot=OPEN_PLUGIN).data == expected
    assert host.requests[0].headers["idempotency-key"] == "turn/3/0"


def test_an_activation_is_marked_as_started_and_never_retried(host: ScriptedHost) -> None:
    tool = PLUGIN_TOOLSET.find_tool("plugin_activate")
    assert tool is not None
    assert needs_started_mark(tool)
    host.script_response("POST plugins/seo/activate", {"error": "oven is cold"}, status=500)
    output = call_tool("plugin_activate", {"localId": "seo"}, open_host=host.open_client)
    assert str(output.error).endswith("oven is cold. Whether it took effect is unknown: check before repeating it.")
    assert len(host.requests) == 1
