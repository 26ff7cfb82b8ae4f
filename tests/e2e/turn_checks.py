"""Check what holds after any turn, for any faults: nothing lost, nothing done twice, one terminal event."""

import contextlib
from collections import Counter
from collections.abc import Iterable
from typing import Any

from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.turns.pause import Pause, build_pause_key, pause_from_item
from fermata.turns.turn import build_turn_pk
from fermata.turns.turn_log import LogEntry, read_entries_from, read_last_entry
from fermata_client import TurnView, fold_events, run_turn
from local.cloud import LocalCloud
from tests.e2e.chat_session import ChatSession
from tests.e2e.stream_reader import TERMINAL_EVENTS, Event, StreamReader
from tests.waiting import wait_until

Json = dict[str, Any]


def check_turn(session: ChatSession, *readers: StreamReader | Iterable[Event], ends: str = "done") -> TurnView:
    """Check everything about a turn that has ended, and return its view.

    Args:
        readers: readers of the turn, or their events, that must have seen the same.
        ends: the type of the terminal event.
    """
    whole = session.open_reader().wait_for_end()
    view = fold_events(whole)
    check_single_end(whole, ends)
    check_event_numbers(whole)
    for reader in readers:
        check_same_view(reader, view)
    check_calls_closed_once(whole)
    pk = build_turn_pk(session.tenant, session.bridge)
    entries = read_entries_from(session.resources, pk, 1)
    check_log_gapless(entries)
    check_conversation_rows(session, view)
    check_usage(session.resources, pk, view)
    check_claim_released(session)
    wait_for_executions(session.cloud, session.bridge)
    check_next_prompt(session)
    return view


def check_single_end(events: list[Event], ends: str) -> None:
    assert [event["type"] for event in events if event["type"] in TERMINAL_EVENTS] == [ends], event_types(events)
    assert events[-1]["type"] == ends
    assert events[0]["type"] == "bridgeReady"
    assert sum(event["type"] == "usage" for event in events) == 1


def check_event_numbers(events: list[Event]) -> None:
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers)), numbers


def check_same_view(reader: StreamReader | Iterable[Event], view: TurnView) -> None:
    seen = reader.events if isinstance(reader, StreamReader) else list(reader)
    assert fold_events(seen) == view


def check_calls_closed_once(events: list[Event]) -> None:
    called = Counter(event["toolCallId"] for event in events if event["type"] == "toolCall")
    closed = Counter(event["toolCallId"] for event in events if event["type"] == "toolResult")
    asked = Counter(event["effectKey"] for event in events if event["type"] == "toolRequest")
    assert called == closed, event_types(events)
    assert set(called.values()) <= {1}
    assert set(asked.values()) <= {1}


def check_log_gapless(entries: list[LogEntry]) -> None:
    """Check that each entry begins where the previous one ends, and that no append was written twice."""
    assert entries[0].first_number == 1
    assert [entry.first_number for entry in entries[1:]] == [entry.next_number for entry in entries[:-1]]
    assert len({entry.append_id for entry in entries}) == len(entries)


def check_conversation_rows(session: ChatSession, view: TurnView) -> None:
    """Check that the rows hold one prompt, the streamed text of every round, and each result at most once."""
    kept = [
        row
        for row in message_store.load_messages(session.resources, session.tenant, session.conversation)
        if row.turn == session.bridge
    ]
    assert sum(row.role == "user" for row in kept) == 1
    replies = [row for row in kept if row.role == "assistant"]
    assert len({row.round for row in replies}) == len(replies)
    text = [block.text for row in replies for block in row.content if block.kind == "text"]
    assert "".join(text) == "".join(a_round.text for a_round in view.rounds)
    results = Counter((row.round, row.tool_call_id) for row in kept if row.role == "tool")
    assert set(results.values()) <= {1}
    assert len({row.position for row in kept}) == len(kept)


def check_usage(resources: Resources, pk: str, view: TurnView) -> None:
    paid = resources.tables.query_items(resources.settings.usage_table, pk)
    assert view.usage is not None
    assert view.usage["promptTokens"] == sum(row["prompt"] for row in paid)
    assert view.usage["completionTokens"] == sum(row["completion"] for row in paid)


def check_claim_released(session: ChatSession) -> None:
    assert "activeTurn" not in session.client.get_conversation(session.conversation)
    bridge = session.client.get_bridge(session.bridge)
    assert bridge["status"] in TERMINAL_EVENTS
    assert bridge["pending"] == []


def wait_for_executions(cloud: LocalCloud, bridge: str) -> None:
    """Wait until every execution of the turn has ended, so that none can wake up later."""
    wait_until(lambda: not list_running_executions(cloud, bridge), f"the executions of {bridge} end")


def list_running_executions(cloud: LocalCloud, bridge: str) -> list[str]:
    return [
        number for number, described in describe_executions(cloud, bridge).items() if described["status"] == "RUNNING"
    ]


def describe_executions(cloud: LocalCloud, bridge: str) -> dict[str, Json]:
    """Describe all executions of a turn, by name."""
    states, found = cloud.get_client("stepfunctions"), {}
    machine = cloud.get_output("TurnMachineArn").replace(":stateMachine:", ":execution:")
    with contextlib.suppress(states.exceptions.ExecutionDoesNotExist):
        for number in range(1, 10):
            name = f"{bridge}-{number}"
            found[name] = dict(states.describe_execution(executionArn=f"{machine}:{name}"))
    return found


def check_next_prompt(session: ChatSession) -> None:
    """Check that the conversation accepts another prompt.

    An unanswered prompt is merged with the next one, and so is its script's marker. So the script is deleted first.
    """
    session.model.delete_script(session.script)
    outcome = run_turn(session.client, session.scope, "And now?", conversation_id=session.conversation)
    assert outcome.status == "done", outcome.error
    assert outcome.view.text


def event_types(events: Iterable[Event]) -> list[str]:
    return [str(event["type"]) for event in events]


def load_current_pause(session: ChatSession) -> Pause:
    """Load the stored pause of the turn's current round."""
    resources, pk = session.resources, build_turn_pk(session.tenant, session.bridge)
    tail = read_last_entry(resources, pk)
    assert tail is not None
    row = resources.tables.get_item(resources.settings.bridges_table, pk, build_pause_key(tail.state.round))
    assert row is not None
    return pause_from_item(resources, row)


def count_transitions(cloud: LocalCloud, bridge: str) -> int:
    """Count state transitions as they are billed: each start, and each state entered or retried."""
    histories = [
        get_history(cloud, described["executionArn"]) for described in describe_executions(cloud, bridge).values()
    ]
    counted = ("ExecutionStarted", "StateEntered", "TaskFailed", "TaskTimedOut")
    return sum(event["type"].endswith(counted) for events in histories for event in events)


def get_history(cloud: LocalCloud, arn: str) -> list[Json]:
    found: list[Json] = []
    after: Json = {}
    while True:
        page = cloud.get_client("stepfunctions").get_execution_history(executionArn=arn, maxResults=1000, **after)
        found += page["events"]
        if "nextToken" not in page:
            return found
        after = {"nextToken": page["nextToken"]}
