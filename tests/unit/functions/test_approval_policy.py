"""The policy of a workspace over HTTP: rules about names that nothing has are stored, and said so."""

import json
from typing import Any

import pytest

from fermata.agents.policy_store import MAX_POLICY_BYTES, read_policy
from fermata.aws.resources import Resources
from fermata.remote_tools.tool_registry import register_tool
from functions.credentials import app
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner
from tests.unit.functions.test_remote_tools import CALLER, ENDPOINT
from tests.unit.functions.test_remote_tools import bakery as bakery
from tests.unit.remote_tools.manifests import make_manifest_json

ADMIN = ["ai.chat", "ai.policies.manage"]
PATH = "/admin/api/ai/approval-policy"


def put_policy(signer: TokenSigner, **members: Any) -> tuple[int, Any]:
    answer = app.handler(make_proxy_event("PUT", PATH, signer.bearer_headers(capabilities=ADMIN), members), None)
    return answer["statusCode"], json.loads(answer["body"])


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ({"tools": ["site_delte_page"]}, "Did you mean 'site_delete_page'?"),
        ({"tools": ["orders.refund"]}, "no tool is called 'orders.refund' now, so it counts for one that comes later."),
        ({"toolsets": ["remot"]}, "Did you mean 'remote'?"),
        ({"agents": ["sight"]}, "no agent is called 'sight' now"),
    ],
)
def test_a_rule_about_what_is_not_there_is_stored_with_a_warning(
    resources: Resources, bakery: TokenSigner, condition: dict[str, Any], says: str
) -> None:
    rules = [{"effect": "allow", "tools": ["deletePage"]}, {"effect": "deny", **condition}]
    status, stored = put_policy(bakery, rules=rules)
    assert (status, len(stored["warnings"])) == (200, 1)
    assert stored["warnings"][0].startswith("Rule 2: ")
    assert says in stored["warnings"][0]
    assert len(read_policy(resources, "bakery").policy.rules) == 2


def test_names_of_tools_toolsets_and_agents_that_are_there_need_no_warning(
    resources: Resources, bakery: TokenSigner
) -> None:
    register_tool(resources, CALLER, make_manifest_json(), ENDPOINT)
    tools = ["pim.getProduct", "PIM_getproduct", "insertHtml", "site_insert_html", "http_post", "submit_edit_plan"]
    rule = {"effect": "ask", "tools": tools, "toolsets": ["site", "remote", "mcp", "plans"], "agents": ["planner"]}
    status, stored = put_policy(bakery, rules=[rule, {"effect": "deny", "risks": ["high"]}])
    assert (status, "warnings" in stored) == (200, False)


def test_names_of_many_rules_are_warned_of_in_a_list_that_ends(bakery: TokenSigner) -> None:
    rules = [{"effect": "deny", "tools": [f"unknown.{rule}.{place}" for place in range(200)]} for rule in range(10)]
    warnings = put_policy(bakery, rules=rules)[1]["warnings"]
    assert (len(warnings), warnings[-1]) == (51, "And 1950 more names that nothing has now.")


def test_a_policy_that_no_turn_could_keep_is_refused(bakery: TokenSigner) -> None:
    rules = [{"effect": "deny", "tools": [f"{place:0>200}" for place in range(200)]}] * 2
    status, refused = put_policy(bakery, rules=rules)
    assert (status, f"{MAX_POLICY_BYTES:,} characters" in refused["error"]) == (413, True)


@pytest.mark.parametrize(("seconds", "status"), [(60, 200), (60.0, 200), (60.5, 400), (True, 400), (59, 400)])
def test_a_wait_is_a_whole_number_however_it_is_written(bakery: TokenSigner, seconds: Any, status: int) -> None:
    assert put_policy(bakery, waitSeconds=seconds)[0] == status


def test_a_blank_name_is_refused(bakery: TokenSigner) -> None:
    assert put_policy(bakery, rules=[{"effect": "ask", "tools": [" "]}])[0] == 400
