"""The whole surface in one process: doors over moto, turns that run to their end as soon as they are started.

API Gateway's part is a WSGI application that hands requests over as API Gateway does.
"""

import asyncio
import base64
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import pytest

from fermata.aws.clock import new_id
from fermata.aws.desk import Desk
from fermata.credentials import keyring
from fermata.turns import starting
from fermata.turns import turn as turns
from fermata.turns.turn import Turn
from fermata.wire import surface
from fermata.wire.edge import Routes, serve
from fermata.wire.http import Answer, of_event, to_event
from fermata.wire.operation import Described
from fermata.words.blocks import ImageBlock
from functions.api import app as api
from functions.credentials import app as credentials
from functions.stream import app as stream
from functions.tool_result import app as tool_result
from tests import pictures
from tests.callers import EVERYTHING, Signer, make_tenant
from tests.unit.turns.stage import HandWorkflow, Stage, call, calls

ROUTES: Routes = (*api.ROUTES, *credentials.ROUTES, *stream.ROUTES, *tool_result.ROUTES)
CAPABILITIES = (*EVERYTHING, "site.read", "site.structure.edit")
MODELS = b'{"data":[{"id":"claude-opus-4-5","display_name":"Opus"},{"id":"claude-haiku-4-5"}],"has_more":false}'


class Impatient(HandWorkflow):
    """Plays each turn to its end within the request that starts it."""

    def __init__(self, stage: "Player") -> None:
        super().__init__()
        self.stage, self.plays = stage, True

    def start(self, tenant: str, turn: str, n: int) -> None:
        super().start(tenant, turn, n)
        if self.plays:
            found = turns.find(self.stage.desk, tenant, turn)
            if not found.undoes:  # an undo asks no model
                self.stage.says("Done.")
            self.stage.play(found)


class Player(Stage):
    """A stage for turns that somebody else starts."""

    workflow: "Impatient"

    def play(self, turn: Turn) -> None:
        self._turn = turn
        self.run()

    def ask(self, conversation: str) -> Turn:
        """A turn that waits for a browser; its prompt is a picture."""
        picture = ImageBlock(mime_type="image/jpeg", data=pictures.base64_of(pictures.photo()))
        prompt = replace(self.prompt(), conversation_id=conversation, content=(picture,))
        self.workflow.plays = False
        turn = starting.start(self.desk, self.caller, prompt).turn
        self.workflow.plays = True
        self.says(calls(call("insertHtml", parentId="root", html="<p>x</p>")))
        self.play(turn)
        return turn


@dataclass(frozen=True)
class Stand:
    """Everything belongs to Ada of the bakery; the studio's browsers are Instatic's.

    Nothing was said in the conversation `quiet`. `spoken` is one of which the message `image` begins with a picture.
    The turn `asking` waits for a browser to answer `request`.
    """

    desk: Desk
    stage: Player
    bakery: Signer
    studio: Signer
    quiet: str
    spoken: str
    image: str
    asking: str
    request: str

    def headers(self, operation: Described) -> dict[str, str]:
        """The editor's bridge is for the studio."""
        signer = self.studio if operation is surface.EDITOR_BRIDGE else self.bakery
        return {"Authorization": signer.bearer(capabilities=CAPABILITIES)["authorization"]}

    def token(self, *capabilities: str) -> str:
        return self.bakery.bearer(capabilities=capabilities)["authorization"]

    def real(self, operation: Described) -> dict[str, str]:
        """What leads to something, for each parameter and member that points at anything."""
        kind = operation.path.removeprefix(f"{surface.AI}/").split("/")[0]
        return {
            "id": self._id(kind, is_last=operation.method == "DELETE"),
            "conversationId": self.quiet,
            "credentialId": self.stage.credential.id,
            "bridgeId": self._bridge(operation),
            "requestId": self.request,
            "messageId": self.image,
            "index": "0",
        }

    def _id(self, kind: str, *, is_last: bool) -> str:
        """Of something new where it will be gone afterwards."""
        match kind:
            case "conversations":
                return self.stage.new_conversation().id if is_last else self.spoken
            case "credentials":
                return self._new_credential() if is_last else self.stage.credential.id
            case _:
                return "anthropic"

    def _bridge(self, operation: Described) -> str:
        """A turn of its own where it will not be the same afterwards."""
        match operation:
            case surface.CANCEL_TURN:
                return self._another_turn()
            case surface.UNDO_TURN | surface.SHOW_JOURNAL:
                return self._edited_turn()
            case _:
                return self.asking

    def _edited_turn(self) -> str:
        """Its editor told of a way back."""
        turn = self.stage.ask(self.stage.new_conversation().id)
        back = {"tool": "restore", "input": {"patch": {}}}
        self.stage.answer({"ok": True, "revision": "r2", "inverse": back})
        self.stage.says("Done.")
        self.stage.play(turn)
        return turn.id

    def _another_turn(self) -> str:
        return self.stage.ask(self.stage.new_conversation().id).id

    def _new_credential(self) -> str:
        return keyring.create(self.desk, self.stage.caller, "anthropic", "apiKey", new_id(), "sk-ant-test").id


def furnish(desk: Desk, patch: pytest.MonkeyPatch) -> Stand:
    stage = Player(desk, patch)
    stage.workflow = desk.__dict__["workflow"] = Impatient(stage)
    spoken = stage.conversation.id
    turn = stage.ask(spoken)
    return Stand(
        desk=desk,
        stage=stage,
        bakery=make_tenant(desk),
        studio=make_tenant(desk, "studio", dialect="instatic"),
        quiet=stage.new_conversation().id,
        spoken=spoken,
        image=f"{turn.id}-0",
        asking=turn.id,
        request=stage.requests()[-1].request_id,
    )


class Gateway:
    """A WSGI application over all doors at once: no two of them have a path in common."""

    desk: Desk

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = serve(self.desk, ROUTES, of_event(_event(environ)))
        status, headers, content = _sent(answer)
        start_response(f"{status} {HTTPStatus(status).phrase}", list(headers.items()))
        return [content]


GATEWAY = Gateway()
"""Schemathesis wants it before there is a desk; the fixture `stand` brings one."""


def _event(environ: dict[str, Any]) -> dict[str, Any]:
    headers = {key[5:].replace("_", "-").lower(): value for key, value in environ.items() if key.startswith("HTTP_")}
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    return {
        "resource": "/{proxy+}",
        "httpMethod": environ["REQUEST_METHOD"],
        "path": environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace"),
        "headers": headers,
        "queryStringParameters": dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)) or None,
        "requestContext": {"requestId": "platform-request"},
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }


def _sent(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    if answer.stream is None:
        event = to_event(answer)
        text = event["body"]
        return answer.status, event["headers"], base64.b64decode(text) if event["isBase64Encoded"] else text.encode()
    assert isinstance(answer.stream, AsyncIterable)
    try:
        content = asyncio.run(_whole(answer.stream))
    finally:
        if answer.closed:
            answer.closed()
    return answer.status, dict(answer.headers), content


async def _whole(stream: AsyncIterable[bytes]) -> bytes:
    return b"".join([chunk async for chunk in stream])
