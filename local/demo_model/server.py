"""The HTTP side: the protocols of all providers, and under /demo/ what tests and measurements need."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from local.demo_model import listing, rules
from local.demo_model.answer import Answer, events, new_id, with_pause
from local.demo_model.caching import PromptCache
from local.demo_model.chat import Chat
from local.demo_model.messages import Messages
from local.demo_model.ollama import Ollama
from local.demo_model.records import Record, Records
from local.demo_model.responses import Responses
from local.demo_model.scripts import Script, Scripts, Step
from local.demo_model.strict import Refused
from local.demo_model.voice import Speech, Voice
from local.demo_model.wire import merged, sign

LARGEST_BODY = 32 * 1024 * 1024
VOICES: dict[str, Voice] = {
    "/v1/messages": Messages(),
    "/v1/responses": Responses(named=False),
    "/api/v1/responses": Responses(named=True),
    "/v1/chat/completions": Chat(),
    "/api/chat": Ollama(),
}
"""Which protocol is spoken where; OpenRouter's addresses begin with /api."""


@dataclass(frozen=True)
class Pace:
    """How fast answers come when no script says otherwise. `chunks` 0 means word by word."""

    first_ms: float = 0
    chunk_ms: float = 0
    chunks: int = 0


class _Cut(Exception):
    """Raised out of a response to make the server drop the connection, as a script told it to."""


class DemoModel:
    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.scripts = Scripts()
        self.records = Records()
        self.cache = PromptCache()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                *(Route(path, self._asked_in(voice), methods=["POST"]) for path, voice in VOICES.items()),
                Route("/v1/models", listing.models),
                Route("/api/v1/models", listing.catalogue),
                Route("/api/v1/key", listing.openrouter_key),
                Route("/api/tags", listing.tags),
                Route("/api/show", listing.show, methods=["POST"]),
                Route("/healthz", self.health),
                Route("/demo/script", self.tell, methods=["POST"]),
                Route("/demo/script", self.untell, methods=["DELETE"]),
                Route("/demo/requests", self.seen),
                Route("/demo/requests", self.forget, methods=["DELETE"]),
            ]
        )

    def _asked_in(self, voice: Voice) -> Callable[[Request], Awaitable[Response]]:
        async def asked(request: Request) -> Response:
            record = Record(key=_key(request.headers), script=None, body=None)
            raw = await request.body()
            self.records.add(record)
            record.beta = request.headers.get("anthropic-beta")
            try:
                record.body = body = _parsed(raw)
                voice.check(request.headers, body)
                return await self._answer(voice, body, record)
            except Refused as refusal:
                record.status = refusal.status
                return _error(refusal.status, voice.refusal(refusal))

        return asked

    async def _answer(self, voice: Voice, body: dict[str, Any], record: Record) -> Response:
        said = voice.read(body)
        prompt, round_ = rules.situation(said).prompt, rules.round_of(said)
        script = self.scripts.find(record.key, prompt)
        record.script = script.key if script else None
        step = self.scripts.take(script, round_) if script else None
        record.status = (step and step.status) or 200
        if step and step.status:
            return await self._refuse(voice, step, self._pace(step))
        answer = _with_thinking(said, step.answer() if step else rules.answer_to(said))
        usage = self.cache.usage(record.key, said) | {"output_tokens": answer.tokens}
        usage = voice.count(body, usage) if step is None or step.usage is None else {"output_tokens": 0} | step.usage
        return await self._say(voice.speech(body, answer, usage), voice, body, answer, record, step or Step())

    async def _say(
        self, speech: Speech, voice: Voice, body: dict[str, Any], answer: Answer, record: Record, step: Step
    ) -> Response:
        if voice.streams(body):
            stream = self._stream(speech, answer, record, step)
            return StreamingResponse(stream, media_type=voice.media_type, headers=_headers())
        await asyncio.sleep(self._pace(step).first_ms / 1000)
        record.first_byte_ns = record.last_byte_ns = time.monotonic_ns()
        return JSONResponse(speech.whole(), headers=_headers())

    async def _refuse(self, voice: Voice, step: Step, pace: Pace) -> Response:
        await asyncio.sleep(pace.first_ms / 1000)
        kind, words = _KINDS.get(step.status or 0, ("api_error", "Internal server error"))
        kind, words = (step.error.type, step.error.message) if step.error else (kind, words)
        wait = {} if step.retry_after is None else {"retry-after": str(step.retry_after)}
        return _error(step.status or 500, voice.refusal(Refused(words, kind=kind)), wait)

    async def _stream(self, speech: Speech, answer: Answer, record: Record, step: Step) -> AsyncIterator[bytes]:
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

    async def _frames(self, speech: Speech, answer: Answer, pace: Pace, step: Step) -> AsyncIterator[bytes]:
        for data in speech.opening():
            yield data
        said = False
        for event in with_pause(events(answer, pace.chunks), step.after):
            if event is None:
                await asyncio.sleep(step.stall)
                if step.cut:
                    raise _Cut
                if step.error:
                    yield speech.error(step.error.type, step.error.message)
                    return
                continue
            is_text = event.get("delta", {}).get("type") == "text_delta"
            if is_text and said:
                await asyncio.sleep(pace.chunk_ms / 1000)
            said = said or is_text
            for data in speech.frames(event):
                yield data
        for data in speech.closing():
            yield data

    def _pace(self, step: Step) -> Pace:
        return Pace(
            first_ms=self.pace.first_ms if step.first_ms is None else step.first_ms,
            chunk_ms=self.pace.chunk_ms if step.chunk_ms is None else step.chunk_ms,
            chunks=self.pace.chunks if step.chunks is None else step.chunks,
        )

    async def health(self, request: Request) -> Response:
        return JSONResponse({"ok": True, "model": listing.LABEL})

    async def tell(self, request: Request) -> Response:
        try:
            script = Script.model_validate_json(await request.body())
        except ValidationError as problem:
            return JSONResponse({"error": str(problem)}, status_code=400)
        self.scripts.tell(script)
        return JSONResponse({"ok": True, "key": script.key, "steps": len(script.steps)})

    async def untell(self, request: Request) -> Response:
        self.scripts.forget(request.query_params.get("key", ""))
        return JSONResponse({"ok": True})

    async def seen(self, request: Request) -> Response:
        bodies = request.query_params.get("bodies", "1") != "0"
        records = self.records.of(request.query_params.get("key"))
        return JSONResponse({"requests": [record.wire(bodies=bodies) for record in records]})

    async def forget(self, request: Request) -> Response:
        self.records.forget(request.query_params.get("key"))
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


def _key(headers: Mapping[str, str]) -> str:
    """Whichever kind of key was sent."""
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


def _parsed(raw: bytes) -> Any:
    if len(raw) > LARGEST_BODY:
        raise Refused("Request exceeds the maximum size", kind="request_too_large", status=413)
    try:
        return json.loads(raw)
    except ValueError:
        raise Refused("The request body is not valid JSON.") from None


def _with_thinking(body: dict[str, Any], answer: Answer) -> Answer:
    """A script's thinking, signed; and its text only where the request wants to see it."""
    if not answer.thinking:
        return answer
    shown = (body.get("thinking") or {}).get("display") != "omitted"
    text = answer.thinking if shown else ""
    return replace(answer, thinking=text, signature=sign(body, merged(body["messages"]), text))


def _bytes(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 1] for at in range(len(data)))


def _headers() -> dict[str, str]:
    return {"request-id": new_id("req"), "cache-control": "no-cache"}


def _error(status: int, body: dict[str, Any], more: Mapping[str, str] | None = None) -> Response:
    headers = _headers() | dict(more or {})
    return JSONResponse(body | {"request_id": headers["request-id"]}, status_code=status, headers=headers)


def server_for(pace: Pace) -> uvicorn.Server:
    config = uvicorn.Config(DemoModel(pace).app(), log_level="critical", lifespan="off", timeout_keep_alive=60)
    return uvicorn.Server(config)


def listen(port: int) -> socket.socket:
    """A listening socket on this machine only; it takes connections before the server runs."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio sends 40 ms late
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(512)
    return listener


@contextlib.contextmanager
def running(pace: Pace | None = None) -> Iterator[str]:
    """The server in a thread of this process, for tests; its address."""
    listener = listen(0)
    server = server_for(pace or Pace())
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
