"""A turn that a newer version of the service began is continued by an older one, which keeps what it does not know."""

import json
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Item, Put
from fermata.domain.base import StoredModel
from fermata.turns.next_invocation_hint import InvocationHint
from fermata.turns.turn_state_from_log import TurnState
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

ADDED = {"zz": {"of": ["a", "newer", "version"]}}
"""A member that this version does not know, in its stored form."""


class StoredPart(StoredModel):
    name: str


class StoredWhole(StoredModel):
    name: str
    parts: tuple[StoredPart, ...] = ()


def add_members(text: str) -> str:
    """Add the members of a newer version to a JSON object, or to each object of a list."""
    value = json.loads(text)
    return json.dumps([one | ADDED for one in value] if isinstance(value, list) else value | ADDED)


def rewrite_as_newer_version(stage: Stage) -> None:
    """Write the turn's rows as a version would that has one more member in each."""
    for row in stage.stored_items(stage.turn.pk):
        newer: Item = dict(row)
        if row["sk"].startswith("e#"):
            newer["s"] = add_members(row["s"])
        elif row["sk"].startswith("p#"):
            data = json.loads(row["data"])
            data["standing"] |= ADDED  # the state of the turn, as the pause's writer knew it
            newer |= {"data": add_members(json.dumps(data)), "calls": add_members(row["calls"])}
        elif row["sk"] == "turn":
            newer["data"] = add_members(row["data"])
        stage.resources.tables.write_items(Put(stage.resources.settings.bridges_table, newer))


def stored_rows(stage: Stage, prefix: str) -> list[Item]:
    return [row for row in stage.stored_items(stage.turn.pk) if row["sk"].startswith(prefix)]


def is_kept(text: Any) -> bool:
    value = json.loads(text)
    return all(ADDED.items() <= one.items() for one in (value if isinstance(value, list) else [value]))


def test_a_turn_that_is_continued_by_an_older_version_keeps_the_members_of_the_newer_one(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(tool_call_block("deleteNode", nodeId="a"), tool_call_block("deleteNode", nodeId="b")), "Done."
    )
    stage.run_workflow()
    rewrite_as_newer_version(stage)
    stage.answer_request(OK, request_id=stage.tool_requests()[0].request_id)
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    assert [event.type for event in stage.terminal_events()] == ["done"]
    assert all(is_kept(row["s"]) for row in stored_rows(stage, "e#"))
    assert all(is_kept(row["data"]) and is_kept(row["calls"]) for row in stored_rows(stage, "p#"))
    assert all(is_kept(row["data"]) for row in stored_rows(stage, "turn"))


def test_the_state_after_more_events_and_the_hint_about_it_keep_unknown_members() -> None:
    state = TurnState.from_item({"r": 2, "p": "ready"} | ADDED)
    assert state.to_item() == {"r": 2, "p": "ready"} | ADDED
    hint = InvocationHint(2, 7, 9, "c1", state, 2_000_000_000).to_json()
    read = InvocationHint.from_json(hint).state
    assert read is not None
    assert read.to_item() == state.to_item()


def test_a_stored_model_writes_unknown_members_as_it_read_them_and_not_the_rows_keys() -> None:
    row = {"pk": "p", "sk": "s", "v": 1, "ttl": 9, "name": "n", "parts": [{"name": "a"} | ADDED]} | ADDED
    whole = StoredWhole.from_stored(row)
    changed = whole.model_copy(update={"name": "m"})
    written = {"name": "m", "parts": [{"name": "a"} | ADDED]} | ADDED
    assert changed.to_stored() == written | {"parts": tuple(written["parts"])}
    assert changed.to_stored_json() == written


def test_code_cannot_add_an_unknown_member_by_mistake() -> None:
    with pytest.raises(TypeError):
        StoredWhole(name="n").model_copy(update={"nmae": "m"})
