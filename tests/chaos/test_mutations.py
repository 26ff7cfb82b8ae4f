"""Each mutant changes something that is there, and something that is looked up where it is changed."""

import pytest

from tests.chaos.covered_rules import COVERED_RULES
from tests.chaos.kind_mutants import KIND_MUTANTS
from tests.chaos.mutants import MUTANTS
from tests.chaos.mutations import Mutation, change, replace
from tests.chaos.planted_bugs import PLANTED_BUGS

ALL: dict[str, Mutation] = {
    **MUTANTS,
    **{rule: mutate for mutants in KIND_MUTANTS.values() for rule, (_, mutate) in mutants.items()},
    **{bug: plant for bug, (_, plant) in PLANTED_BUGS.items()},
    **{f"the cover of: {name}": rule.drop_cover for name, rule in COVERED_RULES.items()},
    **{f"without: {name}": rule.drop for name, rule in COVERED_RULES.items()},
}


def test_every_mutant_replaces_what_is_looked_up() -> None:
    failures = {}
    for name, mutate in ALL.items():
        with pytest.MonkeyPatch.context() as patch:
            try:
                mutate(patch)
            except AttributeError as error:
                failures[name] = error
    assert failures == {}


@pytest.mark.parametrize(
    "target",
    [
        "fermata.turns.end.end_turn.has_moved",
        "fermata.turns.turn_log.TurnLog.has_moved",
        "fermata.turns.end.end_turn.end_turn",  # defined there, and called under the names of those that import it
    ],
)
def test_a_mutant_of_nothing_is_an_error(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="looks up"):
        replace(target, None)(monkeypatch)
    with pytest.raises(AttributeError, match="looks up"):
        change(target, lambda there: there)(monkeypatch)
