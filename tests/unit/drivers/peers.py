"""The providers that are asked with a bearer key, each with its strict server."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr

from fermata.drivers.driver import Driver, Endpoint, driver_for
from fermata.drivers.line import Line
from fermata.words.model import Ask, Piece, Reply
from tests.strict import chat, ollama, openai
from tests.strict.serving import StrictServer
from tests.unit.drivers.asks import ask
from tests.unit.drivers.histories import MODELS

KEY = "sk-test-0123456789"


@dataclass(frozen=True)
class Peer:
    """A provider's strict server, and how it says the simplest things."""

    provider: str
    kind: type[StrictServer]
    path: str
    answer: Callable[..., bytes]
    begun: bytes
    """The beginning of an answer: `Partial`."""
    calls: bytes
    """An answer that calls `read_document`."""

    @property
    def model(self) -> str:
        return MODELS[self.provider]

    @property
    def driver(self) -> Driver:
        return driver_for(self.provider)


RESPONSES_BEGUN = openai.sse(openai.created(), openai.message(0, "Partial")[:-1])
RESPONSES_CALLS = openai.sse(
    openai.created(), openai.reasoning(0, "Hm."), openai.call(1, "call_1", "read_document", "{}"), openai.ended()
)
PEERS = (
    Peer("openai", openai.StrictOpenAI, "/v1/responses", openai.answer, RESPONSES_BEGUN, RESPONSES_CALLS),
    Peer("openrouter", openai.StrictOpenRouter, "/v1/responses", openai.answer, RESPONSES_BEGUN, RESPONSES_CALLS),
    Peer(
        "ollama",
        ollama.StrictOllama,
        "/api/chat",
        ollama.answer,
        ollama.ndjson(ollama.line("Partial")),
        ollama.ndjson(ollama.line(thinking="Hm."), ollama.call("read_document"), ollama.done()),
    ),
    Peer(
        "openai-compatible",
        chat.StrictChat,
        "/v1/chat/completions",
        chat.answer,
        chat.sse(chat.says("Partial"), done=False),
        chat.sse(
            chat.chunk({"reasoning_content": "Hm."}),
            chat.calls(0, "call_1", "read_document", "{}"),
            chat.chunk({}, "tool_calls"),
        ),
    ),
)
EACH = pytest.mark.parametrize("peer", PEERS, ids=[peer.provider for peer in PEERS])
BY_NAME = {peer.provider: peer for peer in PEERS}


Running = Callable[[Peer], StrictServer]
"""The one server of a kind that a module's tests share, forgetful between them."""


def heard(peer: Peer, asked: Ask, line: Line, server: StrictServer, path: str = "", key: str = KEY) -> list[Piece]:
    return list(peer.driver.stream(asked, line, Endpoint(server.url + path, SecretStr(key))))


def reply(peer: Peer, asked: Ask, line: Line, server: StrictServer) -> Reply:
    last = heard(peer, asked, line, server)[-1]
    assert isinstance(last, Reply)
    return last


def said(peer: Peer, *rows: Any, **members: Any) -> Ask:
    return ask(*rows, **{"model": peer.model} | members)
