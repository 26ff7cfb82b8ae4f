"""Measure what it costs that an agent asks another one: time besides the model's, and workflow transitions."""

import time

from bench.harness import TERMINAL_EVENTS, BenchHarness, RecordedTurn, ScriptStep
from bench.latency import FINAL_STEP, WARM_UP_TURNS, wait_until_settled
from bench.report import ResultRow
from bench.stats import NS_PER_MS, LatencySamples
from bench.transitions_and_state_size import count_transitions
from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.agents.definitions.definition_store import replace_agents
from fermata.domain.agent_ids import make_agent_scope
from fermata.domain.caller import Caller
from local import seed

MAX_ADDED_MS = 60
MAX_ADDED_TRANSITIONS = 4
ASKING_KEY, ASKED_KEY = "asks-another", "is-asked"
CALL_STEP: ScriptStep = {"toolCalls": [{"name": "helper", "input": {"task": f"Answer. [[script:{ASKED_KEY}]]"}}]}


def measure_sub_agent(harness: BenchHarness, repetitions: int) -> list[ResultRow]:
    """Time from the asking model's answer to the sub-agent's request, and from its answer to the next request.

    Args:
        harness: The running service.
        repetitions: How many turns are measured.
    """
    _push_agents(harness)
    harness.script_model(ASKED_KEY, [{"text": "Three."}])
    prompt = harness.script_model(ASKING_KEY, [CALL_STEP, FINAL_STEP])
    added_ms: list[float] = []
    turn = _run_turn(harness, prompt)
    for number in range(repetitions + WARM_UP_TURNS):
        harness.forget_model_requests(ASKING_KEY)
        harness.forget_model_requests(ASKED_KEY)
        turn = _run_turn(harness, prompt)
        first, last = harness.model_requests(ASKING_KEY)
        (asked,) = harness.model_requests(ASKED_KEY)
        gaps_ns = asked["arrivedNs"] - first["lastByteNs"] + last["arrivedNs"] - asked["lastByteNs"]
        if number >= WARM_UP_TURNS:
            added_ms.append(gaps_ns / NS_PER_MS)
    samples = LatencySamples.from_samples(added_ms)
    added = _count_added_transitions(harness, turn)
    return [
        ResultRow(
            "sub_agent",
            "a sub-agent, added to its model's time",
            f"≤ {MAX_ADDED_MS} ms p50",
            f"{samples.p50:.1f} p50, {samples.p95:.1f} p95 ms",
            samples.p50 <= MAX_ADDED_MS,
            samples.to_json(),
        ),
        ResultRow(
            "transitions.sub_agent",
            "transitions that a sub-agent adds",
            f"≤ {MAX_ADDED_TRANSITIONS}",
            f"{added}",
            added <= MAX_ADDED_TRANSITIONS,
        ),
    ]


def _push_agents(harness: BenchHarness) -> None:
    """Make two agents of the local tenant: one that may ask the other."""
    caller = Caller(tenant=seed.TENANT, user=seed.USER, capabilities=frozenset(seed.CAPABILITIES))
    resources = harness.resources
    credential = harness.client.list_credentials()[0]["id"]
    connection = {"id": "model", "type": "Anthropic", "credential": credential}
    properties = {"model": "fermata-demo", "instructions": "Answer in a word."}
    common = {"type": "ClaudeAgent", "connection": connection, "properties": properties}
    helper = AgentDefinition.from_wire({"id": "helper", **common})
    schema = {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}
    reference = {"agentId": "helper", "version": helper.version, "name": "helper", "description": "Helps."}
    boss = AgentDefinition.from_wire({"id": "boss", **common, "agents": [reference | {"inputSchema": schema}]})
    replace_agents(resources, caller, {"helper": helper, "boss": boss})


def _run_turn(harness: BenchHarness, prompt: str) -> RecordedTurn:
    scope = make_agent_scope("boss")
    turn = RecordedTurn(str(harness.client.create_conversation(scope)["id"]), time.monotonic_ns())
    with harness.client.start_turn(scope, prompt, conversation_id=turn.conversation_id) as events:
        for event in events:
            turn.events.append((time.monotonic_ns(), event))
            if event["type"] in TERMINAL_EVENTS:
                break
    if turn.events[-1][1]["type"] != "done":
        raise RuntimeError(f"A turn with a sub-agent ended otherwise than with done: {turn.events[-1][1]}")
    return turn


def _count_added_transitions(harness: BenchHarness, turn: RecordedTurn) -> int:
    """Count those of both executions, less those of a turn of text only."""
    wait_until_settled()
    bridges = [turn.bridge_id, *(event["bridgeId"] for _, event in turn.events if event["type"] == "subAgentStarted")]
    executions = [execution for bridge in bridges for execution in harness.cloud.wait_for_executions(bridge)]
    counts = [count_transitions(harness.execution_history(one["executionArn"])) for one in executions]
    text_turn = harness.run_turn(harness.script_model("text-beside-sub-agent", [FINAL_STEP]))
    wait_until_settled()
    return sum(counts) - count_transitions(harness.turn_history(text_turn))
