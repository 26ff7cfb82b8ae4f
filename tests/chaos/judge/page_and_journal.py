"""Judge edits and undos: the page is what the journal says, call by call.

Every edit makes cells of its own on the page (`tests/chaos/page.py`), named `<effect key>|<step>|<part>`. Call `<step>`
of the edit's inverse removes the parts of that step. So the page tells the state of each call, whatever undid or redid
it.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.evidence import Evidence, Row


def judge_journal(evidence: Evidence) -> Iterator[str]:
    known = find_acknowledged_effects(evidence)
    rows = [row for row in evidence.bridges if row["sk"].startswith("j#") and not row["sk"].endswith("#u")]
    marks = {(row["pk"], row["sk"].removesuffix("#u")): row for row in evidence.bridges if row["sk"].endswith("#u")}
    recorded = Counter(json.loads(row["data"])["effect_key"] for row in rows)
    for change in evidence.page_changes:
        if change.effect_key in known and recorded[change.effect_key] != 1:
            yield f"edit {change.effect_key} was acknowledged and is {recorded[change.effect_key]} times in the journal"
    carried_out = {change.effect_key for change in evidence.page_changes}
    yield from (f"edit {key} is in the journal and was never made" for key in sorted(recorded.keys() - carried_out))
    for row in rows:
        yield from judge_edit(evidence, row, marks.get((row["pk"], row["sk"])), known)


def find_acknowledged_effects(evidence: Evidence) -> set[str]:
    """Return the effect keys of the calls whose results the service has accepted."""
    return {
        event["effectKey"]
        for turn in evidence.turns
        for reader in turn.readers
        for _, event in reader.received
        if event["type"] == "toolRequest" and event["requestId"] in turn.acknowledged
    }


def judge_edit(evidence: Evidence, row: Row, mark: Row | None, known: set[str]) -> Iterator[str]:
    """Compare the state of each call of an edit's inverse with the cells that the edit has made."""
    key = json.loads(row["data"])["effect_key"]
    states = defaultdict(lambda: "open", read_states(mark))
    parts: dict[int, list[str]] = defaultdict(list)
    touched: dict[str, set[str]] = defaultdict(set)
    for change in evidence.page_changes:
        for cell in change.patch:
            touched[cell].add(change.effect_key)
            owner, _, place = cell.partition("|")
            if owner == key and change.effect_key == key:
                parts[int(place.partition("|")[0])].append(cell)
    for step in range(len(row["tools"])):
        cells = parts.get(step, [])
        if cells and all(touched[cell] <= known for cell in cells):
            count = sum(cell in evidence.page for cell in cells)
            is_state = "open" if count == len(cells) else "partly" if count else "applied"
            if is_state != states[step]:
                yield f"edit {key}: call {step} of its inverse is {is_state} on the page, {states[step]} in the journal"


def read_states(mark: Row | None) -> dict[int, str]:
    steps = json.loads(mark["data"]).get("steps", []) if mark else []
    return {step["step"]: step.get("state", "applied") for step in steps}
