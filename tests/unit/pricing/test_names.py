from typing import Any

import pytest

from fermata.pricing.names import exact_name, pricing_key
from tests.unit.pricing.recorded import cases, name


@pytest.mark.parametrize("case", cases("pricingKey"), ids=name)
def test_a_model_has_the_key_it_has_in_the_original(case: Any) -> None:
    assert pricing_key(case["input"]) == case["expected"]


@pytest.mark.parametrize(
    "spelling",
    [
        "claude-opus-4-8",
        "claude-opus-4.8",
        "Claude-Opus-4-8-20260514",
        "anthropic/claude-opus-4.8",
        "anthropic/claude-opus-4-8-2026-05-14",
        "claude-opus-4-8-20260514-2026-05-14",
    ],
)
def test_a_provider_and_the_catalogue_come_to_the_same_key(spelling: str) -> None:
    assert pricing_key(spelling) == "claude-opus-4-8"


@pytest.mark.parametrize("longer", ["gpt-4o-2024-08-06\n", "gpt-4o-2024-08-06:free", "gpt-4o-12024-08-06"])
def test_only_a_date_at_the_very_end_is_dropped(longer: str) -> None:
    assert pricing_key(longer) == longer


def test_the_exact_name_keeps_its_date() -> None:
    assert exact_name("openai/gpt-4.1-2025-04-14") == "gpt-4-1-2025-04-14"
