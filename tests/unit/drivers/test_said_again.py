"""Whatever a server has said, it accepts when it is said again: no reply may make a conversation unsendable."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fermata.conversations.history import compile_history
from fermata.conversations.recipient import Recipient
from fermata.drivers.anthropic.request import without_thoughts
from fermata.drivers.driver import driver_for
from fermata.drivers.speaker import Speaker
from fermata.words.blocks import ReasoningBlock, TextBlock
from fermata.words.errors import ProviderError
from fermata.words.messages import Message
from fermata.words.model import Ask, Reply, Stop, Tokens
from local.demo_model import strict, strict_chat, strict_ollama, strict_responses
from local.demo_model.strict import Refused
from tests.unit.drivers.asks import ask, call, replied, result, user
from tests.unit.drivers.recordings import RECORDINGS, Recording
from tests.unit.drivers.test_any_event import LEFT_OUT, OTHERS, changed, heard, members

MODEL = "model"
CHECKS: dict[str, Callable[[dict[str, str], Any], None]] = {
    "anthropic": strict.check,
    "openai": strict_responses.check,
    "openrouter": partial(strict_responses.check, named=True),
    "ollama": strict_ollama.check,
    "openai-compatible": strict_chat.check,
}
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "authorization": "Bearer k"}


def replies(recording: Recording) -> Iterator[tuple[Any, Reply]]:
    """What comes of the answer with each member being anything, where that is no error; each reply once."""
    seen: set[str] = set()
    for number, event in enumerate(recording.events):
        for path in members(event):
            for other in OTHERS[1:] if not path else OTHERS:
                hurt = changed(event, path, other)
                events = [*recording.events[:number], hurt, *recording.events[number + 1 :]]
                try:
                    last = heard(recording, events)[-1]
                except ProviderError:
                    continue
                assert isinstance(last, Reply)
                if repr(last.blocks) in seen:
                    continue
                seen.add(repr(last.blocks))
                yield (event, path, "nothing" if other is LEFT_OUT else other), last


def following(provider: str, reply: Reply) -> Ask:
    """The request after it, with a result for each of its calls."""
    rows: list[Message] = [user("Hi"), replied(reply)]
    rows += [result(block.tool_call_id, {"n": 1}) for block in reply.blocks if block.kind == "toolCall"]
    placed = [
        row.model_copy(update={"position": position, "round": min(position, 1)}) for position, row in enumerate(rows)
    ]
    return ask(*compile_history(placed, Recipient(provider, MODEL, 100_000)), model=MODEL)


def refusal(provider: str, asked: Ask) -> str | None:
    """What the provider's strict server says to it; which signature is whose is not looked at here."""
    driver = driver_for(provider)
    assert isinstance(driver, Speaker)
    body = json.loads(json.dumps(driver.body_of(asked, frozenset()), allow_nan=False).encode())
    try:
        CHECKS[provider](HEADERS, body)
    except Refused as refused:
        return refused.message
    return None


@pytest.mark.parametrize("provider", RECORDINGS)
def test_any_reply_may_be_said_again(provider: str) -> None:
    for what, reply in replies(RECORDINGS[provider]):
        asked = following(provider, reply)
        refused = refusal(provider, asked)
        if refused and "Input tag" in refused:  # a kind of block that nobody has: it is said again without it
            refused = refusal(provider, without_thoughts(asked))
        assert refused is None, (what, refused)


NAMES = ("type", "thinking", "signature", "data", "id", "summary", "encrypted_content", "content", "phase", "reasoning")
KINDS = ("thinking", "redacted_thinking", "reasoning", "message")
VALUES = st.sampled_from([*KINDS, "", "x", None, True, 7, [], ["x"], {}, {"google": {"thought_signature": "c2"}}])
PAYLOADS = st.dictionaries(st.sampled_from((*NAMES, "reasoning_content", "reasoning_details", "extra_content")), VALUES)


@pytest.mark.parametrize("provider", RECORDINGS)
@settings(max_examples=80)
@given(payloads=st.lists(PAYLOADS, max_size=3), calls=st.booleans())
@example(payloads=[{"type": "thinking", "thinking": "a", "signature": "b", "data": "c"}], calls=False)
def test_whatever_is_stored_as_thoughts_no_request_is_refused_for_it(
    provider: str, payloads: list[dict[str, Any]], calls: bool
) -> None:
    thoughts = [ReasoningBlock(provider=provider, model=MODEL, payload=payload) for payload in payloads]
    blocks = (*thoughts, TextBlock(text="Hm."), *([call("call_1")] if calls else []))
    asked = following(provider, Reply(blocks=blocks, stop=Stop.END, tokens=Tokens()))
    refused = refusal(provider, asked)
    if refused and "Input tag" in refused:
        refused = refusal(provider, without_thoughts(asked))
    assert refused is None
