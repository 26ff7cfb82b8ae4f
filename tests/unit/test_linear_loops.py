"""No loop over outside data does for each value what takes as long as all of them together (decision 0559)."""

import re
from pathlib import Path

import pytest

from tests.growth.package_patterns import PACKAGES, ROOT
from tests.growth.repeated_work import find_repeated_work

FEW = {
    "fermata.agents.definitions.definition_problems": "the path of a member has as many parts as files are nested",
    "fermata.plans.json_repair_ladder": "the number of attempts has a limit",
    "fermata.conversations.history.shorten_oversized_turn": "it returns with what it copies",
    "fermata.plans.normalization.member_names": "the names are those of operations that the service defines",
    "fermata.turns.round.image_budget": "a call has few images",
    "fermata_client.document.reversals": "it halves what is left",
}
"""Modules whose loops have few values, and why."""
_MAY_REPEAT = re.compile(r"\.(?:count|index)\(\w|\[\w*:\w*\]| in (?:\{|\[|\w+ \|)")
"""What a file has to contain so that it is worth parsing."""
FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def test_no_loop_repeats_work_on_all_values_for_each_of_them() -> None:
    files = [path for path in FILES if not is_allowed(path) and _MAY_REPEAT.search(path.read_text())]
    found = [f"{one.place} {one.work}" for path in files for one in find_repeated_work(path)]
    assert found == [], "look values up in a set, and build it once, before the loop"


def test_marks_of_letters_are_not_sorted() -> None:
    """`unicodedata.normalize` takes the square of the marks that follow each other; `remove_marks` does not."""
    found = [str(path) for path in FILES if "unicodedata.normalize" in path.read_text()]
    assert [Path(path).name for path in found] == ["plain_letters.py"]


@pytest.mark.parametrize(
    "code",
    [
        "next(one for one in names if names.count(one) > 1)",
        "for place, one in enumerate(paths):\n    if one in paths[:place]: pass",
        "[one for one in ids if one not in {section.id for section in sections}]",
        "{name: own[name] for name in own if name not in hidden | sections}",
    ],
)
def test_repeated_work_is_found(tmp_path: Path, code: str) -> None:
    """These were in the service once."""
    path = tmp_path / "module.py"
    path.write_text(code)
    assert _MAY_REPEAT.search(code)
    assert len(list(find_repeated_work(path))) == 1


def is_allowed(path: Path) -> bool:
    return ".".join(path.with_suffix("").parts).endswith(tuple(FEW))
