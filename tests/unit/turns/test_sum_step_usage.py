"""The usage of a turn: the sum of its steps."""

from fermata.turns.sum_step_usage import sum_step_usage


def test_usage_01_counts_are_added_and_the_last_step_says_why_it_ended() -> None:
    first = {
        "inputTokens": 10,
        "outputTokens": 5,
        "totalTokens": 15,
        "outputTokenDetails": {"reasoningTokens": 2},
        "inputTokenDetails": {"cacheReadTokens": 3, "cacheWriteTokens": 1},
        "finishReason": "tool-calls",
    }
    assert sum_step_usage([first, {"inputTokens": 20, "finishReason": "stop"}]) == {
        "inputTokens": 30,
        "outputTokens": 5,
        "totalTokens": 15,
        "reasoningTokens": 2,
        "cacheReadTokens": 3,
        "cacheWriteTokens": 1,
        "finishReason": "stop",
    }


def test_a_turn_without_steps_has_used_nothing_and_stopped() -> None:
    usage = sum_step_usage([])
    assert usage.pop("finishReason") == "stop"
    assert set(usage.values()) == {0}


def test_a_step_that_ended_early_says_so() -> None:
    assert sum_step_usage([{"finishReason": "stop"}, {"finishReason": "length"}])["finishReason"] == "length"
