"""`make embed` on the local cloud: one command, and a space is found by what it means."""

import uuid

import httpx

from fermata_client import FermataClient
from local.choose_demo_embeddings import choose_demo_embeddings, offers_demo_embeddings
from local.cloud import LocalCloud
from local.run import describe_connection
from tests.waiting import BACKSTOP_SECONDS

TITLES = {"automobile": "Automobile", "rye": "Rye bread"}


def test_a_space_is_searched_by_meaning_after_one_command(cloud: LocalCloud) -> None:
    assert offers_demo_embeddings(describe_connection(cloud))
    space = f"garage-{uuid.uuid4().hex[:8]}/main"
    token = cloud.sign_token(sub=f"owner-of-{space}")
    with FermataClient(cloud.url, token) as client:
        client.create_content_space(space, ["en"])
        pages = [{"model": "page", "id": slug, "slug": slug, "title": title} for slug, title in TITLES.items()]
        assert [one["outcome"] for one in client.import_content(space, [], pages)] == ["created"] * len(TITLES)
        for _ in range(2):  # whoever repeats it has one credential still
            choose_demo_embeddings(client, space)
        assert len(client.list_credentials()) == 1
    url, headers = f"{cloud.url}/admin/api/ai/content-search/{space}", {"authorization": f"Bearer {token}"}
    answer = httpx.get(url, params={"query": "car"}, headers=headers, timeout=BACKSTOP_SECONDS)
    found = {one["id"]: one["score"] for one in answer.json()["matches"]}
    assert (next(iter(found)), "rye" in found) == ("automobile", False)
