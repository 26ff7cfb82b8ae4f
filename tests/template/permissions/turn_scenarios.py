"""Start, run, hold, queue, cancel, recover, read and undo turns, with the permissions of each function."""

import json
import queue
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from fermata.agents.definitions.agent_list import read_agent_list
from fermata.aws.resources import Resources
from fermata.client_protocols.openai_conversations import (
    find_response_conversation,
    open_transcript_conversation,
    store_transcript,
)
from fermata.client_protocols.openai_transcript import TranscriptMessage
from fermata.conversations import conversation_store, message_store
from fermata.credentials import credential_store
from fermata.domain.blocks import AudioBlock, TextBlock
from fermata.domain.messages import Message
from fermata.turns.answer.result_tokens import issue_callback_token, open_callback_token
from fermata.turns.end.stop_turn import cancel_turn
from fermata.turns.prompt_queue import change_queue
from fermata.turns.prompt_queue.change_queue import edit_queued_prompt
from fermata.turns.prompt_queue.enqueue_prompt import start_or_enqueue
from fermata.turns.prompt_queue.queued_prompt import QueuedPrompt
from fermata.turns.prompt_queue.start_queued_prompt import start_next_prompt, start_queued_prompts
from fermata.turns.read.follow_log import LogPoller, read_entries_after
from fermata.turns.read.journal_pages import get_journal_page
from fermata.turns.recover.recover_open_turns import recover_open_turns
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.start.commit_start import StartedTurn
from fermata.turns.start.start_turn import start_turn
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from tests.recordings import WAV, encode_recording
from tests.resources import TestClock
from tests.strict.transcription import run_transcription_server
from tests.template.permissions.guarded_stage import LARGE, SNAPSHOT, StageOf, with_settings
from tests.unit.turns.stage import OK, Stage, reply_with_calls, reply_with_text, tool_call_block
from tests.unit.turns.sub_agents.sub_agent_stage import Family, ask
from tests.waiting import BACKSTOP_SECONDS


def test_a_turn_with_large_prompts_calls_and_answers(at: StageOf) -> None:
    turn = at("stream_turns").start_turn(LARGE, snapshot=SNAPSHOT, idempotency_key="once")
    at("stream_turns").start_turn(LARGE, snapshot=SNAPSHOT, idempotency_key="once")
    at("round").script_replies(
        reply_with_calls(tool_call_block("list_documents"), tool_call_block("insertHtml", parentId="p", html=LARGE)),
        LARGE,
    )
    assert at("round").run_workflow() == "waiting"
    assert at("api").show_turn()["status"] == "paused"
    request = at("stream_turns").tool_requests()[-1].request_id
    at("tool_result").answer_request({"ok": True, "data": LARGE}, request, snapshot=SNAPSHOT)
    at("tool_result").answer_request({"ok": True, "data": LARGE}, request)
    assert at("round").run_workflow() == "finished"
    assert read_entries_after(at("stream_turns").resources, turn, 0)


def test_a_round_asks_other_agents_and_whoever_ends_one_lets_it_go_on(
    at: StageOf, functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    family = Family(functions["stage"], monkeypatch)
    at("stream_turns").start_turn()
    calls = [ask("data", LARGE), ask("content", "Two"), ask("data", "Three")]
    family.script("site", reply_with_calls(*calls), "Done.")
    family.script("data", LARGE)
    family.step(at("round").turn.id)
    first, second, third = family.children()
    family.step(first.id)
    cancel_turn(functions["api"], functions["stage"].caller, second.id)
    family.time_out(at("round").turn.id)
    recover_turn(functions["recover"], third.tenant, third.id, execution_number=1, has_execution_failed=True)
    family.run()
    assert family.is_over(functions["stage"].turn)


def test_the_messages_of_an_openai_client_are_stored_and_found_again(at: StageOf, functions: dict[str, Any]) -> None:
    stream, caller = functions["stream_turns"], at("stream_turns").caller
    said = (TranscriptMessage("user", "Hi"), TranscriptMessage("assistant", "Hello."))
    imported = open_transcript_conversation(stream, caller, "site", said)
    assert len(message_store.load_messages(stream, caller.tenant, imported.id)) == 2
    turn = at("stream_turns").start_turn()
    at("round").script_replies("Hello.")
    at("round").advance_turn()
    store_transcript(stream, caller, turn, said)
    assert open_transcript_conversation(stream, caller, "site", said).id == turn.conversation
    assert find_response_conversation(stream, caller, "site", f"resp_{turn.id}", "b").id == turn.conversation
    assert read_agent_list(functions["tool_result"], caller.tenant).agents == {}


def test_a_server_answers_with_a_callback_token(at: StageOf, functions: dict[str, Any]) -> None:
    turn = at("stream_turns").start_turn()
    at("round").script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n")), "Done.")
    assert at("round").run_workflow() == "waiting"
    token = issue_callback_token(functions["tool_result"], functions["stage"].caller, turn.id)
    grant = open_callback_token(functions["tool_result"], token.text)
    at("tool_result").answer_request(OK, caller=grant.caller)
    assert at("round").run_workflow() == "finished"


def test_a_recording_is_transcribed_before_its_turn_starts(resources: Resources, functions: dict[str, Any]) -> None:
    stage: Stage = functions["stage"]
    set_budgets(functions["api"], stage.caller, Budgets(tenant=BudgetLimits(monthly_usd=Decimal(500))))
    stage.set_price(input_per_mtok=1, output_per_mtok=1)
    with run_transcription_server() as server:
        here = {"fermata_stage": "local", "provider_urls": json.dumps({"openai": server.url})}
        settings = resources.settings.model_copy(update=here)
        stage.resources = functions["credentials"]
        made = credential_store.create_credential(stage.resources, stage.caller, "openai", "apiKey", "ears", server.key)
        stage.resources = resources
        conversation = conversation_store.create_conversation(resources, stage.caller, "site", None, made.id, "model-1")
        stage.resources = with_settings(functions["stream_turns"], settings)
        stage.conversation = conversation
        server.script_text("Hello.", seconds=1)
        recording = AudioBlock(mime_type="audio/wav", data=encode_recording(WAV))
        for key in ("first", "first"):
            stage.start_turn("", pictures=(recording,), idempotency_key=key)
        assert len(server.sent) == 1


def test_several_calls_are_answered_one_by_one(at: StageOf) -> None:
    at("stream_turns").start_turn()
    at("round").script_replies(
        reply_with_calls(tool_call_block("deleteNode", nodeId="a"), tool_call_block("deleteNode", nodeId="b")), "Gone."
    )
    at("round").run_workflow()
    for _ in range(2):
        request = at("stream_turns").tool_requests()[-1].request_id
        at("tool_result").answer_request(OK, request)
    assert at("round").run_workflow() == "finished"


@pytest.mark.parametrize("ends", ["done", "cancel", "recover"])
def test_an_undo_of_edits(at: StageOf, functions: dict[str, Any], clock: TestClock, ends: str) -> None:
    turn = at("stream_turns").start_turn(revision="1")
    at("round").script_replies(
        reply_with_calls(tool_call_block("deleteNode", nodeId="a"), tool_call_block("deleteNode", nodeId="b")), "Gone."
    )
    at("round").run_workflow()
    back = {"tool": "restore", "input": {"patch": {"html": LARGE}}}
    for revision in ("2", "3"):
        at("tool_result").answer_request(OK | {"inverse": back, "revision": revision})
    at("round").run_workflow()
    at("stream_turns").start_undo(turn, idempotency_key="once")
    at("stream_turns").start_undo(turn, idempotency_key="once")
    at("round").run_workflow()
    at("tool_result").answer_request({"ok": True, "inverse": back, "revision": "4"})
    at("round").run_workflow()
    _end(at, clock, ends)
    assert len(get_journal_page(functions["api"], at("api").caller, turn.id)["entries"]) == 2
    assert at("stream_turns").event_types()[-1] in ("done", "cancelled", "error")


def _end(at: StageOf, clock: TestClock, ends: str) -> None:
    if ends == "done":
        at("tool_result").answer_request({"ok": False, "conflict": True, "error": LARGE, "revision": "9"})
        assert at("round").run_workflow() == "finished"
    elif ends == "cancel":
        at("api").cancel_turn()
    else:
        clock.advance(60)
        at("recover").recover_turn(execution_number=1, has_execution_failed=True)


def test_a_long_wait_is_held_and_answered(resources: Resources, at: StageOf, functions: dict[str, Any]) -> None:
    at("stream_turns").start_turn()
    patient = resources.settings.model_copy(update={"browser_wait_seconds": 3600})
    functions["round"] = with_settings(functions["round"], patient)
    functions["store_hold_token"] = with_settings(functions["store_hold_token"], patient)
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html=LARGE)), "Done.")
    wake = at("round").advance_turn()
    output = at("round").workflow.outputs[wake.token]
    assert output["next"] == "hold"
    held = at("store_hold_token").advance_turn(holds=True, hint=output["hint"])
    assert held.token not in at("store_hold_token").workflow.outputs
    request = at("stream_turns").tool_requests()[-1].request_id
    at("tool_result").answer_request(OK, request)
    assert at("round").run_workflow() == "finished"


@pytest.mark.parametrize("starter", ["stream_turns", "recover"])
def test_a_queued_prompt_is_edited_and_starts_after_its_turn(
    resources: Resources, at: StageOf, functions: dict[str, Any], starter: str
) -> None:
    set_budgets(functions["api"], at("api").caller, Budgets(tenant=BudgetLimits(monthly_usd=Decimal(500))))
    functions["stage"].resources = resources
    functions["stage"].set_price(input_per_mtok=3, output_per_mtok=15)
    stage = at("stream_turns")
    start = partial(start_turn, stage.resources, stage.caller)
    started = start_or_enqueue(stage.resources, stage.caller, stage.make_prompt("First"), start)
    assert isinstance(started, StartedTurn)
    stage._turn, stage._waiting_token = started.turn, ""
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html="<p></p>")), "Done.")
    at("round").run_workflow()
    stage = at("stream_turns")
    prompt = stage.make_prompt("Second", snapshot=SNAPSHOT)
    queued = start_or_enqueue(stage.resources, stage.caller, prompt, start)
    assert isinstance(queued, QueuedPrompt)
    ids = (functions["tool_result"], stage.caller, stage.conversation.id, queued.id)
    edit_queued_prompt(*ids, text=LARGE, version=1)
    assert change_queue.list_prompt_views(*ids[:3])[0]["state"] == "waiting"
    at("tool_result").answer_request(OK)
    assert at("round").run_workflow() == "finished"
    if starter == "recover":
        assert start_queued_prompts(functions["recover"], "2099-01-01T00:00:00.000Z") == 1
    else:
        assert start_next_prompt(functions["stream_turns"], stage.caller.tenant, stage.conversation.id) is not None


def test_a_hold_that_comes_after_the_end_lets_the_execution_finish(at: StageOf) -> None:
    at("stream_turns").start_turn()
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html="<p></p>")))
    at("round").run_workflow()
    at("api").cancel_turn()
    held = at("store_hold_token").advance_turn(holds=True)
    assert at("store_hold_token").workflow.outputs[held.token]["next"] == "finish"


@pytest.mark.parametrize("ends", ["answer", "cancel", "recover"])
def test_a_round_of_very_many_calls_is_held_and_ends(
    at: StageOf,
    functions: dict[str, Any],
    clock: TestClock,
    ends: str,
) -> None:
    turn = at("stream_turns").start_turn()
    at("round").script_replies(
        reply_with_calls(*[tool_call_block("deleteNode", nodeId=f"n{number}") for number in range(400)])
    )
    at("round").run_workflow()
    at("store_hold_token").advance_turn(holds=True)
    if ends == "answer":
        request = at("stream_turns").tool_requests()[-1].request_id
        at("tool_result").answer_request(OK, request)
        return
    if ends == "cancel":
        at("api").cancel_turn()
    else:
        clock.advance(60)
        at("stream_turns").workflow.states[turn.id, 1] = ("FAILED", "TurnFailed")
        recover_open_turns(functions["recover"])
    assert at("stream_turns").event_types()[-1] in ("cancelled", "error")


def test_an_unanswered_request_ends_the_turn(at: StageOf, clock: TestClock) -> None:
    at("stream_turns").start_turn()
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html="<p></p>")))
    at("round").run_workflow()
    clock.advance(120)
    assert at("round").run_workflow() == "finished"
    assert at("stream_turns").event_types()[-1] == "error"


def test_a_cancel_during_a_model_request_ends_the_turn_and_is_billed(at: StageOf, functions: dict[str, Any]) -> None:
    turn = at("stream_turns").start_turn()
    caller = at("stream_turns").caller
    said, reply = reply_with_text(LARGE)
    at("round").script_replies([said, lambda: cancel_turn(functions["api"], caller, turn.id), reply])
    at("round").advance_turn()
    assert at("stream_turns").event_types()[-1] == "cancelled"


def test_a_cancel_while_the_browser_works_resumes_the_workflow(at: StageOf) -> None:
    at("stream_turns").start_turn()
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html=LARGE)))
    at("round").run_workflow()
    assert at("api").cancel_turn() == "cancelled"


def test_a_new_prompt_takes_over_from_a_turn_during_a_model_request(at: StageOf, clock: TestClock) -> None:
    at("stream_turns").start_turn(dialect="instatic")
    said, reply = reply_with_text(LARGE)
    at("round").script_replies(
        [said, lambda: clock.advance(5), lambda: at("stream_turns").start_turn("And now?", dialect="instatic"), reply],
        "Second.",
    )
    at("round").advance_turn()
    assert at("round").run_workflow() == "finished"


def test_a_new_prompt_takes_over_from_a_turn_that_waits_for_its_browser(at: StageOf, clock: TestClock) -> None:
    at("stream_turns").start_turn(dialect="instatic")
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html="<p></p>")))
    at("round").run_workflow()
    clock.advance(5)
    assert at("stream_turns").start_turn("And now?", dialect="instatic")


def test_a_prompt_goes_behind_messages_that_are_not_counted(resources: Resources, at: StageOf) -> None:
    conversation = at("stream_turns").conversation
    message = Message(position=0, role="user", content=(TextBlock(text="Hi"),), turn="expired", created_at="2026-01-01")
    put = message_store.build_message_put(resources, conversation.tenant, conversation.id, message)
    resources.tables.write_items(put)
    at("stream_turns").start_turn()
    at("round").script_replies("Done.")
    assert at("round").run_workflow() == "finished"


def test_a_reader_receives_new_entries(at: StageOf, clock: TestClock) -> None:
    turn = at("stream_turns").start_turn()
    entries: queue.Queue[Any] = queue.Queue()
    at("round").script_replies("Hello.")
    at("round").run_workflow()
    poller = LogPoller(at("stream_turns").resources)
    follower = poller.follow(turn, 2, entries.put)
    clock.advance(1)
    assert entries.get(timeout=BACKSTOP_SECONDS) is not None
    poller.unfollow(follower)


def test_a_prompt_restarts_a_stalled_turn(at: StageOf, clock: TestClock) -> None:
    at("stream_turns").start_turn()
    at("stream_turns").workflow.started.clear()
    clock.advance(60)
    with pytest.raises(Exception, match="already generating"):
        at("stream_turns").start_turn()
    assert at("stream_turns").workflow.started


def test_the_recovery_starts_continues_and_ends_turns(at: StageOf, functions: dict[str, Any], clock: TestClock) -> None:
    turn = at("stream_turns").start_turn()
    workflow = at("stream_turns").workflow
    workflow.started.clear()
    clock.advance(60)
    assert recover_open_turns(functions["recover"]) == 1
    workflow.states[turn.id, 1] = ("SUCCEEDED", "")
    said, reply = reply_with_text(LARGE)
    at("round").script_replies(
        [
            said,
            lambda: clock.advance(11),
            lambda: recover_open_turns(functions["recover"]),
            lambda: recover_turn(
                functions["recover"], turn.tenant, turn.id, execution_number=2, has_execution_failed=True
            ),
            reply,
        ]
    )
    at("round").advance_turn()
    assert (turn.id, 2) in workflow.started
    assert at("stream_turns").event_types()[-1] == "error"
