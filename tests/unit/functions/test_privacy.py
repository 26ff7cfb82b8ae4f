"""Exports and erasures over HTTP."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Update
from fermata.aws.resources import Resources
from fermata.privacy import privacy_job
from fermata.wire.auth.tenant_erasure_mark import hash_tenant_name
from functions.credentials import app
from functions.purge import app as purge
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant

EXPORTS, ERASURES = "/admin/api/ai/exports", "/admin/api/ai/erasures"


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources, "bakery")


def send(method: str, path: str, signer: TokenSigner, body: Any = None, **claims: Any) -> tuple[int, Any]:
    answer = app.handler(make_proxy_event(method, path, signer.bearer_headers(**claims), body), None)
    return answer["statusCode"], json.loads(answer["body"] or "null")


def run_schedule() -> Any:
    context: Any = SimpleNamespace(aws_request_id="r", get_remaining_time_in_millis=lambda: 900_000)
    return purge.handler({"v": 1, "jobsOnly": True}, context)


def test_an_export_is_downloaded_when_it_is_done(bakery: TokenSigner) -> None:
    status, body = send("POST", EXPORTS, bakery, {"userId": "ada"})
    assert (status, body["job"]["state"]) == (202, "waiting")
    assert run_schedule() == {"jobs": 1, "purged": 0, "swept": 0, "reported": 0}
    status, body = send("GET", f"{EXPORTS}/{body['job']['id']}", bakery)
    assert (status, body["job"]["state"]) == (200, "done")
    [url] = body["job"]["downloads"]
    assert "X-Amz-Signature" in url


def test_an_erasure_shows_its_progress(bakery: TokenSigner) -> None:
    _, body = send("POST", ERASURES, bakery, {"userId": "ada"})
    run_schedule()
    status, body = send("GET", f"{ERASURES}/{body['job']['id']}", bakery)
    assert (status, body["job"]["state"]) == (200, "settling")
    assert body["job"]["erasedName"].startswith("erased-")


UNCLEAR = ({}, {"userId": "a", "tenant": "bakery"}, {"tenant": "florist"}, {"conversationId": "../x"}, {"userId": ""})


@pytest.mark.parametrize("path", [EXPORTS, ERASURES])
@pytest.mark.parametrize("body", UNCLEAR)
def test_an_unclear_subject_is_refused(bakery: TokenSigner, path: str, body: Any) -> None:
    assert send("POST", path, bakery, body)[0] == 400


@pytest.mark.parametrize("path", [EXPORTS, ERASURES])
def test_it_needs_its_own_capability_and_tenant(resources: Resources, bakery: TokenSigner, path: str) -> None:
    assert send("POST", path, bakery, {"userId": "ada"}, capabilities=("ai.chat", "ai.providers.manage"))[0] == 403
    _, body = send("POST", path, bakery, {"userId": "ada"})
    other = make_tenant(resources, "florist")
    assert send("GET", f"{path}/{body['job']['id']}", other)[0] == 404
    wrong = ERASURES if path == EXPORTS else EXPORTS
    assert send("GET", f"{wrong}/{body['job']['id']}", bakery)[0] == 404


@pytest.mark.parametrize("path", [EXPORTS, ERASURES])
def test_too_many_at_once_are_refused_in_words(
    bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    monkeypatch.setattr(privacy_job, "MAX_OPEN_JOBS", 1)
    first = send("POST", path, bakery, {"userId": "ada"})[1]["job"]["id"]
    assert send("POST", path, bakery, {"userId": "ada"})[1]["job"]["id"] == first, "the same again is the same"
    answer = app.handler(make_proxy_event("POST", path, bakery.bearer_headers(), {"userId": "ben"}), None)
    assert answer["statusCode"] == 429
    assert answer["headers"]["Retry-After"] == "300"
    assert "not done yet" in json.loads(answer["body"])["error"]
    assert "security.limit_reached" in caplog.text


def test_an_export_whose_files_are_gone_has_no_addresses(resources: Resources, bakery: TokenSigner) -> None:
    _, body = send("POST", EXPORTS, bakery, {"userId": "ada"})
    run_schedule()
    row = (f"privacy#{hash_tenant_name('bakery')}", body["job"]["id"])
    update = Update(resources.settings.settings_table, *row, "SET not_before = :now", {":now": 0})
    resources.tables.write_items(update)  # as if a day had passed
    assert run_schedule() == {"jobs": 1, "purged": 0, "swept": 0, "reported": 0}
    status, body = send("GET", f"{EXPORTS}/{body['job']['id']}", bakery)
    assert (status, body["job"]["state"], "downloads" in body["job"]) == (200, "expired", False)
