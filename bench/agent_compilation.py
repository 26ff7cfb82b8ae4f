"""Measure the time to read and compile the agents of a workspace: YAML, checks, versions."""

import time

from bench.report import ResultRow
from fermata.agents.definitions.compile_definitions import CompiledFiles, compile_definitions
from fermata.agents.definitions.definition_problems import SourceDocument
from fermata_client.agent_files.yaml_document import read_yaml

AGENT_COUNT = 50
MAX_SECONDS = 1.0
INSTRUCTIONS = "Answer from the handbook, and say which page you have used. " * 50
AGENT = """
  - id: agent{number}
    type: ClaudeAgent
    connectionId: claude
    title: Agent {number}
    properties:
      model: claude-sonnet-4-5
      instructions: "{instructions}"
      temperature: 0.2
      maxSteps: 8
      prepareStep:
        - {{steps: [1], toolChoice: required}}
        - {{from: 2, temperature: 0.4}}
      prune: {{toolCalls: before-last-3-messages}}
    tools: [find-{tool}, {{endpointId: open-{tool}, confirm: true}}]
    agents: [{sub_agents}]
    hooks: {{onFinish: [find-{tool}]}}
"""
ENDPOINT = """
  - id: {name}
    description: Does what it says.
    url: https://desk.example.com/{name}
    payloadSchema: {{type: object, properties: {{query: {{type: string}}}}, required: [query]}}
"""
CONNECTIONS = """
connections:
  - {id: claude, type: Anthropic, properties: {apiKey: {_secret: KEY}}}
"""


def write_agents(count: int) -> str:
    """Return the YAML of so many agents, each fifth of which asks the four before it."""
    agents = (
        AGENT.format(
            number=number,
            instructions=INSTRUCTIONS,
            tool=number % 10,
            sub_agents=", ".join(f"agent{number - back}" for back in range(1, 5)) if number % 5 == 4 else "",
        )
        for number in range(count)
    )
    names = [f"{verb}-{number}" for verb in ("find", "open") for number in range(10)]
    endpoints = (ENDPOINT.format(name=name) for name in names)
    return "\n".join(["agents:", *agents, "endpoints:", *endpoints, CONNECTIONS])


def compile_agents(text: str) -> CompiledFiles:
    """Read and compile a file as `fermata agents check` does."""
    document = read_yaml(text)
    return compile_definitions([SourceDocument("agents.yaml", document.value, document.lines)])


def measure_agent_compilation(repetitions: int) -> ResultRow:
    """Measure the fastest of some runs, because other work on the machine only adds to it. The first one counts too."""
    text = write_agents(AGENT_COUNT)
    seconds = []
    for _ in range(max(3, repetitions)):
        started = time.perf_counter()
        compiled = compile_agents(text)
        seconds.append(time.perf_counter() - started)
        assert len(compiled.definitions) == AGENT_COUNT
    best = min(seconds)
    numbers = {"seconds": round(best, 3), "first": round(seconds[0], 3), "bytes": len(text), "agents": AGENT_COUNT}
    title = f"compile {AGENT_COUNT} agents in YAML"
    return ResultRow("agents", title, f"≤ {MAX_SECONDS:g} s", f"{best:.2f} s", best <= MAX_SECONDS, numbers)
