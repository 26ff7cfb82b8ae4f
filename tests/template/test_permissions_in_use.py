"""Every function does its work with the permissions that the template gives it, and uses all of them."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.conversations import conversation_store
from tests.template import iam
from tests.template.iam import Role, Statement
from tests.template.permission_guard import NeededPermission, guard_resources
from tests.template.permissions.approval_scenarios import *  # noqa: F403
from tests.template.permissions.content_scenarios import *  # noqa: F403
from tests.template.permissions.guarded_stage import StageOf
from tests.template.permissions.tool_scenarios import *  # noqa: F403
from tests.template.permissions.turn_scenarios import *  # noqa: F403
from tests.template.permissions.workspace_scenarios import *  # noqa: F403
from tests.template.templates import Template
from tests.unit.turns.stage import Stage

pytestmark = pytest.mark.exhaustive
STREAM = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams")
OUTSIDE_THE_CODE = ("logs:", "xray:", "sqs:", *STREAM)
"""Actions of Lambda itself with the function's role."""
_ENDS_TURNS = "An erasure ends turns in any state: with a dead request, with text and calls to store, small or large."
UNUSED_PERMISSIONS: dict[tuple[str, str, str], str] = {
    ("purge", "dynamodb:GetItem", "PricingTable"): _ENDS_TURNS,
    ("purge", "dynamodb:PutItem", "ConversationsTable"): _ENDS_TURNS,
    ("purge", "s3:PutObject", "Bucket/turns/*"): _ENDS_TURNS,
    ("purge", "s3:PutObject", "Bucket/conversations/*"): _ENDS_TURNS,
}
"""Permissions that no code uses yet, and why they are kept."""


@pytest.fixture(scope="module")
def usage() -> dict[str, Any]:
    """The permissions that all tests of this file needed, by function; and the names of these tests."""
    return {"needs": defaultdict(set), "tests": set()}


@pytest.fixture
def functions(
    resources: Resources,
    deployed: Template,
    monkeypatch: pytest.MonkeyPatch,
    usage: dict[str, Any],
    request: pytest.FixtureRequest,
) -> Iterator[dict[str, Any]]:
    """A stage, and guarded resources for each function. A call that was refused in a test fails it at the end."""
    stage = Stage(resources, monkeypatch)
    guarded = {
        function: guard_resources(resources, stage.workflow, role)
        for function, role in iam.roles_by_function(deployed).items()
    }
    yield {"stage": stage, **guarded}
    assert {
        function: guarded_resources.guard.refused
        for function, guarded_resources in guarded.items()
        if guarded_resources.guard.refused
    } == {}
    for function, guarded_resources in guarded.items():
        usage["needs"][function] |= guarded_resources.guard.requested
    usage["tests"].add(request.function.__name__)


@pytest.fixture
def at(functions: dict[str, Any]) -> StageOf:
    """Return the stage with the resources of a function: `at("round").run_workflow()`."""

    def seen(function: str) -> Stage:
        stage: Stage = functions["stage"]
        stage.resources = functions[function]
        return stage

    return seen


def test_a_missing_permission_raises(resources: Resources, functions: dict[str, Any]) -> None:
    stage: Stage = functions["stage"]
    unprivileged = guard_resources(resources, stage.workflow, iam.Role("an empty role", ()))
    with pytest.raises(AssertionError, match="an empty role does not allow dynamodb:GetItem on ConversationsTable"):
        conversation_store.get_conversation(unprivileged, stage.caller, stage.conversation.id)
    with pytest.raises(AssertionError, match="states:StartExecution"):
        unprivileged.workflow.start_execution("bakery", "turn", 1)


def test_no_function_has_a_permission_that_it_does_not_use(deployed: Template, usage: dict[str, Any]) -> None:
    """An unused permission is removed, or its reason is in UNUSED_PERMISSIONS."""
    if usage["tests"] != {name for name in globals() if name.startswith("test_")} - {
        "test_no_function_has_a_permission_that_it_does_not_use"
    }:
        pytest.skip("needs the results of all tests of this file")
    unused = {
        (function, action, resource)
        for function, role in iam.roles_by_function(deployed).items()
        for statement in role.statements
        for action in statement.actions
        for resource in statement.resources
        if not action.startswith(OUTSIDE_THE_CODE)
        and not _is_used(usage["needs"][function], statement, action, resource)
    }
    assert unused == set(UNUSED_PERMISSIONS)


def _is_used(needs: set[NeededPermission], statement: Statement, action: str, resource: str) -> bool:
    alone = Role("one permission", (Statement((action,), (resource,), statement.equals),))
    return any(need.is_granted_by(alone) for need in needs)
