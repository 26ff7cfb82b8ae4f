"""Judge a simulation by its raw rows and by what its browsers and its provider saw. It shares no code with the product.

`judge(world)` returns the broken promises as sentences; an empty list means that none is broken.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.chaos.world import SimulatedTurn, World

Row = dict[str, Any]
TERMINAL_TYPES = ("done", "error", "cancelled")
HIDDEN_TYPES = ("roundStarted", "requestStarted", "requestFailed", "toolStarted")
PROMPT_NAME = re.compile(r"\[turn (\w+) ")
MAX_RECOVERY_SECONDS = 1800.0
"""From the last fault until nothing runs any more."""


def plain(attribute: dict[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    if kind == "N":
        return Decimal(value)
    if kind == "M":
        return {name: plain(part) for name, part in value.items()}
    return value


def rows_of(world: "World", table: str) -> Iterator[Row]:
    for _, item in sorted(world.dynamodb.tables[table].items.items()):
        yield {name: plain(value) for name, value in item.items()}


def judge(world: "World") -> list[str]:
    bridges, conversations, usage = (list(rows_of(world, name)) for name in ("bridges", "conversations", "usage"))
    problems: list[str] = []
    for turn in world.turns:
        problems += [f"turn {turn.name}: {problem}" for problem in judge_turn(world, turn, bridges)]
    problems += judge_conversation(world, conversations)
    problems += judge_ledger(world, usage)
    problems += judge_accounts(bridges, usage)
    problems += judge_leftovers(world, bridges, conversations)
    problems += [f"a provider would refuse: {refusal}" for refusal in world.provider.refusals]
    problems += [f"a function failed: {error!r}" for error in world.function_errors if not is_expected(error)]
    return problems


def is_expected(error: Exception) -> bool:
    """Errors of AWS, and those that the API answers a caller with."""
    modules = [base.__module__ for base in type(error).__mro__]
    return any(module.startswith(("botocore", "fermata.domain.errors")) for module in modules)


# a turn and its log


def judge_turn(world: "World", turn: "SimulatedTurn", bridges: list[Row]) -> Iterator[str]:
    if turn.is_abandoned:
        return
    if turn.bridge and not turn.received:
        yield "its reader got nothing"
        return
    if not turn.bridge:
        yield f"it was never started: {turn.error}"
        return
    yield from (f"a repeated answer was refused: {refusal}" for refusal in turn.refused_repeats)
    entries = [row for row in bridges if row["pk"].endswith(f"#turn#{turn.bridge}") and row["sk"].startswith("e#")]
    events = list(events_of(world, entries))
    yield from judge_log(entries, events)
    yield from judge_readers(turn, events)
    yield from judge_calls(turn, events)
    if not any(event["type"] in TERMINAL_TYPES for _, event in turn.received):
        yield "its reader never saw the end"


def events_of(world: "World", entries: list[Row]) -> Iterator[tuple[int, Row]]:
    for row in entries:
        text = row["data"] if "data" in row else world.s3.objects[row["blob"]].body
        for offset, event in enumerate(json.loads(text)):
            yield int(row["sk"][2:]) + offset, event


def judge_log(entries: list[Row], events: list[tuple[int, Row]]) -> Iterator[str]:
    for first, second in pairwise(entries):
        if int(first["sk"][2:]) + int(first["count"]) != int(second["sk"][2:]):
            yield f"its log has a gap or an overlap at {second['sk']}"
    ends = [number for number, event in events if event["type"] in TERMINAL_TYPES]
    if len(ends) != 1:
        yield f"it has {len(ends)} terminal events"
    elif events[-1][0] != ends[0]:
        yield "something follows its terminal event"
    yield from judge_text(events)


def judge_text(events: list[tuple[int, Row]]) -> Iterator[str]:
    """Of every round the text of one attempt is shown; a new attempt is preceded by a retraction of the old text."""
    shown: dict[int, str] = defaultdict(str)
    current = 0
    for _, event in events:
        if event["type"] == "roundStarted":
            current = event["round"]
        elif event["type"] == "roundRetracted":
            shown[event["round"]] = ""
        elif event["type"] == "text":
            shown[current] += event["text"]
    for number, text in shown.items():
        words = text.split()
        if len(words) != len(set(words)) and not any("warning" in word for word in words):
            yield f"round {number} shows a text twice: {text[:80]!r}"


def judge_readers(turn: "SimulatedTurn", events: list[tuple[int, Row]]) -> Iterator[str]:
    numbers = [number for number, _ in turn.received]
    if numbers != sorted(set(numbers)):
        yield "its reader got an event twice or out of order"
    stored = {number: event["type"] for number, event in events}
    for number, event in turn.received:
        if stored.get(number) != event["type"]:
            yield f"its reader got {event['type']} as number {number}, stored is {stored.get(number)}"
            return
    missed = {number for number, kind in stored.items() if kind not in HIDDEN_TYPES} - set(numbers)
    if missed:
        yield f"its reader missed events {sorted(missed)[:5]}"


def judge_calls(turn: "SimulatedTurn", events: list[tuple[int, Row]]) -> Iterator[str]:
    kinds: dict[str, list[Row]] = defaultdict(list)
    for _, event in events:
        kinds[event["type"]].append(event)
    for name in ("requestId", "effectKey"):
        counts = Counter(event[name] for event in kinds["toolRequest"])
        yield from (f"{name} {value} was requested {count} times" for value, count in counts.items() if count > 1)
    called = Counter(event["toolCallId"] for event in kinds["toolCall"])
    resulted = Counter(event["toolCallId"] for event in kinds["toolResult"])
    if called != resulted:
        yield f"calls {dict(called)} and results {dict(resulted)} differ"
    results = {event["toolCallId"]: event for event in kinds["toolResult"]}
    for event in kinds["toolRequest"]:
        answered = turn.acknowledged.get(event["requestId"])
        if answered and not results.get(event["toolCallId"], {}).get("ok"):
            yield f"the answer to {event['requestId']} was acknowledged and is lost"


# the conversation


def judge_conversation(world: "World", conversations: list[Row]) -> Iterator[str]:
    messages = [row for row in conversations if row["sk"].startswith("m#")]
    prompts = Counter(row["turn"] for row in messages if row["role"] == "user")
    for turn in world.turns:
        if turn.bridge and prompts[turn.bridge] != 1:
            yield f"turn {turn.name}: its prompt is stored {prompts[turn.bridge]} times"
        stored = [row for row in messages if row["turn"] == turn.bridge and row["role"] == "assistant"]
        is_done = any(event["type"] == "done" for _, event in turn.received)
        if is_done and not stored:
            yield f"turn {turn.name}: done, and its answer is not stored"
    results = Counter((row["turn"], row["toolCallId"]) for row in messages if row["role"] == "tool")
    yield from (f"the result of {key} is stored {count} times" for key, count in results.items() if count > 1)


# money


def is_request_row(row: Row) -> bool:
    return "#turn#" in row["pk"] and row["sk"].startswith("r0")


def judge_ledger(world: "World", usage: list[Row]) -> Iterator[str]:
    """Each request that arrived at the provider has one row, and there is no row for one that never did.

    A process that is killed or frozen right after it has announced a request leaves an estimate for a request that was
    not sent. Each such fault excuses one row, if it is not billable.
    """
    names = {turn.bridge: turn.name for turn in world.turns if turn.bridge} | names_by_prompt(world)
    rows = Counter((names.get(row["turn"], row["turn"]), int(row["round"])) for row in usage if is_request_row(row))
    served = Counter((request.turn, request.round) for request in world.provider.served)
    excused = sum(count for (kind, _), count in world.faults.counts.items() if kind in ("kill after", "freeze after"))
    for key in sorted(rows.keys() | served.keys()):
        if rows[key] > served[key] and excused and has_unproven_estimate(usage, names, key):
            excused -= 1
        elif rows[key] != served[key]:
            yield f"round {key[1]} of {key[0]}: {served[key]} requests were served, {rows[key]} are in the ledger"
    exact = Counter[tuple[str, int]]()
    for row in usage:
        if is_request_row(row) and not row.get("estimated") and row.get("outcome") == "ok":
            exact[names.get(row["turn"], row["turn"]), int(row["round"])] += 1
    complete = Counter((request.turn, request.round) for request in world.provider.served if request.is_final)
    yield from (
        f"round {key[1]} of {key[0]}: {count} exact rows for {complete[key]} whole responses"
        for key, count in exact.items()
        if count > complete[key]
    )


def has_unproven_estimate(usage: list[Row], names: dict[str, str], key: tuple[str, int]) -> bool:
    return any(
        is_request_row(row)
        and (names.get(row["turn"], row["turn"]), int(row["round"])) == key
        and (row["estimated"], row["billable"], row["completion"]) == (True, False, 0)
        for row in usage
    )


def names_by_prompt(world: "World") -> dict[str, str]:
    """Turns whose browser never learned their id are known by their stored prompt."""
    found = {}
    for row in rows_of(world, "conversations"):
        match = PROMPT_NAME.search(str(row.get("content", ""))) if row.get("role") == "user" else None
        if match:
            found[row["turn"]] = match[1]
    return found


def judge_accounts(bridges: list[Row], usage: list[Row]) -> Iterator[str]:
    """Budget accounts have what the budgeted rows cost, and hold nothing when nothing runs."""
    cost = sum((row["cost"] for row in usage if is_request_row(row) and row.get("budgeted")), Decimal(0))
    accounts = [row for row in bridges if row["pk"].endswith("#budget#tenant")]
    if cost and not accounts:
        yield f"{cost} was spent under a budget, and there is no account"
    spent = sum((row.get("spent", Decimal(0)) for row in accounts), Decimal(0))  # one row for each month
    if accounts and spent != cost:
        yield f"the accounts have {spent} spent, the ledger {cost}"
    for row in accounts:
        held = {name: value for name, value in row.items() if name.startswith("held") and value}
        if held or any(name.startswith("x#") for name in row):
            yield f"the account still holds {held or [name for name in row if name.startswith('x#')]}"


# what is left over


def judge_leftovers(world: "World", bridges: list[Row], conversations: list[Row]) -> Iterator[str]:
    for row in bridges:
        if "open" in row:
            yield f"{row['pk']} is still open"
    for row in conversations:
        if row["sk"] == "meta" and row.get("claim"):
            yield f"{row['pk']} is still claimed by {row['claim']}"
    for execution in world.step_functions.executions.values():
        if execution.status == "RUNNING":
            yield f"execution {execution.name} still runs"
    if world.quiet_after > MAX_RECOVERY_SECONDS:
        yield f"it took {world.quiet_after:.0f} s after the last fault until nothing ran"
