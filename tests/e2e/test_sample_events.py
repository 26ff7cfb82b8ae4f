"""Send every sample request of events/ to its deployed function."""

import json
from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.processes import ROOT
from tests.e2e.chat_session import open_http
from tests.template.test_sample_events import function_of_event

FILES = sorted((ROOT / "events").glob("*.json"))
UNDERSTOOD = (200, 201, 202, 400, 404)
"""What a request is about need not exist here."""


def requests(*, over_http: bool) -> list[Path]:
    return [path for path in FILES if ("httpMethod" in json.loads(path.read_text())) == over_http]


@pytest.mark.parametrize("path", requests(over_http=True), ids=lambda path: path.stem)
def test_an_http_event_reaches_its_function(cloud: LocalCloud, path: Path) -> None:
    event: dict[str, Any] = json.loads(path.read_text())
    headers = {name: value for name, value in event["headers"].items() if name.lower() not in ("host", "origin")}
    headers["Authorization"] = f"Bearer {cloud.token}"
    with open_http(cloud) as bare:
        answer = bare.request(
            event["httpMethod"],
            f"{cloud.url}{event['path']}",
            headers=headers,
            params=event["queryStringParameters"] or {},
            content=event["body"],
        )
    assert answer.status_code in UNDERSTOOD, answer.text
    assert answer.json() != {"error": "Not found"}, "no door has this path"
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("path", requests(over_http=False), ids=lambda path: path.stem)
def test_a_platform_event_reaches_its_function_and_changes_nothing(cloud: LocalCloud, path: Path) -> None:
    answer = cloud.invoke_function(function_of_event(path.stem), json.loads(path.read_text()))
    assert "errorMessage" not in (answer or {})
