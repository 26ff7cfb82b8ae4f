"""The judge notices each rule of the protocol that is missing within a hundred simulations."""

import itertools

import pytest

from tests.chaos.campaign import FIXED_SEEDS, run_seed
from tests.chaos.covered_rules import COVERED_RULES, CoveredRule
from tests.chaos.mutants import CATCHING_SEEDS, MUTANTS
from tests.chaos.mutations import Mutation
from tests.chaos.planted_bugs import PLANTED_BUGS

pytestmark = pytest.mark.exhaustive

MAX_SEEDS = 100


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_judge_notices_that_a_rule_is_missing(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed that once showed it comes first; another one may do it after the product has changed."""
    MUTANTS[mutant](monkeypatch)
    seeds = itertools.chain([CATCHING_SEEDS.get(mutant, 0)], range(MAX_SEEDS))
    assert any(run_seed(seed).problems for seed in seeds), f"not noticed: {mutant}"


@pytest.mark.parametrize("bug", PLANTED_BUGS)
def test_the_judge_notices_a_planted_bug(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first_seed, plant = PLANTED_BUGS[bug]
    plant(monkeypatch)
    seeds = itertools.chain([first_seed], range(MAX_SEEDS))
    assert any(run_seed(seed).problems for seed in seeds), f"not noticed: {bug}"


@pytest.mark.parametrize("name", COVERED_RULES)
def test_a_rule_that_others_cover_keeps_its_promise_without_them(name: str) -> None:
    """Without those that cover it, the promise is kept as long as the rule is there."""
    rule = COVERED_RULES[name]
    assert not any(rule.broken_promise in problem for problem in _list_problems(rule, rule.drop_cover))
    assert any(rule.broken_promise in problem for problem in _list_problems(rule, rule.drop_cover, rule.drop))


def _list_problems(rule: CoveredRule, *mutations: Mutation) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        for mutate in mutations:
            mutate(patch)
        return run_seed(rule.seed, rule.kind).problems


def test_every_catching_seed_is_that_of_a_mutant() -> None:
    assert CATCHING_SEEDS.keys() == MUTANTS.keys()


def test_a_missing_rule_is_noticed_by_one_of_the_first_hundred_seeds() -> None:
    seeds = CATCHING_SEEDS | {bug: seed for bug, (seed, _plant) in PLANTED_BUGS.items()}
    assert [rule for rule, seed in seeds.items() if seed >= MAX_SEEDS] == []
    assert len(FIXED_SEEDS) >= MAX_SEEDS
