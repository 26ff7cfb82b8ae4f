"""A provider: what is the same whatever its protocol.

Servers of one protocol differ in what they accept. A request that is refused for something we can do without, or have
to do otherwise, is made again with that adjustment, before anything was shown.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fermata.drivers import failures
from fermata.drivers.endpoint import Endpoint
from fermata.drivers.hearing import Draft, pieces_of
from fermata.drivers.line import Line
from fermata.drivers.sse import Frames, Lines
from fermata.words.errors import ProviderError
from fermata.words.model import Ask, Piece

ADJUSTABLE = (400, 404, 422)
LIMIT_REFUSED = r"max_(?:output_|completion_)?tokens|output tokens|in the (?:completion|output)"
"""How servers say that fewer tokens are left than an answer was allowed; without a limit, they give what there is."""
REMEMBERED = 256
"""Accounts and models whose adjustments this process keeps in mind."""

Adjusted = frozenset[str]
_Place = tuple[str, str, int]


@dataclass(frozen=True)
class Adjustment:
    """`asked_by` finds it in a refusal. One that is named like a member of the body leaves that member out.

    `lasting`: it is about the server, its model and the account; otherwise it is about this conversation.
    """

    name: str
    asked_by: re.Pattern[str]
    lasting: bool = True


def bearer(_ask: Ask, secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"} if secret else {}


def adjustment(name: str, asked_by: str, *, lasting: bool = True) -> Adjustment:
    return Adjustment(name, re.compile(asked_by, re.I | re.S), lasting)


@dataclass(frozen=True)
class Speaker:
    """One provider. `body_of` and `draft_of` are its protocol; `headers_of` says who asks."""

    provider: str
    label: str
    path: str
    body_of: Callable[[Ask, Adjusted], dict[str, Any]]
    draft_of: Callable[[Ask, bytes], Draft]
    headers_of: Callable[[Ask, str], dict[str, str]] = bearer
    stream_of: Callable[[], Frames | Lines] = Frames
    adjustments: tuple[Adjustment, ...] = ()
    needs_key: bool = True
    _learned: dict[_Place, Adjusted] = field(default_factory=dict, repr=False, compare=False)

    def stream(self, ask: Ask, line: Line, endpoint: Endpoint) -> Iterator[Piece]:
        """Close the iterator when you stop before its end."""
        headers = self._headers(ask, endpoint.secret)
        # By key too: what one account may not do, another may. Of the key only a hash that this process salts.
        place = (endpoint.base_url, ask.model, hash(endpoint.secret))
        adjusted = self._learned.get(place, Adjusted())
        while True:
            try:
                yield from self._say(ask, adjusted, line, endpoint, headers)
            except ProviderError as error:
                change = self._change(error, adjusted)
                if change is None:
                    raise
                adjusted |= {change.name}
                self._learn(place, change)
            else:
                return

    def _say(
        self, ask: Ask, adjusted: Adjusted, line: Line, endpoint: Endpoint, headers: dict[str, str]
    ) -> Iterator[Piece]:
        body = self.body_of(ask, adjusted)
        body = {name: value for name, value in body.items() if name not in adjusted}
        # `replace` turns half a surrogate pair, which no UTF-8 can hold, into a question mark.
        sent = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        draft = self.draft_of(ask, sent)
        try:
            with line.post(self.label, endpoint.at(self.path), headers, sent) as answer:
                yield from pieces_of(self.label, answer, draft, endpoint.secret, self.stream_of())
                line.drain(answer)
        except ProviderError as error:
            error.tokens = draft.tokens if draft.counted else None
            raise

    def _headers(self, ask: Ask, secret: str) -> dict[str, str]:
        if not secret.isascii() or (self.needs_key and not secret):
            raise failures.refused(self.label, 401, {}, b"", secret)
        return self.headers_of(ask, secret) | {
            "content-type": "application/json",
            "accept": "text/event-stream" if self.stream_of is Frames else "application/x-ndjson",
            "accept-encoding": "identity",  # a compressed stream comes in lumps
        }

    def _change(self, error: ProviderError, adjusted: Adjusted) -> Adjustment | None:
        if error.status not in ADJUSTABLE:
            return None
        fresh = (one for one in self.adjustments if one.name not in adjusted)
        return next((one for one in fresh if one.asked_by.search(error.detail)), None)

    def _learn(self, place: _Place, change: Adjustment) -> None:
        if change.lasting:
            if len(self._learned) >= REMEMBERED:
                self._learned.clear()
            self._learned[place] = self._learned.get(place, Adjusted()) | {change.name}
