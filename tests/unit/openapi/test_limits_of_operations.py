"""Every operation that takes a body counts as a use of its caller, or says why it need not."""

from dataclasses import fields
from typing import Any

import pytest

from fermata.domain.use_limits import CallerLimits, UseLimits
from fermata.wire.http.routing import RequestContext
from fermata.wire.operations import surface
from fermata.wire.operations.operation import BaseOperation
from tests.unit.openapi.service import Service
from tests.unit.openapi.test_responses import make_case

NOTHING = UseLimits(**{field.name: 0 for field in fields(UseLimits)})
OF_ADMINISTRATORS = "Who manages the workspace stores a few small rows, each in the place of one before or one of few."
OF_TURNS = "A turn has at most so many calls, approvals and rounds."
UNCOUNTED = {
    "storeCaptcha": OF_ADMINISTRATORS,
    "setSecret": OF_ADMINISTRATORS,
    "createApiKey": OF_ADMINISTRATORS,
    "rotateApiKey": OF_ADMINISTRATORS,
    "changeApiKey": OF_ADMINISTRATORS,
    "createCredential": OF_ADMINISTRATORS,
    "changeCredential": OF_ADMINISTRATORS,
    "setDefault": OF_ADMINISTRATORS,
    "setApprovalPolicy": OF_ADMINISTRATORS,
    "putSpaceMember": OF_ADMINISTRATORS,
    "setBudgets": OF_ADMINISTRATORS,
    "registerRemoteTool": OF_ADMINISTRATORS,
    "changeRemoteTool": OF_ADMINISTRATORS,
    "turnOnBuiltInTool": OF_ADMINISTRATORS,
    "addWebhook": OF_ADMINISTRATORS,
    "changeWebhook": OF_ADMINISTRATORS,
    "createConnector": OF_ADMINISTRATORS,
    "mergeChangeSet": "Counts each document that it stores, of which the one of this test has none.",
    "decideSubmissions": "Counts each entry that it stores, of which the one of this test has none.",
    "startExport": "Equal exports are one job.",
    "startErasure": "Erases.",
    "decideApproval": OF_TURNS,
    "decideApprovals": OF_TURNS,
    "decideCmsApproval": OF_TURNS,
    "answerTool": OF_TURNS,
    "issueCallbackToken": "A row of some hundred bytes, until its turn is over at the latest.",
    "createConversation": "A row of some hundred bytes; the stage limits how many requests come.",
    "changeConversation": "Changes a row.",
    "createCmsSession": "A row of some hundred bytes; the stage limits how many requests come.",
    "changeCmsSession": "Changes a row.",
    "cancelPlannerChat": "Changes a row.",
    "forecastPlannerChat": "Reads and stores nothing.",
}
BODIES_OF_LIMITS: dict[str, dict[str, Any]] = {"pushAgents": {"dryRun": False}, "bootstrapDraft": {"overwrite": True}}
OPERATIONS = [
    operation
    for operation in surface.OPERATIONS
    if operation.capabilities and operation.method in ("POST", "PUT", "PATCH")
]


@pytest.fixture
def _without_any_use(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let callers use nothing."""
    limits = CallerLimits(user=NOTHING, tenant=NOTHING)
    monkeypatch.setattr(RequestContext, "caller_limits", property(lambda _context: limits))


@pytest.mark.usefixtures("_without_any_use")
@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.body], ids=lambda operation: operation.name)
def test_a_request_with_a_body_counts_or_says_why_not(service: Service, operation: BaseOperation) -> None:
    case = make_case(operation, service.real_ids(operation))
    case.body = {**case.body, **BODIES_OF_LIMITS.get(operation.name, {})}
    response = case.call(headers=service.headers(operation))
    is_refused = response.status_code in (413, 429)
    assert is_refused == (operation.name not in UNCOUNTED), response.text


def test_the_reasons_are_of_operations_that_exist() -> None:
    assert UNCOUNTED.keys() <= {operation.name for operation in OPERATIONS}
