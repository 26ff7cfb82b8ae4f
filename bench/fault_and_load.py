"""What must hold when things go wrong or come all at once, and what length costs."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.aws_calls import AwsCalls, record_aws_calls, stored_item_sizes
from bench.harness import BenchHarness, RecordedTurn, instant_tool_output
from bench.latency import BROWSER_TOOL_STEP, FINAL_STEP, wait_until_settled
from bench.report import ResultRow
from fermata.conversations import message_store
from fermata.domain.blocks import TextBlock
from fermata.domain.messages import Message
from fermata.turns.turn import build_turn_pk
from fermata.turns.turn_log import read_entries_from
from fermata_client.turns.outcome import TurnOutcome
from fermata_client.turns.runner import follow_turn, run_turn
from fermata_client.turns.view import TurnView, fold_events
from local import seed

MAX_ADDED_READS = 3
"""Requests that may be added to read what the model is sent, which has an end: its window."""
LONG_TEXT = "Every word of this answer must arrive, once. " * 20


def measure_killed_function(stage: BenchHarness, times: int) -> ResultRow:
    """The function dies in mid-text and its client with it; what does a client show that attaches afterwards?"""
    step = {"text": LONG_TEXT, "chunks": 40, "chunkMs": 25.0}
    prompt = stage.script_model("killed", [step], repeat_last=True)
    views = [_killed_once(stage, prompt) for _ in range(times)]
    clean = sum(view.status == "done" and view.text == LONG_TEXT for view in views)
    result = "one clean answer" if clean == times else f"{times - clean} of {times} answers were not clean"
    what = "function killed in mid-text, client reattaches"
    return ResultRow("killed", what, "one clean answer", result, clean == times, {"n": times})


def _killed_once(stage: BenchHarness, prompt: str) -> TurnView:
    view = TurnView()
    with stage.client.start_turn("site", prompt, conversation_id=stage.create_conversation()) as events:
        for event in events:
            view = fold_events([event], view)
            if len(view.text) > len(LONG_TEXT) // 3:
                break
    if not stage.cloud.kill_workers("round"):
        raise RuntimeError("There was no function to kill in mid-text.")
    return follow_turn(stage.client, str(view.bridge_id), view=view).view


def measure_concurrent_turns(stage: BenchHarness, size: int) -> ResultRow:
    """Many turns with browser tools at once: each client saw exactly what its turn's log holds."""
    prompt = stage.script_model("crowd", [BROWSER_TOOL_STEP, BROWSER_TOOL_STEP, FINAL_STEP])
    _all_at_once(stage, prompt, size)
    started = time.monotonic()
    outcomes = _all_at_once(stage, prompt, size)
    seconds = time.monotonic() - started
    faults = [fault for outcome, seen in outcomes for fault in _faults(stage, outcome, seen)]
    done = sum(outcome.status == "done" for outcome, _ in outcomes)
    result = f"{done} done, {len(faults)} events lost or doubled, {seconds:.1f} s"
    what = f"{size} concurrent turns with browser tools, functions warm"
    numbers = {"seconds": round(seconds, 1), "reconnects": sum(outcome.reconnect_count for outcome, _ in outcomes)}
    return ResultRow("crowd", what, "all finish, none lost or doubled", result, done == size and not faults, numbers)


def _all_at_once(stage: BenchHarness, prompt: str, size: int) -> list[tuple[TurnOutcome, list[dict[str, Any]]]]:
    conversations = [stage.create_conversation() for _ in range(size)]
    ready = threading.Barrier(size)

    def one(conversation: str) -> tuple[TurnOutcome, list[dict[str, Any]]]:
        seen: list[dict[str, Any]] = []
        ready.wait()
        outcome = run_turn(
            stage.client,
            "site",
            prompt,
            conversation_id=conversation,
            executor=instant_tool_output,
            on_event=lambda event, _: seen.append(event),
        )
        return outcome, seen

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, conversations))


def _faults(stage: BenchHarness, outcome: TurnOutcome, seen: list[dict[str, Any]]) -> Iterator[str]:
    """Events that the client did not see once, in order, and as they stand in the log."""
    written = [event for event in read_stored_events(stage, str(outcome.view.bridge_id)) if not _is_internal(event)]
    if seen != written:
        yield from (f"lost {event}" for event in written if event not in seen)
        yield from (f"doubled or unknown {event}" for event in seen if seen.count(event) > 1 or event not in written)
        yield "order"
    if fold_events(written) != outcome.view:
        yield "the fold of the log is not what the client shows"


def _is_internal(event: dict[str, Any]) -> bool:
    return event["type"] in ("roundStarted", "toolStarted")


def read_stored_events(stage: BenchHarness, turn: str) -> list[dict[str, Any]]:
    """The turn's log as its clients should see it."""
    resources = stage.cloud.resources()
    entries = read_entries_from(resources, build_turn_pk(seed.TENANT, turn), 1)
    numbered = [pair for entry in entries for pair in enumerate(entry.events, entry.first_number)]
    return [event.to_wire() | {"seq": number} for number, event in numbered]


def measure_long_conversation(stage: BenchHarness, few: int, many: int) -> ResultRow:
    """One more turn in a conversation of many messages, beside one of few."""
    prompt = stage.script_model("one-more-turn", [FINAL_STEP], repeat_last=True)
    (small, brief), (large, long) = (_one_more(stage, prompt, length) for length in (few, many))
    sizes = stored_item_sizes(stage.cloud.get_client("dynamodb"))
    small, large = small.of_kind("step"), large.of_kind("step")
    meters = small.meter_units(sizes), large.meter_units(sizes)
    counts = [requests.count_for_service("dynamodb") for requests in (small, large)]
    writes, reads = ([getattr(meter, name) for meter in meters] for name in ("write_units", "read_units"))
    numbers = {
        "requests": counts,
        "WRU": writes,
        "RRU": reads,
        "seconds": [round(told.seconds, 3) for told in (brief, long)],
    }
    result = f"requests {counts[0]} → {counts[1]}, WRU {writes[0]:g} → {writes[1]:g}, RRU {reads[0]:g} → {reads[1]:g}"
    what = f"one more turn after {few} and after {many:,} messages"
    is_met = counts[1] <= counts[0] + MAX_ADDED_READS and writes[1] == writes[0]
    return ResultRow("length", what, f"same writes, ≤ {MAX_ADDED_READS} more reads", result, is_met, numbers)


def _one_more(stage: BenchHarness, prompt: str, length: int) -> tuple[AwsCalls, RecordedTurn]:
    conversation = stage.create_conversation()
    _fill(stage, conversation, length)
    stage.run_turn(prompt, conversation=conversation)
    with record_aws_calls(stage.cloud.endpoint) as requests:
        told = stage.run_turn(prompt, conversation=conversation)
        wait_until_settled()
    return requests, told


def _fill(stage: BenchHarness, conversation: str, length: int) -> None:
    """Messages as past turns would have left them."""
    resources = stage.cloud.resources()
    for start in range(0, length, 50):
        batch = [_message(resources.clock.now_iso(), number) for number in range(start, min(start + 50, length))]
        resources.tables.write_items(
            *(message_store.build_message_put(resources, seed.TENANT, conversation, message) for message in batch)
        )
    stage.cloud.get_client("dynamodb").update_item(
        TableName=resources.settings.conversations_table,
        Key={"pk": {"S": message_store.conversation_partition(seed.TENANT, conversation)}, "sk": {"S": "meta"}},
        UpdateExpression="SET next_position = :next",
        ExpressionAttributeValues={":next": {"N": str(length)}},
    )


def _message(now: str, number: int) -> Message:
    said = f"Message {number}, about as long as people and models usually write to each other."
    return Message(
        position=number,
        role="assistant" if number % 2 else "user",
        content=(TextBlock(text=said),),
        turn=f"past-{number // 2}",
        round=number % 2,
        created_at=now,
    )
