"""Serve the protocols of all providers, and pages under /demo/ for tests and measurements."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from local.demo_model import model_list_routes
from local.demo_model.access_check import AccessCheck
from local.demo_model.embedding_route import answer_embeddings
from local.demo_model.merged_messages import merge_messages, sign_thinking
from local.demo_model.model_answer import ModelAnswer, make_id
from local.demo_model.prompt_cache import PromptCache
from local.demo_model.protocols.anthropic_messages import AnthropicMessages
from local.demo_model.protocols.chat_completions import ChatCompletions
from local.demo_model.protocols.gemini_generate import GeminiGenerate
from local.demo_model.protocols.ollama_chat import OllamaChat
from local.demo_model.protocols.openai_responses import OpenAIResponses
from local.demo_model.protocols.protocol import ProtocolAdapter, ResponseEncoder, openai_error_body
from local.demo_model.request_checks.errors import RequestRejected, require_bearer_token
from local.demo_model.request_records import RequestRecord, RequestRecords
from local.demo_model.response_stream import ResponsePace, stream_response
from local.demo_model.rules import next_answer
from local.demo_model.scripted_answers import Script, ScriptStep, ScriptStore
from local.listening_sockets import open_listener

MAX_BODY_BYTES = 32 * 1024 * 1024
PROTOCOLS_BY_PATH: dict[str, ProtocolAdapter] = {
    "/v1/messages": AnthropicMessages(),
    "/v1/responses": OpenAIResponses(is_openrouter=False),
    "/api/v1/responses": OpenAIResponses(is_openrouter=True),
    "/v1/chat/completions": ChatCompletions(),
    "/api/chat": OllamaChat(),
    "/v1beta/models/{model}:streamGenerateContent": GeminiGenerate(),
}
"""The protocol of each path. OpenRouter's paths begin with /api/v1, Ollama's with /api, and Google's name the model."""
EMBEDDING_PATHS = ("/v1/embeddings", "/api/v1/embeddings")
"""OpenAI's, and OpenRouter's."""
ERRORS_BY_STATUS = {
    400: ("invalid_request_error", "The request was not accepted."),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "model: not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    529: ("overloaded_error", "Overloaded"),
}
"""Type and message of the errors that a script orders by their HTTP status."""
OTHER_ERROR = ("api_error", "Internal server error")
UNSCRIPTED_STEP = ScriptStep()


class DemoModelServer:
    """The demo model: its scripts, what it has received, and the prefixes that its prompt cache holds."""

    def __init__(self, pace: ResponsePace) -> None:
        self.pace = pace
        self.scripts = ScriptStore()
        self.records = RequestRecords()
        self.cache = PromptCache()

    def make_app(self) -> Starlette:
        protocol_routes = [
            Route(path, self._make_endpoint(protocol), methods=["POST"]) for path, protocol in PROTOCOLS_BY_PATH.items()
        ]
        return Starlette(
            routes=[
                *protocol_routes,
                *(Route(path, self.post_embeddings, methods=["POST"]) for path in EMBEDDING_PATHS),
                Route("/v1/models", model_list_routes.list_models),
                Route("/v1beta/models", model_list_routes.list_gemini_models),
                Route("/api/v1/models", model_list_routes.list_openrouter_models),
                Route("/api/v1/key", model_list_routes.show_openrouter_key),
                Route("/api/tags", model_list_routes.list_ollama_models),
                Route("/api/show", model_list_routes.show_ollama_model, methods=["POST"]),
                Route("/healthz", self.get_health),
                Route("/demo/script", self.post_script, methods=["POST"]),
                Route("/demo/script", self.delete_script, methods=["DELETE"]),
                Route("/demo/requests", self.get_requests),
                Route("/demo/requests", self.delete_requests, methods=["DELETE"]),
            ],
            middleware=[Middleware(AccessCheck)],
        )

    def _make_endpoint(self, protocol: ProtocolAdapter) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            record = RequestRecord(key=_read_api_key(request.headers), script=None)
            raw_body = await request.body()
            self.records.add_record(record)
            record.beta = request.headers.get("anthropic-beta")
            record.request_name = request.headers.get("x-fermata-request")
            try:
                body = _parse_body(raw_body)
                record.raw_body = raw_body
                if isinstance(body, dict) and request.path_params:
                    body |= request.path_params
                protocol.check_request(request.headers, body)
                return await self._answer(protocol, body, record)
            except RequestRejected as rejection:
                record.status = rejection.status
                return _error_response(rejection.status, protocol.error_body(rejection))

        return endpoint

    async def _answer(self, protocol: ProtocolAdapter, body: dict[str, Any], record: RequestRecord) -> Response:
        messages_request = protocol.to_messages_request(body)
        step = self._take_step(messages_request, record)
        record.status = step.status or 200
        pace = self.pace.with_step(step)
        if step.status:
            await asyncio.sleep(pace.first_ms / 1000)
            return _scripted_error(protocol, step, step.status)
        is_scripted = step is not UNSCRIPTED_STEP
        answer = step.to_answer() if is_scripted else next_answer.decide_answer(messages_request)
        answer = _sign_thinking(messages_request, answer)
        usage = self.cache.count_input_tokens(record.key, messages_request) | {"output_tokens": answer.output_tokens}
        usage = protocol.adjust_usage(body, usage) if step.usage is None else {"output_tokens": 0} | step.usage
        encoder = protocol.make_encoder(body, answer, usage)
        if protocol.wants_stream(body):
            stream = stream_response(encoder, answer, pace, step, record)
            return StreamingResponse(stream, media_type=protocol.media_type, headers=_response_headers())
        return await _whole_response(encoder, pace, record)

    def _take_step(self, messages_request: dict[str, Any], record: RequestRecord) -> ScriptStep:
        """Take the next step of the script that matches the request, or `UNSCRIPTED_STEP`."""
        prompt = next_answer.read_turn_so_far(messages_request).prompt
        script = self.scripts.find_script(record.key, prompt)
        if script is None:
            return UNSCRIPTED_STEP
        record.script = script.key
        return self.scripts.take_step(script, next_answer.count_rounds(messages_request)) or UNSCRIPTED_STEP

    async def post_embeddings(self, request: Request) -> Response:
        record = RequestRecord(key=_read_api_key(request.headers), script=None, status=200)
        raw_body = await request.body()
        self.records.add_record(record)
        try:
            require_bearer_token(request.headers)
            body = _parse_body(raw_body)
            record.raw_body = raw_body
            return JSONResponse(await answer_embeddings(body), headers=_response_headers())
        except RequestRejected as rejection:
            record.status = rejection.status
            return _error_response(rejection.status, openai_error_body(rejection))

    async def get_health(self, request: Request) -> Response:
        return JSONResponse({"ok": True, "model": model_list_routes.LABEL})

    async def post_script(self, request: Request) -> Response:
        try:
            script = Script.model_validate_json(await request.body())
        except ValidationError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        self.scripts.add_script(script)
        return JSONResponse({"ok": True, "key": script.key, "steps": len(script.steps)})

    async def delete_script(self, request: Request) -> Response:
        self.scripts.delete_script(request.query_params.get("key", ""))
        return JSONResponse({"ok": True})

    async def get_requests(self, request: Request) -> Response:
        with_bodies = request.query_params.get("bodies", "1") != "0"
        records = self.records.find_records(request.query_params.get("key"))
        return JSONResponse({"requests": [record.to_json(bodies=with_bodies) for record in records]})

    async def delete_requests(self, request: Request) -> Response:
        self.records.delete_records(request.query_params.get("key"))
        return JSONResponse({"ok": True})


def make_server(pace: ResponsePace) -> uvicorn.Server:
    app = DemoModelServer(pace).make_app()
    return uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none", timeout_keep_alive=60))


@contextlib.contextmanager
def run_demo_model(pace: ResponsePace | None = None) -> Iterator[str]:
    """Serve in a thread of this process, for tests, and yield the URL."""
    listener = open_listener(0)
    server = make_server(pace or ResponsePace())
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


async def _whole_response(encoder: ResponseEncoder, pace: ResponsePace, record: RequestRecord) -> Response:
    await asyncio.sleep(pace.first_ms / 1000)
    record.first_byte_ns = record.last_byte_ns = time.monotonic_ns()
    return JSONResponse(encoder.to_body(), headers=_response_headers())


def _scripted_error(protocol: ProtocolAdapter, step: ScriptStep, status: int) -> Response:
    error_type, message = ERRORS_BY_STATUS.get(status, OTHER_ERROR)
    if step.error:
        error_type, message = step.error.type, step.error.message
    headers = {} if step.retry_after is None else {"retry-after": str(step.retry_after)}
    return _error_response(status, protocol.error_body(RequestRejected(message, kind=error_type)), headers)


def _read_api_key(headers: Mapping[str, str]) -> str:
    """Get the API key from Anthropic's or Google's header or from a bearer token."""
    key = headers.get("x-api-key") or headers.get("x-goog-api-key")
    return key or headers.get("authorization", "").removeprefix("Bearer ")


def _parse_body(raw_body: bytes) -> Any:
    if len(raw_body) > MAX_BODY_BYTES:
        raise RequestRejected("Request exceeds the maximum size", kind="request_too_large", status=413)
    try:
        return json.loads(raw_body)
    except ValueError:
        raise RequestRejected("The request body is not valid JSON.") from None


def _sign_thinking(messages_request: dict[str, Any], answer: ModelAnswer) -> ModelAnswer:
    """Sign a scripted answer's thinking. Its text is left out where the request asks for that."""
    if not answer.thinking:
        return answer
    is_omitted = (messages_request.get("thinking") or {}).get("display") == "omitted"
    text = "" if is_omitted else answer.thinking
    signature = sign_thinking(messages_request, merge_messages(messages_request["messages"]), text)
    return replace(answer, thinking=text, signature=signature)


def _response_headers() -> dict[str, str]:
    return {"request-id": make_id("req"), "cache-control": "no-cache"}


def _error_response(status: int, body: dict[str, Any], more_headers: Mapping[str, str] | None = None) -> Response:
    headers = _response_headers() | dict(more_headers or {})
    return JSONResponse(body | {"request_id": headers["request-id"]}, status_code=status, headers=headers)
