"""Messages are expected to do what their words say."""

import pytest

from fermata.plans.chat_forecast import forecast_chat


@pytest.mark.parametrize(
    ("message", "latency", "action"),
    [
        ("Change the heading to Hello", "moderate", "update_props"),
        ("Remove the testimonials", "moderate", "remove_block"),
        ("Delete the page /faq", "moderate", "remove_page"),
        ("Create a new page about our team", "slow", "create_page"),
        ("Move the hero above the prices", "moderate", "move_block"),
        ("Rewrite all texts in a friendlier tone", "slow", "update_props"),
        ("Generate an image of a loaf", "slow", None),
        ("What can you do?", "moderate", None),
        ("", "moderate", None),
        ("word " * 500, "slow", None),
    ],
)
def test_a_message_is_expected_to_do_what_its_words_say(message: str, latency: str, action: str | None) -> None:
    assert forecast_chat(message, "auto") == (False, latency, action)


@pytest.mark.parametrize("mode", ["apply_pending_plan", "discard_pending_plan"])
def test_what_becomes_of_a_plan_that_waits_needs_no_model(mode: str) -> None:
    assert forecast_chat("", mode) == (True, "instant", mode)
