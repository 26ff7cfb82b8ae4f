"""Searches that ask a provider are limited, and those without one are not."""

import json
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.document import ContentAuthor
from fermata.content.model_store import create_space
from fermata.content.search.lexical_embedding import embed_lexically
from fermata.content.search.search_index import TextEmbedder
from fermata.content_api import search_requests
from fermata.wire.auth.tenant import TenantLimits
from fermata.wire.auth.tenant_store import update_tenant
from functions.credentials import app
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant

MOST_IN_A_ROW = 9
"""Four for the one prompt of a minute, and those that were saved up."""


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    signer = make_tenant(resources, "bakery")
    update_tenant(resources, "bakery", limits=TenantLimits(user_prompts_per_minute=1))
    create_space(resources, SpaceKey("bakery", "shop"), ContentSpace(), ContentAuthor("ada"))
    return signer


def search(signer: TokenSigner, user: str = "ada") -> dict[str, Any]:
    headers = signer.bearer_headers(sub=user, capabilities=["ai.content.manage"])
    event = make_proxy_event("GET", "/admin/api/ai/content-search/shop/main", headers)
    event["queryStringParameters"] = {"query": "rye"}
    return app.handler(event, None)


def test_a_user_searches_only_so_often_with_a_model_of_a_provider(
    bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = TextEmbedder("c/m", embed_lexically)
    monkeypatch.setattr(search_requests, "open_embedder", lambda *_arguments: embedder)
    answers = [search(bakery) for _ in range(MOST_IN_A_ROW)]
    assert [answer["statusCode"] for answer in answers[:4]] == [200] * 4
    assert answers[-1]["statusCode"] == 429
    assert "as often as you may in a minute" in json.loads(answers[-1]["body"])["error"]
    assert int(answers[-1]["headers"]["Retry-After"]) >= 1
    assert search(bakery, "bob")["statusCode"] == 200


def test_a_search_without_a_model_is_not_counted(bakery: TokenSigner) -> None:
    assert {search(bakery)["statusCode"] for _ in range(MOST_IN_A_ROW)} == {200}
