"""On which revision a call was planned, and what the model reads when the document has changed meanwhile."""

from typing import Any

import pytest

from tests.unit.turns import invariants
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block
from tests.unit.turns.state_machine import StateMachine

INSERT = {"parentId": "root", "html": "<p>x</p>"}
CONFLICT: dict[str, Any] = {"ok": False, "conflict": True, "error": "Somebody edited n4.", "revision": "r9"}


def asking(stage: Stage, *names: str, revision: str = "r1") -> None:
    stage.start_turn(revision=revision)
    stage.script_replies(
        reply_with_calls(
            *(tool_call_block(name, **(INSERT if name == "insertHtml" else {"nodeId": "a"})) for name in names)
        )
    )
    assert stage.run_workflow() == "waiting"


def asked_on(stage: Stage) -> list[str | None]:
    return [request.revision for request in stage.tool_requests()]


def read_error(stage: Stage) -> str:
    stage.script_replies("I see.")
    stage.run_workflow()
    error = stage.results_sent_to_model()[-1].error
    assert error is not None
    return error


def test_a_request_says_on_which_revision_its_call_was_planned(stage: Stage) -> None:
    asking(stage, "insertHtml")
    assert asked_on(stage) == ["r1"]


def test_an_editor_that_tells_no_revision_is_told_none(stage: Stage) -> None:
    asking(stage, "insertHtml", "insertHtml", revision="")
    stage.answer_request(OK)
    assert asked_on(stage) == [None, None]
    assert all("revision" not in request.to_wire() for request in stage.tool_requests())


def test_the_turns_own_edit_moves_on_what_its_next_calls_are_planned_on(stage: Stage) -> None:
    asking(stage, "insertHtml", "insertHtml", "insertHtml")
    stage.answer_request(OK | {"revision": "r2"})
    stage.answer_request(OK, revision="r3")
    assert asked_on(stage) == ["r1", "r2", "r3"]


def test_the_result_knows_better_than_the_body_around_it(stage: Stage) -> None:
    asking(stage, "insertHtml", "insertHtml")
    stage.answer_request(OK | {"revision": "r2"}, revision="r0")
    assert asked_on(stage) == ["r1", "r2"]


def test_what_a_read_finds_counts_from_the_next_reply_on(stage: Stage) -> None:
    """The rest of this reply was planned before anybody read that."""
    asking(stage, "getNodeHtml", "insertHtml")
    stage.answer_request({"ok": True, "data": "…", "revision": "r2, by hand"})
    stage.answer_request(CONFLICT | {"revision": "r2, by hand"})
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", **INSERT)))
    stage.run_workflow()
    assert asked_on(stage) == ["r1", "r1", "r2, by hand"]


def test_after_a_conflict_the_rest_of_the_reply_is_as_blind_as_before(stage: Stage) -> None:
    asking(stage, "insertHtml", "insertHtml")
    stage.answer_request(CONFLICT)
    assert asked_on(stage) == ["r1", "r1"]


def test_whoever_takes_the_turn_over_knows_the_revision(stage: Stage) -> None:
    asking(stage, "insertHtml")
    stage.answer_request(OK | {"revision": "r2"})
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", **INSERT)))
    machine = StateMachine(stage)
    machine.run()
    assert asked_on(stage) == ["r1", "r2"]
    assert stage.entries()[-1].state.revision == "r2"


def test_the_next_turn_begins_with_what_its_editor_says(stage: Stage) -> None:
    asking(stage, "insertHtml")
    stage.answer_request(OK | {"revision": "r2"})
    stage.script_replies("Done.")
    stage.run_workflow()
    asking(stage, "insertHtml", revision="")
    assert asked_on(stage) == [None]


def test_the_model_reads_what_it_planned_on_what_it_is_now_and_what_to_do(stage: Stage) -> None:
    asking(stage, "insertHtml")
    stage.answer_request(CONFLICT | {"changes": 'n4 now says "Bread & more".'})
    told = stage.events()[-1]
    assert told.type == "toolResult"
    assert told.conflict is True
    assert read_error(stage).splitlines() == [
        "Conflict: nothing was done.",
        "The editor says: Somebody edited n4.",
        "The call was planned on revision r1 of the document, which is now at r9.",
        'What has changed, as the editor says: n4 now says "Bread & more".',
        "Read the document again before you repeat the call.",
    ]
    invariants.check_invariants(stage)


@pytest.mark.parametrize(
    ("planned", "now", "says"),
    [("", "r9", "now at revision r9"), ("r1", "", "has changed since"), ("", "", "has changed since")],
)
def test_a_conflict_says_as_much_of_revisions_as_is_known(stage: Stage, planned: str, now: str, says: str) -> None:
    asking(stage, "insertHtml", revision=planned)
    stage.answer_request({"ok": False, "conflict": True, "error": "No.", **({"revision": now} if now else {})})
    assert says in read_error(stage)


def test_changes_without_end_are_cut(stage: Stage) -> None:
    asking(stage, "insertHtml")
    stage.answer_request(CONFLICT | {"changes": "x" * 50_000})
    error = read_error(stage)
    assert "46,000 more" in error
    assert error.endswith("Read the document again before you repeat the call.")


@pytest.mark.parametrize("said", ["yes", 1, None, False])
def test_only_a_clear_word_is_a_conflict(stage: Stage, said: Any) -> None:
    asking(stage, "insertHtml")
    stage.answer_request({"ok": False, "error": "No.", "conflict": said})
    assert read_error(stage) == "No."


def test_what_succeeded_is_no_conflict(stage: Stage) -> None:
    asking(stage, "insertHtml")
    stage.answer_request(OK | {"conflict": True})
    told = stage.events()[-1]
    assert told.type == "toolResult"
    assert (told.ok, told.conflict) == (True, None)


def test_a_conflict_repeated_is_the_same_answer(stage: Stage) -> None:
    asking(stage, "insertHtml")
    request = stage.tool_requests()[0].request_id
    for _ in range(5):
        stage.answer_request(CONFLICT, request)
    assert stage.event_types().count("toolResult") == 1


def test_data_that_only_looks_like_it_is_data(stage: Stage) -> None:
    """An answer without `ok` is data altogether."""
    asking(stage, "getNodeHtml")
    stage.answer_request({"revision": "of a poem", "conflict": True, "inverse": []})
    stage.script_replies("I see.")
    stage.run_workflow()
    [result] = stage.results_sent_to_model()
    assert result.data == {"revision": "of a poem", "conflict": True, "inverse": []}
    assert stage.entries()[-1].state.revision == "r1"
