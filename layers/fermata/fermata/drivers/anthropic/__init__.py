"""Anthropic's Messages API: an `Ask` becomes one request, its stream becomes pieces."""

import json
from collections.abc import Iterator

from fermata.drivers import failures, hearing
from fermata.drivers.anthropic.fold import Draft
from fermata.drivers.anthropic.request import BINDING_BETA, binds_thinking, body_of
from fermata.drivers.endpoint import Endpoint
from fermata.drivers.line import Answer, Line
from fermata.words.errors import ProviderError
from fermata.words.model import Ask, Piece

LABEL = "Anthropic"
VERSION = "2023-06-01"


class Anthropic:
    provider = "anthropic"

    def stream(self, ask: Ask, line: Line, endpoint: Endpoint) -> Iterator[Piece]:
        """Close the iterator when you stop before its end."""
        url = endpoint.at("/v1/messages")
        body = json.dumps(body_of(ask), ensure_ascii=False, separators=(",", ":"))
        draft = Draft(ask.model)
        try:
            # `replace` turns half a surrogate pair, which no UTF-8 can hold, into a question mark.
            with line.post(LABEL, url, _headers(ask, endpoint.secret), body.encode("utf-8", "replace")) as answer:
                yield from pieces_of(answer, draft, endpoint.secret)
                line.drain(answer)
        except ProviderError as error:
            error.tokens = draft.tokens if draft.counted else None
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
    return hearing.pieces_of(LABEL, answer, draft, secret)
