"""A plan that waits is an approval like any other: listed, decided once, by whoever may, and kept in the trail."""

from dataclasses import replace
from typing import Any

import pytest

from fermata.agents.approval_policy import ApprovalPolicy
from fermata.agents.policy_store import set_policy
from fermata.conversations import conversation_store
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, Forbidden, InvalidRequest
from fermata.domain.events import ApprovalRequestedEvent
from fermata.plans.drafts.draft_history import import_pages
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.plans.drafts.pending_plan import PENDING_PLAN_SECONDS, load_pending_plan
from fermata.tools.planner.toolset import PLANNER_TOOLSET
from fermata.turns.approvals.approval_answer import ApprovalAnswer, ApprovalClosed
from fermata.turns.approvals.approval_record import ApprovalRecord
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.approvals.decide_held_plan import apply_held_plan, discard_held_plan
from fermata.turns.approvals.decision_trail import verify_trail
from fermata.turns.approvals.list_approvals import get_approval, list_waiting_approvals
from fermata.turns.approvals.list_decisions import list_decisions
from fermata.turns.start.start_turn import start_turn
from tests.faults import ProcessDied
from tests.unit.plans.page_samples import SITE
from tests.unit.turns.approvals.bakery import HEAD_BAKER, NO, YES
from tests.unit.turns.stage import Stage, as_posted_snapshot, reply_with_calls, tool_call_block

TRANSACT = "dynamodb.TransactWriteItems"
REMOVAL = {"op": "remove_page", "pageSlug": "/faq"}
HEADING = {"op": "update_props", "pageSlug": "/", "blockId": "b_hero", "patch": {"heading": "New"}}
OTHER_BAKER = HEAD_BAKER.model_copy(update={"user": "mary"})


class Planner:
    """A user whose plans wait, and the people who decide about them."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.resources = stage, stage.resources
        stage.conversation = conversation_store.create_conversation(
            stage.resources, stage.caller, "planner", None, stage.credential.id, "model-1"
        )
        self.here = DraftLocation(stage.caller.tenant, stage.conversation.id)
        import_pages(stage.resources, self.here, SITE.pages, overwrite=False)

    def hold(self, *operations: dict[str, Any]) -> ApprovalRecord:
        stage = self.stage
        snapshot = as_posted_snapshot({"slug": "/", "onlyPlan": True})
        prompt = replace(stage.make_prompt("Do it"), scope="planner", snapshot=snapshot)
        stage._turn = start_turn(stage.resources, stage.caller, prompt).turn
        call = tool_call_block("submit_edit_plan", summary_for_user="Done.", ops=list(operations))
        stage.script_replies(reply_with_calls(call))
        assert stage.run_workflow() == "finished"
        return self.waiting()[-1]

    def waiting(self) -> tuple[ApprovalRecord, ...]:
        return list_waiting_approvals(self.resources, HEAD_BAKER, "", 50).approvals

    def decide(self, record: ApprovalRecord, answer: ApprovalAnswer = YES, by: Caller = HEAD_BAKER) -> ApprovalRecord:
        return decide_approval(self.resources, by, record.id, answer)

    def outcomes(self) -> list[tuple[str, str]]:
        decisions = list_decisions(self.resources, HEAD_BAKER, "", 50).decisions
        return [(one["outcome"], one["decidedBy"]) for one in decisions]

    @property
    def slugs(self) -> tuple[str, ...]:
        return load_draft(self.resources, self.here).draft.slugs


@pytest.fixture
def planner(stage: Stage) -> Planner:
    return Planner(stage)


def test_a_plan_that_waits_is_listed_with_its_final_operations_and_reasons(planner: Planner) -> None:
    record = planner.hold({"op": "delete_page", "slug": "/faq"})
    assert (record.tool_name, record.reasons, record.risk) == ("submit_edit_plan", ("destructivePlan",), "high")
    view = get_approval(planner.resources, HEAD_BAKER, record.id)
    assert view["input"] == {"summary": "Done.", "ops": [REMOVAL]}
    assert view["plan"]["normalizedFrom"][0]["submitted"] == {"op": "delete_page", "slug": "/faq"}
    assert view["plan"]["destructiveReasons"][0]["kind"] == "remove_page"
    [request] = [event for event in planner.stage.events() if isinstance(event, ApprovalRequestedEvent)]
    assert (request.approval_id, request.input_hash) == (record.id, record.input_hash)
    assert request.tool_call_id == record.tool_call_id


def test_an_approval_applies_the_plan_and_the_trail_says_who_agreed(planner: Planner) -> None:
    record = planner.hold(REMOVAL)
    decided = planner.decide(record, ApprovalAnswer(is_approved=True, input_hash=record.input_hash))
    assert (decided.state, decided.decided_by) == ("approved", "grace")
    assert "/faq" not in planner.slugs
    assert planner.waiting() == ()
    assert load_pending_plan(planner.resources, planner.here) is None
    assert planner.outcomes() == [("approved", "grace")]
    assert verify_trail(planner.resources, "bakery").problem == ""
    row = planner.resources.tables.get_item(
        planner.resources.settings.bridges_table, f"t#bakery#turn#{record.turn}", "a#000001#0000"
    )
    assert row
    assert row["ttl"] == record.expires > record.deadline


def test_the_same_decision_again_is_the_same_and_another_one_is_refused(planner: Planner) -> None:
    record = planner.hold(REMOVAL)
    assert planner.decide(record) == planner.decide(record)
    for answer, by in ((NO, HEAD_BAKER), (YES, OTHER_BAKER)):
        with pytest.raises(ApprovalClosed, match="already been approved"):
            planner.decide(record, answer, by)
    assert planner.outcomes() == [("approved", "grace")]
    assert load_draft(planner.resources, planner.here).version == 2


def test_a_denied_plan_is_gone_for_its_user_too(planner: Planner) -> None:
    record = planner.hold(REMOVAL)
    assert planner.decide(record, NO).state == "denied"
    with pytest.raises(Conflict, match="no plan that waits"):
        apply_held_plan(planner.resources, planner.stage.caller, planner.here, record.plan_id)
    assert "/faq" in planner.slugs


def test_its_user_applies_or_drops_it_and_the_inbox_knows(planner: Planner) -> None:
    first = planner.hold(REMOVAL)
    apply_held_plan(planner.resources, planner.stage.caller, planner.here, first.plan_id)
    second = planner.hold(HEADING)
    assert discard_held_plan(planner.resources, planner.stage.caller, planner.here, second.plan_id)
    assert planner.waiting() == ()
    assert planner.outcomes() == [("denied", "ada"), ("approved", "ada")]
    with pytest.raises(ApprovalClosed, match="already been approved"):
        planner.decide(first)


def test_where_the_policy_wants_another_person_its_user_may_only_drop_it(planner: Planner) -> None:
    set_policy(planner.resources, planner.stage.caller, ApprovalPolicy(separate_approver=True))
    record = planner.hold(REMOVAL)
    with pytest.raises(Forbidden):
        apply_held_plan(planner.resources, planner.stage.caller, planner.here, record.plan_id)
    assert "/faq" in planner.slugs
    assert planner.decide(record).state == "approved"
    other = planner.hold(HEADING)
    assert discard_held_plan(planner.resources, planner.stage.caller, planner.here, other.plan_id)


def test_a_newer_plan_takes_the_older_one_from_the_list(planner: Planner) -> None:
    first = planner.hold(REMOVAL)
    planner.stage.clock.advance(1)
    second = planner.hold(HEADING)
    assert [record.id for record in planner.waiting()] == [second.id]
    with pytest.raises(ApprovalClosed):
        planner.decide(first)
    assert "/faq" in planner.slugs


def test_nobody_decides_about_a_plan_after_its_hour(planner: Planner) -> None:
    record = planner.hold(REMOVAL)
    planner.stage.clock.advance(PENDING_PLAN_SECONDS)
    assert planner.waiting() == ()
    with pytest.raises((ApprovalClosed, Conflict)):
        planner.decide(record)
    assert "/faq" in planner.slugs


def test_an_approver_may_change_the_operations(planner: Planner) -> None:
    record = planner.hold(REMOVAL)
    for wrong in ({"summary": "x"}, {"ops": []}, {"ops": [{"op": "remove_page", "pageSlug": "/none"}]}):
        with pytest.raises(InvalidRequest):
            planner.decide(record, ApprovalAnswer(is_approved=True, input=wrong))
    decided = planner.decide(record, ApprovalAnswer(is_approved=True, input={"summary": "x", "ops": [HEADING]}))
    assert decided.decided_input_hash not in ("", record.input_hash)
    assert "/faq" in planner.slugs
    with pytest.raises(ApprovalClosed):
        planner.decide(record)


def test_a_decision_about_other_operations_is_refused(planner: Planner) -> None:
    record = planner.hold(REMOVAL)
    with pytest.raises(ApprovalClosed, match="another one"):
        planner.decide(record, ApprovalAnswer(is_approved=True, input_hash="0" * 64))


def test_a_plan_of_a_tool_that_was_changed_is_stale_for_everybody(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = planner.hold(REMOVAL)
    [tool] = [tool for tool in PLANNER_TOOLSET.tools if tool.name == record.tool_name]
    monkeypatch.setitem(vars(tool), "digest", "changed")
    with pytest.raises(ApprovalClosed, match="was changed"):
        planner.decide(record)
    assert planner.outcomes() == [("stale", "grace")]
    assert "/faq" in planner.slugs
    assert load_pending_plan(planner.resources, planner.here) is None


def test_of_two_people_who_decide_at_once_one_does(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    record, write = planner.hold(REMOVAL), planner.resources.tables.write_items
    raced: list[ApprovalRecord] = []

    def write_after_the_other(*writes: Any) -> None:
        monkeypatch.setattr(planner.resources.tables, "write_items", write)
        raced.append(planner.decide(record, NO, OTHER_BAKER))
        write(*writes)

    monkeypatch.setattr(planner.resources.tables, "write_items", write_after_the_other)
    with pytest.raises(ApprovalClosed, match="already been denied"):
        planner.decide(record)
    assert [one.decided_by for one in raced] == ["mary"]
    assert "/faq" in planner.slugs
    assert planner.outcomes() == [("denied", "mary")]


def test_a_decision_whose_response_was_lost_is_made_once(planner: Planner) -> None:
    record = planner.hold(REMOVAL)
    planner.stage.faults.kill_process(TRANSACT, when="after", contains="d#head")
    with pytest.raises(ProcessDied):
        planner.decide(record)
    assert planner.decide(record).state == "approved"
    assert planner.outcomes() == [("approved", "grace")]
