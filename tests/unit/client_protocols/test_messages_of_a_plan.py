"""Messages to the studio's agent count for the plan of their workspace when their turn starts (decision 0481)."""

import threading
from dataclasses import replace

import pytest

from fermata.conversations.conversation_store import create_conversation
from fermata.domain.plan_refusals import PlanLocked, PlanUpgradeRequired, to_month
from fermata.domain.workspace_plan import ALL_MODELS, PlanMeter, Subscription
from fermata.limits.month_counts import build_months_key, list_month_counts
from fermata.turns.start.start_turn import start_turn
from fermata.wire.auth.tenant_store import update_tenant
from tests.stored_rows import save_rows
from tests.unit.client_protocols.conftest import Requester
from tests.unit.client_protocols.studio_clients import CONVERSATIONS, HISTORY, KeyClient, StudioClient, fill_project
from tests.unit.turns.stage import Stage, make_provider_error


@pytest.fixture
def client(stage: Stage, requester: Requester) -> StudioClient:
    fill_project(stage)
    return StudioClient(stage, requester)


def choose_plan(client: StudioClient, plan: Subscription) -> None:
    update_tenant(client.stage.resources, "bakery", subscription=plan)


def count_messages(stage: Stage, meter: PlanMeter = PlanMeter.CHAT_MESSAGES) -> int:
    key = build_months_key(stage.resources, "bakery", "", to_month(stage.resources.clock.time()))
    return int(list_month_counts(stage.resources.tables.get_item_by_key(key))[meter])


def test_g107_a_message_beyond_the_plan_is_refused_before_the_stream_opens(client: StudioClient) -> None:
    choose_plan(client, Subscription(plan="starter", limits={"chatMessages": 2}, models=("model-*",)))
    client.stage.script_replies("Hello.", "Hello.")
    key = {"idempotency-key": "one"}
    first = client.post("Hello", key)
    client.say("Hello")
    refused = client.post("Hello")
    assert (refused.status_code, refused.json()["code"]) == (429, "planLimitReached")
    assert "its plan starter includes in a month" in refused.json()["error"]
    assert refused.headers["content-type"] == "application/json"
    client.conversation = ""
    assert client.post("Hello").status_code == 429
    assert len(client.get(CONVERSATIONS).json()["conversations"]) == 2, "A refused message leaves no conversation."
    assert client.post("Hello", key).status_code == first.status_code == 200, "A repetition joins its turn."
    assert count_messages(client.stage) == 2


def test_a_locked_workspace_is_asked_to_pay_by_every_door_and_nothing_is_left(client: StudioClient) -> None:
    stage = client.stage
    stage.script_replies("Hello.", "Hello.", "Hello.", "Hello.")
    client.say("Hello")
    program = KeyClient.with_rules(stage, client.requester)
    talk = program.ask("Hello")["conversationId"]
    caller = stage.caller
    other = create_conversation(stage.resources, caller, "studio", None, stage.credential.id, "model-1")
    prompt = replace(stage.make_prompt("Hello"), conversation_id=other.id, scope="studio")
    before = save_rows()["conversations"]
    until = int(stage.resources.clock.time())
    for state, words in (("trial", "trial"), ("grace", "open invoice"), ("cancelled", "was cancelled")):
        choose_plan(client, Subscription(plan="pro", state=state, until=until))
        refused = [
            client.post("Hello"),
            client.post("Hello", conversationId="new"),
            program.post("Hello"),
            program.post("Hello", conversationId=talk),
            program.send("GET", HISTORY, params={"conversationId": talk}),
        ]
        assert [(one.status_code, one.json()["code"]) for one in refused] == [(402, "planLocked")] * len(refused)
        assert all(words in one.json()["error"] for one in refused)
        with pytest.raises(PlanLocked, match=words):
            start_turn(stage.resources, caller, prompt)
    assert save_rows()["conversations"] == before
    assert count_messages(stage) == 1
    choose_plan(client, Subscription(plan="pro"))
    assert [client.post("Hello").status_code, program.post("Hello").status_code] == [200, 200]


def test_a_plan_without_messages_says_so(client: StudioClient) -> None:
    choose_plan(client, Subscription(plan="free"))
    refused = client.post("Hello")
    assert (refused.status_code, refused.json()["code"]) == (402, "planUpgradeRequired")


def test_messages_of_keys_count_by_themselves(client: StudioClient) -> None:
    choose_plan(client, Subscription(plan="pro", limits={"apiMessages": 1, "chatMessages": 1}))
    program = KeyClient.with_rules(client.stage, client.requester)
    client.stage.script_replies("Hello.", "Hello.")
    assert [program.post("Hello").status_code for _ in range(2)] == [200, 429]
    assert "The workspace has used the 1 messages by API" in program.post("Hello").json()["error"]
    assert client.post("Hello").status_code == 200
    counts = [count_messages(client.stage, meter) for meter in (PlanMeter.API_MESSAGES, PlanMeter.CHAT_MESSAGES)]
    assert counts == [1, 1]


def test_a_message_that_has_failed_is_sent_again_without_counting_again(client: StudioClient) -> None:
    failure = [make_provider_error("provider_auth", retryable=False)]
    client.stage.script_replies(failure, failure, "Hello.")
    key = {"idempotency-key": "one"}
    for _ in range(4):
        assert client.post("Hello", key).status_code == 200
    assert len(client.stage.driver.requests) == 3, "The answer of the third turn is the fourth request's too."
    assert count_messages(client.stage) == 1


def test_a_message_whose_turn_was_cancelled_counts_again(client: StudioClient) -> None:
    client.stage.script_replies([client.stage.cancel_turn], "Hello.")
    key = {"idempotency-key": "one"}
    for _ in range(2):
        assert client.post("Hello", key).status_code == 200
    assert count_messages(client.stage) == 2


def test_of_many_messages_at_once_as_many_are_counted_as_there_is_room_for_and_the_others_leave_nothing(
    client: StudioClient,
) -> None:
    """Each finds room before the others are counted, so START itself refuses those beyond the limit."""
    choose_plan(client, Subscription(plan="starter", limits={"chatMessages": 3}, models=ALL_MODELS))
    client.stage.script_replies(*["Hello."] * 3)
    found: list[int] = []

    def send() -> None:
        found.append(StudioClient(client.stage, client.requester).post("Hello").status_code)

    senders = [threading.Thread(target=send) for _ in range(8)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert sorted(found) == [200] * 3 + [429] * 5
    assert count_messages(client.stage) == 3
    assert len(client.get(CONVERSATIONS).json()["conversations"]) == 3


def test_a_model_that_the_plan_does_not_include_is_refused_in_words_and_leaves_nothing(client: StudioClient) -> None:
    choose_plan(client, Subscription(plan="starter"))
    refused = client.post("Hello")
    assert (refused.status_code, refused.json()["code"]) == (402, "planUpgradeRequired")
    assert "The plan starter does not include the model model-1. It includes *haiku*" in refused.json()["error"]
    assert client.get(CONVERSATIONS).json()["conversations"] == []
    assert count_messages(client.stage) == 0
    client.stage.script_replies("Hello.")
    assert client.say("Hello", model="Claude-Haiku-4-5")[-1] == "done"
    before = save_rows()
    assert client.post("Go on", model="claude-opus-4-5").status_code == 402, "Within a conversation too."
    assert save_rows() == before, "Its conversation stays on the model that it had."
    assert count_messages(client.stage) == 1


def test_a_model_is_refused_to_the_studio_by_every_protocol_and_to_no_other_agent(client: StudioClient) -> None:
    choose_plan(client, Subscription(plan="starter"))
    stage = client.stage
    for scope in ("studio", "site"):
        conversation = create_conversation(stage.resources, stage.caller, scope, None, stage.credential.id, "model-1")
        stage.script_replies("Hello.")
        prompt = replace(stage.make_prompt("Hello"), conversation_id=conversation.id, scope=scope)
        if scope == "studio":
            with pytest.raises(PlanUpgradeRequired, match="does not include the model model-1"):
                start_turn(stage.resources, stage.caller, prompt)
        else:
            start_turn(stage.resources, stage.caller, prompt)


def test_a_key_whose_model_the_plan_does_not_include_is_forbidden(client: StudioClient) -> None:
    key = KeyClient.with_rules(client.stage, client.requester)
    choose_plan(client, Subscription(plan="pro", models=("*haiku*",)))
    refused = key.post("Hello")
    assert refused.status_code == 403
    assert "does not include the model model-1" in refused.json()["error"]
