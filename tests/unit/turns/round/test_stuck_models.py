"""A model that makes no progress has to answer without tools, and the user reads why."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.credentials import credential_store
from fermata.domain.events import WarningEvent
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from fermata.turns.round import forced_answer
from fermata.turns.round.forced_answer import TurnProgress
from tests.unit.conversations.message_builders import ThreadBuilder, make_call
from tests.unit.turns import invariants
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import OK, Stage, reply_with_calls, reply_with_text, tool_call_block

FAILURE: dict[str, Any] = {"ok": False, "error": "There is no such node."}
PAGE: dict[str, Any] = {"ok": True, "data": {"html": "<p>Bread</p>"}}


def run_calls(stage: Stage, *rounds: tuple[str, dict[str, Any], dict[str, Any]]) -> list[bool]:
    """Run a turn with a browser call in each round: name, input, and the posted result. Then the model answers.

    Returns whether each of its requests offered tools.
    """
    before = len(stage.driver.requests)
    stage.start_turn()
    stage.script_replies(
        *(reply_with_calls(tool_call_block(name, **arguments)) for name, arguments, _ in rounds), "I stop here."
    )
    for _, _, result in rounds:
        assert stage.run_workflow() == "waiting"
        stage.answer_request(result)
    assert stage.run_workflow() == "finished"
    return [request.call_tools for request in stage.driver.requests[before:]]


def get_warnings(stage: Stage) -> list[WarningEvent]:
    return [event for event in stage.events() if isinstance(event, WarningEvent)]


def test_the_same_call_is_answered_three_times_and_then_the_model_must_answer(stage: Stage) -> None:
    assert run_calls(stage, *[("getNodeHtml", {"nodeId": "n1"}, PAGE)] * 3) == [True, True, True, False]
    (warning,) = get_warnings(stage)
    assert warning.code == "repeatedCall"
    assert warning.message.startswith("The model called getNodeHtml 3 times with the same input")
    assert "getNodeHtml 3 times" in stage.driver.requests[3].instruction
    assert stage.entries()[-1].state.forced_answer_reason == "repeatedCall"
    assert stage.event_types()[-1] == "done"
    assert stage.streamed_text() == "I stop here."
    invariants.check_invariants(stage)


def test_the_same_large_input_is_recognised_although_it_is_in_s3(stage: Stage) -> None:
    page = "<p>Bread</p>" * 4_000
    assert run_calls(stage, *[("insertHtml", {"parentId": "root", "html": page}, FAILURE)] * 3)[-1] is False
    assert [warning.code for warning in get_warnings(stage)] == ["repeatedCall"]


def test_the_order_of_members_and_null_members_make_no_other_call(stage: Stage) -> None:
    inputs: list[dict[str, Any]] = [{"nodeId": "n1", "label": "A"}, {"label": "A", "nodeId": "n1"}]
    calls = [("renameNode", members, FAILURE) for members in (*inputs, inputs[0])]
    assert run_calls(stage, *calls)[-1] is False


def test_calls_that_could_not_be_read_are_the_same_if_their_texts_are(stage: Stage) -> None:
    """Their input is empty. What was written is quoted in the problem."""
    problems = ["at 1: {a", "at 2: {b", "at 3: {c", "at 4: {d", "at 5: {e"]
    stage.start_turn()
    unreadable = [
        tool_call_block("insertHtml").model_copy(update={"malformed": True, "problem": problem}) for problem in problems
    ]
    stage.script_replies(*map(reply_with_calls, unreadable), "I stop here.")
    assert stage.run_workflow() == "finished"
    assert [warning.code for warning in get_warnings(stage)] == ["repeatedFailures"]
    stage.start_turn()
    stage.script_replies(*[reply_with_calls(call) for call in unreadable[:1] * 3], "I stop here.")
    assert stage.run_workflow() == "finished"
    assert get_warnings(stage)[-1].code == "repeatedCall"


def test_calls_with_other_calls_between_them_count_too(stage: Stage) -> None:
    reads = [("read_document", {"part": part}, PAGE) for part in (1, 2, 1, 2, 1)]
    assert run_calls(stage, *reads) == [True] * 5 + [False]


def test_what_is_read_again_after_an_edit_is_not_the_same(stage: Stage) -> None:
    read = ("getNodeHtml", {"nodeId": "n1"}, PAGE)
    edits = [("renameNode", {"nodeId": "n1", "label": f"Label {number}"}, OK) for number in range(3)]
    assert all(run_calls(stage, read, edits[0], read, edits[1], read, edits[2], read))
    assert get_warnings(stage) == []


def test_a_failed_edit_changes_nothing(stage: Stage) -> None:
    read = ("getNodeHtml", {"nodeId": "n1"}, PAGE)
    edit = ("deleteNode", {"nodeId": "n9"}, FAILURE)
    assert run_calls(stage, read, edit, read, edit, read)[-1] is False


def test_the_same_edit_again_and_again_is_stopped(stage: Stage) -> None:
    assert run_calls(stage, *[("insertHtml", {"parentId": "root", "html": "<hr>"}, OK)] * 3)[-1] is False


def make_rule(color: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    return "applyCss", {"css": f"h1 {{ color: {color} }}"}, OK


def test_edits_that_the_model_makes_and_takes_back_in_turn_are_stopped(stage: Stage) -> None:
    read = ("getNodeHtml", {"nodeId": "n1"}, PAGE)
    circle = (make_rule("red"), read, make_rule("blue"), read)
    assert run_calls(stage, *circle, *circle, *circle[:3]) == [True] * 11 + [False]
    (warning,) = get_warnings(stage)
    assert warning.code == "repeatedCall"
    assert warning.message.startswith("The model made the same edits 3 times in turn")


def test_an_edit_that_belongs_between_others_is_made_as_often_as_it_is_needed(stage: Stage) -> None:
    rule = ("insertHtml", {"parentId": "root", "html": "<hr>"}, OK)
    sections = [("insertHtml", {"parentId": "root", "html": f"<p>{number}</p>"}, OK) for number in range(4)]
    assert all(run_calls(stage, *(call for section in sections for call in (section, rule))))


def test_the_same_call_twice_in_one_round_counts_once(stage: Stage) -> None:
    stage.start_turn()
    calls = [tool_call_block("list_documents") for _ in range(4)]
    stage.script_replies(reply_with_calls(*calls), "Done.")
    assert stage.run_workflow() == "finished"
    assert [request.call_tools for request in stage.driver.requests] == [True, True]


def test_five_rounds_of_failures_end_in_an_answer(stage: Stage) -> None:
    assert run_calls(stage, *[("deleteNode", {"nodeId": f"n{number}"}, FAILURE) for number in range(5)]) == [
        True
    ] * 5 + [False]
    (warning,) = get_warnings(stage)
    assert warning.code == "repeatedFailures"
    assert stage.entries()[-1].state.forced_answer_reason == "repeatedFailures"


def test_a_success_in_between_starts_the_count_of_failures_anew(stage: Stage) -> None:
    failures = [("deleteNode", {"nodeId": f"n{number}"}, FAILURE) for number in range(8)]
    assert all(run_calls(stage, *failures[:4], ("deleteNode", {"nodeId": "found"}, OK), *failures[4:]))


def test_calls_that_a_stuck_model_still_makes_are_not_run(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(*(reply_with_calls(tool_call_block("list_documents"), text=str(n)) for n in range(4)))
    assert stage.run_workflow() == "finished"
    assert stage.event_types().count("toolCall") == 3
    assert [warning.code for warning in get_warnings(stage)] == ["repeatedCall"]
    invariants.check_invariants(stage)


def test_earlier_turns_do_not_count(stage: Stage) -> None:
    for _ in range(2):
        assert all(run_calls(stage, *[("getNodeHtml", {"nodeId": "n1"}, PAGE)] * 2))


def test_the_limits_can_be_lifted(staged: MakeStage) -> None:
    stage = staged(max_repeated_calls=0, max_failed_rounds=0)
    assert all(run_calls(stage, *[("deleteNode", {"nodeId": "n1"}, FAILURE)] * 7))


@pytest.mark.parametrize(("max_rounds", "words"), [(1, "This turn has one step."), (2, "This is step 2 of 2")])
def test_the_last_round_says_that_it_is_the_last(staged: MakeStage, max_rounds: int, words: str) -> None:
    stage = staged(max_rounds=max_rounds)
    stage.start_turn()
    replies = [reply_with_calls(tool_call_block("list_documents")) for _ in range(max_rounds)]
    stage.script_replies(*replies)
    assert stage.run_workflow() == "finished"
    last: ModelRequest = stage.driver.requests[-1]
    assert words in last.instruction
    (warning,) = get_warnings(stage)
    assert warning.code == "roundLimit"
    assert f"limit of {max_rounds} steps" in warning.message


def test_a_prompt_that_ollama_would_cut_in_silence_is_refused_with_what_helps(staged: MakeStage) -> None:
    stage = staged(ollama_window_tokens=24_000)
    stage.credential = credential_store.create_credential(
        stage.resources, stage.caller, "ollama", "baseUrl", "llama", None, "https://8.8.8.8"
    )
    stage.new_conversation()
    stage.start_turn("x" * 90_000)
    assert stage.run_workflow() == "finished"
    assert stage.driver.requests == []
    (error,) = stage.terminal_events()
    assert error.to_wire()["code"] == "provider_overflow"
    assert "It is saved." in error.to_wire()["message"]
    assert "larger context window" in error.to_wire()["message"]


ROUNDS = st.lists(
    st.lists(st.tuples(st.sampled_from(["read", "edit"]), st.integers(1, 2), st.booleans()), max_size=3), max_size=8
)


def is_edit(tool_name: str) -> bool:
    return tool_name == "edit"


def build_messages(rounds: list[list[tuple[str, int, bool]]]) -> list[list[Message]]:
    thread = ThreadBuilder()
    thread.add_prompt("Work")
    groups = [list(thread.messages)]
    for calls in rounds:
        begin = len(thread.messages)
        names = [f"c{begin}-{index}" for index in range(len(calls))]
        thread.add_reply("So", *(make_call(c, name, n=n) for c, (name, n, _) in zip(names, calls, strict=True)))
        for call_id, (name, _, ok) in zip(names, calls, strict=True):
            thread.add_result(call_id, name, ok=ok)
        groups.append(thread.messages[begin:])
    return groups


@given(rounds=ROUNDS)
def test_a_function_that_takes_the_turn_over_counts_as_the_one_that_ran_it(
    rounds: list[list[tuple[str, int, bool]]],
) -> None:
    stored: list[Message] = []
    progress = TurnProgress("turn-1", is_edit)
    for messages in build_messages(rounds):
        stored += messages
        progress.read_messages(stored)
        anew = TurnProgress("turn-1", is_edit)
        anew.read_messages(stored)
        assert progress.most_repeated_call[1] == anew.most_repeated_call[1]
        assert progress.failed_rounds == anew.failed_rounds
        assert progress.edits_in_turn == anew.edits_in_turn


def test_a_round_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn of two hundred rounds would otherwise count twenty thousand."""
    counted: list[int] = []
    describe_inputs = forced_answer.describe_inputs

    def note_reply(reply: Message) -> dict[str | None, str]:
        counted.append(reply.position)
        return describe_inputs(reply)

    monkeypatch.setattr(forced_answer, "describe_inputs", note_reply)
    progress = TurnProgress("turn-1", is_edit)
    stored: list[Message] = []
    for messages in build_messages([[("read", number, True)] for number in range(5)]):
        stored += messages
        progress.read_messages(stored)
    assert len(counted) == len(set(counted)) == 5


def test_a_turn_says_once_that_the_server_has_cut_its_prompt(stage: Stage) -> None:
    def cut_prompt(reply: list[Any], read: int) -> list[Any]:
        return [*reply[:-1], reply[-1].model_copy(update={"warning": f"Read only {read}.", "is_prompt_cut": True})]

    for prompt in ("Change it.", "Again."):
        stage.start_turn(prompt)
        stage.script_replies(
            cut_prompt(reply_with_calls(tool_call_block("getNodeHtml", nodeId="n1")), 10),
            cut_prompt(reply_with_calls(tool_call_block("getNodeHtml", nodeId="n2")), 20),
            cut_prompt(reply_with_text("Done."), 30),
        )
        for _ in range(2):
            assert stage.run_workflow() == "waiting"
            stage.answer_request(PAGE)
        assert stage.run_workflow() == "finished"
        assert [(warning.message, warning.code) for warning in get_warnings(stage)] == [("Read only 10.", "promptCut")]
        assert stage.entries()[-1].state.forced_answer_reason == ""
