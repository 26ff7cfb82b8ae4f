"""What must hold after any turn, however bad its day was: nothing lost, nothing twice, one end, and life goes on."""

import contextlib
from collections import Counter
from collections.abc import Iterable
from typing import Any

from fermata.aws.desk import Desk
from fermata.conversations import rows
from fermata.turns import log as logs
from fermata.turns import pause as pauses
from fermata.turns.log import Entry
from fermata.turns.pause import Pause
from fermata.turns.turn import partition
from fermata_client import TurnView, fold_all, run_turn
from local.cloud import LocalCloud
from tests.e2e.reader import TERMINAL, Event, Reader
from tests.e2e.talk import Talk
from tests.local.lab import until

Json = dict[str, Any]


def sound(talk: Talk, *readers: Reader | Iterable[Event], ends: str = "done") -> TurnView:
    """Everything at once; what the whole turn looks like on a screen."""
    whole = talk.reader().finish()
    view = fold_all(whole)
    one_end(whole, ends)
    numbered(whole)
    for reader in readers:
        same_fold(reader, view)
    every_call_is_closed_once(whole)
    pk = partition(talk.tenant, talk.bridge)
    entries = logs.since(talk.desk, pk, 1)
    gapless(entries)
    conversation_tells_the_same(talk, view)
    usage_is_the_ledgers(talk.desk, pk, view)
    claim_is_free(talk)
    executions_are_over(talk.cloud, talk.bridge)
    the_next_prompt_works(talk)
    return view


def one_end(events: list[Event], ends: str) -> None:
    assert [event["type"] for event in events if event["type"] in TERMINAL] == [ends], kinds(events)
    assert events[-1]["type"] == ends
    assert events[0]["type"] == "bridgeReady"
    assert sum(event["type"] == "usage" for event in events) == 1


def numbered(events: list[Event]) -> None:
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers)), numbers


def same_fold(reader: Reader | Iterable[Event], view: TurnView) -> None:
    seen = reader.events if isinstance(reader, Reader) else list(reader)
    assert fold_all(seen) == view


def every_call_is_closed_once(events: list[Event]) -> None:
    called = Counter(event["toolCallId"] for event in events if event["type"] == "toolCall")
    closed = Counter(event["toolCallId"] for event in events if event["type"] == "toolResult")
    asked = Counter(event["effectKey"] for event in events if event["type"] == "toolRequest")
    assert called == closed, kinds(events)
    assert set(called.values()) <= {1}
    assert set(asked.values()) <= {1}


def gapless(entries: list[Entry]) -> None:
    """Each entry begins where the one before it ends, and nobody's append is there twice."""
    assert entries[0].first == 1
    assert [entry.first for entry in entries[1:]] == [entry.next for entry in entries[:-1]]
    assert len({entry.append_id for entry in entries}) == len(entries)


def conversation_tells_the_same(talk: Talk, view: TurnView) -> None:
    """The rows hold one prompt, what the stream told of every round, and each result at most once."""
    kept = [row for row in rows.load(talk.desk, talk.tenant, talk.conversation) if row.turn == talk.bridge]
    assert sum(row.role == "user" for row in kept) == 1
    replies = [row for row in kept if row.role == "assistant"]
    assert len({row.round for row in replies}) == len(replies)
    text = [block.text for row in replies for block in row.content if block.kind == "text"]
    assert "".join(text) == "".join(a_round.text for a_round in view.rounds)
    results = Counter((row.round, row.tool_call_id) for row in kept if row.role == "tool")
    assert set(results.values()) <= {1}
    assert len({row.position for row in kept}) == len(kept)


def usage_is_the_ledgers(desk: Desk, pk: str, view: TurnView) -> None:
    paid = desk.tables.query(desk.settings.usage_table, pk)
    assert view.usage is not None
    assert view.usage["promptTokens"] == sum(row["prompt"] for row in paid)
    assert view.usage["completionTokens"] == sum(row["completion"] for row in paid)


def claim_is_free(talk: Talk) -> None:
    assert "activeTurn" not in talk.client.conversation(talk.conversation)
    bridge = talk.client.bridge(talk.bridge)
    assert bridge["status"] in TERMINAL
    assert bridge["pending"] == []


def executions_are_over(cloud: LocalCloud, bridge: str, seconds: float = 15) -> None:
    """Every execution of the turn ends, so that nothing is left that may wake up later."""
    until(lambda: not running(cloud, bridge), f"the executions of {bridge} end", seconds)


def running(cloud: LocalCloud, bridge: str) -> list[str]:
    return [number for number, described in executions(cloud, bridge).items() if described["status"] == "RUNNING"]


def executions(cloud: LocalCloud, bridge: str) -> dict[str, Json]:
    """All executions of a turn, described, by their names."""
    states, found = cloud.client("stepfunctions"), {}
    machine = cloud.output("TurnMachineArn").replace(":stateMachine:", ":execution:")
    with contextlib.suppress(states.exceptions.ExecutionDoesNotExist):
        for number in range(1, 10):
            name = f"{bridge}-{number}"
            found[name] = dict(states.describe_execution(executionArn=f"{machine}:{name}"))
    return found


def the_next_prompt_works(talk: Talk) -> None:
    """A prompt without an answer is merged with the next one, and its script with it: so that is over."""
    talk.model.forget(talk.script)
    outcome = run_turn(talk.client, talk.scope, "And now?", conversation_id=talk.conversation)
    assert outcome.status == "done", outcome.error
    assert outcome.view.text


def kinds(events: Iterable[Event]) -> list[str]:
    return [str(event["type"]) for event in events]


def pause(talk: Talk) -> Pause:
    """The pause of the turn's current round, as it is stored now."""
    desk, pk = talk.desk, partition(talk.tenant, talk.bridge)
    tail = logs.last(desk, pk)
    assert tail is not None
    row = desk.tables.get(desk.settings.bridges_table, pk, pauses.sk(tail.standing.round))
    assert row is not None
    return pauses.read(desk, row)


def transitions(cloud: LocalCloud, bridge: str) -> int:
    """As they are billed: each start, and each state that is entered or tried again."""
    histories = [history(cloud, described["executionArn"]) for described in executions(cloud, bridge).values()]
    counted = ("ExecutionStarted", "StateEntered", "TaskFailed", "TaskTimedOut")
    return sum(event["type"].endswith(counted) for events in histories for event in events)


def history(cloud: LocalCloud, arn: str) -> list[Json]:
    found: list[Json] = []
    after: Json = {}
    while True:
        page = cloud.client("stepfunctions").get_execution_history(executionArn=arn, maxResults=1000, **after)
        found += page["events"]
        if "nextToken" not in page:
            return found
        after = {"nextToken": page["nextToken"]}
