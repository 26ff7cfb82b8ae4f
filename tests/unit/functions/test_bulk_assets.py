"""Up to 50 files are stored, and up to 50 assets changed, by one request, which says what became of each."""

import json
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content_api import bulk_asset_requests
from fermata.domain.caller import Caller
from functions.redraw_images import app as redraw_images
from tests.images import make_image
from tests.proxy_events import make_proxy_event
from tests.unit.functions.test_content import Answer, ContentClient, client, store_workflow
from tests.uploads import put_upload

__all__ = ["client"]
ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset(["ai.content.write"]))
PDF = b"%PDF-1.7 menu %%EOF"


def upload(resources: Resources, raw: bytes, name: str = "loaf.jpg") -> dict[str, str]:
    return {"uploadRef": put_upload(resources, ADA, "media", raw), "filename": name}


def store(client: ContentClient, *files: dict[str, str], **body: Any) -> Answer:
    sent = client.signer.bearer_headers(capabilities=client.capabilities)
    path = "/admin/api/ai/assets/shop/main/bulk"
    answer = redraw_images.handler(make_proxy_event("POST", path, sent, {"files": list(files), **body}), None)
    return Answer(answer["statusCode"], json.loads(answer["body"]), "")


def change(client: ContentClient, **body: Any) -> Answer:
    return client.send("POST", "shop/main/assets", body)


def list_statuses(answer: Answer) -> list[int]:
    assert answer.status == 200, answer.body
    return [one["status"] for one in answer.body["results"]]


def test_each_file_has_a_result_and_one_that_is_refused_keeps_no_other_from_being_stored(
    client: ContentClient, resources: Resources
) -> None:
    good, pdf = upload(resources, make_image()), upload(resources, PDF, "menu.pdf")
    bad = upload(resources, b"<!doctype html>no media", "page.html")
    missing = {"uploadRef": f"media-5-{'a' * 64}-9999999999", "filename": "never.jpg"}
    answer = store(client, good, bad, missing, {"uploadRef": "x", "filename": "x"}, pdf, good)
    assert list_statuses(answer) == [201, 400, 404, 400, 201, 200]
    assert [one["uploadRef"] for one in answer.body["results"][:3]] == [
        one["uploadRef"] for one in (good, bad, missing)
    ]
    assert "The file is" in answer.body["results"][1]["error"]
    assert list_statuses(store(client, good, bad, pdf)) == [200, 400, 200], "a repetition stores nothing twice"
    assert client.send("GET", "shop/main/documents/asset").body["total"] == 2


def test_files_for_which_a_request_has_no_time_are_sent_again(
    client: ContentClient, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [upload(resources, PDF + bytes([number])) for number in range(3)]
    times = iter([0.0, 1.0, 2.0])  # the end is set, the first is begun, and then it is late
    monkeypatch.setattr(bulk_asset_requests, "BULK_SECONDS", 1.5)
    monkeypatch.setattr(bulk_asset_requests, "_read_clock", lambda _resources: next(times, 9.0))
    answer = store(client, *files)
    assert list_statuses(answer) == [201, 503, 503]
    assert "Send it again" in answer.body["results"][1]["error"]
    monkeypatch.undo()
    assert list_statuses(store(client, *files)) == [200, 201, 201]


def test_a_request_of_no_file_of_too_many_or_for_no_space_stores_nothing(
    client: ContentClient, resources: Resources
) -> None:
    one = upload(resources, PDF)
    assert [store(client).status, store(client, *[one] * 51).status] == [400, 400]
    store_workflow(resources, "review")
    writer = ContentClient(client.signer, ["ai.content.write"])
    refused = store(writer, one)
    assert (refused.status, refused.body["code"]) == (403, "reviewRequired")
    assert client.send("GET", "shop/main/documents/asset").body["total"] == 0
    name = writer.send("POST", "shop/main/change-sets", {}).body["changeSet"]["id"]
    stored = store(writer, one, changeSet=name)
    assert stored.body["results"][0]["document"]["changeSet"] == name


def test_tags_of_assets_change_and_assets_are_deleted_each_with_a_result(
    client: ContentClient, resources: Resources
) -> None:
    files = [upload(resources, PDF + bytes([number])) for number in range(2)]
    ids = [one["document"]["id"] for one in store(client, *files).body["results"]]
    for _ in range(2):
        assert list_statuses(change(client, ids=[*ids, "none"], action="addTags", tags=["menu", "new"])) == [
            *(200, 200, 404)
        ]
    assert read_tags(client, ids[0]) == (["menu", "new"], 2), "what is there already is no change"
    assert list_statuses(change(client, ids=ids, action="removeTags", tags=["new"])) == [200, 200]
    assert read_tags(client, ids[0])[0] == ["menu"]
    many = [f"t{number}" for number in range(50)]
    assert list_statuses(change(client, ids=ids[:1], action="addTags", tags=many)) == [400]
    assert change(client, ids=ids, action="addTags").status == 400
    assert list_statuses(change(client, ids=[*ids, ids[0]], action="delete")) == [200, 200]
    assert client.send("GET", "shop/main/documents/asset").body["total"] == 0
    assert list_statuses(change(client, ids=ids[:1], action="delete")) == [404]


def read_tags(client: ContentClient, asset: str) -> tuple[list[str], int]:
    document = client.send("GET", f"shop/main/documents/asset/{asset}").body["document"]
    return document["locales"]["data"]["tags"], document["version"]
