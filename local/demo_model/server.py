"""The HTTP side: the protocols of all providers, and under /demo/ what tests and measurements need."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from local.demo_model import model_list_routes
from local.demo_model.merged_messages import merge_messages, sign_thinking
from local.demo_model.model_answer import ModelAnswer, insert_pause, iter_content_events, make_id
from local.demo_model.prompt_cache import PromptCache
from local.demo_model.protocols.anthropic_messages import AnthropicMessages
from local.demo_model.protocols.chat_completions import ChatCompletions
from local.demo_model.protocols.ollama_chat import OllamaChat
from local.demo_model.protocols.openai_responses import OpenAIResponses
from local.demo_model.protocols.protocol import ProtocolAdapter, ResponseEncoder
from local.demo_model.request_checks.anthropic_messages import RequestRejected
from local.demo_model.request_records import RequestRecord, RequestRecords
from local.demo_model.rules import next_answer
from local.demo_model.scripted_answers import Script, ScriptStep, ScriptStore
from local.sockets import open_listener

MAX_BODY_BYTES = 32 * 1024 * 1024
FILE_POLL_SECONDS = 0.01
PROTOCOLS_BY_PATH: dict[str, ProtocolAdapter] = {
    "/v1/messages": AnthropicMessages(),
    "/v1/responses": OpenAIResponses(is_openrouter=False),
    "/api/v1/responses": OpenAIResponses(is_openrouter=True),
    "/v1/chat/completions": ChatCompletions(),
    "/api/chat": OllamaChat(),
}
"""Which protocol is spoken where; OpenRouter's addresses begin with /api."""


@dataclass(frozen=True)
class ResponsePace:
    """How fast answers come when no script says otherwise. `chunks` 0 means word by word."""

    first_ms: float = 0
    chunk_ms: float = 0
    chunks: int = 0


class _Cut(Exception):
    """Raised out of a response to make the server drop the connection, as a script told it to."""


class DemoModelServer:
    def __init__(self, pace: ResponsePace) -> None:
        self.pace = pace
        self.scripts = ScriptStore()
        self.records = RequestRecords()
        self.cache = PromptCache()

    def make_app(self) -> Starlette:
        return Starlette(
            routes=[
                *(Route(path, self._asked_in(voice), methods=["POST"]) for path, voice in PROTOCOLS_BY_PATH.items()),
                Route("/v1/models", model_list_routes.list_models),
                Route("/api/v1/models", model_list_routes.list_openrouter_models),
                Route("/api/v1/key", model_list_routes.show_openrouter_key),
                Route("/api/tags", model_list_routes.list_ollama_models),
                Route("/api/show", model_list_routes.show_ollama_model, methods=["POST"]),
                Route("/healthz", self.get_health),
                Route("/demo/script", self.post_script, methods=["POST"]),
                Route("/demo/script", self.delete_script, methods=["DELETE"]),
                Route("/demo/requests", self.get_requests),
                Route("/demo/requests", self.delete_requests, methods=["DELETE"]),
            ]
        )

    def _asked_in(self, voice: ProtocolAdapter) -> Callable[[Request], Awaitable[Response]]:
        async def asked(request: Request) -> Response:
            record = RequestRecord(key=_key(request.headers), script=None, body=None)
            raw = await request.body()
            self.records.add_record(record)
            record.beta = request.headers.get("anthropic-beta")
            try:
                record.body = body = _parsed(raw)
                voice.check_request(request.headers, body)
                return await self._answer(voice, body, record)
            except RequestRejected as refusal:
                record.status = refusal.status
                return _error(refusal.status, voice.error_body(refusal))

        return asked

    async def _answer(self, voice: ProtocolAdapter, body: dict[str, Any], record: RequestRecord) -> Response:
        said = voice.to_messages_request(body)
        prompt, round_ = next_answer.read_turn_so_far(said).prompt, next_answer.count_rounds(said)
        script = self.scripts.find_script(record.key, prompt)
        record.script = script.key if script else None
        step = self.scripts.take_step(script, round_) if script else None
        record.status = (step and step.status) or 200
        if step and step.status:
            return await self._refuse(voice, step, self._pace(step))
        answer = _with_thinking(said, step.to_answer() if step else next_answer.decide_answer(said))
        usage = self.cache.count_input_tokens(record.key, said) | {"output_tokens": answer.output_tokens}
        usage = (
            voice.adjust_usage(body, usage) if step is None or step.usage is None else {"output_tokens": 0} | step.usage
        )
        return await self._say(
            voice.make_encoder(body, answer, usage), voice, body, answer, record, step or ScriptStep()
        )

    async def _say(
        self,
        speech: ResponseEncoder,
        voice: ProtocolAdapter,
        body: dict[str, Any],
        answer: ModelAnswer,
        record: RequestRecord,
        step: ScriptStep,
    ) -> Response:
        if voice.wants_stream(body):
            stream = self._stream(speech, answer, record, step)
            return StreamingResponse(stream, media_type=voice.media_type, headers=_headers())
        await asyncio.sleep(self._pace(step).first_ms / 1000)
        record.first_byte_ns = record.last_byte_ns = time.monotonic_ns()
        return JSONResponse(speech.to_body(), headers=_headers())

    async def _refuse(self, voice: ProtocolAdapter, step: ScriptStep, pace: ResponsePace) -> Response:
        await asyncio.sleep(pace.first_ms / 1000)
        kind, words = _KINDS.get(step.status or 0, ("api_error", "Internal server error"))
        kind, words = (step.error.type, step.error.message) if step.error else (kind, words)
        wait = {} if step.retry_after is None else {"retry-after": str(step.retry_after)}
        return _error(step.status or 500, voice.error_body(RequestRejected(words, kind=kind)), wait)

    async def _stream(
        self, speech: ResponseEncoder, answer: ModelAnswer, record: RequestRecord, step: ScriptStep
    ) -> AsyncIterator[bytes]:
        """The frames of an answer with its delays and faults, noting when what went out."""
        pace = self._pace(step)
        try:
            await asyncio.sleep(pace.first_ms / 1000)
            record.first_byte_ns = time.monotonic_ns()
            async for data in self._frames(speech, answer, pace, step):
                record.last_byte_ns = time.monotonic_ns()
                for piece in _bytes(data) if step.single_bytes else [data]:
                    yield piece
        except (asyncio.CancelledError, GeneratorExit):
            record.closed_by_peer_ns = time.monotonic_ns()
            raise

    async def _frames(
        self, speech: ResponseEncoder, answer: ModelAnswer, pace: ResponsePace, step: ScriptStep
    ) -> AsyncIterator[bytes]:
        for data in speech.encode_opening():
            yield data
        said = False
        for event in insert_pause(iter_content_events(answer, pace.chunks), step.after):
            if event is None:
                await asyncio.sleep(step.stall)
                await _wait_for_file(step.hold_until_file)
                if step.cut:
                    raise _Cut
                if step.error:
                    yield speech.encode_error(step.error.type, step.error.message)
                    return
                continue
            is_text = event.get("delta", {}).get("type") == "text_delta"
            if is_text and said:
                await asyncio.sleep(pace.chunk_ms / 1000)
            said = said or is_text
            for data in speech.encode_event(event):
                yield data
        for data in speech.encode_closing():
            yield data

    def _pace(self, step: ScriptStep) -> ResponsePace:
        return ResponsePace(
            first_ms=self.pace.first_ms if step.first_ms is None else step.first_ms,
            chunk_ms=self.pace.chunk_ms if step.chunk_ms is None else step.chunk_ms,
            chunks=self.pace.chunks if step.chunks is None else step.chunks,
        )

    async def get_health(self, request: Request) -> Response:
        return JSONResponse({"ok": True, "model": model_list_routes.LABEL})

    async def post_script(self, request: Request) -> Response:
        try:
            script = Script.model_validate_json(await request.body())
        except ValidationError as problem:
            return JSONResponse({"error": str(problem)}, status_code=400)
        self.scripts.add_script(script)
        return JSONResponse({"ok": True, "key": script.key, "steps": len(script.steps)})

    async def delete_script(self, request: Request) -> Response:
        self.scripts.delete_script(request.query_params.get("key", ""))
        return JSONResponse({"ok": True})

    async def get_requests(self, request: Request) -> Response:
        bodies = request.query_params.get("bodies", "1") != "0"
        records = self.records.find_records(request.query_params.get("key"))
        return JSONResponse({"requests": [record.to_json(bodies=bodies) for record in records]})

    async def delete_requests(self, request: Request) -> Response:
        self.records.delete_records(request.query_params.get("key"))
        return JSONResponse({"ok": True})


_KINDS = {
    400: ("invalid_request_error", "The request was not accepted."),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "model: not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    529: ("overloaded_error", "Overloaded"),
}


async def _wait_for_file(path: str | None) -> None:
    while path is not None and not Path(path).exists():
        await asyncio.sleep(FILE_POLL_SECONDS)


def _key(headers: Mapping[str, str]) -> str:
    """Whichever kind of key was sent."""
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


def _parsed(raw: bytes) -> Any:
    if len(raw) > MAX_BODY_BYTES:
        raise RequestRejected("Request exceeds the maximum size", kind="request_too_large", status=413)
    try:
        return json.loads(raw)
    except ValueError:
        raise RequestRejected("The request body is not valid JSON.") from None


def _with_thinking(body: dict[str, Any], answer: ModelAnswer) -> ModelAnswer:
    """A script's thinking, signed; and its text only where the request wants to see it."""
    if not answer.thinking:
        return answer
    shown = (body.get("thinking") or {}).get("display") != "omitted"
    text = answer.thinking if shown else ""
    return replace(answer, thinking=text, signature=sign_thinking(body, merge_messages(body["messages"]), text))


def _bytes(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 1] for at in range(len(data)))


def _headers() -> dict[str, str]:
    return {"request-id": make_id("req"), "cache-control": "no-cache"}


def _error(status: int, body: dict[str, Any], more: Mapping[str, str] | None = None) -> Response:
    headers = _headers() | dict(more or {})
    return JSONResponse(body | {"request_id": headers["request-id"]}, status_code=status, headers=headers)


def make_server(pace: ResponsePace) -> uvicorn.Server:
    config = uvicorn.Config(
        DemoModelServer(pace).make_app(), log_level="critical", lifespan="off", timeout_keep_alive=60
    )
    return uvicorn.Server(config)


@contextlib.contextmanager
def run_demo_model(pace: ResponsePace | None = None) -> Iterator[str]:
    """The server in a thread of this process, for tests; its address."""
    listener = open_listener(0)
    server = make_server(pace or ResponsePace())
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
