"""Judge turns: one end, one log for all readers, each effect asked for once, no acknowledged answer lost."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tests.chaos.evidence import TERMINAL_TYPES, ClientTurn, Event, Evidence, Reader
from tests.chaos.judge.find_rows import LoggedEvent, find_entries, read_log

UNKNOWN_TO_INSTATIC = (
    *("roundRetracted", "held", "reasoning"),
    *("approvalRequested", "approvalDecided", "promptQueued", "toolAwaited", "subAgentStarted"),
)
HIDDEN_TYPES = ("roundStarted", "requestStarted", "requestFailed", "toolStarted", "finishHooksRun")
MAX_REQUEST_SECONDS = 60.0
PROMISED_PRESENCE_SECONDS = 25.0 - 4.0
"""How long a client may take until it begins to read, as clocks differ by two seconds each."""
SUPERSEDED = "Another prompt in this conversation, for example from another tab, has ended this answer."


def judge_turns(evidence: Evidence) -> Iterator[str]:
    for turn in evidence.turns:
        yield from (f"turn {turn.name}: {problem}" for problem in judge_turn(evidence, turn))
    turns = {str(row["pk"]).rpartition("#turn#")[2] for row in evidence.bridges if row["sk"] == "turn"}
    known = {turn.bridge for turn in evidence.turns}
    for bridge in sorted(turns - known):  # nobody has got their id; they must have ended all the same
        yield from (f"turn {bridge}: {problem}" for problem in judge_log(evidence, bridge))


def judge_turn(evidence: Evidence, turn: ClientTurn) -> Iterator[str]:
    yield from turn.complaints
    if turn.must_succeed and not (turn.has_ended and turn.received[-1][1]["type"] == "done"):
        yield f"nothing disturbed it, and it is not done: {turn.error or [event for _, event in turn.received[-1:]]}"
    if not turn.bridge:
        return
    log = read_log(evidence, turn.bridge)
    yield from judge_log(evidence, turn.bridge)
    events = [logged.event for logged in log]
    yield from judge_calls(turn, events)
    yield from judge_supersession(evidence, turn, log[-1:])
    yield from judge_departure(evidence, turn, log[-1:])
    if turn.kind == "undo":
        yield from judge_undo_order(events)
    for number, reader in enumerate(turn.readers):
        yield from (f"reader {number} {problem}" for problem in judge_reader(turn, reader, log))


def judge_log(evidence: Evidence, bridge: str) -> Iterator[str]:
    """The log has no gap, one terminal event as its last, and shows every text once."""
    for first, second in pairwise(find_entries(evidence, bridge)):
        if int(first["sk"][2:]) + int(first["count"]) != int(second["sk"][2:]):
            yield f"its log has a gap or an overlap at {second['sk']}"
    events = [logged.event for logged in read_log(evidence, bridge)]
    ends = [event for event in events if event["type"] in TERMINAL_TYPES]
    if len(ends) != 1:
        yield f"it has {len(ends)} terminal events"
    elif events[-1] is not ends[0]:
        yield "something follows its terminal event"
    yield from judge_text(events)


def fold_text(events: Sequence[Event]) -> dict[int, str]:
    """Return the text of each round as a client shows it in the end."""
    shown: dict[int, str] = defaultdict(str)
    current = 0
    for event in events:
        if event["type"] == "roundStarted":
            current = event["round"]
        elif event["type"] == "roundRetracted":
            shown[event["round"]] = ""
        elif event["type"] == "text":
            shown[current] += event["text"]
    return shown


def judge_text(events: Sequence[Event]) -> Iterator[str]:
    """Of every round the text of one attempt is shown; a new attempt is preceded by a retraction of the old text."""
    for number, text in fold_text(events).items():
        words = text.split()
        if len(words) != len(set(words)):
            yield f"round {number} shows a text twice: {text[:80]!r}"


def judge_reader(turn: ClientTurn, reader: Reader, log: Sequence[LoggedEvent]) -> Iterator[str]:
    """A reader got exactly what the log holds for its dialect, in its order."""
    numbers = [number for number, _ in reader.received]
    if numbers != sorted(set(numbers)):
        yield "got an event twice or out of order"
    stored = {logged.number: translate(turn.dialect, logged.event) for logged in log}
    for number, event in reader.received:
        kept = stored.get(number)
        if kept is None or any(kept.get(name) != value for name, value in event.items() if value not in (None, {})):
            yield f"got {event} as number {number}, stored is {kept}"
            return
    missed = {number for number, event in stored.items() if event is not None} - set(numbers)
    if missed:
        yield f"missed events {sorted(missed)[:5]}"


def translate(dialect: str, event: Event) -> Event | None:
    """Return an event as the clients of a dialect get it; None if they do not."""
    if event["type"] in HIDDEN_TYPES:
        return None
    if dialect == "instatic":
        if event["type"] in UNKNOWN_TO_INSTATIC:
            return None
        if event["type"] == "cancelled" and event.get("reason"):
            told = {"type": "error", "message": SUPERSEDED, "code": "superseded", "retryable": False}
            return told | {"report": event.get("report")}
        if event["type"] == "cancelled":
            return event | {"type": "done"}
        if event["type"] == "warning":
            return {"type": "text", "text": f"\n\n{event['message']}\n\n"}
    return event


def judge_supersession(evidence: Evidence, turn: ClientTurn, end: Sequence[LoggedEvent]) -> Iterator[str]:
    """A turn is cancelled for a reason only in Instatic's dialect, where another turn of its conversation ends it."""
    for event, ended_at in ((logged.event, logged.at_ms / 1000) for logged in end):
        if event["type"] != "cancelled" or not event.get("reason"):
            continue
        others = [
            other
            for other in evidence.turns
            if other is not turn and other.conversation == turn.conversation and _was_requested_by(other, ended_at)
        ]
        asked = (at for conversation, at in evidence.interruptions if conversation == turn.conversation)
        is_interrupted = any(-10 < ended_at - at < MAX_REQUEST_SECONDS for at in asked)
        is_superseded = is_interrupted or (turn.dialect == "instatic" and others)
        if event["reason"] != SUPERSEDED or not is_superseded:
            yield f"it was cancelled because {event['reason']!r}, and nothing has ended it"


def judge_departure(evidence: Evidence, turn: ClientTurn, end: Sequence[LoggedEvent]) -> Iterator[str]:
    """Where the service sees readers leave, it cancels no turn whose reader is there.

    A process of readers that is frozen for longer than a presence lasts is as good as gone. So is a client that has not
    begun to read by then.
    """
    is_deleted = turn.conversation in evidence.deleted_conversations
    if not evidence.sees_departures or turn.is_cancelled_by_user or is_deleted or turn.dialect != "instatic":
        return
    frozen = [(since, until) for name, since, until in evidence.freezes if name.startswith("reader")]
    is_late = turn.first_read_at and turn.first_read_at - turn.requested_at[0] > PROMISED_PRESENCE_SECONDS
    late = [(turn.requested_at[0], turn.first_read_at)] if is_late else []
    for logged in end:
        at = logged.at_ms / 1000
        away = [left for left, back in turn.absences + frozen + late if left - 5 < at < back + MAX_REQUEST_SECONDS]
        is_departure = logged.event["type"] == "cancelled" and logged.event.get("reason") != SUPERSEDED
        if is_departure and not away:
            yield "it was cancelled, and its reader was there"


def _was_requested_by(turn: ClientTurn, moment: float) -> bool:
    """Return whether a turn was requested in the minutes before a moment, as far as anybody knows."""
    return not turn.requested_at or any(-10 < moment - at < MAX_REQUEST_SECONDS for at in turn.requested_at)


def judge_calls(turn: ClientTurn, events: Sequence[Event]) -> Iterator[str]:
    kinds: dict[str, list[Event]] = defaultdict(list)
    for event in events:
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
        if answered and answered["ok"] != results.get(event["toolCallId"], {}).get("ok"):
            yield f"the answer to {event['requestId']} was acknowledged and is lost"


def judge_undo_order(events: Sequence[Event]) -> Iterator[str]:
    """In the undo of an edit, nothing is asked behind a call that failed, because it builds on it."""
    failed = 0
    number = 0
    for event in events:
        if event["type"] == "roundStarted":
            number = event["round"]
        elif event["type"] == "toolResult" and not event["ok"]:
            failed = number
        elif event["type"] == "toolRequest" and failed == number:
            yield f"{event['effectKey']} was requested behind a call that failed"
