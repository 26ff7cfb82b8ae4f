"""A file of the deployment offers tools to all tenants; what is wrong in it is left out and logged."""

import json
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.remote_tools.deployment_tools import get_deployment_tools
from fermata.remote_tools.list_tool_views import list_tool_views
from fermata.remote_tools.pinned_tools import load_definitions, pin_remote_tools, read_tool_secrets
from fermata.remote_tools.tool_registry import register_tool
from tests.resources import resources_of_new_process
from tests.tenant_tokens import make_tenant
from tests.unit.remote_tools.manifests import make_manifest_json

ADMIN = Caller(tenant="bakery", user="root", capabilities=frozenset({"ai.tools.manage"}))
ENDPOINT = "https://93.184.216.34/tool"


def make_entry(name: str, **changes: Any) -> dict[str, Any]:
    entry = {"manifest": make_manifest_json(name=name), "endpoint": ENDPOINT, "staticHeaders": {"X-Key": "k"}}
    return entry | changes


def deploy(resources: Resources, folder: Path, *entries: Any) -> Resources:
    file = folder / "tools.json"
    file.write_text(json.dumps({"tools": entries}))
    return resources_of_new_process(resources, tool_manifest_path=str(file))


def list_names(resources: Resources) -> list[str]:
    return [tool.definition.parsed_manifest.name for tool in get_deployment_tools(resources).values()]


def test_all_valid_entries_are_offered_and_each_wrong_one_is_logged(
    resources: Resources, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = [make_entry("b", manifest={}), 5, make_entry("c", endpoint="//x"), make_entry("d", staticHeaders={"a": 1})]
    deployed = deploy(resources, tmp_path, make_entry("a"), *wrong, make_entry("e"))
    assert list_names(deployed) == ["a", "e"]
    assert [record.getMessage() for record in caplog.records].count("tools.entry_refused") == len(wrong)


def test_a_missing_or_broken_file_is_a_warning(
    resources: Resources, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken.json").write_text("{")
    for name in ("missing.json", "broken.json"):
        deployed = resources_of_new_process(resources, tool_manifest_path=str(tmp_path / name))
        assert get_deployment_tools(deployed) == {}
    assert [record.getMessage() for record in caplog.records] == ["tools.file_unreadable"] * 2


def test_without_the_setting_there_are_none(resources: Resources) -> None:
    assert get_deployment_tools(resources) == {}


def test_the_last_entry_of_a_name_wins(resources: Resources, tmp_path: Path) -> None:
    deployed = deploy(resources, tmp_path, make_entry("PIM.a"), make_entry("pim.A"))
    assert list_names(deployed) == ["pim.A"]


def test_turns_pin_the_tools_and_read_their_secrets(resources: Resources, tmp_path: Path) -> None:
    deployed = deploy(resources, tmp_path, make_entry("a", signingSecret="whsec_eA=="))
    [pinned] = pin_remote_tools(deployed, "bakery", "site", deployed.tables.get_item_by_key)
    definition = load_definitions(deployed, "bakery", [pinned])[pinned]
    assert (definition.tenant, definition.header_names) == ("bakery", ("x-key",))
    secrets = read_tool_secrets(deployed, definition)
    assert secrets is not None
    assert (secrets.headers, secrets.signing_secrets) == ({"x-key": "k"}, ("whsec_eA==",))
    changed = deploy(resources, tmp_path, make_entry("a", endpoint=f"{ENDPOINT}/2"))
    assert load_definitions(changed, "bakery", [pinned]) == {}


def test_a_tenants_own_tool_hides_one_of_the_deployment(resources: Resources, tmp_path: Path) -> None:
    make_tenant(resources, "bakery")
    deployed = deploy(resources, tmp_path, make_entry("a"), make_entry("b"))
    register_tool(deployed, ADMIN, make_manifest_json(name="A"), ENDPOINT)
    sources = {view["manifest"]["name"]: view["source"] for view in list_tool_views(deployed, "bakery")}
    assert sources == {"A": "remote", "b": "deployment"}
    assert len(pin_remote_tools(deployed, "bakery", "site", deployed.tables.get_item_by_key)) == 2
    assert "k" not in str([view["headerNames"] for view in list_tool_views(deployed, "butcher")]).replace("x-key", "")
