"""Whose it is decides: with every capability, nobody reaches into another tenant, nor into another user's things."""

from typing import Any

import boto3
import pytest

from fermata.wire import surface
from fermata.wire.operation import Described
from fermata.words.caller import Capability
from tests.callers import Signer, make_tenant
from tests.desk import REGION, TABLES
from tests.unit.openapi.stand import CAPABILITIES, Stand
from tests.unit.openapi.test_answers import BODIES, CLOSED, QUERIES, asked

OWN = [name for name in CAPABILITIES if name != Capability.TURNS]
"""Who may manage turns may follow, answer and end those of others."""
SHARED = (surface.LIST_MODELS, surface.SET_DEFAULT)
"""A tenant's credentials are for all of its users to chat with."""


def points(operation: Described) -> bool:
    """Whether it is about something of somebody's, and not about all that is the caller's own."""
    steps = {step for step in operation.path.split("/") if step.startswith("{")} - {"{scope}"}
    members = [*BODIES.get(operation.name, {}).values(), *QUERIES.get(operation.name, {}).values()]
    return bool(steps) or "" in members


@pytest.fixture(scope="module")
def rival(stand: Stand) -> Signer:
    return make_tenant(stand.desk, "rival")


def things(tenant: str) -> dict[Any, Any]:
    """Everything that is stored of a tenant."""
    client = boto3.client("dynamodb", region_name=REGION)
    found: dict[Any, Any] = {}
    for table in TABLES:
        for page in client.get_paginator("scan").paginate(TableName=table):
            found |= {(table, str(item["pk"]), str(item["sk"])): item for item in page["Items"]}
    return {key: item for key, item in found.items() if f"'t#{tenant}" in key[1]}


@pytest.mark.parametrize("operation", CLOSED, ids=lambda operation: operation.name)
def test_another_tenant_finds_nothing_and_changes_nothing(stand: Stand, rival: Signer, operation: Described) -> None:
    known = stand.real(operation)
    case, before = asked(operation, known), things("bakery")
    response = case.call(headers=rival.bearer(capabilities=CAPABILITIES))
    if operation is surface.SET_DEFAULT:
        assert (response.status_code, "Credential not found" in response.text) == (400, True)
    elif points(operation) or operation is surface.EDITOR_BRIDGE:
        assert response.status_code == 404
    else:
        assert response.status_code < 300
        assert not any(name in response.text for name in (stand.spoken, stand.quiet, stand.stage.credential.id))
    assert things("bakery").keys() >= before.keys()
    assert {key: item for key, item in things("bakery").items() if key in before} == before


OWNED = [one for one in CLOSED if points(one) and one not in SHARED]


@pytest.mark.parametrize("operation", OWNED, ids=lambda operation: operation.name)
def test_another_user_of_the_tenant_finds_nothing_of_it_either(stand: Stand, operation: Described) -> None:
    bob = stand.bakery.bearer(user="bob", capabilities=tuple(OWN))
    assert asked(operation, stand.real(operation)).call(headers=bob).status_code == 404
