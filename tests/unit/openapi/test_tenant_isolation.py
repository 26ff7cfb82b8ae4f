"""Callers with every capability cannot reach another tenant, nor another user's data."""

from typing import Any

import pytest

from fermata.domain.caller import Capability
from fermata.wire.operations import (
    agent_definitions,
    api_keys,
    approvals,
    content,
    content_delivery,
    content_forms,
    content_git,
    content_media,
    content_members,
    content_search,
    content_sync,
    credentials,
    defaults,
    generate,
    openai,
    planner,
    privacy,
    remote_tools,
    studio,
    webhooks,
)
from fermata.wire.operations.operation import BaseOperation
from tests.quick_suite_samples import sample_for_quick_suite
from tests.resources import TABLE_NAMES
from tests.stored_rows import read_table
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.openapi.service import CAPABILITIES, Service
from tests.unit.openapi.test_responses import AUTHENTICATED_OPERATIONS, BODIES, QUERIES, make_case

CAPABILITIES_OF_A_USER = [name for name in CAPABILITIES if name != Capability.TURNS]
"""Without the capability to manage the turns of others."""
SHARED_OPERATIONS = (
    credentials.LIST_MODELS,
    generate.GENERATE,
    defaults.SET_DEFAULT,
    api_keys.CHANGE_API_KEY,
    api_keys.ROTATE_API_KEY,
    api_keys.REVOKE_API_KEY,
    remote_tools.CHANGE_REMOTE_TOOL,
    remote_tools.REMOVE_REMOTE_TOOL,
    *(
        operation
        for module in (
            *(webhooks, content, content_delivery, content_forms),
            *(content_git, content_media, content_members, content_search, content_sync),
        )
        for operation in vars(module).values()
        if isinstance(operation, BaseOperation)
    ),
    privacy.SHOW_EXPORT,
    privacy.SHOW_ERASURE,
    approvals.SHOW_APPROVAL,
    approvals.DECIDE_APPROVAL,
    agent_definitions.SHOW_AGENT_DEFINITION,
    agent_definitions.REMOVE_AGENT_DEFINITION,
    agent_definitions.REMOVE_SECRET,
    studio.CHAT_IN_STUDIO,
    studio.LIST_STUDIO_CONVERSATIONS,
)
"""A tenant's credentials and content may be used by all of its users; its API keys and exports belong to its
administrators, and whoever may approve decides about the calls of others. A project of the studio is shared content,
about which each user has conversations of their own."""


_PATHS_OF_OWN_NAMES = (planner.PLANNER_PATH, openai.OPENAI_PATH, "/api/agent", "/agui/")
SESSION_OPERATIONS = tuple(one for one in AUTHENTICATED_OPERATIONS if one.path.startswith(_PATHS_OF_OWN_NAMES))
"""Sessions, chats, and conversations of OpenAI's clients are names of the caller's own: another caller's session of the
same name is another draft."""
OWN_SESSION_STATUSES = (200, 201, 204, 400, 404, 409, 410)


def refers_to_an_item(operation: BaseOperation) -> bool:
    """Say whether the operation is about one item, and not about everything that the caller owns."""
    segments = {segment for segment in operation.path.split("/") if segment.startswith("{")}
    path_parameters = segments - {"{scope}", "{agentId}", "{model}"}  # every tenant has the same ones
    members = [*BODIES.get(operation.name, {}).values(), *QUERIES.get(operation.name, {}).values()]
    # Every tenant has the same built-in tools, and enters secrets and spaces of its own under any name.
    names_own = (remote_tools.TURN_ON_BUILT_IN_TOOL, agent_definitions.SET_SECRET, content.CREATE_SPACE)
    return operation not in names_own and (bool(path_parameters) or "" in members)


@pytest.fixture(scope="module")
def rival(service: Service) -> TokenSigner:
    return make_tenant(service.resources, "rival")


def read_rows(tenant: str) -> dict[Any, Any]:
    """Read all rows of a tenant."""
    rows = {(table, str(item["pk"]), str(item["sk"])): item for table in TABLE_NAMES for item in read_table(table)}
    return {key: item for key, item in rows.items() if f"'t#{tenant}" in key[1]}


@pytest.mark.exhaustive
@pytest.mark.parametrize("operation", AUTHENTICATED_OPERATIONS, ids=lambda operation: operation.name)
def test_another_tenant_reads_and_changes_nothing(
    service: Service, rival: TokenSigner, operation: BaseOperation
) -> None:
    ids = service.real_ids(operation)
    case, before = make_case(operation, ids), read_rows("bakery")
    response = case.call(headers=rival.bearer_headers(capabilities=CAPABILITIES))
    if operation is defaults.SET_DEFAULT:
        assert (response.status_code, "Credential not found" in response.text) == (400, True)
    elif operation in SESSION_OPERATIONS:
        assert response.status_code in OWN_SESSION_STATUSES
        assert "Welcome" not in response.text
    elif refers_to_an_item(operation):
        assert response.status_code == 404
    else:
        assert response.status_code < 300
        assert not any(
            name in response.text
            for name in (service.used_conversation, service.empty_conversation, service.stage.credential.id)
        )
    after = read_rows("bakery")
    assert {key: after.get(key) for key in before} == before


OWNED_OPERATIONS = [
    operation
    for operation in AUTHENTICATED_OPERATIONS
    if refers_to_an_item(operation) and operation not in (*SHARED_OPERATIONS, *SESSION_OPERATIONS)
]


@pytest.mark.parametrize("operation", OWNED_OPERATIONS, ids=lambda operation: operation.name)
def test_another_user_of_the_tenant_gets_404(service: Service, operation: BaseOperation) -> None:
    bob = service.bakery.bearer_headers(user="bob", capabilities=tuple(CAPABILITIES_OF_A_USER))
    assert make_case(operation, service.real_ids(operation)).call(headers=bob).status_code == 404


@pytest.mark.parametrize(
    "operation", sample_for_quick_suite(SESSION_OPERATIONS, every=8), ids=lambda operation: operation.name
)
def test_another_user_has_another_draft_under_the_same_name(service: Service, operation: BaseOperation) -> None:
    ids = service.real_ids(operation)
    before = read_rows("bakery")
    bob = service.bakery.bearer_headers(user="bob", capabilities=tuple(CAPABILITIES_OF_A_USER))
    response = make_case(operation, ids).call(headers=bob)
    assert response.status_code in OWN_SESSION_STATUSES
    is_shared = operation is planner.SHOW_PUBLISHED_PAGE  # it belongs to the tenant's site
    assert is_shared or "Welcome" not in response.text
    drafts = {key for key in before if "'d#" in key[2] or "plan-chats" in key[1]}
    after = read_rows("bakery")
    assert {key: after[key] for key in drafts} == {key: before[key] for key in drafts}
