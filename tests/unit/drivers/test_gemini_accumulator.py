"""Streams of Google's generateContent become responses: parts, signatures, ends, refusals and token counts."""

from typing import Any

import pytest

from fermata.domain.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, TextDelta
from fermata.drivers.protocols.gemini_generate.accumulator import GeminiAccumulator
from fermata.drivers.protocols.response_stream import require_answer
from fermata.drivers.transport.stream_decoders import SseDecoder
from tests.strict.gemini import call_part, encode_sse, end_chunk, make_chunk, text_part, thought_part
from tests.unit.drivers import stream_helpers

MODEL = "gemini-3-pro"


def read_parts(*chunks: Any) -> list[Any]:
    accumulator = GeminiAccumulator("gemini", "Google Gemini", MODEL, b"request")
    return stream_helpers.collect_parts(accumulator, [encode_sse(*chunks)], SseDecoder())


def read_response(*chunks: Any) -> ModelResponse:
    last = read_parts(*chunks)[-1]
    assert isinstance(last, ModelResponse)
    return last


def signed(**payload: Any) -> ReasoningBlock:
    return ReasoningBlock(provider="gemini", model=MODEL, payload=payload)


def test_thoughts_are_shown_as_reasoning_and_kept_only_if_they_are_signed() -> None:
    parts = read_parts(
        make_chunk(thought_part("Let me ")),
        make_chunk(thought_part("see."), text_part("Maybe")),
        make_chunk(text_part(".")),
        end_chunk(),
    )
    assert parts[:-1] == [
        ReasoningDelta(text="Let me "),
        ReasoningDelta(text="see."),
        TextDelta(text="Maybe"),
        TextDelta(text="."),
    ]
    assert parts[-1].blocks == (TextBlock(text="Maybe."),)


def test_a_signature_is_stored_before_the_part_it_came_with() -> None:
    response = read_response(
        make_chunk(thought_part("Hm.")),
        make_chunk(text_part("", thought=True, thoughtSignature="dGg=")),
        make_chunk(text_part("Now")),
        make_chunk(text_part(" then.", thoughtSignature="dHh0")),
        make_chunk(call_part("read", {"a": 1}, call_id="c1", signature="Y2FsbA==")),
        make_chunk(call_part("read", {"a": 2}, call_id="c2")),
        end_chunk(),
    )
    assert response.blocks == (
        signed(thoughtSignature="dGg=", thought="Hm."),
        signed(thoughtSignature="dHh0"),
        TextBlock(text="Now then."),
        signed(thoughtSignature="Y2FsbA=="),
        ToolCallBlock(tool_call_id="c1", tool_name="read", input={"a": 1}),
        ToolCallBlock(tool_call_id="c2", tool_name="read", input={"a": 2}),
    )
    assert response.stop is FinishReason.TOOL_CALLS


def test_calls_without_ids_get_some_and_a_call_sent_twice_under_its_id_is_one() -> None:
    response = read_response(
        make_chunk(call_part("read"), call_part("read"), call_part("write", call_id="c1")),
        make_chunk(call_part("write", call_id="c1"), finish="STOP"),
    )
    ids = [block.tool_call_id for block in response.blocks if isinstance(block, ToolCallBlock)]
    assert len(set(ids)) == len(ids) == 3
    assert "c1" in ids


@pytest.mark.parametrize(
    ("reason", "stop", "warned"),
    [
        ("STOP", FinishReason.END, False),
        ("MAX_TOKENS", FinishReason.MAX_TOKENS, False),
        ("SAFETY", FinishReason.REFUSAL, False),
        ("RECITATION", FinishReason.REFUSAL, False),
        ("BLOCKLIST", FinishReason.REFUSAL, False),
        ("PROHIBITED_CONTENT", FinishReason.REFUSAL, False),
        ("SPII", FinishReason.REFUSAL, False),
        ("IMAGE_SAFETY", FinishReason.REFUSAL, False),
        ("LANGUAGE", FinishReason.END, True),
        ("OTHER", FinishReason.END, True),
        ("MALFORMED_FUNCTION_CALL", FinishReason.END, True),
        ("UNEXPECTED_TOOL_CALL", FinishReason.END, True),
        ("TOO_MANY_TOOL_CALLS", FinishReason.END, True),
        ("MISSING_THOUGHT_SIGNATURE", FinishReason.END, True),
        ("FINISH_REASON_OF_TOMORROW", FinishReason.END, True),
    ],
)
def test_every_reason_to_end_is_understood(reason: str, stop: FinishReason, *, warned: bool) -> None:
    response = read_response(make_chunk(text_part("Well.")), end_chunk(reason))
    assert (response.stop, response.warning is not None) == (stop, warned)
    assert (response.refusal is not None) is (stop is FinishReason.REFUSAL)


@pytest.mark.parametrize("reason", ["STOP", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER"])
def test_an_end_without_an_answer_is_asked_again(reason: str) -> None:
    parts = read_parts(end_chunk(reason))
    with pytest.raises(ProviderError) as caught:
        list(require_answer("Google Gemini", parts, may_call=True))
    assert (caught.value.code, caught.value.retryable) == ("provider_empty", True)


@pytest.mark.parametrize(
    ("chunk", "refusal"),
    [
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "it would contain what the provider prohibits"),
        ({"promptFeedback": {"blockReason": "OTHER"}}, "the provider's content filter stopped it"),
        (
            {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "It is about weapons."}},
            "It is about weapons.",
        ),
        (
            make_chunk(
                finish="SAFETY",
                safetyRatings=[
                    {"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"},
                    {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True},
                ],
            ),
            "it touches the policy on dangerous content",
        ),
        (make_chunk(finish="RECITATION", finishMessage="It is a song."), "It is a song."),
    ],
)
def test_a_refusal_says_why(chunk: dict[str, Any], refusal: str) -> None:
    """A blocked prompt has no candidates at all."""
    response = read_response(chunk | {"usageMetadata": {"promptTokenCount": 7}})
    assert (response.stop, response.refusal, response.warning) == (FinishReason.REFUSAL, refusal, None)
    assert response.tokens.prompt == 7


def test_thinking_and_what_googles_own_tools_read_are_counted() -> None:
    tokens = read_response(
        make_chunk(text_part("a")) | {"usageMetadata": {"promptTokenCount": 100, "totalTokenCount": 100}},
        end_chunk(
            promptTokenCount=100,
            candidatesTokenCount=20,
            thoughtsTokenCount=300,
            toolUsePromptTokenCount=5,
            cachedContentTokenCount=60,
            totalTokenCount=425,
        ),
    ).tokens
    assert (tokens.prompt, tokens.completion, tokens.cache_read, tokens.cached_within) == (105, 320, 60, True)
    assert (tokens.context_tokens, tokens.uncached_prompt_tokens) == (105, 45)


def test_thinking_that_a_gateway_counts_within_the_answer_is_counted_once() -> None:
    tokens = read_response(
        make_chunk(text_part("a")),
        end_chunk(promptTokenCount=10, candidatesTokenCount=50, thoughtsTokenCount=40, totalTokenCount=60),
    ).tokens
    assert tokens.completion == 50


def test_usage_that_ends_with_zeros_keeps_what_was_counted_before() -> None:
    tokens = read_response(
        make_chunk(text_part("a")) | {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2}},
        end_chunk(promptTokenCount=0, candidatesTokenCount=0, totalTokenCount=0),
    ).tokens
    assert (tokens.prompt, tokens.completion) == (9, 2)


def test_a_stream_without_a_reason_to_end_is_cut_off() -> None:
    with pytest.raises(ProviderError, match="ended before the answer was complete"):
        read_parts(make_chunk(text_part("Par")))


def test_a_signature_after_the_reason_to_end_is_read() -> None:
    response = read_response(
        make_chunk(call_part("read", call_id="c1")),
        end_chunk(),
        make_chunk(text_part("", thoughtSignature="bGF0ZQ==")),
    )
    assert response.blocks[-1] == signed(thoughtSignature="bGF0ZQ==")


def test_only_the_first_of_several_candidates_is_read() -> None:
    second = {"content": {"parts": [{"text": "Other"}]}, "index": 1}
    chunk = make_chunk(text_part("One"), finish="STOP")
    assert read_response({"candidates": [*chunk["candidates"], second]}).blocks == (TextBlock(text="One"),)
