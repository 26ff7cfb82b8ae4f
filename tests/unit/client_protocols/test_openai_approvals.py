"""OpenAI's clients see which calls wait for a person, and decide about them in each of three forms."""

import json
from typing import Any

import httpx
import pytest

from fermata.domain.caller import Capability
from fermata.turns.approvals.decide_approval import decide_approval
from tests.tenant_tokens import make_tenant
from tests.unit.client_protocols.conftest import Requester
from tests.unit.turns.approvals.bakery import HEAD_BAKER, YES, Bakery
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

Json = dict[str, Any]
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
BAKE: Json = {"role": "user", "content": "Bake"}
DECIDE: Json = {"type": "function", "function": {"name": "decide_approval", "parameters": {"type": "object"}}}


@pytest.fixture
def bakery(stage: Stage) -> Bakery:
    return Bakery(stage)


def ask_for(stage: Stage, *names: str, then: str = "Done.") -> None:
    stage.script_replies(reply_with_calls(*(tool_call_block(name, loaves=3) for name in names)), then)


def post(requester: Requester, path: str, **members: Any) -> httpx.Response:
    return requester.send("POST", path, json={"model": "site"} | members)


def complete(requester: Requester, *messages: Json, **members: Any) -> Json:
    response = post(requester, CHAT, messages=[*messages], **members)
    assert response.status_code == 200, response.text
    choice = response.json()["choices"][0]
    message: Json = choice["message"] | {"finish_reason": choice["finish_reason"]}
    return message


def respond(requester: Requester, **members: Any) -> Json:
    response = post(requester, RESPONSES, **members)
    assert response.status_code == 200, response.text
    made: Json = response.json()
    return made


def refuse(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    message: str = response.json()["error"]["message"]
    return message


def decision(request: Json, *, approve: Any = True, **others: Any) -> Json:
    return {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve} | others


@pytest.mark.parametrize("approved", [True, False])
def test_an_item_asks_and_an_item_decides(approved: bool, stage: Stage, requester: Requester, bakery: Bakery) -> None:
    ask_for(stage, "bake")
    first = respond(requester, input="Bake")
    request = first["output"][-1]
    assert (first["status"], request["type"], request["name"]) == ("completed", "mcp_approval_request", "bake")
    assert json.loads(request["arguments"]) == {"loaves": 3}
    answers = [decision(request, approve=approved, reason="As you like.")]
    second = respond(requester, input=answers, previous_response_id=first["id"])
    assert second["output"][0]["content"][0]["text"] == "Done."
    assert bakery.oven.baked == ([3] if approved else [])
    assert bakery.decided[0].approved is approved
    again = respond(requester, input=answers, previous_response_id=first["id"])
    assert again["output"] == second["output"], "the same decision again follows the same answer"
    assert bakery.oven.baked == ([3] if approved else [])


def test_a_client_that_sends_all_items_again_decides_too_and_goes_on(
    stage: Stage, requester: Requester, bakery: Bakery
) -> None:
    ask_for(stage, "bake")
    items: list[Json] = [BAKE]
    for _ in range(2):
        output = respond(requester, input=items)["output"]
        items += output
        items += [decision(item) for item in output if item["type"] == "mcp_approval_request"]
    assert bakery.oven.baked == [3]
    stage.script_replies("Three.")
    last = respond(requester, input=[*items, {"role": "user", "content": "How many?"}])
    assert last["output"][0]["content"][0]["text"] == "Three."


def test_several_approvals_need_a_decision_each(stage: Stage, requester: Requester, bakery: Bakery) -> None:
    ask_for(stage, "bake", "bake")
    first = respond(requester, input="Bake twice")
    one, other = (item for item in first["output"] if item["type"] == "mcp_approval_request")
    words = refuse(post(requester, RESPONSES, input=[decision(one)]), 400)
    assert bakery.requested[1].approval_id in words
    assert bakery.requested[0].approval_id not in words
    assert not bakery.decided
    respond(requester, input=[decision(other, approve=False), decision(one)])
    assert bakery.oven.baked == [3]


def test_a_tool_of_the_client_runs_behind_its_approval(stage: Stage, requester: Requester, bakery: Bakery) -> None:
    ask_for(stage, "sell", then="Sold.")
    first = respond(requester, input="Sell")
    second = respond(requester, input=[decision(first["output"][-1])])
    call = second["output"][-1]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == ("function_call", "sell", {"loaves": 3})
    sold = {"type": "function_call_output", "call_id": call["call_id"], "output": '{"ok": true}'}
    third = respond(requester, input=[sold])
    assert third["output"][0]["content"][0]["text"] == "Sold."
    assert len({one["id"] for one in (first, second, third)}) == 3
    for made in (first, second, third):
        shown = requester.send("GET", f"{RESPONSES}/{made['id']}").json()
        assert shown["output"] == made["output"]


def test_words_ask_and_a_line_decides(stage: Stage, requester: Requester, bakery: Bakery) -> None:
    ask_for(stage, "bake")
    first = complete(requester, BAKE)
    assert first["finish_reason"] == "stop"
    approval_id = bakery.requested[0].approval_id
    assert f"approve {approval_id}" in first["content"]
    assert '{"loaves":3}' in first["content"]
    said = [BAKE, first, {"role": "user", "content": f" Approve {approval_id} fine by me\n"}]
    second = complete(requester, *said)
    assert second["content"] == "Done."
    assert bakery.oven.baked == [3]
    assert bakery.decided[0].reason == "fine by me"
    stage.script_replies("Three.")
    turn = stage.turn
    assert complete(requester, *said, second, {"role": "user", "content": "How many?"})["content"] == "Three."
    assert stage.turn.conversation == turn.conversation


def test_another_prompt_than_a_decision_ends_the_turn_that_waits(
    stage: Stage, requester: Requester, bakery: Bakery
) -> None:
    ask_for(stage, "bake", then="Never mind.")
    first = complete(requester, BAKE)
    waiting = stage.turn
    said = {"role": "user", "content": f"Should I approve {bakery.requested[0].approval_id} now?"}
    assert complete(requester, BAKE, first, said)["content"] == "Never mind."
    assert stage.turn.conversation == waiting.conversation
    assert not bakery.oven.baked


def test_a_function_of_the_client_decides_and_may_change_the_input(
    stage: Stage, requester: Requester, bakery: Bakery
) -> None:
    ask_for(stage, "bake")
    first = complete(requester, BAKE, tools=[DECIDE])
    assert first["finish_reason"] == "tool_calls"
    assert "decide_approval" not in {tool.name for tool in stage.driver.requests[0].tools}
    call = first["tool_calls"][0]
    asked = json.loads(call["function"]["arguments"])
    assert (call["function"]["name"], asked["tool_name"], asked["input"]) == ("decide_approval", "bake", {"loaves": 3})
    decided = json.dumps({"approved": True, "input": {"loaves": 5}})
    said = [BAKE, first, {"role": "tool", "tool_call_id": call["id"], "content": decided}]
    second = complete(requester, *said, tools=[DECIDE])
    assert second["content"] == "Done."
    assert bakery.oven.baked == [5]
    stage.script_replies("Five.")
    turn = stage.turn
    assert complete(requester, *said, second, {"role": "user", "content": "How many?"})["content"] == "Five."
    assert stage.turn.conversation == turn.conversation


@pytest.mark.parametrize("content", ["yes", "true", '{"approved": 1}', '{"approved": true, "input": [1]}', ""])
def test_a_decision_that_is_none_is_refused_with_words(
    content: str, stage: Stage, requester: Requester, bakery: Bakery
) -> None:
    ask_for(stage, "bake")
    first = complete(requester, BAKE, tools=[DECIDE])
    result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": content}
    refuse(post(requester, CHAT, messages=[BAKE, first, result], tools=[DECIDE]), 400)
    assert not bakery.decided


def test_forged_decisions_are_refused(stage: Stage, requester: Requester, bakery: Bakery) -> None:
    rival = Requester(make_tenant(stage.resources, "rival"))
    ask_for(stage, "bake")
    request = respond(requester, input="Bake")["output"][-1]
    turn, approval_id = stage.turn.id, bakery.requested[0].approval_id
    forged = [f"mcpr_{turn}_1", f"mcpr_{turn}x_0", f"mcpr_{turn}", "mcpr_1", ""]
    for name in forged:
        refuse(post(requester, RESPONSES, input=[decision({"id": name})]), 400)
    refuse(post(rival, RESPONSES, input=[decision(request)]), 400)
    for approve in ("true", 1, None):
        refuse(post(requester, RESPONSES, input=[decision(request, approve=approve)]), 400)
    result = {"role": "tool", "tool_call_id": f"call_{turn}_0", "content": '{"loaves": 100}'}
    assert "comes from the service" in refuse(post(requester, CHAT, messages=[BAKE, result]), 400)
    guessed = f"approve {approval_id.rpartition('.')[0]}.0000"
    assert guessed.split()[1] in refuse(post(requester, CHAT, messages=[{"role": "user", "content": guessed}]), 400)
    foreign = {"role": "user", "content": f"approve {approval_id}"}
    refuse(post(rival, CHAT, messages=[foreign]), 400)
    assert not bakery.decided
    assert not bakery.oven.baked


def test_who_may_not_approve_reads_so_and_goes_on_once_another_has_decided(
    stage: Stage, requester: Requester, bakery: Bakery
) -> None:
    keys = tuple(name for name in requester.capabilities if name != Capability.APPROVE)
    helper = Requester(requester.signer, keys)
    ask_for(stage, "bake")
    request = respond(helper, input="Bake")["output"][-1]
    assert Capability.APPROVE in refuse(post(helper, RESPONSES, input=[decision(request)]), 403)
    decide_approval(stage.resources, HEAD_BAKER, bakery.requested[0].approval_id, YES)
    answer = respond(helper, input=[decision(request)])
    assert answer["output"][0]["content"][0]["text"] == "Done."
    assert bakery.oven.baked == [3]


def test_an_opposite_decision_afterwards_changes_nothing(stage: Stage, requester: Requester, bakery: Bakery) -> None:
    ask_for(stage, "bake")
    request = respond(requester, input="Bake")["output"][-1]
    respond(requester, input=[decision(request, approve=False)])
    respond(requester, input=[decision(request)])
    assert not bakery.oven.baked
