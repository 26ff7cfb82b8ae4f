"""Operations of a studio whose plan nobody pays for: what the plan has costs 402, and people keep their content."""

from collections.abc import Iterator
from typing import Any

import pytest

from fermata.domain.workspace_plan import Subscription, SubscriptionState
from fermata.wire.auth.tenant_store import update_tenant
from fermata.wire.operations import (
    api_keys,
    content,
    content_forms,
    content_git,
    content_media,
    content_members,
    credentials,
    studio,
)
from fermata.wire.operations.operation import BaseOperation
from tests.unit.openapi.service import Service
from tests.unit.openapi.test_responses import make_case

MODULES = (api_keys, content, content_forms, content_git, content_media, content_members, studio)
BODIES_OF_PLANS: dict[str, dict[str, Any]] = {
    "putContentModel": {
        "kind": "collection",
        "fields": {"title": {"type": "string"}},
        "form": {"enabled": True, "exposedFields": ["title"]},
    },
}
REFUSED = {
    "chatInStudio",
    "createApiKey",
    "createCredential",
    "putContentModel",
    "putSpaceMember",
    "storeAsset",
    "submitForm",
}
"""What is new of what the plan has. The Conversation API is in test_messages_of_a_plan.py."""
SPEAKS_TO_VISITORS = "submitForm"
OPERATIONS = [
    *(one for module in MODULES for one in vars(module).values() if isinstance(one, BaseOperation)),
    credentials.CREATE_CREDENTIAL,
]
BY_KEY = ("sendConversationMessage", "showConversationHistory")
CHANGING = [one for one in OPERATIONS if one.method != "GET" and one.name not in BY_KEY]


def choose_state(service: Service, state: SubscriptionState) -> None:
    update_tenant(service.resources, "bakery", subscription=Subscription(plan="pro", state=state))


@pytest.fixture
def paying(service: Service) -> Iterator[Service]:
    """A workspace with a plan, and without one afterwards."""
    choose_state(service, "active")
    yield service
    update_tenant(service.resources, "bakery", subscription=Subscription())


def test_a_locked_plan_refuses_what_is_new_of_it_and_nothing_else(paying: Service) -> None:
    rules = {"project": paying.real_ids(content.LIST_CONTENT_MODELS)["site"], "role": "viewer"}
    bodies = BODIES_OF_PLANS | {"createApiKey": {"label": "Robot", "conversation": rules}}
    refused: dict[str, str] = {}
    for operation in CHANGING:
        case, headers = make_case(operation, paying.real_ids(operation)), paying.headers(operation)
        case.body = bodies.get(operation.name, case.body)
        choose_state(paying, "cancelled")
        response = case.call(headers=headers)
        choose_state(paying, "active")
        if response.status_code == 402:
            refused[operation.name] = response.json()["error"]
    assert refused.keys() == REFUSED
    assert (
        refused.pop(SPEAKS_TO_VISITORS) == "This form takes no submissions now. Write to the owner of the site instead."
    )
    assert set(refused.values()) == {"The plan of this workspace was cancelled and has ended. Choose a plan to go on."}
