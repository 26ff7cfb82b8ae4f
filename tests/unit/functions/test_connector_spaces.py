"""Connectors for one content space: whoever creates one has to be able to read the space, as the connector has."""

import json
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.document import ContentAuthor
from fermata.content.model_store import create_space
from fermata.content.space_members import SpaceMember, put_member
from functions.credentials import app
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant

SHOP, CLUB = SpaceKey("bakery", "shop"), SpaceKey("bakery", "club")
READS = ["ai.chat", "ai.content.read"]


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    signer = make_tenant(resources, "bakery")
    for space in (SHOP, CLUB):
        create_space(resources, space, ContentSpace(), ContentAuthor("ada"))
    put_member(resources, CLUB, SpaceMember("bob", "editor"))
    return signer


def create(signer: TokenSigner, space: str, allowed: list[str], own: list[str]) -> tuple[int, Any]:
    body = {"label": "Desktop", "type": "local", "capabilities": allowed, "space": space}
    headers = signer.bearer_headers(capabilities=["ai.providers.manage", *own])
    answer = app.handler(make_proxy_event("POST", "/admin/api/ai/mcp/connectors", headers, body), None)
    return answer["statusCode"], json.loads(answer["body"])


def test_a_connector_names_the_space_that_it_may_read(bakery: TokenSigner) -> None:
    status, created = create(bakery, "shop", READS, READS)
    assert (status, created["connector"]["space"]) == (201, "shop/main")


@pytest.mark.parametrize(
    ("space", "allowed", "own", "status"),
    [
        ("ghost", READS, READS, 404),
        ("shop", ["ai.chat"], READS, 403),
        ("shop", READS, ["ai.chat"], 403),
        ("ghost", READS, ["ai.chat"], 403),
        ("club", READS, READS, 403),
        ("../shop", READS, READS, 400),
    ],
)
def test_nobody_learns_of_a_space_that_they_may_not_read(
    bakery: TokenSigner, space: str, allowed: list[str], own: list[str], status: int
) -> None:
    assert create(bakery, space, allowed, own)[0] == status
