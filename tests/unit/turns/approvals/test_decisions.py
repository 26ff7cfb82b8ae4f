"""A call that needs a person is held until one decides: once, and about exactly that call."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from fermata.agents.approval_policy import ApprovalPolicy
from fermata.agents.policy_store import set_policy
from fermata.agents.site.agent import SITE_AGENT
from fermata.domain.caller import Caller
from fermata.domain.errors import Forbidden, InvalidRequest, NotFound
from fermata.domain.events import ApprovalDecidedEvent, ToolResultEvent
from fermata.turns.approvals.approval_answer import ApprovalAnswer, ApprovalClosed, require_approver
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.approvals.settle_call import Decision, build_denied_output
from fermata.turns.webhooks.take_answer import take_answer
from fermata.webhooks.webhook import read_webhooks
from fermata.webhooks.webhook_event import WebhookEvent
from fermata.webhooks.webhook_registry import WebhookChange, add_webhook, change_webhook
from fermata.wire.auth.api_key_store import create_api_key
from tests.stored_rows import read_table
from tests.tenant_tokens import make_tenant
from tests.unit.turns import invariants
from tests.unit.turns.approvals.bakery import ASKER, HEAD_BAKER, NO, YES, Bakery, make_bake_tool, make_sell_tool
from tests.unit.turns.stage import OK, reply_with_calls, tool_call_block

DAY = 86_400


def test_a_call_waits_in_hold_and_runs_once_it_is_approved(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    assert bakery.oven.baked == []
    assert bakery.stage.workflow.outputs["token-1"]["next"] == "hold"
    bakery.stage.pass_time(3 * DAY)
    bakery.decide(YES)
    assert bakery.stage.run_workflow() == "finished"
    assert bakery.oven.baked == [3]
    assert bakery.stage.event_types() == [
        "bridgeReady",
        "roundStarted",
        "toolCall",
        "approvalRequested",
        "context",
        "approvalDecided",
        "roundStarted",
        "toolStarted",
        "toolResult",
        "roundStarted",
        "text",
        "context",
        "usage",
        "done",
    ]
    invariants.check_invariants(bakery.stage)


def test_the_event_says_what_is_asked_and_why(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    (event,) = bakery.requested
    assert (event.tool_name, event.input, event.reasons) == ("bake", {"loaves": 3}, ("tool",))
    assert event.description == "Bakes loaves. This tool always asks."
    assert event.approval_id.startswith(f"{bakery.stage.turn.id}.1.0.")
    assert event.timestamp < event.deadline


def test_a_denial_is_a_result_that_the_model_reads_and_an_event_that_the_client_sees(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    bakery.decide(NO)
    assert bakery.stage.run_workflow() == "finished"
    assert bakery.oven.baked == []
    (result,) = bakery.results()
    assert not result.ok
    assert result.error == (
        "A person has denied this call, so nothing was done. The reason: Too many loaves. "
        "Do not call it again with the same input; go on without it, or ask the user."
    )
    assert result.data == {"success": False, "cancelled": True, "reason": "Too many loaves."}
    (event,) = bakery.decided
    assert (event.outcome, event.approved, event.reason) == ("denied", False, "Too many loaves.")
    invariants.check_invariants(bakery.stage)


@pytest.mark.parametrize(("reason", "read"), [("too many", "too many. Do"), ("Why so many?", "Why so many? Do")])
def test_a_reason_is_a_sentence_of_what_the_model_reads(reason: str, read: str) -> None:
    error = build_denied_output(Decision("denied", reason)).error
    assert error is not None
    assert f"The reason: {read} not call it again" in error


def test_a_denied_call_is_not_asked_for_again_in_its_turn(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    bakery.stage.driver.scripts.clear()
    bakery.stage.script_replies(reply_with_calls(tool_call_block("bake", loaves=3)), "Then not.")
    bakery.decide(NO)
    assert bakery.stage.run_workflow() == "finished"
    assert len(bakery.requested) == 1
    assert "already denied this call" in bakery.results()[-1].error


def test_a_browser_call_is_requested_once_it_is_approved(bakery: Bakery) -> None:
    bakery.ask_for(("sell", 2))
    assert bakery.stage.tool_requests() == []
    bakery.decide(YES)
    (request,) = bakery.stage.tool_requests()
    assert request.input == {"loaves": 2}
    assert bakery.stage.run_workflow() == "waiting"
    bakery.stage.answer_request(OK)
    assert bakery.stage.run_workflow() == "finished"
    invariants.check_invariants(bakery.stage)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_several_calls_of_a_round_are_decided_independently_in_any_order(
    bakery: Bakery, order: tuple[int, ...]
) -> None:
    bakery.ask_for(("bake", 1), ("bake", 2), ("bake", 3))
    for index in order:
        bakery.decide(NO if index == 1 else YES, index)
    assert bakery.stage.run_workflow() == "finished"
    assert bakery.oven.baked == [1, 3]
    assert [result.ok for result in bakery.results()] == [True, False, True]
    invariants.check_invariants(bakery.stage)


def test_an_approved_call_runs_though_a_later_one_still_waits(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 1), ("bake", 2))
    bakery.decide(YES, 0)
    assert bakery.stage.run_workflow() == "waiting"
    assert bakery.oven.baked == [1]
    bakery.decide(YES, 1)
    assert bakery.stage.run_workflow() == "finished"
    assert bakery.oven.baked == [1, 2]


def test_an_approver_may_change_the_input_and_the_model_is_told(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 300))
    bakery.decide(ApprovalAnswer(is_approved=True, input={"loaves": 3}))
    assert bakery.stage.run_workflow() == "finished"
    assert bakery.oven.baked == [3]
    assert bakery.results()[0].data == {"loaves": 3, "inputChangedByApprover": {"loaves": 3}}
    assert bakery.decided[0].input == {"loaves": 3}


def test_a_changed_input_has_to_fit_the_tool(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 300))
    with pytest.raises(InvalidRequest, match="loaves"):
        bakery.decide(ApprovalAnswer(is_approved=True, input={"loaves": "a few"}))
    assert bakery.decided == []
    bakery.decide(YES)
    assert bakery.stage.run_workflow() == "finished"


def test_the_first_decision_counts(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    bakery.decide(YES)
    with pytest.raises(ApprovalClosed, match="already been approved"):
        bakery.decide(NO)
    with pytest.raises(ApprovalClosed, match="already been approved"):
        bakery.decide(YES, caller=ASKER)
    assert bakery.stage.run_workflow() == "finished"
    assert len(bakery.decided) == 1


def test_the_same_decision_again_changes_nothing_and_resumes_the_turn_again(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    bakery.decide(YES)
    sent = len(bakery.stage.workflow.sent)
    assert bakery.decide(YES).state == "approved"
    assert len(bakery.stage.workflow.sent) == sent + 1
    assert len(bakery.decided) == 1


def test_a_decision_is_refused_for_another_input_than_the_one_that_was_shown(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    with pytest.raises(ApprovalClosed, match="another input"):
        bakery.decide(ApprovalAnswer(is_approved=True, input_hash="0" * 64))
    bakery.decide(ApprovalAnswer(is_approved=True, input_hash=bakery.requested[0].input_hash))


def test_nobody_decides_across_workspaces_or_about_what_never_was(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    approval_id = bakery.requested[0].approval_id
    rival = HEAD_BAKER.model_copy(update={"tenant": "rival"})
    for caller, asked in ((rival, approval_id), (HEAD_BAKER, "nothing"), (HEAD_BAKER, approval_id[:-1] + "_")):
        with pytest.raises(NotFound):
            decide_approval(bakery.stage.resources, caller, asked, YES)
    other_scope = HEAD_BAKER.model_copy(update={"scopes": frozenset({"content"})})
    with pytest.raises(NotFound):
        bakery.decide(YES, caller=other_scope)


def test_by_policy_the_asker_may_not_decide(bakery: Bakery, monkeypatch: pytest.MonkeyPatch) -> None:
    strict = replace(SITE_AGENT, policy=SITE_AGENT.policy.model_copy(update={"separate_approver": True}))
    monkeypatch.setattr("fermata.agents.site.agent.SITE_AGENT", strict)
    bakery.ask_for(("bake", 3))
    with pytest.raises(Forbidden):
        bakery.decide(YES, caller=ASKER)
    assert bakery.decide(YES).state == "approved"


@pytest.mark.parametrize(("maker", "may_decide"), [(ASKER, False), (HEAD_BAKER, True)])
def test_a_key_that_the_asker_has_made_is_no_other_person(bakery: Bakery, maker: Caller, *, may_decide: bool) -> None:
    set_policy(bakery.stage.resources, HEAD_BAKER, ApprovalPolicy(separate_approver=True))
    key, _ = create_api_key(bakery.stage.resources, maker, "robot", ["ai.tools.approve"])
    bakery.ask_for(("bake", 3))
    if may_decide:
        assert bakery.decide(YES, caller=key.to_caller()).state == "approved"
        return
    with pytest.raises(Forbidden, match="Another person"):
        bakery.decide(YES, caller=key.to_caller())


def test_who_has_made_the_key_that_asks_is_no_other_person(bakery: Bakery) -> None:
    set_policy(bakery.stage.resources, HEAD_BAKER, ApprovalPolicy(separate_approver=True))
    first, _ = create_api_key(bakery.stage.resources, ASKER, "robot", ["ai.chat", "ai.tools.approve"])
    second, _ = create_api_key(bakery.stage.resources, first.to_caller(), "its robot", ["ai.chat", "ai.tools.approve"])
    bakery.ask_for(("bake", 3))
    turn = bakery.stage.turn.model_copy(update={"user": second.user})
    for same in (ASKER, first.to_caller(), second.to_caller()):
        with pytest.raises(Forbidden, match="Another person"):
            require_approver(bakery.stage.resources, SITE_AGENT, turn, same)
    require_approver(bakery.stage.resources, SITE_AGENT, turn, HEAD_BAKER)


ADDRESS = "https://hooks.bakery.example/decide"


def answer_by_webhook(bakery: Bakery, webhook_id: str) -> list[str]:
    take_answer(bakery.stage.resources, bakery.stage.turn, webhook_id, bakery.requested[0], {"approved": True})
    return [event.outcome for event in bakery.decided]


def test_a_webhook_whose_address_the_asker_has_set_is_no_other_person(
    bakery: Bakery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fermata.drivers.transport.url_guard.UrlGuard.check_url_and_host", lambda *_: None)
    resources = bakery.stage.resources
    make_tenant(resources, "bakery")
    set_policy(resources, HEAD_BAKER, ApprovalPolicy(separate_approver=True))
    may_answer = {"capabilities": frozenset({"ai.tools.write", "ai.tools.approve"})}
    asker, head_baker = ASKER.model_copy(update=may_answer), HEAD_BAKER.model_copy(update=may_answer)
    key, _ = create_api_key(resources, asker, "robot", sorted(may_answer["capabilities"]))
    webhook_id = add_webhook(resources, key.to_caller(), ADDRESS, (), may_answer=True).view["id"]
    bakery.ask_for(("bake", 3))
    assert answer_by_webhook(bakery, webhook_id) == []
    change_webhook(resources, head_baker, webhook_id, WebhookChange(events=(WebhookEvent.APPROVAL_REQUEST,)))
    assert answer_by_webhook(bakery, webhook_id) == [], "who changes what it hears of does not answer for it"
    change_webhook(resources, head_baker, webhook_id, WebhookChange(url=ADDRESS))
    assert answer_by_webhook(bakery, webhook_id) == ["approved"]
    assert "ada" not in str(read_webhooks(resources, "bakery").to_item("bakery"))


def test_a_turn_never_has_the_right_to_approve(bakery: Bakery) -> None:
    bakery.stage.caller = ASKER
    assert "ai.tools.approve" not in bakery.stage.start_turn("Bake").capabilities


def test_without_a_decision_the_call_is_denied_after_its_time(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 1), ("bake", 2))
    bakery.stage.pass_time(8 * DAY)
    with pytest.raises(ApprovalClosed, match="in time"):
        bakery.decide(YES)
    bakery.stage.advance_turn(holds=True)
    assert bakery.stage.run_workflow() == "finished"
    assert bakery.oven.baked == []
    assert [event.outcome for event in bakery.decided] == ["expired", "expired"]
    assert "Nobody has approved this call in time" in bakery.results()[0].error
    with pytest.raises(ApprovalClosed, match="in time"):
        bakery.decide(YES)
    invariants.check_invariants(bakery.stage)


def test_a_cancelled_turn_takes_its_approvals_from_the_list_and_no_decision(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    bakery.stage.cancel_turn()
    with pytest.raises(ApprovalClosed, match="has ended"):
        bakery.decide(YES)
    assert bakery.oven.baked == []
    invariants.check_invariants(bakery.stage)


def change_bake_tool(bakery: Bakery) -> None:
    bakery.stage.add_tools(make_bake_tool(bakery.oven, description="Bakes and sells loaves."), make_sell_tool())


def test_a_decision_about_a_tool_that_was_changed_meanwhile_is_refused(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    change_bake_tool(bakery)
    with pytest.raises(ApprovalClosed, match="was changed"):
        bakery.decide(YES)
    assert bakery.stage.run_workflow() == "finished"
    assert bakery.oven.baked == []
    assert "Call it again if it is still needed" in bakery.results()[0].error


def test_a_denial_of_a_tool_that_was_changed_meanwhile_counts(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    change_bake_tool(bakery)
    assert bakery.decide(NO).state == "denied"


def test_a_decision_of_another_version_of_the_agent_is_refused(bakery: Bakery, monkeypatch: pytest.MonkeyPatch) -> None:
    bakery.ask_for(("bake", 3))
    monkeypatch.setattr("fermata.agents.site.agent.SITE_AGENT", replace(SITE_AGENT, title="Website"))
    with pytest.raises(ApprovalClosed, match="was changed"):
        bakery.decide(YES)


def test_a_browser_tool_that_is_changed_between_approval_and_request_is_not_requested(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3), ("sell", 3))
    bakery.decide(YES, index=1)
    changed = make_sell_tool(description="Gives loaves away.")
    bakery.stage.add_tools(make_bake_tool(bakery.oven), changed)
    bakery.decide(NO, index=0)
    assert bakery.stage.tool_requests() == []
    assert bakery.stage.run_workflow() == "finished"
    assert bakery.stage.tool_requests() == []
    assert "changed after this call was decided about" in bakery.results()[1].error


def test_approved_browser_calls_are_requested_one_after_another(bakery: Bakery) -> None:
    bakery.ask_for(("sell", 1), ("sell", 2))
    bakery.decide(YES, index=1)
    bakery.decide(YES, index=0)
    assert len(bakery.stage.tool_requests()) == 1
    bakery.stage.answer_request(OK)
    assert bakery.stage.run_workflow() == "waiting"
    assert [request.input for request in bakery.stage.tool_requests()] == [{"loaves": 1}, {"loaves": 2}]
    bakery.stage.answer_request(OK)
    assert bakery.stage.run_workflow() == "finished"


def test_a_tool_that_is_changed_between_approval_and_run_is_not_run(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    bakery.decide(YES)
    change_bake_tool(bakery)
    assert bakery.stage.run_workflow() == "finished"
    assert bakery.oven.baked == []
    assert "changed after this call was decided about" in bakery.results()[0].error


def test_the_turn_shows_its_approvals_after_a_reload(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    shown = bakery.stage.show_turn()
    assert (shown["status"], shown["pending"]) == ("paused", [])
    (approval,) = shown["approvals"]
    assert approval["approvalId"] == bakery.requested[0].approval_id
    bakery.decide(YES)
    assert "approvals" not in bakery.stage.show_turn()


def test_a_turn_that_is_held_for_a_week_costs_its_rows_and_one_wait(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 3))
    sent, rows = list(bakery.stage.workflow.sent), read_all_rows(bakery)
    for _ in range(7):
        bakery.stage.pass_time(DAY - 60)
        bakery.stage.recover_turn()
    assert bakery.stage.workflow.sent == sent
    assert [next_state for _, next_state, _ in sent] == ["hold"]
    assert read_all_rows(bakery) == rows
    kinds = Counter(row["sk"].split("#")[0] for row in bakery.stage.stored_items(bakery.stage.turn.pk))
    assert (kinds["turn"], kinds["p"], kinds["a"]) == (1, 1, 1)


def read_all_rows(bakery: Bakery) -> list[Any]:
    """Return everything that is stored of turns, conversations and usage."""
    settings = bakery.stage.resources.settings
    return [read_table(table) for table in (settings.bridges_table, settings.conversations_table, settings.usage_table)]


def test_every_request_is_decided_or_its_turn_is_over(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 1), ("sell", 2))
    bakery.decide(YES, 1)
    bakery.stage.cancel_turn()
    answered: list[Any] = [
        event for event in bakery.stage.events() if isinstance(event, ToolResultEvent | ApprovalDecidedEvent)
    ]
    assert [type(event).__name__ for event in answered] == [
        "ApprovalDecidedEvent",
        "ToolResultEvent",
        "ToolResultEvent",
    ]
    assert "open" not in bakery.stage.stored_items(bakery.stage.turn.pk)[0]
