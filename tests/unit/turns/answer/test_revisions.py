"""Revisions: on which one a call was planned, and what the model reads after a conflict (decision 0115)."""

from typing import Any

import pytest

from tests.unit.turns import invariants
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block
from tests.unit.turns.state_machine import StateMachine

INSERT = {"parentId": "root", "html": "<p>x</p>"}
CONFLICT: dict[str, Any] = {"ok": False, "conflict": True, "error": "Somebody edited n4.", "revision": "r9"}


def request_call(stage: Stage, *names: str, revision: str = "r1") -> None:
    stage.start_turn(revision=revision)
    stage.script_replies(
        reply_with_calls(
            *(tool_call_block(name, **(INSERT if name == "insertHtml" else {"nodeId": "a"})) for name in names)
        )
    )
    assert stage.run_workflow() == "waiting"


def requested_revisions(stage: Stage) -> list[str | None]:
    return [request.revision for request in stage.tool_requests()]


def last_error_sent_to_model(stage: Stage) -> str:
    stage.script_replies("I see.")
    stage.run_workflow()
    error = stage.results_sent_to_model()[-1].error
    assert error is not None
    return error


def test_a_request_names_the_revision_its_call_was_planned_on(stage: Stage) -> None:
    request_call(stage, "insertHtml")
    assert requested_revisions(stage) == ["r1"]


def test_an_editor_without_revisions_gets_none(stage: Stage) -> None:
    request_call(stage, "insertHtml", "insertHtml", revision="")
    stage.answer_request(OK)
    assert requested_revisions(stage) == [None, None]
    assert all("revision" not in request.to_wire() for request in stage.tool_requests())


def test_the_turns_own_edit_updates_the_planned_revision(stage: Stage) -> None:
    request_call(stage, "insertHtml", "insertHtml", "insertHtml")
    stage.answer_request(OK | {"revision": "r2"})
    stage.answer_request(OK, revision="r3")
    assert requested_revisions(stage) == ["r1", "r2", "r3"]


def test_the_revision_in_the_result_overrides_that_of_the_body(stage: Stage) -> None:
    request_call(stage, "insertHtml", "insertHtml")
    stage.answer_request(OK | {"revision": "r2"}, revision="r0")
    assert requested_revisions(stage) == ["r1", "r2"]


def test_a_revision_from_a_read_counts_from_the_next_response_on(stage: Stage) -> None:
    """The rest of this response was planned before the model read that result."""
    request_call(stage, "getNodeHtml", "insertHtml")
    stage.answer_request({"ok": True, "data": "…", "revision": "r2, by hand"})
    stage.answer_request(CONFLICT | {"revision": "r2, by hand"})
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", **INSERT)))
    stage.run_workflow()
    assert requested_revisions(stage) == ["r1", "r1", "r2, by hand"]


def test_a_conflict_does_not_update_the_planned_revision(stage: Stage) -> None:
    request_call(stage, "insertHtml", "insertHtml")
    stage.answer_request(CONFLICT)
    assert requested_revisions(stage) == ["r1", "r1"]


def test_the_next_invocation_knows_the_revision(stage: Stage) -> None:
    request_call(stage, "insertHtml")
    stage.answer_request(OK | {"revision": "r2"})
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", **INSERT)))
    machine = StateMachine(stage)
    machine.run()
    assert requested_revisions(stage) == ["r1", "r2"]
    assert stage.entries()[-1].state.revision == "r2"


def test_the_next_turn_begins_with_the_revision_of_its_prompt(stage: Stage) -> None:
    request_call(stage, "insertHtml")
    stage.answer_request(OK | {"revision": "r2"})
    stage.script_replies("Done.")
    stage.run_workflow()
    request_call(stage, "insertHtml", revision="")
    assert requested_revisions(stage) == [None]


def test_a_conflict_names_both_revisions_and_what_to_do_for_the_model(stage: Stage) -> None:
    request_call(stage, "insertHtml")
    stage.answer_request(CONFLICT | {"changes": 'n4 now says "Bread & more".'})
    result_event = stage.events()[-1]
    assert result_event.type == "toolResult"
    assert result_event.conflict is True
    assert last_error_sent_to_model(stage).splitlines() == [
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
def test_a_conflict_names_the_revisions_that_are_known(stage: Stage, planned: str, now: str, says: str) -> None:
    request_call(stage, "insertHtml", revision=planned)
    stage.answer_request({"ok": False, "conflict": True, "error": "No.", **({"revision": now} if now else {})})
    assert says in last_error_sent_to_model(stage)


def test_long_changes_are_shortened(stage: Stage) -> None:
    request_call(stage, "insertHtml")
    stage.answer_request(CONFLICT | {"changes": "x" * 50_000})
    error = last_error_sent_to_model(stage)
    assert "46,000 more" in error
    assert error.endswith("Read the document again before you repeat the call.")


@pytest.mark.parametrize("value", ["yes", 1, None, False])
def test_only_true_marks_a_conflict(stage: Stage, value: Any) -> None:
    request_call(stage, "insertHtml")
    stage.answer_request({"ok": False, "error": "No.", "conflict": value})
    assert last_error_sent_to_model(stage) == "No."


def test_a_success_is_no_conflict(stage: Stage) -> None:
    request_call(stage, "insertHtml")
    stage.answer_request(OK | {"conflict": True})
    result_event = stage.events()[-1]
    assert result_event.type == "toolResult"
    assert (result_event.ok, result_event.conflict) == (True, None)


def test_a_repeated_conflict_is_the_same_answer(stage: Stage) -> None:
    request_call(stage, "insertHtml")
    request = stage.tool_requests()[0].request_id
    for _ in range(5):
        stage.answer_request(CONFLICT, request)
    assert stage.event_types().count("toolResult") == 1


def test_data_with_the_same_member_names_stays_data(stage: Stage) -> None:
    """A result without `ok` is data as a whole."""
    request_call(stage, "getNodeHtml")
    stage.answer_request({"revision": "of a poem", "conflict": True, "inverse": []})
    stage.script_replies("I see.")
    stage.run_workflow()
    [result] = stage.results_sent_to_model()
    assert result.data == {"revision": "of a poem", "conflict": True, "inverse": []}
    assert stage.entries()[-1].state.revision == "r1"
