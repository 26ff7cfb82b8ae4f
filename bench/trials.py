"""What must hold when things go wrong or come all at once, and what length costs."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.requests import Requests, recording, sizes_now
from bench.stage import Stage, Told, answer_to
from bench.table import Row
from bench.waits import ASK, AT_ONCE, settle
from fermata.conversations import rows
from fermata.turns import log as logs
from fermata.turns.turn import partition
from fermata.words.blocks import TextBlock
from fermata.words.messages import Message
from fermata_client.fold import TurnView, fold_all
from fermata_client.outcome import Outcome
from fermata_client.turn import follow_turn, run_turn
from local import seed

MORE_READS = 3
"""Requests that may be added to read what the model is sent, which has an end: its window."""
LONG_TEXT = "Every word of this answer must arrive, once. " * 20


def killed(stage: Stage, times: int) -> Row:
    """The function dies in mid-text and its client with it; what does a client show that attaches afterwards?"""
    step = {"text": LONG_TEXT, "chunks": 40, "chunkMs": 25.0}
    prompt = stage.script("killed", [step], repeat_last=True)
    views = [_killed_once(stage, prompt) for _ in range(times)]
    clean = sum(view.status == "done" and view.text == LONG_TEXT for view in views)
    result = "one clean answer" if clean == times else f"{times - clean} of {times} answers were not clean"
    what = "function killed in mid-text, client reattaches"
    return Row("killed", what, "one clean answer", result, clean == times, {"n": times})


def _killed_once(stage: Stage, prompt: str) -> TurnView:
    view = TurnView()
    with stage.client.start("site", prompt, conversation_id=stage.conversation()) as events:
        for event in events:
            view = fold_all([event], view)
            if len(view.text) > len(LONG_TEXT) // 3:
                break
    if not stage.cloud.kill_workers("round"):
        raise RuntimeError("There was no function to kill in mid-text.")
    return follow_turn(stage.client, str(view.bridge_id), view=view).view


def crowd(stage: Stage, size: int) -> Row:
    """Many turns with browser tools at once: each client saw exactly what its turn's log holds."""
    prompt = stage.script("crowd", [ASK, ASK, AT_ONCE])
    _all_at_once(stage, prompt, size)
    started = time.monotonic()
    outcomes = _all_at_once(stage, prompt, size)
    seconds = time.monotonic() - started
    faults = [fault for outcome, seen in outcomes for fault in _faults(stage, outcome, seen)]
    done = sum(outcome.status == "done" for outcome, _ in outcomes)
    result = f"{done} done, {len(faults)} events lost or doubled, {seconds:.1f} s"
    what = f"{size} concurrent turns with browser tools, functions warm"
    numbers = {"seconds": round(seconds, 1), "reconnects": sum(outcome.reconnects for outcome, _ in outcomes)}
    return Row("crowd", what, "all finish, none lost or doubled", result, done == size and not faults, numbers)


def _all_at_once(stage: Stage, prompt: str, size: int) -> list[tuple[Outcome, list[dict[str, Any]]]]:
    conversations = [stage.conversation() for _ in range(size)]
    ready = threading.Barrier(size)

    def one(conversation: str) -> tuple[Outcome, list[dict[str, Any]]]:
        seen: list[dict[str, Any]] = []
        ready.wait()
        outcome = run_turn(
            stage.client,
            "site",
            prompt,
            conversation_id=conversation,
            executor=answer_to,
            on_event=lambda event, _: seen.append(event),
        )
        return outcome, seen

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, conversations))


def _faults(stage: Stage, outcome: Outcome, seen: list[dict[str, Any]]) -> Iterator[str]:
    """Events that the client did not see once, in order, and as they stand in the log."""
    written = [event for event in stored_events(stage, str(outcome.view.bridge_id)) if not _is_internal(event)]
    if seen != written:
        yield from (f"lost {event}" for event in written if event not in seen)
        yield from (f"doubled or unknown {event}" for event in seen if seen.count(event) > 1 or event not in written)
        yield "order"
    if fold_all(written) != outcome.view:
        yield "the fold of the log is not what the client shows"


def _is_internal(event: dict[str, Any]) -> bool:
    return event["type"] in ("roundStarted", "toolStarted")


def stored_events(stage: Stage, turn: str) -> list[dict[str, Any]]:
    """The turn's log as its clients should see it."""
    desk = stage.cloud.desk()
    entries = logs.since(desk, partition(seed.TENANT, turn), 1)
    numbered = [pair for entry in entries for pair in enumerate(entry.events, entry.first)]
    return [event.wire() | {"seq": number} for number, event in numbered]


def long_conversation(stage: Stage, few: int, many: int) -> Row:
    """One more turn in a conversation of many messages, beside one of few."""
    prompt = stage.script("one-more-turn", [AT_ONCE], repeat_last=True)
    (small, brief), (large, long) = (_one_more(stage, prompt, length) for length in (few, many))
    sizes = sizes_now(stage.cloud.client("dynamodb"))
    small, large = small.of("step"), large.of("step")
    meters = small.metered(sizes), large.metered(sizes)
    counts = [requests.count("dynamodb") for requests in (small, large)]
    writes, reads = ([getattr(meter, name) for meter in meters] for name in ("write", "read"))
    numbers = {
        "requests": counts,
        "WRU": writes,
        "RRU": reads,
        "seconds": [round(told.seconds, 3) for told in (brief, long)],
    }
    result = f"requests {counts[0]} → {counts[1]}, WRU {writes[0]:g} → {writes[1]:g}, RRU {reads[0]:g} → {reads[1]:g}"
    what = f"one more turn after {few} and after {many:,} messages"
    is_met = counts[1] <= counts[0] + MORE_READS and writes[1] == writes[0]
    return Row("length", what, f"same writes, ≤ {MORE_READS} more reads", result, is_met, numbers)


def _one_more(stage: Stage, prompt: str, length: int) -> tuple[Requests, Told]:
    conversation = stage.conversation()
    _fill(stage, conversation, length)
    stage.turn(prompt, conversation=conversation)
    with recording(stage.cloud.endpoint) as requests:
        told = stage.turn(prompt, conversation=conversation)
        settle()
    return requests, told


def _fill(stage: Stage, conversation: str, length: int) -> None:
    """Messages as past turns would have left them."""
    desk = stage.cloud.desk()
    for start in range(0, length, 50):
        batch = [_message(desk.clock.instant(), number) for number in range(start, min(start + 50, length))]
        desk.tables.write(*(rows.put(desk, seed.TENANT, conversation, message) for message in batch))
    stage.cloud.client("dynamodb").update_item(
        TableName=desk.settings.conversations_table,
        Key={"pk": {"S": rows.partition(seed.TENANT, conversation)}, "sk": {"S": "meta"}},
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
