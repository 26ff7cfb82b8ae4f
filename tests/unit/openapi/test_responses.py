"""Every operation works, and its response is as documented; without a token it does nothing."""

from typing import Any

import pytest
from schemathesis.specs.openapi.checks import ignored_auth

from fermata.wire.operations import callbacks, content_git, mcp, studio, surface
from fermata.wire.operations.operation import BaseOperation, SuccessResponse
from tests.quick_suite_samples import sample_for_quick_suite
from tests.tenant_tokens import TokenSigner
from tests.unit.openapi.schemathesis_schema import AnyCase, check_stream_lines, schema
from tests.unit.openapi.service import Service
from tests.unit.remote_tools.manifests import make_manifest_json

NEW_CREDENTIAL = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Mine", "apiKey": "sk-ant-secret"}
UI_MESSAGE = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}
BODIES: dict[str, Any] = {
    "startTurn": {"conversationId": "", "prompt": "Add a footer"},
    "answerTool": {"bridgeId": "", "requestId": "", "result": {"ok": True, "data": {"nodeIds": ["n1"]}}},
    "undoTurn": {},
    "decideApproval": {"approved": True},
    "decideApprovals": {"decisions": [{"approvalId": "none.1.0.nonce", "approved": True}]},
    "editQueuedPrompt": {"prompt": "Add a header"},
    "setApprovalPolicy": {"rules": [{"effect": "ask", "risks": ["high"]}], "turnCostUsd": 5},
    "pushAgents": {"files": [{"name": "agents.yaml", "content": {"agents": []}}], "dryRun": True},
    "setSecret": {"value": "a value"},
    "takeUpload": {"kind": "snapshot", "bytes": 2, "sha256": "0" * 64},
    "createConversation": {"scope": "site", "title": "Home"},
    "changeConversation": {"title": "About us"},
    "setDefault": {"credentialId": "", "modelId": "claude-opus-4-5"},
    "createCredential": NEW_CREDENTIAL,
    "generate": {"credentialId": "", "modelId": "claude-opus-4-5", "prompt": "Write a headline"},
    "changeCredential": {"displayLabel": "Ours"},
    "createApiKey": {"label": "Build server", "capabilities": ["ai.chat"]},
    "changeApiKey": {"conversation": {"role": "viewer", "messagesPerMinute": 20}},
    "chatInStudio": {"message": "Hello"},
    "rotateApiKey": {"overlapSeconds": 60},
    "createConnector": {"label": "Desktop", "type": "remote", "capabilities": ["ai.chat"]},
    "registerRemoteTool": {
        "manifest": make_manifest_json(name="dam.search"),
        "endpoint": "https://93.184.216.34/tool",
        "replace": True,
    },
    "changeRemoteTool": {"enabled": False},
    "turnOnBuiltInTool": {"options": {"hosts": "example.com"}},
    "addWebhook": {"url": "https://93.184.216.34/hook"},
    "changeWebhook": {"enabled": False},
    "issueCallbackToken": {"expiresInSeconds": 60},
    "startExport": {"userId": "nobody"},
    "startErasure": {"userId": "nobody"},
    "chatWithPlanner": {"session": "", "message": "Change the heading"},
    "startPlannerChat": {"session": "", "message": "Change the heading"},
    "forecastPlannerChat": {"session": "", "message": "Change the heading"},
    "cancelPlannerChat": {"streamId": ""},
    "varyBlock": {"session": "", "message": "One shorter variation", "activeBlockId": "b_hero"},
    "streamVariations": {"session": "", "message": "One shorter variation", "activeBlockId": "b_hero"},
    "registerSite": {"siteId": "", "name": "Bakery", "previewUrl": "https://bakery.example"},
    "applyOperations": {
        "session": "",
        "ops": [{"op": "update_page_meta", "pageSlug": "/faq", "patch": {"title": "Answers"}}],
    },
    "undoChange": {"session": "", "slug": "/"},
    "redoChange": {"session": "", "slug": "/faq"},
    "restoreVersion": {"session": "", "version": 1},
    "publishDraft": {"session": ""},
    "restoreEdition": {"session": "", "siteId": "", "number": 1},
    "bootstrapDraft": {"session": "", "pages": [{"id": "p", "slug": "/", "title": "Home"}]},
    "createChatCompletion": {
        "model": "site",
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "conversation": "",
    },
    "chatOnPage": {"id": "", "messages": [UI_MESSAGE]},
    "chatWithAgent": {"id": "", "messages": [UI_MESSAGE], "trigger": "submit-message"},
    "runAgui": {
        "threadId": "",
        "runId": "a run",
        "messages": [{"id": "m", "role": "user", "content": "Hello"}],
    },
    "createResponse": {"model": "site", "input": "Hello", "stream": True, "conversation": ""},
    "streamCmsAnswer": {"prompt": "Hello", "sessionId": ""},
    "generateCmsAnswer": {"prompt": "Hello", "sessionId": ""},
    "decideCmsApproval": {"approved": True},
    "createCmsSession": {"title": "Spring"},
    "changeCmsSession": {"title": "Summer"},
    "createContentSpace": {"site": "", "environment": "staging"},
    "putContentModel": {"kind": "collection", "fields": {"title": {"type": "string"}}},
    "createDocument": {"title": "Rye", "locales": {"data": {"title": "Rye"}}},
    "changeDocument": {"status": "published", "locales": {"data": {"title": None}}},
    "beginChangeSet": {"title": "Spring"},
    "indexContent": {"again": True},
    "setSearchModel": {},
    "putSpaceMember": {"role": "reviewer", "models": ["recipe"]},
    "storeCaptcha": {"service": "turnstile", "siteKey": "0x4AAA", "secret": "secret"},
    "connectGitRepository": {"url": "https://93.184.216.34/site.git", "username": "ada", "password": "secret"},
    "pullGitRepository": {"prefer": "ours"},
    "pushGitRepository": {"message": "Update content"},
    "importProjectFiles": {
        "files": {
            ".contentrain/config.json": '{"version": 1, "locales": {"default": "en", "supported": ["en"]}}',
        }
    },
    "issueDeliveryToken": {"mode": "preview", "expiresInSeconds": 600},
    "importContent": {"documents": [{"model": "recipe", "id": "oats", "title": "Oats"}]},
    "describeAsset": {"locale": "en"},
    "storeAsset": {"uploadRef": "", "filename": "bread.jpg", "alt": "A loaf"},
    "storeAssets": {"files": [{"uploadRef": "none", "filename": "bread.jpg"}]},
    "changeAssets": {"ids": ["none"], "action": "delete"},
    "changeInChangeSet": {"title": "Dark rye"},
    "mergeChangeSet": {"prefer": "ours"},
    "submitForm": {"data": {"name": "Eve"}},
    "decideSubmission": {"status": "approved"},
    "decideSubmissions": {"ids": ["none"], "action": "spam"},
    "setBudgets": {"tenant": {"monthlyUsd": 100}},
}
QUERIES: dict[str, dict[str, Any]] = {
    "searchContent": {"query": "rye"},
    "listSubmissions": {"model": "recipe"},
    "deleteContentSpace": {"confirm": ""},
    "followTurn": {"after": 1},
    "followStudioChat": {"conversationId": ""},
    "listConversations": {"scope": "site", "limit": 1},
    "showConversation": {"limit": 1},
    "listModels": {"credentialId": ""},
    "streamPlannerChat": {"streamId": ""},
    "showHistoryStatus": {"session": "", "slug": "/"},
    "listHistory": {"session": ""},
    "showDraftPage": {"session": "", "slug": "/"},
    "listDraftSlugs": {"session": ""},
    "listPendingPlans": {"session": ""},
    "showPublishDifference": {"session": ""},
    "showPublishLog": {"siteId": ""},
    "showPublishStatus": {"siteId": ""},
    "listEditions": {"siteId": ""},
    "showPlannerCaller": {"session": ""},
    "showPublishedPage": {"siteId": "", "slug": "/"},
}
FORGED_AUTHORIZATION = TokenSigner(
    "bakery", "https://bakery.example", "fermata", "some other secret than the bakery's"
).bearer_headers()["authorization"]
SIGNED_OPERATIONS = (
    callbacks.POST_CALLBACK_RESULT,
    callbacks.POST_REMOTE_RESULT,
    mcp.EDITOR_BRIDGE,
    mcp.ASK_MCP,
    mcp.ASK_MCP_OF_WORKSPACE,
    mcp.ASK_INSTATIC_MCP,
    mcp.SHOW_RESOURCE_METADATA,
    studio.SEND_CONVERSATION_MESSAGE,
    studio.SHOW_CONVERSATION_HISTORY,
)
"""Operations whose handlers check themselves who has sent the request, and which have tests of their own."""
GIT_OPERATIONS = (content_git.CHECK_REPOSITORY, content_git.PULL_REPOSITORY, content_git.PUSH_REPOSITORY)
"""Operations that ask a Git server. `tests/unit/functions/test_content_git.py` has one."""
SUCCESSES = [
    (operation, success)
    for operation in surface.OPERATIONS
    for success in operation.responses
    if operation not in (*SIGNED_OPERATIONS, *GIT_OPERATIONS)
]
AUTHENTICATED_OPERATIONS = [operation for operation in surface.OPERATIONS if operation.capabilities]
PUBLIC_OPERATIONS = [operation for operation in surface.OPERATIONS if not operation.capabilities]


def make_case(operation: BaseOperation, ids: dict[str, str]) -> AnyCase:
    """Make a valid request. Members that are empty in BODIES and QUERIES get existing ids."""

    def fill_in(members: dict[str, Any]) -> dict[str, Any]:
        return {name: value if value != "" else ids[name] for name, value in members.items()}

    path_parameters = {segment[1:-1] for segment in operation.path.split("/") if segment.startswith("{")}
    body: dict[str, Any] = {}
    if operation.body:
        body = {"body": fill_in(BODIES[operation.name]), "media_type": "application/json"}
    return schema[operation.path][operation.method].Case(
        path_parameters={name: ids.get(name, "site") for name in path_parameters},
        query=fill_in(QUERIES.get(operation.name, {})),
        **body,
    )


@pytest.mark.parametrize(
    ("operation", "success"), SUCCESSES, ids=lambda case: getattr(case, "name", getattr(case, "status", ""))
)
def test_an_operation_succeeds_as_documented(
    service: Service, operation: BaseOperation, success: SuccessResponse
) -> None:
    asks_for_json = success.status == 202 or (operation.name, success.status) == ("downloadAsset", 200)
    accepts = {"Accept": "application/json"} if asks_for_json else {}
    case = make_case(operation, service.real_ids(operation, success.status))
    response = case.call_and_validate(headers=service.headers(operation) | accepts)
    assert response.status_code == success.status, response.text
    check_stream_lines(response)


@pytest.mark.parametrize("headers", [{}, {"Authorization": FORGED_AUTHORIZATION}], ids=["no token", "a forged token"])
@pytest.mark.parametrize(
    "operation", sample_for_quick_suite(AUTHENTICATED_OPERATIONS, every=8), ids=lambda operation: operation.name
)
def test_a_request_without_a_valid_token_is_refused(
    service: Service, operation: BaseOperation, headers: dict[str, str]
) -> None:
    case = make_case(operation, service.real_ids(operation))
    response = case.call_and_validate(headers=headers, excluded_checks=[ignored_auth])
    assert response.status_code == 401
    assert read_error(response) == "Unauthorized"


@pytest.mark.parametrize(
    "operation", sample_for_quick_suite(AUTHENTICATED_OPERATIONS, every=8), ids=lambda operation: operation.name
)
def test_a_request_without_a_capability_is_refused(service: Service, operation: BaseOperation) -> None:
    others = {capability for other in AUTHENTICATED_OPERATIONS for capability in other.capabilities} - set(
        operation.capabilities
    )
    case = make_case(operation, service.real_ids(operation))
    response = case.call_and_validate(headers={"Authorization": service.token(*sorted(others))})
    assert response.status_code == 403
    assert read_error(response) == "Forbidden"


def read_error(response: Any) -> str:
    """Return what an error says, also in the form of OpenAI's clients."""
    error = response.json()["error"]
    return str(error["message"] if isinstance(error, dict) else error)


def test_only_operations_without_tenant_data_are_public() -> None:
    assert [operation.path for operation in PUBLIC_OPERATIONS if operation not in SIGNED_OPERATIONS] == [
        "/healthz",
        "/version",
        "/admin/api/ai/healthz",
        "/admin/api/ai/version",
        "/admin/api/ai/openapi.json",
        # A token in the path says what is shown.
        "/delivery/{token}/documents/{model}",
        "/delivery/{token}/documents/{model}/{document}",
        "/delivery/{token}/slugs/{model}/{slug}",
        "/delivery/{token}/assets/{asset}/{file}",
        # A form that its workspace has opened to visitors, who read nothing of what was sent.
        "/delivery/forms/{workspace}/{site}/{environment}/{model}",
        "/delivery/forms/{workspace}/{site}/{environment}/{model}",
    ]
