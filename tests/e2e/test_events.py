"""Every request of events/ is given to its door, deployed."""

import json
from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.processes import ROOT
from tests.e2e.talk import http

FILES = sorted((ROOT / "events").glob("*.json"))
WORKFLOW = {"round": "round", "hold": "hold"}
EXPECTED = {
    "api": 201,
    "api_cancel": 404,
    "credentials": 201,
    "stream": 404,
    "stream_events": 404,
    "tool_result": 404,
}
"""What the requests are about does not exist here."""


def requests(*, over_http: bool) -> list[Path]:
    return [path for path in FILES if ("httpMethod" in json.loads(path.read_text())) == over_http]


@pytest.mark.parametrize("path", requests(over_http=True), ids=lambda path: path.stem)
def test_a_request_over_http_reaches_its_door(cloud: LocalCloud, path: Path) -> None:
    event: dict[str, Any] = json.loads(path.read_text())
    headers = {name: value for name, value in event["headers"].items() if name.lower() not in ("host", "origin")}
    headers["Authorization"] = f"Bearer {cloud.token}"
    with http(cloud) as bare:
        answer = bare.request(
            event["httpMethod"],
            f"{cloud.url}{event['path']}",
            headers=headers,
            params=event["queryStringParameters"] or {},
            content=event["body"],
        )
    assert answer.status_code == EXPECTED[path.stem], answer.text
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("path", requests(over_http=False), ids=lambda path: path.stem)
def test_a_request_of_the_platform_reaches_its_door_and_comes_to_nothing_here(cloud: LocalCloud, path: Path) -> None:
    answer = cloud.invoke(path.stem.partition("_")[0], json.loads(path.read_text()))
    assert answer is None or set(answer) == {"seen"}
