"""The tool names in everything that is shown of a turn: those of the client that asks, not of the prompt's client."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from fermata.aws.resources import Resources
from functions.api import app
from functions.stream_turns import app as stream_turns
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

AI = "/admin/api/ai"
SEED, PREFIXED = ("insertHtml", "deleteNode"), ("site_insert_html", "site_delete_node")
KNOWN = pytest.mark.parametrize(("header", "known"), [("seed", SEED), ("prefixed", PREFIXED), ("", SEED)])
ASKED_IN = pytest.mark.parametrize("said", ["seed", "prefixed"])


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources)


@pytest.fixture
def stage(resources: Resources, deployed: None, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A stage for turns of the functions' own resources."""
    made = Stage(resources, monkeypatch)
    for module in ("fermata.wire.http.dispatch", "functions.stream_turns.app"):
        monkeypatch.setattr(f"{module}.get_resources", lambda: resources)
    return made


def start_waiting_turn(stage: Stage, names: str) -> None:
    stage.start_turn(tool_names=names)
    called = (SEED if names == "seed" else PREFIXED)[0]
    stage.script_replies(reply_with_calls(tool_call_block(called, parentId="r", html="x")), "Done.")
    assert stage.run_workflow() == "waiting"


def start_edited_turn(stage: Stage, names: str) -> None:
    start_waiting_turn(stage, names)
    stage.answer_request(OK | {"inverse": {"tool": "deleteNode", "input": {"nodeId": "n1"}}})
    assert stage.run_workflow() == "finished"


def show(path: str, signer: TokenSigner, names: str) -> Any:
    headers = signer.bearer_headers() | ({"Fermata-Tool-Names": names} if names else {})
    answer = app.handler(make_proxy_event("GET", f"{AI}/{path}", headers), None)
    assert answer["statusCode"] == 200, answer["body"]
    return json.loads(answer["body"])


def follow(path: str, signer: TokenSigner, names: str) -> list[Any]:
    async def send() -> httpx.Response:
        headers = signer.bearer_headers() | ({"Fermata-Tool-Names": names} if names else {})
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(stream_turns.app), base_url="http://service"
        ) as http:
            return await http.get(f"{AI}/{path}", headers=headers)

    answer = asyncio.run(send())
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines() if line]


@KNOWN
@ASKED_IN
def test_a_pending_request_has_the_tool_name_of_the_client_that_asks(
    stage: Stage, bakery: TokenSigner, said: str, header: str, known: tuple[str, str]
) -> None:
    start_waiting_turn(stage, said)
    [asked] = show(f"bridges/{stage.turn.id}", bakery, header)["pending"]
    assert asked["toolName"] == known[0]


@KNOWN
@ASKED_IN
def test_events_have_the_tool_names_of_the_reader(
    stage: Stage, bakery: TokenSigner, said: str, header: str, known: tuple[str, str]
) -> None:
    start_edited_turn(stage, said)
    told = follow(f"bridges/{stage.turn.id}/events", bakery, header)
    named = {event["type"]: event["toolName"] for event in told if "toolName" in event}
    assert named == dict.fromkeys(("toolCall", "toolRequest", "toolResult"), known[0])


@KNOWN
@ASKED_IN
def test_the_journal_has_the_tool_names_of_the_reader(
    stage: Stage, bakery: TokenSigner, said: str, header: str, known: tuple[str, str]
) -> None:
    start_edited_turn(stage, said)
    [entry] = show(f"bridges/{stage.turn.id}/journal", bakery, header)["entries"]
    assert (entry["toolName"], entry["inverse"]) == (known[0], [known[1]])


def test_an_inverse_that_is_no_tool_keeps_its_name(stage: Stage, bakery: TokenSigner) -> None:
    start_waiting_turn(stage, "seed")
    stage.answer_request(OK | {"inverse": {"tool": "restore", "input": {"patch": {}}}})
    [entry] = show(f"bridges/{stage.turn.id}/journal", bakery, "prefixed")["entries"]
    assert entry["inverse"] == ["restore"]
