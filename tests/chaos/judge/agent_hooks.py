"""Judge endpoints that are called at points of turns: each is called, by one key, and the end has what they return."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tests.chaos.evidence import Event, Evidence
from tests.chaos.hooked_agents import BEGINNING, FINISHING, LOOKING_TOOL, NOTING, EndpointRequest, HookedAgents
from tests.chaos.judge.find_rows import LoggedEvent, read_log


def judge_agent_hooks(evidence: Evidence, agents: HookedAgents) -> Iterator[str]:
    by_turn: dict[str, list[EndpointRequest]] = defaultdict(list)
    for request in agents.requests:
        by_turn[request.key.partition("/")[0]].append(request)
    turns = [turn for turn in evidence.turns if turn.conversation == agents.conversation and turn.bridge]
    for turn in turns:
        log = read_log(evidence, turn.bridge)
        for problem in judge_turn_hooks(evidence, turn.bridge, log, by_turn[turn.bridge]):
            yield f"turn {turn.name}: {problem}"


def judge_turn_hooks(
    evidence: Evidence, turn: str, log: Sequence[LoggedEvent], requests: Sequence[EndpointRequest]
) -> Iterator[str]:
    events = [logged.event for logged in log]
    wanted = find_wanted_keys(turn, events)
    called: dict[tuple[str, str], list[EndpointRequest]] = defaultdict(list)
    for request in requests:
        if request.endpoint != LOOKING_TOOL:
            called[request.endpoint, request.key].append(request)
    for endpoint, key in sorted(wanted - called.keys()):
        yield f"{endpoint} was never called with {key}"
    has_begun = any(event["type"] == "roundStarted" for event in events)
    possible = wanted | ({(BEGINNING, f"{turn}/start/{BEGINNING}")} if has_begun else set())
    for endpoint, key in sorted(called.keys() - possible):
        yield f"{endpoint} was called with {key}, which is no point of it"
    if evidence.is_undisturbed:
        yield from (f"{key} was called {len(each)} times" for key, each in called.items() if len(each) > 1)
    yield from judge_end(turn, log, called)


def find_wanted_keys(turn: str, events: Sequence[Event]) -> set[tuple[str, str]]:
    """Return the endpoints that are called for a log, each with its key."""
    wanted = {(endpoint, f"{turn}/finish/{endpoint}") for endpoint in FINISHING}
    number, calls = 0, dict[str, int]()
    for event in events:
        if event["type"] == "roundStarted":
            number = event["round"]
        elif event["type"] in ("requestStarted", "text", "toolCall") and number == 1:
            wanted.add((BEGINNING, f"{turn}/start/{BEGINNING}"))
        if event["type"] == "toolCall":
            calls[event["toolCallId"]] = number
        elif event["type"] == "toolResult":
            wanted.add((NOTING, f"{turn}/result.{calls[event['toolCallId']]}.{event['toolCallId']}/{NOTING}"))
    return wanted


def judge_end(
    turn: str, log: Sequence[LoggedEvent], called: Mapping[tuple[str, str], Sequence[EndpointRequest]]
) -> Iterator[str]:
    """What the endpoints at the end have returned is part of it, in their order; then none is called afterwards."""
    parts = [logged.event["data"] for logged in log if logged.event["type"] == "dataPart"]
    is_told = any(logged.event["type"] == "finishHooksRun" for logged in log)
    endpoints = [str(part).partition(" ")[0] for part in parts]
    if endpoints != [one for one in FINISHING if one in endpoints]:
        yield f"it has the parts {parts}, and its endpoints are {FINISHING}"
    for endpoint in FINISHING:
        requests = called.get((endpoint, f"{turn}/finish/{endpoint}"), ())
        answered = {request.token for request in requests if request.token}
        if not {part for part in parts if part.startswith(f"{endpoint} ")} <= answered:
            yield f"it has the parts {parts}, and {endpoint} has answered {sorted(answered)}"
        is_heard = bool(requests) and all(request.is_heard for request in requests)
        if is_told and is_heard and endpoint not in endpoints:
            yield f"{endpoint} has answered {sorted(answered)}, and its end has {parts}"
        if is_told and any(request.is_afterwards for request in requests):
            yield f"{endpoint} was told by the end of the turn, and afterwards once more"
        if not is_told and not any(request.is_afterwards for request in requests):
            yield f"{endpoint} was not told by the end of the turn, and not afterwards"
