"""The measurement folds what it says it folds; the time itself is for a quiet machine."""

import pytest

from bench.folding import LENGTHS, cpu_ms_per_100_events, folded, folding_cost, recorded
from fermata.drivers.driver import PROVIDERS
from fermata.words.model import ReasoningDelta, Reply, Stop, TextDelta


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_recorded_stream_has_its_length_and_everything_in_it(provider: str) -> None:
    pieces = list(folded(provider, recorded(provider, 1000)))
    assert sum(isinstance(piece, TextDelta) for piece in pieces) == 980
    assert any(isinstance(piece, ReasoningDelta) for piece in pieces)
    reply = pieces[-1]
    assert isinstance(reply, Reply)
    assert [block.kind for block in reply.blocks if block.kind != "reasoning"] == ["text", "toolCall"]
    assert (reply.stop, reply.tokens.prompt) == (Stop.TOOL_CALLS, 1000)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_driver_is_measured(provider: str) -> None:
    assert cpu_ms_per_100_events(provider, 100, times=1) > 0


def test_the_row_tells_the_dearest_and_all_the_others() -> None:
    row = folding_cost()
    costs = row.numbers["ms"]
    assert len(costs) == len(PROVIDERS) * len(LENGTHS)
    assert row.result.startswith(f"{max(costs.values()):.2f} ")
