"""Test that the turns and prompts of a user and a tenant stay within their limits, whatever happens at once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fermata.aws.blob_store import prompt_folder
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.conversations import conversation_store
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError, NotFound, TooManyRequests
from fermata.domain.use_limits import CallerLimits
from fermata.limits.count_use import UseCounter, write_counts
from fermata.limits.limit_keys import TENANT_SHARDS, build_tenant_limits_key, build_user_limits_key
from fermata.limits.usage_counters import TURN_LEASE_SECONDS, Use
from fermata.turns.start.start_turn import start_turn
from fermata.turns.turn import Turn
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import ADA, OK, Stage, reply_with_calls, tool_call_block

DEFAULTS = CallerLimits()


def limit(*, user: dict[str, int] | None = None, tenant: dict[str, int] | None = None) -> CallerLimits:
    return CallerLimits(replace(DEFAULTS.user, **(user or {})), replace(DEFAULTS.tenant, **(tenant or {})))


def read_row(stage: Stage, user: str = "ada") -> Item:
    key = build_user_limits_key(stage.resources, ADA.tenant, user, "counts")
    return next(iter(stage.stored_items(key.pk)), {})


def list_tenant_leases(stage: Stage) -> list[str]:
    keys = [build_tenant_limits_key(stage.resources, ADA.tenant, shard, "counts") for shard in range(TENANT_SHARDS)]
    rows = [row for key in keys for row in stage.stored_items(key.pk)]
    return [name for row in rows for name in row if name.startswith("x#")]


def list_leases(stage: Stage, user: str = "ada") -> list[str]:
    return [name for name in read_row(stage, user) if name.startswith("x#")]


def start(stage: Stage, limits: CallerLimits, **members: Any) -> Turn:
    """Start a turn in a conversation of its own."""
    stage.new_conversation()
    return stage.start_turn("Go", limits=limits, **members)


def start_as(stage: Stage, caller: Caller, limits: CallerLimits) -> Turn | ApiError:
    resources = stage.resources
    conversation = conversation_store.create_conversation(
        resources, caller, "site", None, stage.credential.id, "model-1"
    )
    prompt = replace(stage.make_prompt("Go"), conversation_id=conversation.id, limits=limits)
    try:
        return start_turn(resources, caller, prompt).turn
    except ApiError as error:
        return error


def start_at_once(stage: Stage, callers: list[Caller], limits: CallerLimits) -> Iterator[Turn | ApiError]:
    with ThreadPoolExecutor(len(callers)) as pool:
        yield from pool.map(lambda caller: start_as(stage, caller, limits), callers)


def refuse(stage: Stage, limits: CallerLimits, **members: Any) -> TooManyRequests:
    with pytest.raises(TooManyRequests) as refused:
        start(stage, limits, **members)
    return refused.value


def test_a_turn_counts_until_it_ends(stage: Stage) -> None:
    limits = limit(user={"turns_at_once": 1})
    turn = start(stage, limits)
    assert list_leases(stage) == list_tenant_leases(stage) == [f"x#{turn.id}"]
    assert refuse(stage, limits).reason == "turns"
    stage.cancel_turn()
    assert list_leases(stage) == list_tenant_leases(stage) == []
    start(stage, limits)


def test_a_turn_that_runs_to_its_end_counts_no_more(stage: Stage) -> None:
    start(stage, DEFAULTS)
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p>x</p>")), "Done.")
    stage.run_workflow()
    assert list_leases(stage)
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    assert list_leases(stage) == list_tenant_leases(stage) == []


def test_fifty_starts_at_once_begin_as_many_turns_as_may_run(stage: Stage) -> None:
    limits = limit(user={"turns_at_once": 10, "prompts_per_minute": 100})
    results = list(start_at_once(stage, [ADA] * 50, limits))
    turns = [result for result in results if isinstance(result, Turn)]
    refusals = [result for result in results if not isinstance(result, Turn)]
    assert len(turns) == 10
    assert {(type(refusal), refusal.reason) for refusal in refusals} == {(TooManyRequests, "turns")}
    assert sorted(list_leases(stage)) == sorted(list_tenant_leases(stage)) == sorted(f"x#{turn.id}" for turn in turns)


def test_many_users_begin_as_many_turns_as_their_tenant_may_run(stage: Stage) -> None:
    limits = limit(tenant={"turns_at_once": 20})
    callers = [ADA.model_copy(update={"user": f"user-{number}"}) for number in range(40)]
    results = list(start_at_once(stage, callers, limits))
    refusals = [result for result in results if not isinstance(result, Turn)]
    assert len(results) - len(refusals) == 20
    assert {refusal.reason for refusal in refusals} == {"turns"}
    assert "turns of your workspace are running as may run at once (20)" in refusals[0].message
    assert len(list_tenant_leases(stage)) == 20


@pytest.mark.parametrize("allowed", [1, 3, 17])
def test_one_user_may_use_all_of_a_small_tenants_limit(stage: Stage, allowed: int) -> None:
    limits = limit(user={"turns_at_once": 1000}, tenant={"turns_at_once": allowed})
    for _ in range(allowed):
        start(stage, limits)
    assert refuse(stage, limits).reason == "turns"


def test_one_user_may_send_all_of_a_small_tenants_prompts(stage: Stage) -> None:
    limits = limit(tenant={"prompts_per_minute": 5})
    for _ in range(5):
        start(stage, limits)
    refusal = refuse(stage, limits)
    assert refusal.message.startswith("Your workspace has sent as many prompts as it may in a minute (5).")
    assert 55 <= (refusal.retry_after or 0) <= 60


def test_a_limit_that_was_lowered_while_turns_run_refuses_until_they_end(stage: Stage) -> None:
    turns = [start(stage, DEFAULTS) for _ in range(9)]
    assert refuse(stage, limit(user={"turns_at_once": 2})).reason == "turns"
    stage.cancel_turn()
    assert len(list_leases(stage)) == len(turns) - 1


def test_a_tenants_limit_that_was_lowered_while_turns_run_admits_as_many_beside_them_at_most(stage: Stage) -> None:
    """A row of the tenant that is below its new part has room, wherever the turns before it count."""
    for _ in range(9):
        start(stage, DEFAULTS)
    lower = limit(user={"turns_at_once": 100}, tenant={"turns_at_once": 2})
    results = [start_as(stage, ADA, lower) for _ in range(3)]
    refusals = [result for result in results if isinstance(result, ApiError)]
    assert {type(refusal) for refusal in refusals} == {TooManyRequests}


def test_a_killed_turn_does_not_count_for_ever(stage: Stage) -> None:
    limits = limit(user={"turns_at_once": 1})
    start(stage, limits)
    stage.pass_time(TURN_LEASE_SECONDS - 1)
    assert refuse(stage, limits).reason == "turns"
    stage.pass_time(1)
    start(stage, limits)
    assert refuse(stage, limits).reason == "turns"


def test_the_end_of_a_turn_without_a_lease_ends_it(stage: Stage) -> None:
    start(stage, DEFAULTS)
    key = build_user_limits_key(stage.resources, ADA.tenant, ADA.user, "counts")
    stage.resources.tables.batch_delete(key.table, [(key.pk, key.sk)])
    assert stage.cancel_turn() == "cancelled"
    assert set(read_row(stage)) == {"pk", "sk", "ttl"}
    start(stage, DEFAULTS)


def test_prompts_beyond_those_of_a_minute_wait_for_the_seconds_of_the_refusal(stage: Stage) -> None:
    limits = limit(user={"prompts_per_minute": 3, "turns_at_once": 100})
    for _ in range(3):
        start(stage, limits)
    refusal = refuse(stage, limits)
    assert (refusal.reason, refusal.retry_after) == ("prompts", 20)
    stage.pass_time(20)
    start(stage, limits)


def test_a_refused_prompt_leaves_nothing(stage: Stage) -> None:
    limits = limit(user={"turns_at_once": 1})
    start(stage, limits)
    before = read_row(stage)
    refuse(stage, limits, idempotency_key="k")
    assert read_row(stage) == before
    assert stage.load_messages() == []
    assert stage.claim() is None
    assert not stage.stored_items(f"t#{ADA.tenant}#u#{ADA.user}#idempotency")


def test_refused_and_repeated_prompts_fill_no_bucket(stage: Stage) -> None:
    limits = limit(user={"turns_at_once": 1})
    start(stage, limits, idempotency_key="k", snapshot={"page": "first"})
    for number in range(10):
        refuse(stage, limits, snapshot={"page": number})
    for number in range(10):
        refuse(stage, limits, snapshot={"page": f"another {number}"}, idempotency_key=f"k{number}")
    assert len(list(stage.resources.blobs.list_keys("turns"))) == 2
    stage.cancel_turn()
    turn = start(stage, limits, snapshot={"page": "last"})
    folder = prompt_folder(turn.tenant, turn.user, turn.conversation, turn.id)
    assert len(list(stage.resources.blobs.list_keys(folder))) == 1
    stage.pass_time(60)
    stage.cancel_turn()
    start(stage, limits, snapshot={"page": "as usual"})


@pytest.mark.parametrize("conversation_id", ["../other", "x" * 2_000, "", "a/b"])
def test_a_prompt_for_what_is_no_conversation_stores_nothing(stage: Stage, conversation_id: str) -> None:
    prompt = replace(stage.make_prompt("Go", snapshot={"page": "x"}), conversation_id=conversation_id)
    before = stage.resources.blobs.list_keys("turns")
    with pytest.raises(NotFound):
        start_turn(stage.resources, ADA, prompt)
    assert stage.resources.blobs.list_keys("turns") == before


@pytest.mark.parametrize("whose", ["user", "tenant"])
def test_a_prompt_that_is_refused_ends_no_turn(stage: Stage, whose: str) -> None:
    """An editor's prompt ends the turn of its conversation, but only if its own turn has room then."""
    for _ in range(3):
        start(stage, DEFAULTS, dialect="instatic")
    stage.pass_time(30)
    lower = limit(user={"turns_at_once": 2}) if whose == "user" else limit(tenant={"turns_at_once": 0})
    with pytest.raises(TooManyRequests):
        stage.start_turn("Another", limits=lower, dialect="instatic")
    assert "cancelled" not in stage.event_types()
    assert stage.claim() == stage.turn.id
    allowed = limit(user={"turns_at_once": 3}, tenant={"turns_at_once": 3})
    ended = stage.turn
    stage.start_turn("Another", limits=allowed, dialect="instatic")
    assert f"x#{ended.id}" not in list_leases(stage)
    assert len(list_leases(stage)) == 3


def test_fifty_starts_within_the_limits_all_begin(stage: Stage) -> None:
    limits = limit(user={"turns_at_once": 60, "prompts_per_minute": 1000})
    assert all(isinstance(result, Turn) for result in start_at_once(stage, [ADA] * 50, limits))
    assert len(list_leases(stage)) == len(list_tenant_leases(stage)) == 50


@pytest.mark.parametrize("quiet_seconds", [None, 0, 90], ids=["the first", "in use", "after a pause"])
def test_fifty_prompts_of_a_user_that_read_the_rows_before_any_writes_need_fifty_writes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, quiet_seconds: float | None
) -> None:
    limits = limit(user={"turns_at_once": 100, "prompts_per_minute": 1000})
    if quiet_seconds is not None:
        start(stage, limits)
        stage.pass_time(quiet_seconds)
    counters = [UseCounter(stage.resources, ADA, limits, f"use {number}") for number in range(50)]
    client, written = stage.resources.tables._client, list[str]()
    call = client._make_api_call
    monkeypatch.setattr(client, "_make_api_call", lambda name, given: written.append(name) or call(name, given))
    for number, counter in enumerate(counters):
        use = Use(prompts=1, turn=f"turn {number}", stored_bytes=9)
        counter.commit(use, partial(write_counts, stage.resources))
    assert written == ["TransactWriteItems"] * 50


def test_a_repeated_request_counts_once(stage: Stage) -> None:
    limits = limit(user={"prompts_per_minute": 1, "turns_at_once": 1})
    turn = start(stage, limits, idempotency_key="k")
    for seconds in (0, 1, 300):
        stage.pass_time(seconds)
        assert stage.start_turn("Go", limits=limits, idempotency_key="k").id == turn.id
    assert read_row(stage)["used_us"] == 60 * 10**6


def test_a_start_that_lands_again_minutes_later_counts_once(stage: Stage) -> None:
    landed: list[Any] = []
    client = stage.resources.tables._client
    call = client._make_api_call

    def note(operation: str, params: Any) -> Any:
        if operation == "TransactWriteItems":
            landed.append(params)
        return call(operation, params)

    stage._monkeypatch.setattr(client, "_make_api_call", note)
    start(stage, DEFAULTS)
    stage.cancel_turn()
    before = (read_row(stage), list_tenant_leases(stage))
    stage.pass_time(900)
    for params in landed:  # START and END
        with pytest.raises(client.exceptions.TransactionCanceledException):
            call("TransactWriteItems", {**params, "ClientRequestToken": "another"})
    assert (read_row(stage), list_tenant_leases(stage)) == before


def test_the_prompt_that_ends_its_conversations_turn_takes_its_place(stage: Stage) -> None:
    limits = limit(user={"turns_at_once": 1})
    first = stage.start_turn("One", limits=limits, dialect="instatic")
    stage.pass_time(60)
    second = stage.start_turn("Two", limits=limits, dialect="instatic")
    assert list_leases(stage) == [f"x#{second.id}"] != [f"x#{first.id}"]


def test_an_undo_counts_as_a_turn_and_not_as_a_prompt(stage: Stage) -> None:
    limits = limit(user={"prompts_per_minute": 1, "turns_at_once": 1})
    stage.start_turn("Go", limits=limits)
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p>x</p>")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK | {"inverse": [{"tool": "deleteNode", "input": {"nodeId": "n1"}}]})
    stage.run_workflow()
    done = stage.turn
    undo = stage.start_undo(done, limits=limits)
    assert list_leases(stage) == [f"x#{undo.id}"]
    stage.pass_time(60)
    assert refuse(stage, limits).reason == "turns"
    stage._turn = undo
    stage.cancel_turn()
    assert list_leases(stage) == list_tenant_leases(stage) == []


def test_the_bytes_of_prompts_count(stage: Stage) -> None:
    limits = limit(user={"bytes_per_day": 1_000_000})
    start(stage, limits, body_bytes=999_999)
    assert refuse(stage, limits, body_bytes=2).reason == "stored_bytes"
    start(stage, limits, body_bytes=1)


def test_a_damaged_row_keeps_nobody_from_starting(staged: MakeStage) -> None:
    stage = staged()
    key = build_user_limits_key(stage.resources, ADA.tenant, ADA.user, "counts")
    stage.resources.tables._client.put_item(
        TableName=key.table,
        Item={
            "pk": {"S": key.pk},
            "sk": {"S": key.sk},
            "version": {"S": "x"},
            "free_at": {"L": []},
            "x#old": {"S": "y"},
        },
    )
    turn = start(stage, DEFAULTS)
    assert list_leases(stage) == [f"x#{turn.id}"]
    assert not {"version", "free_at"} & read_row(stage).keys()
