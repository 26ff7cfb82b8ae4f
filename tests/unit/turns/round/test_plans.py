"""A turn of the planner ends with its plan: applied, held, corrected once, or refused."""

from dataclasses import replace
from typing import Any

import pytest

from fermata.conversations import conversation_store
from fermata.domain.events import EditPlanEvent, ToolResultEvent
from fermata.domain.model_io import FinishReason
from fermata.plans.drafts.draft_history import import_pages
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.plans.drafts.multi_step_request import MAX_STEP_CHARACTERS, load_chain, read_steps
from fermata.plans.drafts.pending_plan import load_pending_plan
from fermata.turns.approvals.decide_held_plan import apply_held_plan, discard_held_plan
from fermata.turns.start.start_turn import start_turn
from tests.faults import ProcessDied
from tests.unit.plans.page_samples import SITE
from tests.unit.turns.stage import Stage, as_posted_snapshot, reply_with_calls, reply_with_text, tool_call_block

TRANSACT = "dynamodb.TransactWriteItems"
HEADING = {"op": "update_props", "pageSlug": "/", "blockId": "b_hero", "patch": {"heading": "New"}}
WRONG = {"op": "update_props", "pageSlug": "/", "blockId": "b_none", "patch": {"heading": "New"}}


@pytest.fixture
def planner(stage: Stage) -> Stage:
    stage.conversation = conversation_store.create_conversation(
        stage.resources, stage.caller, "planner", None, stage.credential.id, "model-1"
    )
    import_pages(stage.resources, locate(stage), SITE.pages, overwrite=False)
    return stage


def locate(stage: Stage) -> DraftLocation:
    return DraftLocation(stage.caller.tenant, stage.conversation.id)


def start(stage: Stage, text: str = "Change the heading", **snapshot: Any) -> None:
    prompt = replace(stage.make_prompt(text), scope="planner", snapshot=as_posted_snapshot({"slug": "/", **snapshot}))
    stage._turn = start_turn(stage.resources, stage.caller, prompt).turn


def plan_call(*operations: Any, summary: str = "Done.") -> Any:
    return tool_call_block("submit_edit_plan", summary_for_user=summary, ops=list(operations))


def list_plans(stage: Stage) -> list[EditPlanEvent]:
    return [event for event in stage.events() if isinstance(event, EditPlanEvent)]


def read_heading(stage: Stage) -> str:
    page = load_draft(stage.resources, locate(stage)).draft.find_page("/")
    block = page.find_block("b_hero") if page else None
    assert block
    heading: str = block.props["heading"]
    return heading


def test_an_accepted_plan_is_applied_and_ends_the_turn_with_its_summary(planner: Stage) -> None:
    start(planner)
    planner.script_replies(reply_with_calls(plan_call(HEADING, summary="The heading is new.")))
    assert planner.run_workflow() == "finished"
    assert len(planner.driver.requests) == 1
    assert read_heading(planner) == "New"
    assert planner.event_types()[-3:] == ["text", "usage", "done"]
    (plan,) = list_plans(planner)
    assert (plan.outcome["status"], plan.is_final) == ("applied", True)
    assert planner.load_messages()[-1].content[0].to_wire()["text"] == "The heading is new."


def test_other_calls_beside_a_plan_are_dropped(planner: Stage) -> None:
    start(planner)
    second = plan_call({"op": "remove_page", "pageSlug": "/faq"})
    planner.script_replies(reply_with_calls(tool_call_block("list_pages"), plan_call(HEADING), second))
    assert planner.run_workflow() == "finished"
    assert read_heading(planner) == "New"
    assert [event.ok for event in planner.events() if isinstance(event, ToolResultEvent)] == [False, True, False]
    assert len(list_plans(planner)) == 1


def test_pages_are_read_before_a_plan_is_submitted(planner: Stage) -> None:
    start(planner)
    planner.script_replies(
        reply_with_calls(tool_call_block("get_page", slug="/faq")), reply_with_calls(plan_call(HEADING))
    )
    assert planner.run_workflow() == "finished"
    assert "FAQAccordion" in str(planner.driver.requests[1].messages[-1].content)


def test_a_refused_plan_is_corrected_once(planner: Stage) -> None:
    start(planner)
    planner.script_replies(reply_with_calls(plan_call(WRONG)), reply_with_calls(plan_call(HEADING)))
    assert planner.run_workflow() == "finished"
    feedback = str(planner.driver.requests[1].messages[-1].content)
    assert "There is no block b_none on /." in feedback
    assert "Keep all 1 operations" in feedback
    assert [(plan.outcome["status"], plan.is_final) for plan in list_plans(planner)] == [
        ("validation_error", False),
        ("applied", True),
    ]


def test_a_plan_that_is_refused_twice_ends_the_turn(planner: Stage) -> None:
    start(planner)
    planner.script_replies(reply_with_calls(plan_call(WRONG)), reply_with_calls(plan_call(WRONG)))
    assert planner.run_workflow() == "finished"
    assert len(planner.driver.requests) == 2
    assert list_plans(planner)[-1].is_final
    assert read_heading(planner) == "Welcome"


def test_a_destructive_plan_waits_and_the_log_says_what_was_normalized(planner: Stage) -> None:
    start(planner, "delete page /faq")
    planner.script_replies(reply_with_calls(plan_call({"op": "remove_block", "path": "/faq"})))
    assert planner.run_workflow() == "finished"
    outcome = list_plans(planner)[0].outcome
    assert outcome["status"] == "plan_ready"
    assert outcome["ops"] == [{"op": "remove_page", "pageSlug": "/faq"}]
    assert outcome["normalizedFrom"][0]["submitted"] == {"op": "remove_block", "path": "/faq"}
    assert "turn_into_remove_page" in outcome["normalizedFrom"][0]["rules"]
    pending = load_pending_plan(planner.resources, locate(planner))
    assert pending is not None
    assert pending.outcome.to_wire() == outcome


def test_a_plan_only_turn_holds_its_plan(planner: Stage) -> None:
    start(planner, onlyPlan=True)
    planner.script_replies(reply_with_calls(plan_call(HEADING)))
    assert planner.run_workflow() == "finished"
    assert list_plans(planner)[0].outcome["status"] == "plan_ready"
    assert read_heading(planner) == "Welcome"


def test_a_plan_in_the_text_is_submitted_even_if_it_is_broken(planner: Stage) -> None:
    start(planner)
    text = 'Here is the plan: {"intent":"edit_plan","ops":[{"op":"edit_block","blockId":"b_hero","heading":"New"}'
    planner.script_replies(reply_with_text(text))
    assert planner.run_workflow() == "finished"
    assert read_heading(planner) == "New"


def test_a_text_without_a_plan_is_the_answer(planner: Stage) -> None:
    start(planner)
    planner.script_replies(reply_with_text("Which heading do you mean?"))
    assert planner.run_workflow() == "finished"
    assert list_plans(planner) == []


def test_a_plan_in_a_text_that_was_cut_off_is_not_submitted(planner: Stage) -> None:
    start(planner)
    text = '{"intent":"edit_plan","ops":[{"op":"edit_block","blockId":"b_hero","heading":"New"},{"op":"remove'
    planner.script_replies(reply_with_text(text, FinishReason.MAX_TOKENS))
    assert planner.run_workflow() == "finished"
    assert read_heading(planner) == "Welcome"


@pytest.mark.parametrize(("contains", "when"), [("d#head", "after"), ("editPlan", "before"), ("editPlan", "after")])
def test_a_plan_is_applied_once_though_the_function_dies_around_it(planner: Stage, contains: str, when: str) -> None:
    start(planner)
    planner.script_replies(reply_with_calls(plan_call(HEADING)))
    planner.faults.kill_process(TRANSACT, when=when, contains=contains)
    with pytest.raises(ProcessDied):
        planner.run_workflow()
    assert planner.faults.is_spent
    assert planner.run_workflow() == "finished"
    assert load_draft(planner.resources, locate(planner)).version == 2
    (plan,) = list_plans(planner)
    assert plan.outcome["previewVersion"] == 2
    assert len(planner.driver.requests) == 1


@pytest.mark.parametrize("is_applied", [True, False])
def test_a_plan_that_was_decided_while_its_function_was_dead_is_not_held_again(
    planner: Stage, is_applied: bool
) -> None:
    start(planner, onlyPlan=True)
    planner.script_replies(reply_with_calls(plan_call(HEADING)), reply_with_text("So be it."))
    planner.faults.kill_process(TRANSACT, when="after", contains="d#plan")
    with pytest.raises(ProcessDied):
        planner.run_workflow()
    decide = apply_held_plan if is_applied else discard_held_plan
    assert decide(planner.resources, planner.caller, locate(planner), "")
    assert planner.run_workflow() == "finished"
    assert load_pending_plan(planner.resources, locate(planner)) is None
    assert load_draft(planner.resources, locate(planner)).version == 1 + is_applied
    assert [plan.outcome["status"] for plan in list_plans(planner)] == ["applied"] * is_applied
    if not is_applied:
        (result,) = planner.results_sent_to_model()
        assert "denied" in str(result.error)


def plan_with_steps(*operations: Any, steps: list[str]) -> Any:
    return tool_call_block("submit_edit_plan", summary_for_user="Done.", ops=list(operations), next_steps=steps)


def test_a_request_that_is_too_large_goes_on_step_by_step(planner: Stage) -> None:
    start(planner)
    planner.script_replies(reply_with_calls(plan_with_steps(HEADING, steps=["Add prices.", "Add a team page."])))
    assert planner.run_workflow() == "finished"
    first = list_plans(planner)[0].outcome["continuation"]
    assert (first["currentStep"], first["totalSteps"], first["nextStepLabel"]) == (1, 3, "Add prices.")
    seen = [first]
    for step in (2, 3):
        start(planner, seen[-1]["nextStepLabel"], chainId=first["chainId"], chainStep=step)
        heading = {**HEADING, "patch": {"heading": f"Step {step}"}}
        planner.script_replies(reply_with_calls(plan_with_steps(heading, steps=["Never mind."])))
        assert planner.run_workflow() == "finished"
        seen.append(list_plans(planner)[0].outcome.get("continuation"))
    assert seen[1] == {**first, "currentStep": 2, "nextStepLabel": "Add a team page."}
    assert seen[2] is None
    assert load_chain(planner.resources, locate(planner)) is None


@pytest.mark.parametrize(("contains", "when"), [("d#chain", "after"), ("editPlan", "before")])
def test_a_chain_advances_once_though_the_function_dies_around_it(planner: Stage, contains: str, when: str) -> None:
    start(planner)
    planner.script_replies(reply_with_calls(plan_with_steps(HEADING, steps=["Two.", "Three."])))
    assert planner.run_workflow() == "finished"
    chain = list_plans(planner)[0].outcome["continuation"]
    start(planner, "Two.", chainId=chain["chainId"], chainStep=2)
    planner.script_replies(reply_with_calls(plan_call({**HEADING, "patch": {"heading": "Two"}})))
    planner.faults.kill_process(TRANSACT, when=when, contains=contains)
    with pytest.raises(ProcessDied):
        planner.run_workflow()
    assert planner.run_workflow() == "finished"
    assert list_plans(planner)[0].outcome["continuation"] == {**chain, "currentStep": 2, "nextStepLabel": "Three."}


@pytest.mark.parametrize("is_held", [False, True])
def test_a_step_whose_turn_was_ended_behind_its_plan_is_not_planned_again(planner: Stage, is_held: bool) -> None:
    """The function dies with the plan accepted, and its user goes on with the chain instead of waiting for it."""
    start(planner)
    planner.script_replies(reply_with_calls(plan_with_steps(HEADING, steps=["Two.", "Three."])))
    assert planner.run_workflow() == "finished"
    chain = list_plans(planner)[0].outcome["continuation"]["chainId"]
    start(planner, "Two.", chainId=chain, chainStep=2, onlyPlan=is_held)
    planner.script_replies(reply_with_calls(plan_call({**HEADING, "patch": {"heading": "Two"}})))
    planner.faults.kill_process(TRANSACT, when="after", contains="d#chain")
    with pytest.raises(ProcessDied):
        planner.run_workflow()
    planner.cancel_turn()
    left = load_chain(planner.resources, locate(planner))
    assert left is not None
    assert (left.step, left.remaining) == (2, ("Three.",))


def test_steps_that_are_no_texts_are_none() -> None:
    assert read_steps([" One. ", 2, "", None, *["x" * 900] * 20]) == ("One.", *["x" * MAX_STEP_CHARACTERS] * 9)
    assert read_steps("One, two.") == ()


def test_a_cancelled_turn_is_not_continued_by_its_plan(planner: Stage) -> None:
    start(planner)
    planner.script_replies(reply_with_calls(plan_call(HEADING)))
    planner.faults.interrupt(TRANSACT, planner.cancel_turn, contains="d#head")
    assert planner.run_workflow() == "finished"
    assert [event.type for event in planner.terminal_events()] == ["cancelled"]
