"""What the plugin tools answer, and that an activation is asked for once."""

from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call, needs_started_mark
from fermata.tools.calls.runner import run_tool
from fermata.tools.plugin.toolset import PLUGIN_TOOLSET
from tests.scripted_host import ScriptedHost
from tests.unit.tools.builders import make_call, make_context

ALL = frozenset({permission for tool in PLUGIN_TOOLSET.tools for permission in tool.permissions} | {"ai.tools.write"})
SEO = {
    "localId": "seo",
    "pluginId": "bakery.seo",
    "name": "SEO",
    "state": "active",
    "version": "1.1.0",
    "activeVersion": "1.0.0",
    "declaredPermissions": ["pages.read"],
    "grantedPermissions": ["pages.read"],
}
OPEN = {"localId": "seo", "pluginId": "bakery.seo", "files": [], "state": "active", "activeVersion": None}


def answer(name: str, arguments: Any = None, **situation: Any) -> ToolOutput:
    where = make_context(scope="plugin", capabilities=ALL, effect_key="turn/3/0", **situation)
    admitted = admit_call(PLUGIN_TOOLSET, make_call(name, arguments), where)
    assert isinstance(admitted, AdmittedCall), admitted
    return run_tool(admitted, where, sleep=lambda _seconds: None)


def test_plugins_are_listed_with_state_versions_and_permissions(host: ScriptedHost) -> None:
    host.script_response("GET plugins", {"plugins": [SEO | {"source": "passed over"}, {"localId": "new"}]})
    found = answer("plugin_list_plugins", host=host.open_client).data
    assert found["sitePlugins"][0] == {
        **SEO,
        "declaredPermissions": ("pages.read",),
        "grantedPermissions": ("pages.read",),
    }
    assert found["sitePlugins"][1]["activeVersion"] is None


def test_without_a_content_system_the_open_plugin_is_all_that_is_known() -> None:
    found = answer("plugin_list_plugins", snapshot=OPEN).data
    assert [plugin["localId"] for plugin in found["sitePlugins"]] == ["seo"]
    assert "Only the plugin that is open" in found["note"]
    assert "fermata tenant host tenant-1" in str(answer("plugin_list_plugins").error)


@pytest.mark.parametrize(("arguments", "plugin"), [({}, "seo"), ({"localId": "other"}, "other")])
def test_diagnostics_are_the_answer_whether_or_not_the_plugin_builds(
    host: ScriptedHost, arguments: Any, plugin: str
) -> None:
    host.script_response(
        f"POST plugins/{plugin}/validate", {"ok": False, "diagnostics": [{"path": "a.ts", "message": "no"}]}
    )
    output = answer("plugin_validate", arguments, host=host.open_client, snapshot=OPEN)
    assert output.ok
    assert output.data == {"ok": False, "diagnostics": ({"path": "a.ts", "message": "no"},)}


@pytest.mark.parametrize("name", ["plugin_validate", "plugin_activate"])
def test_a_plugin_that_is_not_named_not_open_or_not_there_is_asked_about(host: ScriptedHost, name: str) -> None:
    assert "No plugin is open." in str(answer(name, host=host.open_client).error)
    assert answer(name, {"localId": "gone"}, host=host.open_client).error == "Plugin gone not found."
    assert "fermata tenant host tenant-1" in str(answer(name, {"localId": "seo"}).error)


@pytest.mark.parametrize(
    ("said", "told"),
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
def test_an_activation_tells_what_came_of_it(host: ScriptedHost, said: Any, told: Any) -> None:
    host.script_response("POST plugins/seo/activate", said)
    assert answer("plugin_activate", host=host.open_client, snapshot=OPEN).data == told
    assert host.requests[0].headers["idempotency-key"] == "turn/3/0"


def test_an_activation_is_marked_as_started_and_never_tried_again_by_itself(host: ScriptedHost) -> None:
    tool = PLUGIN_TOOLSET.find_tool("plugin_activate")
    assert tool is not None
    assert needs_started_mark(tool)
    host.script_response("POST plugins/seo/activate", {"error": "oven is cold"}, status=500)
    failed = answer("plugin_activate", {"localId": "seo"}, host=host.open_client)
    assert str(failed.error).endswith("oven is cold. Whether it took effect is unknown: check before repeating it.")
    assert len(host.requests) == 1
