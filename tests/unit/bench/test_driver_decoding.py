"""The decoding measurement decodes whole streams of all drivers. The time itself is not tested."""

import pytest

from bench.driver_decoding import (
    cpu_ms_per_100_events,
    decode_stream,
    measure_stream_decoding,
    record_stream,
)
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, TextDelta
from fermata.drivers.registry import PROVIDER_MODULES


@pytest.mark.parametrize("provider", PROVIDER_MODULES)
def test_a_recorded_stream_has_its_length_and_all_kinds_of_parts(provider: str) -> None:
    parts = list(decode_stream(provider, record_stream(provider, 1000)))
    assert sum(isinstance(part, TextDelta) for part in parts) == 980
    assert any(isinstance(part, ReasoningDelta) for part in parts)
    response = parts[-1]
    assert isinstance(response, ModelResponse)
    assert [block.kind for block in response.blocks if block.kind != "reasoning"] == ["text", "toolCall"]
    assert (response.stop, response.tokens.prompt) == (FinishReason.TOOL_CALLS, 1000)


@pytest.mark.parametrize("provider", PROVIDER_MODULES)
def test_every_driver_is_measured(provider: str) -> None:
    assert cpu_ms_per_100_events(provider, 100, repetitions=1) > 0


def test_the_row_shows_the_most_expensive_case_and_holds_all() -> None:
    row = measure_stream_decoding((10, 20))
    costs = row.numbers["ms"]
    assert len(costs) == len(PROVIDER_MODULES) * 2
    assert row.result.startswith(f"{max(costs.values()):.2f} ")
