"""Anthropic's Messages API: an `Ask` becomes one request, its stream becomes pieces."""

import json
from collections.abc import Iterator
from typing import Any

from fermata.drivers import failures
from fermata.drivers.anthropic.fold import Draft
from fermata.drivers.anthropic.request import BINDING_BETA, binds_thinking, body_of
from fermata.drivers.endpoint import Endpoint
from fermata.drivers.line import Answer, Line
from fermata.drivers.sse import Frames
from fermata.words.errors import ProviderError
from fermata.words.model import Ask, Piece

LABEL = "Anthropic"
VERSION = "2023-06-01"


class Anthropic:
    provider = "anthropic"

    def stream(self, ask: Ask, line: Line, endpoint: Endpoint) -> Iterator[Piece]:
        """Close the iterator when you stop before its end."""
        url = endpoint.base_url.rstrip("/").removesuffix("/v1") + "/v1/messages"
        body = json.dumps(body_of(ask), ensure_ascii=False, separators=(",", ":"))
        draft = Draft(ask.model)
        try:
            # `replace` turns half a surrogate pair, which no UTF-8 can hold, into a question mark.
            with line.post(LABEL, url, _headers(ask, endpoint.secret), body.encode("utf-8", "replace")) as answer:
                yield from pieces_of(answer, draft, endpoint.secret)
                line.drain(answer)
        except ProviderError as error:
            error.tokens = draft.tokens if draft.begun else None
            raise


def _headers(ask: Ask, secret: str) -> dict[str, str]:
    if not secret.isascii():
        raise failures.refused(LABEL, 401, {}, b"", secret)
    headers = {
        "x-api-key": secret,
        "anthropic-version": VERSION,
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",  # a compressed stream comes in lumps
    }
    return headers | {"anthropic-beta": BINDING_BETA} if binds_thinking(ask.model) else headers


def pieces_of(answer: Answer, draft: Draft, secret: str) -> Iterator[Piece]:
    """The pieces in a response's bytes, however these are cut. The last is a `Reply`, or it raises `ProviderError`."""
    if answer.status != 200:
        raise failures.refused(LABEL, answer.status, answer.headers, answer.read(), secret)
    frames = Frames()
    for chunk in answer.chunks:
        for data in frames.feed(chunk):
            event = _event(data)
            if event.get("type") == "error":
                raise failures.broke_off(LABEL, event.get("error") or {}, secret)
            piece = draft.take(event)
            if piece is not None:
                yield piece
            if draft.complete:
                yield draft.reply()
                return
    raise ProviderError("provider_error", f"{LABEL} stream error: it ended before the answer did", retryable=True)


def _event(data: str) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise ProviderError("provider_error", f"{LABEL} stream error: a frame was not readable", retryable=True)
    return event
