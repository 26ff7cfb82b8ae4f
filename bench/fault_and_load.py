"""Check turns under faults and load: a killed function, concurrent turns, and long conversations."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench.aws_calls import record_aws_calls, stored_item_sizes
from bench.harness import BenchHarness, instant_tool_output
from bench.latency import BROWSER_TOOL_STEP, FINAL_STEP, wait_until_settled
from bench.report import ResultRow
from fermata.conversations import message_store
from fermata.domain.blocks import TextBlock
from fermata.domain.messages import Message
from fermata.turns.turn import build_turn_pk
from fermata.turns.turn_log import read_entries_from
from fermata_client.service.json_types import Event
from fermata_client.turns.editor_callbacks import ToolExecutor
from fermata_client.turns.event_reducer import TurnView, fold_event, fold_events
from fermata_client.turns.outcome import TurnOutcome
from fermata_client.turns.runner import follow_turn, run_turn
from local import seed

MAX_ADDED_READS = 3
"""Further requests to read the messages that the model is sent, which its context window limits."""
LONG_TEXT = "Every word of this answer must arrive, once. " * 20


SHORT_CONVERSATION_MESSAGES = 20
_WRITE_BATCH_SIZE = 50
INTERNAL_EVENTS = ("roundStarted", "requestStarted", "requestFailed", "toolStarted")
"""Events of the log that clients do not see."""


def measure_killed_function(harness: BenchHarness, repetitions: int) -> ResultRow:
    """Kill the function within a text and drop the client, and check what another client shows that attaches then."""
    step = {"text": LONG_TEXT, "chunks": 40, "chunkMs": 25.0}
    prompt = harness.script_model("killed", [step], repeat_last=True)
    views = [_follow_killed_turn(harness, prompt) for _ in range(repetitions)]
    clean_count = sum(view.status == "done" and view.text == LONG_TEXT for view in views)
    is_met = clean_count == repetitions
    failed_count = repetitions - clean_count
    result = "one clean answer" if is_met else f"{failed_count} of {repetitions} answers were not clean"
    title = "function killed in mid-text, client reattaches"
    return ResultRow("killed", title, "one clean answer", result, is_met, {"n": repetitions})


def _follow_killed_turn(harness: BenchHarness, prompt: str) -> TurnView:
    view = TurnView()
    with harness.client.start_turn("site", prompt, conversation_id=harness.create_conversation()) as events:
        for event in events:
            view = fold_event(view, event)
            if len(view.text) > len(LONG_TEXT) // 3:
                break
    if not harness.cloud.kill_workers("round"):
        raise RuntimeError("There was no function to kill in mid-text.")
    return follow_turn(harness.client, str(view.bridge_id), view=view).view


@dataclass(frozen=True)
class ObservedTurn:
    outcome: TurnOutcome
    events: list[Event]
    """As the client saw them."""


def measure_concurrent_turns(harness: BenchHarness, turn_count: int) -> ResultRow:
    """Run turns with browser tools at once, and compare what each client saw with its turn's log."""
    prompt = harness.script_model("crowd", [BROWSER_TOOL_STEP, BROWSER_TOOL_STEP, FINAL_STEP])
    _run_concurrently(harness, prompt, turn_count)  # starts the functions
    started = time.monotonic()
    turns = _run_concurrently(harness, prompt, turn_count)
    seconds = time.monotonic() - started
    faults = [fault for turn in turns for fault in find_faults(harness, turn)]
    done_count = sum(turn.outcome.status == "done" for turn in turns)
    return ResultRow(
        "crowd",
        f"{turn_count} concurrent turns with browser tools, functions warm",
        "all finish, none lost or doubled",
        f"{done_count} done, {len(faults)} events lost or doubled, {seconds:.1f} s",
        done_count == turn_count and not faults,
        {"seconds": round(seconds, 1), "reconnects": sum(turn.outcome.reconnect_count for turn in turns)},
    )


def _run_concurrently(harness: BenchHarness, prompt: str, turn_count: int) -> list[ObservedTurn]:
    conversation_ids = [harness.create_conversation() for _ in range(turn_count)]
    barrier = threading.Barrier(turn_count)

    def run_one(conversation_id: str) -> ObservedTurn:
        barrier.wait()
        return observe_turn(harness, prompt, conversation_id)

    with ThreadPoolExecutor(turn_count) as pool:
        return list(pool.map(run_one, conversation_ids))


def observe_turn(
    harness: BenchHarness, prompt: str, conversation_id: str, executor: ToolExecutor = instant_tool_output
) -> ObservedTurn:
    """Run a turn to its end, and record the events as its client sees them."""
    events: list[Event] = []
    outcome = run_turn(
        harness.client,
        "site",
        prompt,
        conversation_id=conversation_id,
        executor=executor,
        on_event=lambda event, _: events.append(event),
    )
    return ObservedTurn(outcome, events)


def find_faults(harness: BenchHarness, turn: ObservedTurn) -> Iterator[str]:
    """Yield the differences between the events that a client saw and its turn's log."""
    stored = read_stored_events(harness, str(turn.outcome.view.bridge_id))
    expected = [event for event in stored if event["type"] not in INTERNAL_EVENTS]
    if turn.events != expected:
        yield from (f"lost {event}" for event in expected if event not in turn.events)
        surplus = [event for event in turn.events if turn.events.count(event) > 1 or event not in expected]
        yield from (f"doubled or unknown {event}" for event in surplus)
        yield "order"
    if fold_events(expected) != turn.outcome.view:
        yield "the fold of the log is not what the client shows"


def read_stored_events(harness: BenchHarness, turn_id: str) -> list[Event]:
    """Read the turn's log, with the numbers that clients see."""
    entries = read_entries_from(harness.resources, build_turn_pk(seed.TENANT, turn_id), 1)
    numbered = [pair for entry in entries for pair in enumerate(entry.events, entry.first_number)]
    return [event.to_wire() | {"seq": number} for number, event in numbered]


@dataclass(frozen=True)
class _FurtherTurn:
    """One more turn in a conversation."""

    request_count: int
    write_units: float
    read_units: float
    seconds: float


def measure_long_conversation(harness: BenchHarness, message_count: int) -> ResultRow:
    """Compare one more turn in a conversation of many messages with one in a short conversation."""
    prompt = harness.script_model("one-more-turn", [FINAL_STEP], repeat_last=True)
    short, long = (
        _measure_further_turn(harness, prompt, count) for count in (SHORT_CONVERSATION_MESSAGES, message_count)
    )
    result = (
        f"requests {short.request_count} → {long.request_count}, WRU {short.write_units:g} → {long.write_units:g}, "
        f"RRU {short.read_units:g} → {long.read_units:g}"
    )
    has_same_writes = long.write_units == short.write_units
    return ResultRow(
        "length",
        f"one more turn after {SHORT_CONVERSATION_MESSAGES} and after {message_count:,} messages",
        f"same writes, ≤ {MAX_ADDED_READS} more reads",
        result,
        has_same_writes and long.request_count <= short.request_count + MAX_ADDED_READS,
        {
            "requests": [short.request_count, long.request_count],
            "WRU": [short.write_units, long.write_units],
            "RRU": [short.read_units, long.read_units],
            "seconds": [round(short.seconds, 3), round(long.seconds, 3)],
        },
    )


def _measure_further_turn(harness: BenchHarness, prompt: str, message_count: int) -> _FurtherTurn:
    conversation_id = harness.create_conversation()
    _store_messages(harness, conversation_id, message_count)
    harness.run_turn(prompt, conversation_id=conversation_id)
    with record_aws_calls(harness.cloud.endpoint) as calls:
        turn = harness.run_turn(prompt, conversation_id=conversation_id)
        wait_until_settled()
    steps = calls.of_kind("step")
    meter = steps.meter_units(stored_item_sizes(harness.cloud.get_client("dynamodb")))
    return _FurtherTurn(steps.count_for_service("dynamodb"), meter.write_units, meter.read_units, turn.seconds)


def _store_messages(harness: BenchHarness, conversation_id: str, count: int) -> None:
    """Store messages as past turns would have."""
    resources = harness.cloud.resources()
    for start in range(0, count, _WRITE_BATCH_SIZE):
        numbers = range(start, min(start + _WRITE_BATCH_SIZE, count))
        messages = [_make_message(resources.clock.now_iso(), number) for number in numbers]
        resources.tables.write_items(
            *(message_store.build_message_put(resources, seed.TENANT, conversation_id, item) for item in messages)
        )
    harness.cloud.get_client("dynamodb").update_item(
        TableName=resources.settings.conversations_table,
        Key={"pk": {"S": message_store.conversation_partition(seed.TENANT, conversation_id)}, "sk": {"S": "meta"}},
        UpdateExpression="SET next_position = :next",
        ExpressionAttributeValues={":next": {"N": str(count)}},
    )


def _make_message(created_at: str, number: int) -> Message:
    text = f"Message {number}, about as long as people and models usually write to each other."
    return Message(
        position=number,
        role="assistant" if number % 2 else "user",
        content=(TextBlock(text=text),),
        turn=f"past-{number // 2}",
        round=number % 2,
        created_at=created_at,
    )
