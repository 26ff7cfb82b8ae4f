from typing import Any

import pytest

from fermata.pricing.model_names import normalize_model_name, undated_model_name
from tests.unit.pricing.recorded_cases import case_name, read_cases


@pytest.mark.parametrize("case", read_cases("pricingKey"), ids=case_name)
def test_a_model_has_the_undated_name_it_has_in_the_original(case: Any) -> None:
    assert undated_model_name(case["input"]) == case["expected"]


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
def test_all_spellings_have_the_same_undated_name(spelling: str) -> None:
    assert undated_model_name(spelling) == "claude-opus-4-8"


@pytest.mark.parametrize("longer", ["gpt-4o-2024-08-06\n", "gpt-4o-2024-08-06:free", "gpt-4o-12024-08-06"])
def test_only_a_date_at_the_very_end_is_dropped(longer: str) -> None:
    assert undated_model_name(longer) == longer


def test_the_exact_name_keeps_its_date() -> None:
    assert normalize_model_name("openai/gpt-4.1-2025-04-14") == "gpt-4-1-2025-04-14"
