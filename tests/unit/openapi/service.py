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
from fermata.aws.resources import Resources
from fermata.credentials import credential_store
from fermata.domain.blocks import ImageBlock
from fermata.turns.start import start_turn
from fermata.turns.turn import Turn, find_turn
from fermata.wire.http.api_gateway import request_from_event, to_proxy_response
from fermata.wire.http.dispatch import handle_request
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import Routes
from fermata.wire.operations import editor, turns
from fermata.wire.operations.common import API_PREFIX
from fermata.wire.operations.operation import BaseOperation
from functions.api import app as api
from functions.credentials import app as credentials
from functions.stream import app as stream
from functions.tool_result import app as tool_result
from tests import images
from tests.tenant_tokens import ALL_CAPABILITIES, TokenSigner, make_tenant
from tests.unit.turns.stage import FakeWorkflow, Stage, reply_with_calls, tool_call_block

ROUTES: Routes = [route for function in (api, credentials, stream, tool_result) for route in function.router.routes]
CAPABILITIES = (*ALL_CAPABILITIES, "site.read", "site.structure.edit")
MODELS = b'{"data":[{"id":"claude-opus-4-5","display_name":"Opus"},{"id":"claude-haiku-4-5"}],"has_more":false}'


class ImmediateWorkflow(FakeWorkflow):
    """Plays each turn to its end within the request that starts it."""

    def __init__(self, stage: "PlayingStage") -> None:
        super().__init__()
        self.stage, self.runs_turns = stage, True

    def start_execution(self, tenant: str, turn: str, n: int) -> None:
        super().start_execution(tenant, turn, n)
        if self.runs_turns:
            found = find_turn(self.stage.resources, tenant, turn)
            if not found.undoes:  # an undo asks no model
                self.stage.script_replies("Done.")
            self.stage.run_turn(found)


class PlayingStage(Stage):
    """A stage for turns that somebody else starts."""

    workflow: "ImmediateWorkflow"

    def run_turn(self, turn: Turn) -> None:
        self._turn = turn
        self.run_workflow()

    def start_waiting_turn(self, conversation: str) -> Turn:
        """A turn that waits for a browser; its prompt is a picture."""
        picture = ImageBlock(mime_type="image/jpeg", data=images.to_base64(images.make_image()))
        prompt = replace(self.make_prompt(), conversation_id=conversation, content=(picture,))
        self.workflow.runs_turns = False
        turn = start_turn.start_turn(self.resources, self.caller, prompt).turn
        self.workflow.runs_turns = True
        self.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p>x</p>")))
        self.run_turn(turn)
        return turn


@dataclass(frozen=True)
class Service:
    """Everything belongs to Ada of the bakery; the studio's browsers are Instatic's.

    Nothing was said in the conversation `quiet`. `spoken` is one of which the message `image` begins with a picture.
    The turn `asking` waits for a browser to answer `request`.
    """

    resources: Resources
    stage: PlayingStage
    bakery: TokenSigner
    studio: TokenSigner
    empty_conversation: str
    used_conversation: str
    image_message: str
    waiting_turn: str
    open_request: str

    def headers(self, operation: BaseOperation) -> dict[str, str]:
        """The editor's bridge is for the studio."""
        signer = self.studio if operation is editor.EDITOR_BRIDGE else self.bakery
        return {"Authorization": signer.bearer_headers(capabilities=CAPABILITIES)["authorization"]}

    def token(self, *capabilities: str) -> str:
        return self.bakery.bearer_headers(capabilities=capabilities)["authorization"]

    def real_ids(self, operation: BaseOperation) -> dict[str, str]:
        """What leads to something, for each parameter and member that points at anything."""
        kind = operation.path.removeprefix(f"{API_PREFIX}/").split("/")[0]
        return {
            "id": self._id(kind, is_last=operation.method == "DELETE"),
            "conversationId": self.empty_conversation,
            "credentialId": self.stage.credential.id,
            "bridgeId": self._bridge(operation),
            "requestId": self.open_request,
            "messageId": self.image_message,
            "index": "0",
        }

    def _id(self, kind: str, *, is_last: bool) -> str:
        """Of something new where it will be gone afterwards."""
        match kind:
            case "conversations":
                return self.stage.new_conversation().id if is_last else self.used_conversation
            case "credentials":
                return self._new_credential() if is_last else self.stage.credential.id
            case _:
                return "anthropic"

    def _bridge(self, operation: BaseOperation) -> str:
        """A turn of its own where it will not be the same afterwards."""
        match operation:
            case turns.CANCEL_TURN:
                return self._another_turn()
            case turns.UNDO_TURN | turns.SHOW_JOURNAL:
                return self._edited_turn()
            case _:
                return self.waiting_turn

    def _edited_turn(self) -> str:
        """Its editor told of a way back."""
        turn = self.stage.start_waiting_turn(self.stage.new_conversation().id)
        back = {"tool": "restore", "input": {"patch": {}}}
        self.stage.answer_request({"ok": True, "revision": "r2", "inverse": back})
        self.stage.script_replies("Done.")
        self.stage.run_turn(turn)
        return turn.id

    def _another_turn(self) -> str:
        return self.stage.start_waiting_turn(self.stage.new_conversation().id).id

    def _new_credential(self) -> str:
        return credential_store.create_credential(
            self.resources, self.stage.caller, "anthropic", "apiKey", new_id(), "sk-ant-test"
        ).id


def make_service(resources: Resources, patch: pytest.MonkeyPatch) -> Service:
    stage = PlayingStage(resources, patch)
    stage.workflow = resources.__dict__["workflow"] = ImmediateWorkflow(stage)
    spoken = stage.conversation.id
    turn = stage.start_waiting_turn(spoken)
    return Service(
        resources=resources,
        stage=stage,
        bakery=make_tenant(resources),
        studio=make_tenant(resources, "studio", dialect="instatic"),
        empty_conversation=stage.new_conversation().id,
        used_conversation=spoken,
        image_message=f"{turn.id}-0",
        waiting_turn=turn.id,
        open_request=stage.tool_requests()[-1].request_id,
    )


class WsgiGateway:
    """A WSGI application over all doors at once: no two of them have a path in common."""

    resources: Resources

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = handle_request(self.resources, ROUTES, request_from_event(_event(environ)))
        status, headers, content = _sent(answer)
        start_response(f"{status} {HTTPStatus(status).phrase}", list(headers.items()))
        return [content]


GATEWAY = WsgiGateway()
"""Schemathesis wants it before there is a resources; the fixture `stand` brings one."""


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


def _sent(answer: Response) -> tuple[int, dict[str, str], bytes]:
    if answer.stream is None:
        event = to_proxy_response(answer)
        text = event["body"]
        return answer.status, event["headers"], base64.b64decode(text) if event["isBase64Encoded"] else text.encode()
    assert isinstance(answer.stream, AsyncIterable)
    try:
        content = asyncio.run(_whole(answer.stream))
    finally:
        if answer.on_close:
            answer.on_close()
    return answer.status, dict(answer.headers), content


async def _whole(stream: AsyncIterable[bytes]) -> bytes:
    return b"".join([chunk async for chunk in stream])
