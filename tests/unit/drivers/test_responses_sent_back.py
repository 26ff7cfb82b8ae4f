"""Every response is accepted when it is sent back: none may make a conversation unsendable."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fermata.conversations.history.compiler import compile_history
from fermata.conversations.history.model_profile import ModelProfile
from fermata.domain.blocks import ReasoningBlock, TextBlock
from fermata.domain.errors import ProviderError
from fermata.domain.messages import Message
from fermata.domain.model_io import FinishReason, ModelRequest, ModelResponse, TokenUsage
from fermata.drivers.adjustments import OMIT_THINKING_BLOCKS
from fermata.drivers.provider import Provider
from fermata.drivers.registry import get_provider
from local.demo_model.request_checks.errors import RequestRejected
from tests.unit.drivers.conversation_builders import (
    message_from_response,
    model_request,
    tool_call,
    tool_result,
    user_message,
)
from tests.unit.drivers.odd_streams import ODD_STREAMS, Odd
from tests.unit.drivers.recorded_streams import RECORDINGS, Recording
from tests.unit.drivers.test_malformed_events import LEFT_OUT, OTHERS, collect_parts, iter_paths, replace_at_path
from tests.unit.drivers.tested_providers import TESTED_PROVIDERS

MODEL = "model"
CHECKS = {name: tested.check_request for name, tested in TESTED_PROVIDERS.items()}
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "authorization": "Bearer k"}


def replies(recording: Recording) -> Iterator[tuple[Any, ModelResponse]]:
    """Yield the different responses that a recording gives when each member has any other value."""
    seen: set[str] = set()
    for number, event in enumerate(recording.events):
        for path in iter_paths(event):
            for other in OTHERS[1:] if not path else OTHERS:
                hurt = replace_at_path(event, path, other)
                events = [*recording.events[:number], hurt, *recording.events[number + 1 :]]
                try:
                    last = collect_parts(recording, events)[-1]
                except ProviderError:
                    continue
                assert isinstance(last, ModelResponse)
                if repr(last.blocks) in seen:
                    continue
                seen.add(repr(last.blocks))
                yield (event, path, "nothing" if other is LEFT_OUT else other), last


def following(provider: str, reply: ModelResponse) -> ModelRequest:
    """Build the next request, with a result for each call of the response."""
    rows: list[Message] = [user_message("Hi"), message_from_response(reply)]
    rows += [tool_result(block.tool_call_id, {"n": 1}) for block in reply.blocks if block.kind == "toolCall"]
    placed = [
        row.model_copy(update={"position": position, "round": min(position, 1)}) for position, row in enumerate(rows)
    ]
    return model_request(*compile_history(placed, ModelProfile(provider, MODEL, 100_000)), model=MODEL)


def refusal(provider: str, request: ModelRequest, *adjusted: str) -> str | None:
    """Return why the provider's strict server refuses the request; signatures are not verified."""
    driver = get_provider(provider)
    assert isinstance(driver, Provider)
    body = json.loads(json.dumps(driver.build_body(request, frozenset(adjusted)), allow_nan=False).encode())
    try:
        CHECKS[provider](HEADERS, body)
    except RequestRejected as refused:
        return refused.message
    return None


@pytest.mark.exhaustive
@pytest.mark.parametrize("provider", RECORDINGS)
def test_any_response_is_accepted_when_it_is_sent_back(provider: str) -> None:
    for change, reply in replies(RECORDINGS[provider]):
        request = following(provider, reply)
        refused = refusal(provider, request)
        if refused and "Input tag" in refused:  # a kind of block that nobody has: it is said again without it
            refused = refusal(provider, request, OMIT_THINKING_BLOCKS)
        assert refused is None, (change, refused)


@pytest.mark.parametrize("odd", ODD_STREAMS.values(), ids=ODD_STREAMS)
def test_what_an_odd_stream_gave_is_accepted_by_every_provider_with_the_next_prompt(odd: Odd) -> None:
    """The conversation goes on where it came from, and with any other provider."""
    response = odd.decode(len(odd.stream))[-1]
    assert isinstance(response, ModelResponse)
    assert {provider: refusal(provider, following(provider, response)) for provider in CHECKS} == dict.fromkeys(CHECKS)


NAMES = ("type", "thinking", "signature", "data", "id", "summary", "encrypted_content", "content", "phase", "reasoning")
KINDS = ("thinking", "redacted_thinking", "reasoning", "message")
VALUES = st.sampled_from([*KINDS, "", "x", None, True, 7, [], ["x"], {}, {"google": {"thought_signature": "c2"}}])
PAYLOADS = st.dictionaries(st.sampled_from((*NAMES, "reasoning_content", "reasoning_details", "extra_content")), VALUES)


@pytest.mark.parametrize("provider", RECORDINGS)
@settings(max_examples=80)
@given(payloads=st.lists(PAYLOADS, max_size=3), calls=st.booleans())
@example(payloads=[{"type": "thinking", "thinking": "a", "signature": "b", "data": "c"}], calls=False)
def test_no_stored_reasoning_makes_a_request_invalid(
    provider: str, payloads: list[dict[str, Any]], calls: bool
) -> None:
    thoughts = [ReasoningBlock(provider=provider, model=MODEL, payload=payload) for payload in payloads]
    blocks = (*thoughts, TextBlock(text="Hm."), *([tool_call("call_1")] if calls else []))
    request = following(provider, ModelResponse(blocks=blocks, stop=FinishReason.END, tokens=TokenUsage()))
    refused = refusal(provider, request)
    if refused and "Input tag" in refused:
        refused = refusal(provider, request, OMIT_THINKING_BLOCKS)
    assert refused is None
