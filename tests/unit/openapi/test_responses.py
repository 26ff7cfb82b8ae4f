"""Each operation does what it is for, and its answer is as documented; without a token it does nothing."""

from typing import Any

import pytest
from schemathesis.specs.openapi.checks import ignored_auth

from fermata.wire.operations import surface
from fermata.wire.operations.operation import BaseOperation, SuccessResponse
from tests.tenant_tokens import TokenSigner
from tests.unit.openapi.schemathesis_schema import AnyCase, check_stream_lines, schema
from tests.unit.openapi.service import Service

KEY = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Mine", "apiKey": "sk-ant-secret"}
BODIES: dict[str, Any] = {
    "startTurn": {"conversationId": "", "prompt": "Add a footer"},
    "answerTool": {"bridgeId": "", "requestId": "", "result": {"ok": True, "data": {"nodeIds": ["n1"]}}},
    "undoTurn": {},
    "takeUpload": {"kind": "snapshot", "bytes": 2, "sha256": "0" * 64},
    "createConversation": {"scope": "site", "title": "Home"},
    "changeConversation": {"title": "About us"},
    "setDefault": {"credentialId": "", "modelId": "claude-opus-4-5"},
    "createCredential": KEY,
    "changeCredential": {"displayLabel": "Ours"},
    "setBudgets": {"tenant": {"monthlyUsd": 100}},
}
QUERIES: dict[str, dict[str, Any]] = {
    "followTurn": {"after": 1},
    "listConversations": {"scope": "site", "limit": 1},
    "showConversation": {"limit": 1},
    "listModels": {"credentialId": ""},
}
FORGED = TokenSigner(
    "bakery", "https://bakery.example", "fermata", "some other secret than the bakery's"
).bearer_headers()["authorization"]
SUCCESSES = [(operation, told) for operation in surface.OPERATIONS for told in operation.responses]
CLOSED = [operation for operation in surface.OPERATIONS if operation.capabilities]
OPEN = [operation for operation in surface.OPERATIONS if not operation.capabilities]


def asked(operation: BaseOperation, known: dict[str, str]) -> AnyCase:
    """A request that is right; members that are empty here point at what is there."""

    def filled(members: dict[str, Any]) -> dict[str, Any]:
        return {name: value if value != "" else known[name] for name, value in members.items()}

    steps = {step[1:-1] for step in operation.path.split("/") if step.startswith("{")}
    body: dict[str, Any] = {}
    if operation.body:
        body = {"body": filled(BODIES[operation.name]), "media_type": "application/json"}
    return schema[operation.path][operation.method].Case(
        path_parameters={step: known.get(step, "site") for step in steps},
        query=filled(QUERIES.get(operation.name, {})),
        **body,
    )


@pytest.mark.parametrize(
    ("operation", "told"), SUCCESSES, ids=lambda one: getattr(one, "name", getattr(one, "status", ""))
)
def test_what_an_operation_is_for_is_done_and_answered_as_documented(
    stand: Service, operation: BaseOperation, told: SuccessResponse
) -> None:
    accepts = {"Accept": "application/json"} if told.status == 202 else {}
    case = asked(operation, stand.real_ids(operation))
    response = case.call_and_validate(headers=stand.headers(operation) | accepts)
    assert response.status_code == told.status
    check_stream_lines(response)


@pytest.mark.parametrize("headers", [{}, {"Authorization": FORGED}], ids=["no token", "a forged token"])
@pytest.mark.parametrize("operation", CLOSED, ids=lambda operation: operation.name)
def test_without_a_good_token_nothing_is_done(
    stand: Service, operation: BaseOperation, headers: dict[str, str]
) -> None:
    case = asked(operation, stand.real_ids(operation))
    response = case.call_and_validate(headers=headers, excluded_checks=[ignored_auth])
    assert response.status_code == 401
    assert response.json() == {"error": "Unauthorized"}


@pytest.mark.parametrize("operation", CLOSED, ids=lambda operation: operation.name)
def test_without_a_capability_nothing_is_done(stand: Service, operation: BaseOperation) -> None:
    others = {capability for other in CLOSED for capability in other.capabilities} - set(operation.capabilities)
    case = asked(operation, stand.real_ids(operation))
    response = case.call_and_validate(headers={"Authorization": stand.token(*sorted(others))})
    assert response.status_code == 403
    assert response.json() == {"error": "Forbidden"}


def test_only_what_tells_nothing_of_anybody_is_open_to_everybody() -> None:
    assert [operation.path for operation in OPEN] == [
        "/healthz",
        "/version",
        "/admin/api/ai/healthz",
        "/admin/api/ai/version",
        "/admin/api/ai/openapi.json",
    ]
