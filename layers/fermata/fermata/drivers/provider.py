"""A provider: what is the same whatever its protocol.

Servers of one protocol differ in what they accept. A request that is refused for something we can do without, or have
to do otherwise, is made again with that adjustment, before anything was shown.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.errors import ProviderError
from fermata.domain.model_io import ModelRequest, StreamPart
from fermata.drivers import error_mapping
from fermata.drivers.protocols.response_stream import ResponseAccumulator, iter_pieces
from fermata.drivers.transport.connection import ProviderConnection
from fermata.drivers.transport.endpoint import Endpoint
from fermata.drivers.transport.stream_decoders import NdjsonDecoder, SseDecoder

ADJUSTABLE_STATUSES = (400, 404, 422)
OUTPUT_LIMIT_REFUSAL = r"max_(?:output_|completion_)?tokens|output tokens|in the (?:completion|output)"
"""How servers say that fewer tokens are left than an answer was allowed; without a limit, they give what there is."""
MAX_LEARNED_PLACES = 256
"""Accounts and models whose adjustments this process keeps in mind."""

AppliedAdjustments = frozenset[str]
_Place = tuple[str, str, int]


@dataclass(frozen=True)
class Adjustment:
    """`asked_by` finds it in a refusal. One that is named like a member of the body leaves that member out.

    `lasting`: it is about the server, its model and the account; otherwise it is about this conversation.
    """

    name: str
    refusal_pattern: re.Pattern[str]
    is_lasting: bool = True


def build_bearer_headers(_ask: ModelRequest, secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"} if secret else {}


def make_adjustment(name: str, refusal_pattern: str, *, is_lasting: bool = True) -> Adjustment:
    return Adjustment(name, re.compile(refusal_pattern, re.I | re.S), is_lasting)


@dataclass(frozen=True)
class Provider:
    """One provider. `body_of` and `draft_of` are its protocol; `headers_of` says who asks."""

    name: str
    label: str
    path: str
    build_body: Callable[[ModelRequest, AppliedAdjustments], dict[str, Any]]
    make_accumulator: Callable[[ModelRequest, bytes], ResponseAccumulator]
    build_headers: Callable[[ModelRequest, str], dict[str, str]] = build_bearer_headers
    make_decoder: Callable[[], SseDecoder | NdjsonDecoder] = SseDecoder
    adjustments: tuple[Adjustment, ...] = ()
    requires_key: bool = True
    _learned: dict[_Place, AppliedAdjustments] = field(default_factory=dict, repr=False, compare=False)

    def stream(self, ask: ModelRequest, line: ProviderConnection, endpoint: Endpoint) -> Iterator[StreamPart]:
        """Close the iterator when you stop before its end."""
        headers = self._headers(ask, endpoint.plain_key)
        # By key too: what one account may not do, another may. Of the key only a hash that this process salts.
        place = (endpoint.base_url, ask.model, hash(endpoint.plain_key))
        adjusted = self._learned.get(place, AppliedAdjustments())
        while True:
            try:
                yield from self._stream_once(ask, adjusted, line, endpoint, headers)
            except ProviderError as error:
                change = self._find_adjustment(error, adjusted)
                if change is None:
                    raise
                adjusted |= {change.name}
                self._learn(place, change)
            else:
                return

    def _stream_once(
        self,
        ask: ModelRequest,
        adjusted: AppliedAdjustments,
        line: ProviderConnection,
        endpoint: Endpoint,
        headers: dict[str, str],
    ) -> Iterator[StreamPart]:
        body = self.build_body(ask, adjusted)
        body = {name: value for name, value in body.items() if name not in adjusted}
        # `replace` turns half a surrogate pair, which no UTF-8 can hold, into a question mark.
        sent = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        draft = self.make_accumulator(ask, sent)
        try:
            with line.post(self.label, endpoint.url_for(self.path), headers, sent) as answer:
                yield from iter_pieces(self.label, answer, draft, endpoint.plain_key, self.make_decoder())
                line.drain_response(answer)
        except ProviderError as error:
            error.tokens = draft.tokens if draft.has_usage else None
            raise

    def _headers(self, ask: ModelRequest, secret: str) -> dict[str, str]:
        if not secret.isascii() or (self.requires_key and not secret):
            raise error_mapping.error_from_response(self.label, 401, {}, b"", secret)
        return self.build_headers(ask, secret) | {
            "content-type": "application/json",
            "accept": "text/event-stream" if self.make_decoder is SseDecoder else "application/x-ndjson",
            "accept-encoding": "identity",  # a compressed stream comes in lumps
        }

    def _find_adjustment(self, error: ProviderError, adjusted: AppliedAdjustments) -> Adjustment | None:
        if error.status not in ADJUSTABLE_STATUSES:
            return None
        fresh = (one for one in self.adjustments if one.name not in adjusted)
        return next((one for one in fresh if one.refusal_pattern.search(error.detail)), None)

    def _learn(self, place: _Place, change: Adjustment) -> None:
        if change.is_lasting:
            if len(self._learned) >= MAX_LEARNED_PLACES:
                self._learned.clear()
            self._learned[place] = self._learned.get(place, AppliedAdjustments()) | {change.name}
