"""Whose it is decides: with every capability, nobody reaches into another tenant, nor into another user's things."""

from typing import Any

import boto3
import pytest

from fermata.domain.caller import Capability
from fermata.wire.operations import credentials, defaults, editor
from fermata.wire.operations.operation import BaseOperation
from tests.resources import REGION, TABLE_NAMES
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.openapi.service import CAPABILITIES, Service
from tests.unit.openapi.test_responses import BODIES, CLOSED, QUERIES, asked

OWN = [name for name in CAPABILITIES if name != Capability.TURNS]
"""Who may manage turns may follow, answer and end those of others."""
SHARED = (credentials.LIST_MODELS, defaults.SET_DEFAULT)
"""A tenant's credentials are for all of its users to chat with."""


def points(operation: BaseOperation) -> bool:
    """Whether it is about something of somebody's, and not about all that is the caller's own."""
    steps = {step for step in operation.path.split("/") if step.startswith("{")} - {"{scope}"}
    members = [*BODIES.get(operation.name, {}).values(), *QUERIES.get(operation.name, {}).values()]
    return bool(steps) or "" in members


@pytest.fixture(scope="module")
def rival(stand: Service) -> TokenSigner:
    return make_tenant(stand.resources, "rival")


def things(tenant: str) -> dict[Any, Any]:
    """Everything that is stored of a tenant."""
    client = boto3.client("dynamodb", region_name=REGION)
    found: dict[Any, Any] = {}
    for table in TABLE_NAMES:
        for page in client.get_paginator("scan").paginate(TableName=table):
            found |= {(table, str(item["pk"]), str(item["sk"])): item for item in page["Items"]}
    return {key: item for key, item in found.items() if f"'t#{tenant}" in key[1]}


@pytest.mark.parametrize("operation", CLOSED, ids=lambda operation: operation.name)
def test_another_tenant_finds_nothing_and_changes_nothing(
    stand: Service, rival: TokenSigner, operation: BaseOperation
) -> None:
    known = stand.real_ids(operation)
    case, before = asked(operation, known), things("bakery")
    response = case.call(headers=rival.bearer_headers(capabilities=CAPABILITIES))
    if operation is defaults.SET_DEFAULT:
        assert (response.status_code, "Credential not found" in response.text) == (400, True)
    elif points(operation) or operation is editor.EDITOR_BRIDGE:
        assert response.status_code == 404
    else:
        assert response.status_code < 300
        assert not any(
            name in response.text
            for name in (stand.used_conversation, stand.empty_conversation, stand.stage.credential.id)
        )
    assert things("bakery").keys() >= before.keys()
    assert {key: item for key, item in things("bakery").items() if key in before} == before


OWNED = [one for one in CLOSED if points(one) and one not in SHARED]


@pytest.mark.parametrize("operation", OWNED, ids=lambda operation: operation.name)
def test_another_user_of_the_tenant_finds_nothing_of_it_either(stand: Service, operation: BaseOperation) -> None:
    bob = stand.bakery.bearer_headers(user="bob", capabilities=tuple(OWN))
    assert asked(operation, stand.real_ids(operation)).call(headers=bob).status_code == 404
