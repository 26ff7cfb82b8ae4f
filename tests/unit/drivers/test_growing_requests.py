"""A request that continues from what the last one has built is the same, byte by byte, as one built anew."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermata.domain.message_prefix_cache import MessagePrefixCache
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from fermata.drivers.protocols import encode_items_once
from fermata.drivers.registry import PROVIDER_MODULES, get_provider
from tests.quick_suite_samples import count_examples, sample_for_quick_suite
from tests.unit.drivers.conversation_builders import model_message, model_request, tool_call, tool_result, user_message
from tests.unit.drivers.history_strategies import MODELS, histories

PROVIDERS = sorted(PROVIDER_MODULES)


@st.composite
def growing_histories(draw: st.DrawFn) -> list[list[Message]]:
    """Draw the histories of successive requests: each adds messages, and some replace or lose earlier ones."""
    rows = draw(histories())
    sent: list[list[Message]] = []
    length = 0
    while length < len(rows) and len(sent) < 6:
        length = draw(st.integers(length, len(rows)))
        history = rows[:length]
        if history and draw(st.booleans()):
            place = draw(st.integers(0, length - 1))
            history[place : place + 1] = draw(st.sampled_from([[], [user_message("Elided")], rows[place : place + 1]]))
        sent.append(history)
    return sent


def encode_request(provider: str, request: ModelRequest, adjusted: Sequence[str]) -> bytes:
    return get_provider(provider)._encode_body(request, frozenset(adjusted))


@pytest.mark.parametrize("provider", sample_for_quick_suite(PROVIDERS, every=3))
@settings(max_examples=count_examples(120))
@given(data=st.data(), sent=growing_histories())
def test_a_continued_request_has_the_bytes_of_a_new_one(
    provider: str, data: st.DataObject, sent: list[list[Message]]
) -> None:
    names = [adjustment.name for adjustment in get_provider(provider).adjustments]
    cache = MessagePrefixCache()
    for history in sent:
        adjusted = data.draw(st.sampled_from([[], [], *([name] for name in names)]))
        volatile = data.draw(st.sampled_from(["", "The page", "Another page"]))
        model = data.draw(st.sampled_from([MODELS[provider], MODELS[provider], "another-model"]))
        request = model_request(
            *history, volatile=volatile, model=model, thinking_tokens=2000, message_prefix_cache=cache
        )
        anew = request.model_copy(update={"message_prefix_cache": MessagePrefixCache()})
        raw = encode_request(provider, request, adjusted)
        assert raw == encode_request(provider, anew, adjusted)
        body = get_provider(provider).build_body(request, frozenset())
        if not adjusted:
            assert raw == json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_message_is_encoded_in_few_requests_of_a_long_turn(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a request encodes does not grow with the rounds before it."""
    encoded: list[int] = []
    encode = encode_items_once.encode_compact_json

    def count_characters(value: object) -> str:
        text = encode(value)
        encoded[-1] += len(text)
        return text

    monkeypatch.setattr(encode_items_once, "encode_compact_json", count_characters)
    cache = MessagePrefixCache()
    rows = [user_message("Go")]
    for number in range(60):
        rows += [model_message("Look.", tool_call(f"c{number}")), tool_result(f"c{number}", "x" * 100)]
        encoded.append(0)
        encode_request(provider, model_request(*rows, model=MODELS[provider], message_prefix_cache=cache), ())
    assert encoded[59] <= encoded[9] + 40
