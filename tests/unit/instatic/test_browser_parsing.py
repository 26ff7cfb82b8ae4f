"""The browser of these tests parses as Instatic's own: it passes the cases recorded from Instatic's client."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.instatic.browser import LineParser
from tests.unit.instatic.schemas import EVENTS, GENERATIONS, NEWEST, event_shape, find_schema_error

CASES = {case["id"]: case for case in json.loads((Path(__file__).parents[1] / "wire" / "cases.json").read_text())}
SCHEMA_CASES = [case for case in CASES.values() if case["area"] == "clientEventSchema"]


def accepts(event: dict[str, Any], generation: str) -> bool:
    shape = event_shape(event["type"], generation)
    return shape is not None and find_schema_error(event, shape) is None


@pytest.mark.parametrize("case", SCHEMA_CASES, ids=lambda case: case["id"])
def test_an_event_is_accepted_or_dropped_as_in_instatics_client(case: dict[str, Any]) -> None:
    assert accepts(case["input"], "0.0.6") is case["expected"]["accepted"]


def test_the_newest_browser_drops_usage_without_its_cost() -> None:
    assert "0.0.11 client drops this" in CASES["C063"]["note"]
    assert not accepts(CASES["C063"]["input"], NEWEST)


@pytest.mark.parametrize(("case", "generation"), [(name, one) for name in ("C059", "C061") for one in GENERATIONS])
def test_lines_are_found_however_they_are_cut(case: str, generation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in "ab":
        monkeypatch.setitem(EVENTS, kind, {"value": int})
    parser = LineParser(generation)
    events = [event for chunk in CASES[case]["input"] for event in parser.feed(chunk.encode())]
    assert [f"{event['type']}{event['value']}" for event in events] == CASES[case]["expected"]


def test_a_last_line_without_its_end_is_lost() -> None:
    assert list(LineParser(NEWEST).feed(b'{"type":"done"}')) == []
