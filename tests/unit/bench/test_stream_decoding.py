"""The measurement folds what it says it folds; the time itself is for a quiet machine."""

import pytest

from bench.stream_decoding import (
    STREAM_LENGTHS,
    cpu_ms_per_100_events,
    decode_stream,
    measure_stream_decoding,
    record_stream,
)
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, TextDelta
from fermata.drivers.registry import PROVIDER_MODULES


@pytest.mark.parametrize("provider", PROVIDER_MODULES)
def test_a_recorded_stream_has_its_length_and_everything_in_it(provider: str) -> None:
    pieces = list(decode_stream(provider, record_stream(provider, 1000)))
    assert sum(isinstance(piece, TextDelta) for piece in pieces) == 980
    assert any(isinstance(piece, ReasoningDelta) for piece in pieces)
    reply = pieces[-1]
    assert isinstance(reply, ModelResponse)
    assert [block.kind for block in reply.blocks if block.kind != "reasoning"] == ["text", "toolCall"]
    assert (reply.stop, reply.tokens.prompt) == (FinishReason.TOOL_CALLS, 1000)


@pytest.mark.parametrize("provider", PROVIDER_MODULES)
def test_every_driver_is_measured(provider: str) -> None:
    assert cpu_ms_per_100_events(provider, 100, times=1) > 0


def test_the_row_tells_the_dearest_and_all_the_others() -> None:
    row = measure_stream_decoding()
    costs = row.numbers["ms"]
    assert len(costs) == len(PROVIDER_MODULES) * len(STREAM_LENGTHS)
    assert row.result.startswith(f"{max(costs.values()):.2f} ")
