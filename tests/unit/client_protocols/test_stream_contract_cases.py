"""Every recorded case of the planner's streams has its right answer, under its own id (decision 0426)."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from fermata.wire.bodies.planner_frames import PLANNER_FRAMES
from fermata.wire.http.dispatch import handle_request
from fermata.wire.http.messages import HttpRequest, Response
from functions.api import app as api
from functions.stream_turns import app as stream_turns
from tests.shared_cases.studio_cases import read_stream_cases
from tests.unit.client_protocols.conftest import Json
from tests.unit.client_protocols.test_planner_chats import PlannerChats, chats
from tests.unit.turns.stage import FakeWorkflow

__all__ = ["chats"]
CASES = read_stream_cases()
FRAME_CASES = [pytest.param(case, id=name) for name, case in CASES.items() if "frame" in case["input"]]
CHAT = "/admin/api/ai/planner/chat"
ROUTES = [*api.router.routes, *stream_turns.router.routes]


def send(chats: PlannerChats, method: str, path: str, body: Any = None, **query: str) -> Response:
    """Send a request, and read no stream."""
    signed = chats.requester.signer.bearer_headers(capabilities=chats.requester.capabilities)
    headers = {name.lower(): value for name, value in signed.items()} | {"content-type": "application/json"}
    raw = b"" if body is None else json.dumps(body).encode()
    return handle_request(chats.stage.resources, ROUTES, HttpRequest("r", method, path, headers, query, raw))


def begin(chats: PlannerChats, message: str = "Change the heading") -> str:
    response = send(chats, "POST", f"{CHAT}/start", {"session": "s", "message": message})
    assert response.status == 200
    stream_id: str = response.body["streamId"]
    return stream_id


def connect(chats: PlannerChats, stream_id: str, **query: Any) -> httpx.Response:
    return chats.requester.send("GET", f"{CHAT}/stream", params={"streamId": stream_id, **query})


def read_frames(response: httpx.Response) -> list[Json]:
    return [json.loads(line.removeprefix("data: ")) for line in response.text.splitlines() if line.startswith("data: ")]


def finish(chats: PlannerChats) -> tuple[str, list[Json]]:
    """Return a stream that was read to its end, with its frames."""
    stream_id = begin(chats)
    chats.script_plan("One")
    return stream_id, read_frames(connect(chats, stream_id))


@contextmanager
def running(chats: PlannerChats, patch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give a stream whose turn does not go on."""
    patch.setattr(type(chats.stage.workflow), "start_execution", FakeWorkflow.start_execution)
    stream_id = begin(chats)
    response = send(chats, "GET", f"{CHAT}/stream", streamId=stream_id)
    assert (response.status, response.on_close is not None) == (200, True)
    yield stream_id
    assert response.on_close is not None
    response.on_close()


@pytest.mark.parametrize("case", FRAME_CASES)
def test_a_frame_is_one_that_clients_know(case: Json) -> None:
    frame, is_valid = case["input"]["frame"], case["expected"]["valid"]
    if not is_valid:
        with pytest.raises(ValidationError):
            PLANNER_FRAMES.validate_python(frame)
        return
    assert frame.items() <= PLANNER_FRAMES.validate_python(frame).to_wire().items()


def test_g244_a_session_has_three_streams_that_wait(chats: PlannerChats) -> None:
    case = CASES["G244"]
    for _ in range(case["input"]["pending"]):
        begin(chats)
    refused = send(chats, "POST", f"{CHAT}/start", {"session": "s", "message": "One more"})
    assert refused.status == case["expected"]["http_status"]


def test_g245_and_g253_a_body_is_a_message_of_limited_size(chats: PlannerChats) -> None:
    large = {"session": "s", "message": "x", "notes": "x" * CASES["G245"]["input"]["content_length"]}
    found = send(chats, "POST", f"{CHAT}/start", large).status
    assert found == CASES["G245"]["expected"]["http_status"]
    case = CASES["G253"]
    assert chats.requester.send("POST", CHAT, json=case["input"]["body"]).status_code == case["expected"]["http_status"]


def test_g246_an_unknown_stream_is_gone(chats: PlannerChats) -> None:
    assert connect(chats, "x").status_code == CASES["G246"]["expected"]["http_status"]


def test_g247_g249_and_g251_a_stream_that_is_done_is_read_again_from_a_frame_only(chats: PlannerChats) -> None:
    stream_id, frames = finish(chats)
    assert connect(chats, stream_id).status_code == CASES["G247"]["expected"]["http_status"]
    again = connect(chats, stream_id, afterSeq=str(frames[-2]["_seq"]))
    assert again.status_code == CASES["G249"]["expected"]["http_status"]
    assert [frame["_seq"] for frame in read_frames(again)] == [frames[-1]["_seq"]]
    cancelled = send(chats, "POST", f"{CHAT}/cancel", {"streamId": stream_id})
    assert {"http_status": cancelled.status, **cancelled.body} == CASES["G251"]["expected"]


def test_g248_and_g252_a_stream_that_runs_has_one_reader_and_can_be_cancelled(
    chats: PlannerChats, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(chats, monkeypatch) as stream_id:
        assert connect(chats, stream_id).status_code == CASES["G248"]["expected"]["http_status"]
        expected = dict(CASES["G252"]["expected"])
        later = expected.pop("later_event")
        cancelled = send(chats, "POST", f"{CHAT}/cancel", {"streamId": stream_id})
        assert {"http_status": cancelled.status, **cancelled.body} == expected
        assert read_frames(connect(chats, stream_id, afterSeq="0"))[-1]["type"] == later


def test_every_case_is_here() -> None:
    assert len(CASES) == 13
    assert len(FRAME_CASES) == 4
