"""However a sub-agent's turn ends, its call is answered once, and nothing goes on running."""

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from fermata.client_protocols.mcp_agent_calls import AgentCall
from fermata.domain.events import CancelledEvent, DoneEvent, ErrorEvent, ToolResultEvent
from fermata.domain.use_limits import CallerLimits
from fermata.drivers.registry import get_model_traits
from fermata.limits.reader_leases import ReaderLease
from fermata.tools.tool import Access, Approval, Execution, NoInput, Tool
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.approvals.list_approvals import list_waiting_approvals
from fermata.turns.end.stop_turn import cancel_turn, stop_turn
from fermata.turns.pause import load_pause
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.start import build_turn
from fermata.turns.sub_agents import sub_agent_limits
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from tests.unit.turns.stage import make_provider_error, reply_with_calls, reply_with_text, tool_call_block
from tests.unit.turns.sub_agents.sub_agent_stage import Family, ask


def results(family: Family) -> list[ToolResultEvent]:
    return [event for event in family.events() if isinstance(event, ToolResultEvent)]


def start_waiting(family: Family) -> None:
    """Start a turn that waits for one sub-agent, which has not begun."""
    turn = family.start()
    family.script("site", reply_with_calls(ask("data", "Count")), "Done.")
    family.step(turn.id)


def test_a_sub_agent_that_fails_is_an_error_result(family: Family) -> None:
    start_waiting(family)
    family.script("data", [make_provider_error(retryable=False)])
    family.run()
    [result] = results(family)
    assert (result.ok, result.error) == (False, "The agent data failed: The provider failed: provider_overloaded.")
    assert isinstance(family.end(), DoneEvent)


def test_a_sub_agent_that_goes_in_circles_is_an_error_result_with_what_it_said(family: Family) -> None:
    start_waiting(family)
    family.script("data", *[reply_with_calls(tool_call_block("nonsense")) for _ in range(3)], "I do not know.")
    family.run()
    [result] = results(family)
    assert not result.ok
    assert (result.error or "").endswith("It said: I do not know.")


def test_a_sub_agent_without_a_word_is_an_error_result(family: Family) -> None:
    start_waiting(family)
    family.script("data", reply_with_text(" "))
    family.run()
    assert results(family)[0].error == "The agent data ended its work without a word."


def test_cancelling_a_turn_cancels_all_that_work_for_it(family: Family) -> None:
    turn = family.start()
    family.script("site", reply_with_calls(ask("content", "One")))
    family.script("content", reply_with_calls(ask("data", "Two")))
    family.step(turn.id)
    (child,) = family.children(turn)
    family.step(child.id)
    (grandchild,) = family.children(child)
    assert family.stage.cancel_turn() == "cancelled"
    for one in (turn, child, grandchild):
        assert isinstance(family.end(one), CancelledEvent)
    family.run()
    assert not family.resources.tables.query_index("bridges", "open", ("open", "open#0"))


def test_usage_of_a_sub_agent_that_ends_after_the_turn_counts_in_the_conversation(family: Family) -> None:
    family.stage.set_price(input_per_mtok=Decimal(1), output_per_mtok=Decimal(1))
    turn = family.start()
    family.script("site", reply_with_calls(ask("content", "One")))
    family.script("content", reply_with_calls(ask("data", "Two")))
    family.step(turn.id)
    (child,) = family.children(turn)
    family.step(child.id)
    family.stage.cancel_turn()
    conversation = family.stage.load_conversation()
    assert (conversation.prompt_tokens_total, conversation.completion_tokens_total) == (20, 10)
    assert family.usage(turn).prompt_tokens == 10


def test_cancelling_a_sub_agent_answers_its_call(family: Family) -> None:
    start_waiting(family)
    (child,) = family.children()
    assert cancel_turn(family.resources, family.stage.caller, child.id)["status"] == "cancelled"
    family.run()
    assert results(family)[0].error == "The agent data was stopped before it was ready."
    assert isinstance(family.end(), DoneEvent)


def test_a_sub_agent_whose_turn_is_over_stops_before_its_next_round(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_waiting(family)
    (child,) = family.children()
    monkeypatch.setattr("fermata.turns.sub_agents.stop_children.stop_turn", lambda *_: None)  # it died before that
    family.stage.cancel_turn()
    monkeypatch.undo()
    assert not family.is_over(child)
    family.step(child.id)
    assert isinstance(family.end(child), CancelledEvent)


def test_the_sweep_stops_a_sub_agent_whose_turn_is_over(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    start_waiting(family)
    (child,) = family.children()
    with monkeypatch.context() as patch:
        patch.setattr("fermata.turns.sub_agents.stop_children.stop_turn", lambda *_: None)
        family.stage.cancel_turn()
    recover_turn(family.resources, child.tenant, child.id)
    assert isinstance(family.end(child), CancelledEvent)


def test_the_sweep_starts_a_sub_agent_that_nobody_has_started(family: Family) -> None:
    turn = family.start()
    family.script("site", reply_with_calls(ask("data", "Count")), "Done.")
    family.script("data", "Three.")
    family.stage.workflow.next_errors.append(ConnectionError("lost"))
    family.stage.workflow.started.append((turn.id, 1))
    with pytest.raises(ConnectionError):
        family.step(turn.id)
    (child,) = family.children()
    family.stage.pass_time(60)
    recover_turn(family.resources, child.tenant, child.id)
    assert family.stage.workflow.started[-1] == (child.id, 1)


def test_a_turn_that_is_woken_up_starts_a_sub_agent_that_nobody_has_started(family: Family) -> None:
    start_waiting(family)
    (child,) = family.children()
    family.stage.workflow.started.remove((child.id, 1))
    family.time_out(family.stage.turn.id)
    assert (child.id, 1) in family.stage.workflow.started


def test_a_turn_that_waits_long_for_a_sub_agent_is_held_and_resumed_by_its_answer(family: Family) -> None:
    start_waiting(family)
    turn = family.stage.turn
    (child,) = family.children()
    family.time_out(turn.id)
    family.step(turn.id)
    pause = load_pause(family.resources, turn, 1)
    assert pause is not None
    assert pause.is_held
    family.script("data", "Three.")
    family.step(child.id)
    assert not family.is_over(turn)
    family.run()
    assert isinstance(family.end(turn), DoneEvent)


def test_an_answer_whose_function_died_is_read_when_the_turn_wakes_up(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_waiting(family)
    turn = family.stage.turn
    (child,) = family.children()
    family.script("data", "Three.")
    with monkeypatch.context() as patch:
        patch.setattr("fermata.turns.sub_agents.continue_parent.find_waiting_parent", lambda *_: None)
        family.step(child.id)
    assert not family.is_over(turn)
    family.time_out(turn.id)
    assert isinstance(family.end(turn), DoneEvent)
    assert len(results(family)) == 1


def test_a_sub_agent_that_is_gone_is_an_error_result(family: Family) -> None:
    start_waiting(family)
    turn = family.stage.turn
    (child,) = family.children()
    rows = family.stage.stored_items(child.pk)
    family.resources.tables.batch_delete("bridges", [(row["pk"], row["sk"]) for row in rows])
    family.time_out(turn.id)
    assert "was lost by an error" in (results(family)[0].error or "")
    assert isinstance(family.end(turn), DoneEvent)


def test_a_sub_agent_has_as_long_as_its_turn_may_be_held(family: Family) -> None:
    start_waiting(family)
    turn = family.stage.turn
    (child,) = family.children()
    family.stage.pass_time(family.resources.settings.hold_days * 86_400 + 1)
    family.time_out(turn.id)
    assert results(family)[0].error == "The agent data failed: It did not answer in time."
    assert isinstance(family.end(child), ErrorEvent)


@pytest.mark.parametrize("at", range(1, 14))
def test_a_turn_that_moves_on_while_its_sub_agent_ends_reads_the_answer_once(family: Family, at: int) -> None:
    """Another writer appends to the log of the turn that has asked before each call of the sub-agent's end."""
    from fermata.domain.events import PromptQueuedEvent
    from fermata.turns.turn_log import TurnLog, fixed_events, read_last_entry

    start_waiting(family)
    turn = family.stage.turn
    (child,) = family.children()
    calls = 0
    client: Any = family.resources.tables._client
    send = client._make_api_call

    def interfere(*given: object) -> object:
        nonlocal calls
        calls += 1
        if calls == at:
            last = read_last_entry(family.resources, turn.pk)
            assert last is not None
            if last.state.phase != "ended":
                log = TurnLog.from_last_entry(family.resources, turn.partition, last)
                log.append(fixed_events(PromptQueuedEvent(prompt_id="p")))
        return send(*given)

    family.script("data", "Three.")
    client._make_api_call = interfere
    try:
        family.step(child.id)
    finally:
        client._make_api_call = send
    family.run()
    if not family.is_over(turn):
        family.time_out(turn.id)
    assert [(result.ok, result.tool_name) for result in results(family)] == [(True, "ask_data")]
    assert isinstance(family.end(turn), DoneEvent)


def test_the_same_end_twice_answers_once(family: Family) -> None:
    start_waiting(family)
    (child,) = family.children()
    family.script("data", "Three.")
    family.step(child.id)
    family.invoke(child.id)
    stop_turn(family.resources, child, CancelledEvent())
    assert len(results(family)) == 1
    assert isinstance(family.end(child), DoneEvent)
    assert len(family.driver.requests) == 3


def test_agents_ask_each_other_only_so_deep(family: Family) -> None:
    family.start()
    family.script("site", reply_with_calls(ask("data", "0")), "Done.")
    depths = sub_agent_limits.MAX_DEPTH
    family.script("data", *[reply_with_calls(ask("data", str(depth))) for depth in range(depths)])
    family.script("data", *["As deep as it gets."] * depths)
    family.run()
    turn = family.stage.turn
    for _ in range(depths):
        (turn,) = family.children(turn)
    assert not family.children(turn)
    denied = [event for event in family.events(turn) if isinstance(event, ToolResultEvent)]
    assert "at most 5 times in a row" in (denied[0].error or "")
    assert isinstance(family.end(), DoneEvent)


def test_a_prompt_leads_to_so_many_sub_agents_only(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sub_agent_limits, "MAX_SUB_AGENTS", 3)
    family.start()
    family.script("site", reply_with_calls(*[ask("data", str(number)) for number in range(5)]), "Done.")
    family.script("data", *["Yes."] * 3)
    family.run()
    assert [result.ok for result in results(family)].count(True) == 3
    assert len(family.children()) == 3


def test_of_many_sub_agents_ten_work_at_a_time(family: Family) -> None:
    turn = family.start()
    family.script("site", reply_with_calls(*[ask("data", str(number)) for number in range(12)]), "Done.")
    family.script("data", *["Yes."] * 12)
    family.step(turn.id)
    assert len(family.children()) == 10
    family.run()
    assert [result.ok for result in results(family)] == [True] * 12
    assert isinstance(family.end(), DoneEvent)


def test_what_a_sub_agent_did_not_use_of_its_allowance_is_used_later(family: Family) -> None:
    family.start()
    rounds = 20
    family.script("site", *[reply_with_calls(ask("data", str(number))) for number in range(rounds)], "Done.")
    family.script("data", *["Yes."] * rounds)
    family.run()
    assert [result.ok for result in results(family)] == [True] * rounds


def test_calls_of_a_sub_agent_can_wait_for_a_person(family: Family) -> None:
    tool = Tool(
        name="publish",
        toolset="site",
        description="Publishes.",
        execution=Execution.SERVER,
        access=Access.READ,
        input_model=NoInput,
        handler=lambda _input, _context: "published",
        approval=Approval.ALWAYS,
        idempotent=True,
    )
    from fermata.agents.data.agent import DATA_AGENT
    from fermata.tools.toolset import Toolset

    data = DATA_AGENT.__dict__["_merged_toolset"]
    DATA_AGENT.__dict__["_merged_toolset"] = Toolset("data", (*data.tools, tool))
    start_waiting(family)
    (child,) = family.children()
    family.script("data", reply_with_calls(tool_call_block("publish")), "It is published.")
    family.run()
    caller = family.stage.caller.model_copy(
        update={"capabilities": family.stage.caller.capabilities | {"ai.tools.approve"}}
    )
    (waiting,) = list_waiting_approvals(family.resources, caller, "", 10).approvals
    assert (waiting.place.turn, waiting.conversation) == (child.id, family.stage.conversation.id)
    assistant = AgentCall(
        family.resources, family.stage.turn, ReaderLease.take(family.resources, caller, CallerLimits()), math.inf
    )
    told = assistant.advance()
    assert told is not None, "an assistant does not wait for a person whom an agent of its agent waits for"
    assert "waits until a person has decided" in str(told)
    family.time_out(family.stage.turn.id)
    family.stage.pass_time(3 * 86_400)
    decide_approval(family.resources, caller, waiting.id, ApprovalAnswer(True))
    assert assistant.advance() is None
    family.run()
    assert isinstance(family.end(), DoneEvent)
    assert results(family)[0].ok


def test_a_budget_holds_for_each_request_of_a_sub_agent(family: Family) -> None:
    family.stage.set_price(input_per_mtok=Decimal(1), output_per_mtok=Decimal(1))
    limits = BudgetLimits(daily_usd=Decimal("0.5"))
    set_budgets(family.resources, family.stage.caller, Budgets(each_user=limits))
    start_waiting(family)
    set_budgets(family.resources, family.stage.caller, Budgets(each_user=BudgetLimits(daily_usd=Decimal("0.000001"))))
    family.script("data", "Three.")
    family.run()
    (child,) = family.children()
    end = family.end(child)
    assert isinstance(end, ErrorEvent)
    assert end.code == "budget_exhausted"
    assert "failed" in (results(family)[0].error or "")


def test_a_budget_holds_for_a_sub_agent_whose_parent_has_a_free_model(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    family.stage.set_price(input_per_mtok=Decimal(1), output_per_mtok=Decimal(1))
    free = replace(get_model_traits("anthropic"), are_free=True)
    monkeypatch.setattr(build_turn, "get_model_traits", lambda _provider: free)
    limits = BudgetLimits(daily_usd=Decimal("0.000001"))
    set_budgets(family.resources, family.stage.caller, Budgets(each_user=limits))
    start_waiting(family)
    family.script("data", "Three.")
    family.run()
    (child,) = family.children()
    end = family.end(child)
    assert isinstance(end, ErrorEvent)
    assert end.code == "budget_exhausted"
    assert isinstance(family.end(), DoneEvent)
