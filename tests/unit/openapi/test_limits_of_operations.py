"""Every operation that takes a body counts as a use of its caller, or says why it need not.

A refusal says in the words of its protocol what to do, names the seconds, and leaves nothing that was not there before.
"""

from dataclasses import fields, replace
from typing import Any

import pytest

from fermata.domain.use_limits import DEFAULT_CALLER_LIMITS, CallerLimits, UseLimits
from fermata.wire.http.cms_agent_envelope import CMS_AGENT_PATH_PREFIX
from fermata.wire.http.openai_errors import OPENAI_PATH_PREFIX
from fermata.wire.http.routing import RequestContext
from fermata.wire.operations import chat_clients, cms_agent, generate, openai, planner, studio, surface, turns
from fermata.wire.operations.operation import BaseOperation
from local.seed import WIDE_LIMITS
from tests.stored_rows import SavedRows, save_rows
from tests.unit.openapi.schemathesis_schema import AnyCase
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
PROMPTS = (
    *(turns.START_TURN, planner.CHAT, planner.STREAM_VARIATIONS, generate.GENERATE),
    *(
        openai.CREATE_CHAT_COMPLETION,
        openai.CREATE_RESPONSE,
        cms_agent.STREAM_CMS_ANSWER,
        cms_agent.GENERATE_CMS_ANSWER,
    ),
    *(studio.CHAT_IN_STUDIO, chat_clients.CHAT_ON_PAGE, chat_clients.CHAT_WITH_AGENT, chat_clients.RUN_AGUI),
)
"""Operations that send a prompt, each in its own dialect."""
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


@pytest.fixture
def _without_any_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let callers send no prompts, and store what they like."""
    wide = WIDE_LIMITS.apply_to(DEFAULT_CALLER_LIMITS)
    limits = replace(wide, user=replace(wide.user, prompts_per_minute=0))
    monkeypatch.setattr(RequestContext, "caller_limits", property(lambda _context: limits))


@pytest.mark.usefixtures("_without_any_use")
@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.body], ids=lambda operation: operation.name)
def test_a_request_with_a_body_counts_or_says_why_not(service: Service, operation: BaseOperation) -> None:
    case = make_case(operation, service.real_ids(operation))
    case.body = {**case.body, **BODIES_OF_LIMITS.get(operation.name, {})}
    if operation.name not in UNCOUNTED:
        check_refusal(service, case, operation, {413, 429})
    else:
        response = case.call(headers=service.headers(operation))
        assert response.status_code not in (413, 429), response.text


@pytest.mark.usefixtures("_without_any_prompt")
@pytest.mark.parametrize("operation", PROMPTS, ids=lambda operation: operation.name)
def test_one_prompt_too_many_is_refused_in_each_dialect(service: Service, operation: BaseOperation) -> None:
    case = make_case(operation, service.real_ids(operation))
    check_refusal(service, case, operation, {429})


@pytest.mark.usefixtures("_without_any_use")
@pytest.mark.parametrize(
    "operation", [planner.START_CHAT, planner.BOOTSTRAP_DRAFT], ids=lambda operation: operation.name
)
def test_a_session_is_not_begun_where_nothing_may_be_stored(service: Service, operation: BaseOperation) -> None:
    case = make_case(operation, service.real_ids(operation))
    case.body = {**case.body, "session": "another-session"}
    check_refusal(service, case, operation, {413, 429})


def check_refusal(service: Service, case: AnyCase, operation: BaseOperation, statuses: set[int]) -> None:
    headers = service.headers(operation)
    before = save_rows()
    response = case.call(headers=headers)
    assert response.status_code in statuses, response.text
    assert not list_changed_rows(before, save_rows()), "a refused request leaves something"
    assert read_words(operation, response.status_code, response.json()), "a refusal says what to do"
    assert (int(response.headers.get("retry-after", ["0"])[0]) > 0) == (response.status_code == 429)


def list_changed_rows(before: SavedRows, after: SavedRows) -> list[Any]:
    """Return the keys of rows that are new, changed or gone."""
    return [
        (table, partition, key)
        for table, (partitions, _) in after.items()
        for partition, rows in partitions.items()
        for old in [before[table][0].get(partition, {})]
        if rows != old
        for key in rows.keys() | old.keys()
        if rows.get(key) is not old.get(key)
    ]


def read_words(operation: BaseOperation, status: int, body: dict[str, Any]) -> str:
    """Return what a refusal says, from where clients of the operation read it."""
    error = body["error"]
    if operation.path.startswith(CMS_AGENT_PATH_PREFIX):
        assert (body["success"], error["code"]) == (
            False,
            "RATE_LIMIT_EXCEEDED" if status == 429 else "VALIDATION_ERROR",
        )
        return str(error["message"])
    if operation.path.startswith(OPENAI_PATH_PREFIX):
        assert error["type"] == ("rate_limit_error" if status == 429 else "invalid_request_error")
        return str(error["message"])
    assert isinstance(error, str)
    return error


def test_the_reasons_are_of_operations_that_exist() -> None:
    assert UNCOUNTED.keys() <= {operation.name for operation in OPERATIONS}
