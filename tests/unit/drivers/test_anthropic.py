"""The whole way: an ask out, pieces in, over HTTP."""

import json
import threading

import pytest
from pydantic import SecretStr

from fermata.drivers.driver import Endpoint, driver_for
from fermata.drivers.line import Line
from fermata.words.blocks import ToolCallBlock
from fermata.words.errors import Invalid, ProviderError
from fermata.words.model import Ask, Piece, Reply, TextDelta
from tests.strict.anthropic import Said, StrictAnthropic, answer, block, sse, started, stopped, text, tool
from tests.unit.drivers.asks import MODEL, ask, replied, result, user
from tests.unit.drivers.conftest import KEY

anthropic = driver_for("anthropic")


def heard(asked: Ask, line: Line, endpoint: Endpoint) -> list[Piece]:
    return list(anthropic.stream(asked, line, endpoint))


def reply(asked: Ask, line: Line, endpoint: Endpoint) -> Reply:
    last = heard(asked, line, endpoint)[-1]
    assert isinstance(last, Reply)
    return last


def test_an_unknown_provider_is_named_with_those_there_are() -> None:
    with pytest.raises(Invalid, match=r"nobody\. Use one of: anthropic, ollama, openai, openai-c.*, openr.*\."):
        driver_for("nobody")


def test_whatever_somebody_calls_a_provider_is_repeated_as_a_short_line_without_a_key() -> None:
    with pytest.raises(Invalid) as caught:
        driver_for("no\nbody\u202e sk-ant-0123456789 " + "x" * 5000)
    assert caught.value.error.startswith("Unknown provider: no body [redacted] x")
    assert len(caught.value.error) < 200


def test_text_arrives_as_pieces_and_ends_with_the_reply(
    provider: StrictAnthropic, line: Line, endpoint: Endpoint
) -> None:
    provider.say(answer("Hel", "lo"))
    pieces = heard(ask(user("Hi")), line, endpoint)
    assert pieces[:2] == [TextDelta(text="Hel"), TextDelta(text="lo")]
    assert isinstance(pieces[2], Reply)
    assert provider.headers[0]["x-api-key"] == KEY
    assert provider.headers[0]["anthropic-version"] == "2023-06-01"
    assert "anthropic-beta" not in provider.headers[0]


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_the_address_may_be_given_with_or_without_its_version(provider: StrictAnthropic, line: Line, path: str) -> None:
    provider.say(answer())
    assert heard(ask(user("Hi")), line, Endpoint(provider.url + path, SecretStr(KEY)))


def test_a_key_pasted_with_a_line_end_is_still_the_key(provider: StrictAnthropic, line: Line) -> None:
    provider.say(answer())
    heard(ask(user("Hi")), line, Endpoint(provider.url, SecretStr(f" {KEY}\n")))
    assert provider.headers[0]["x-api-key"] == KEY


def test_a_gateway_of_ones_own_needs_no_key(provider: StrictAnthropic, line: Line) -> None:
    """The real server says what is missing."""
    with pytest.raises(ProviderError) as caught:
        heard(ask(user("Hi")), line, Endpoint(provider.url, SecretStr("")))
    assert caught.value.code == "provider_auth"
    assert "x-api-key" not in provider.headers[0]


def test_a_key_no_header_can_hold_is_a_wrong_key(line: Line, provider: StrictAnthropic) -> None:
    with pytest.raises(ProviderError) as caught:
        heard(ask(user("Hi")), line, Endpoint(provider.url, SecretStr("schlüssel")))
    assert caught.value.code == "provider_auth"


def test_the_key_shows_nowhere(endpoint: Endpoint) -> None:
    assert KEY not in repr(endpoint)
    assert KEY not in str(endpoint)


def test_r9_and_r10_the_second_round_repeats_the_first_to_the_byte(
    provider: StrictAnthropic, line: Line, endpoint: Endpoint
) -> None:
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Look 那 first."},
        {"type": "signature_delta", "signature": "EqQBCgIYAhIk+/=="},
    )
    redacted = block(1, {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va+/=="})
    calls = [*tool(3, "toolu_1", "read_document", "{}"), *tool(4, "toolu_2", "insertHtml", '{"nodeId":"n1"}')]
    provider.say(sse(started(), thinking, redacted, text(2, ""), calls, stopped("tool_use")))
    provider.say(answer())
    first = reply(ask(user("Hi")), line, endpoint)
    heard(ask(user("Hi"), replied(first), result("toolu_1", 1), result("toolu_2", 2)), line, endpoint)
    assert provider.refusals == []
    assert [one["type"] for one in provider.bodies[1]["messages"][1]["content"]] == [
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_use",
    ]


def test_r8_after_an_empty_refusal_the_next_turn_is_accepted(
    provider: StrictAnthropic, line: Line, endpoint: Endpoint
) -> None:
    provider.say(sse(started(), stopped("refusal")))
    provider.say(answer())
    refused = reply(ask(user("Hi")), line, endpoint)
    heard(ask(user("Hi"), replied(refused), user("And now?", turn="t2")), line, endpoint)
    assert provider.refusals == []


def test_r5_a_truncated_call_can_be_answered_and_asked_again(
    provider: StrictAnthropic, line: Line, endpoint: Endpoint
) -> None:
    provider.say(sse(started(), tool(0, "toolu_1", "insertHtml", '{"html":"<p'), stopped("max_tokens")))
    provider.say(answer())
    cut = reply(ask(user("Hi")), line, endpoint)
    assert isinstance(cut.blocks[0], ToolCallBlock)
    assert cut.blocks[0].malformed
    told = result("toolu_1", ok=False, error="Your arguments were cut off. Send less at once.")
    heard(ask(user("Hi"), replied(cut), told), line, endpoint)
    assert provider.refusals == []


@pytest.mark.parametrize(
    ("status", "kind", "code", "retryable"),
    [
        (401, "authentication_error", "provider_auth", False),
        (429, "rate_limit_error", "provider_quota", True),
        (529, "overloaded_error", "provider_overloaded", True),
        (500, "api_error", "provider_error", True),
    ],
)
def test_an_error_status_is_told_in_our_words(
    status: int, kind: str, code: str, retryable: bool, provider: StrictAnthropic, line: Line, endpoint: Endpoint
) -> None:
    provider.fail(status, kind, f"no, {KEY}", retry_after="7")
    with pytest.raises(ProviderError) as caught:
        heard(ask(user("Hi")), line, endpoint)
    error = caught.value
    assert (error.code, error.retryable, error.retry_after, error.status) == (code, retryable, 7.0, status)
    assert KEY not in error.message
    assert error.tokens is None


def test_a_connection_lost_in_mid_stream_tells_what_was_used_so_far(
    provider: StrictAnthropic, line: Line, endpoint: Endpoint
) -> None:
    begun = sse(started(input_tokens=90, output_tokens=1, cache_read_input_tokens=1000), text(0, "Partial")[:-1])
    provider.do(Said([begun], cut=True))
    pieces: list[Piece] = []
    with pytest.raises(ProviderError) as caught:
        pieces.extend(anthropic.stream(ask(user("Hi")), line, endpoint))
    assert pieces == [TextDelta(text="Partial")]
    assert caught.value.tokens is not None
    assert (caught.value.tokens.prompt, caught.value.tokens.cache_read) == (90, 1000)


def test_a_hang_up_in_mid_text_stops_the_answer_and_the_provider_feels_it(
    provider: StrictAnthropic, line: Line, endpoint: Endpoint
) -> None:
    gone = threading.Event()
    begun = sse(started(input_tokens=9), text(0, "Partial")[:-1])

    def until_gone() -> None:
        provider.connections[0].settimeout(5)
        if provider.connections[0].recv(1) == b"":
            gone.set()

    provider.do(Said([begun], then=until_gone))
    stream = anthropic.stream(ask(user("Hi")), line, endpoint)
    assert next(stream) == TextDelta(text="Partial")
    threading.Timer(0.05, line.hang_up).start()
    with pytest.raises(ProviderError) as caught:
        next(stream)
    assert caught.value.code == "provider_closed"
    assert caught.value.tokens is not None
    assert gone.wait(1)


def test_a_reader_that_goes_away_leaves_the_line_usable(
    provider: StrictAnthropic, line: Line, endpoint: Endpoint
) -> None:
    provider.say(answer("a", "b"))
    provider.say(answer("c"))
    stream = anthropic.stream(ask(user("Hi")), line, endpoint)
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # a driver's iterator is a generator
    assert heard(ask(user("Hi")), line, endpoint)[0] == TextDelta(text="c")


def test_rounds_share_a_connection(provider: StrictAnthropic, line: Line, endpoint: Endpoint) -> None:
    for _ in range(3):
        provider.say(answer())
        heard(ask(user("Hi")), line, endpoint)
    assert len({id(one) for one in provider.connections}) == 1


def test_the_newest_models_get_the_header_their_thinking_setting_needs(
    provider: StrictAnthropic, line: Line, endpoint: Endpoint
) -> None:
    provider.say(answer())
    heard(ask(user("Hi"), model="claude-opus-5-5"), line, endpoint)
    assert provider.refusals == []
    assert provider.headers[0]["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


def test_half_a_surrogate_pair_in_a_prompt_does_not_reach_the_provider(
    provider: StrictAnthropic, line: Line, endpoint: Endpoint
) -> None:
    provider.say(answer())
    heard(ask(user("a\ud83d", "b"), model=MODEL), line, endpoint)
    json.dumps(provider.bodies[0], ensure_ascii=False).encode("utf-8")
    assert provider.bodies[0]["messages"][0]["content"][0]["text"] == "a?"
