"""The judge notices each rule of the protocol that is missing, within a hundred simulations."""

import pytest

from tests.chaos.campaign import run_seed
from tests.chaos.mutants import MUTANTS

pytestmark = pytest.mark.exhaustive

MAX_SEEDS = 100


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_judge_notices_that_a_rule_is_missing(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)
    assert any(run_seed(seed).problems for seed in range(MAX_SEEDS)), f"not noticed: {mutant}"
