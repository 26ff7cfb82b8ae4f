"""Ollama's own chat protocol: the one that lets a request choose its context window."""

from typing import Any

from fermata.drivers.counting import expected_tokens
from fermata.drivers.ollama.fold import LABEL, PROVIDER, Draft
from fermata.drivers.ollama.request import body_of
from fermata.drivers.speaker import Adjusted, Speaker, adjustment
from fermata.drivers.sse import Lines
from fermata.words.model import Ask


def _body(ask: Ask, _: Adjusted) -> dict[str, Any]:
    return body_of(ask, PROVIDER)


OLLAMA = Speaker(
    provider=PROVIDER,
    label=LABEL,
    path="/api/chat",
    body_of=_body,
    draft_of=lambda ask, sent: Draft(ask.model, sent, expected_tokens(ask, sent)),
    stream_of=Lines,
    needs_key=False,
    adjustments=(adjustment("think", r"does not support thinking|think value"),),
)
