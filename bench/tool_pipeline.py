"""Measure what the pipeline adds to a tool call: the checks, the thread, the retries, and the shape of the result."""

import time

from bench.report import ResultRow
from bench.stats import NS_PER_MS, LatencySamples
from fermata.agents.registry import get_toolset
from fermata.aws.clock import Clock
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.tools import ToolOutput
from fermata.remote_tools.manifest_tool_executor import (
    APPROVED,
    EarlierResults,
    ExecutionClock,
    ManifestTool,
    build_envelope,
    execute_tool,
)
from fermata.remote_tools.pinned_tools import add_remote_tools
from fermata.remote_tools.tool_definition import ToolDefinition
from fermata.tools.calls.pipeline import AdmittedCall, admit_call, apply_result_policy
from fermata.tools.calls.runner import run_tool
from fermata.tools.tool import ToolContext
from fermata.tools.toolset import Toolset

MAX_PIPELINE_MS = 2
REMOTE_TOOL_COUNT = 64
WARM_UP_CALLS = 20
_ITEM_SCHEMA = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}


def measure_tool_pipeline(repetitions: int) -> ResultRow:
    """Time calls of a remote tool among the most tools that a tenant may have. The endpoint takes no time."""
    definitions = {str(number): _make_definition(number) for number in range(REMOTE_TOOL_COUNT)}
    toolset = add_remote_tools(get_toolset("site"), definitions)
    call_ms = [_time_call(toolset, definitions["0"]) for _ in range(repetitions + WARM_UP_CALLS)]
    warm = LatencySamples.from_samples(call_ms[WARM_UP_CALLS:])
    return ResultRow(
        "tool_pipeline",
        f"pipeline of one server tool call, with {REMOTE_TOOL_COUNT} remote tools",
        f"≤ {MAX_PIPELINE_MS} ms p50",
        f"{warm.p50:.2f} p50, {warm.p95:.2f} p95 ms",
        warm.p50 <= MAX_PIPELINE_MS,
        warm.to_json(),
    )


def _time_call(toolset: Toolset, definition: ToolDefinition) -> float:
    data = {"items": [{"id": str(number)} for number in range(100)]}
    clock = ExecutionClock(time.monotonic, time.sleep)

    def call_remote_tool(_definition: str, arguments: object, _effect_key: str) -> ToolOutput:
        tool = ManifestTool(definition.parsed_manifest, lambda _arguments: data)
        output = execute_tool(tool, arguments, clock, policy=APPROVED, earlier=EarlierResults())
        assert isinstance(output, ToolOutput)
        return output

    context = ToolContext(
        tenant="bench",
        user="ada",
        capabilities=frozenset({"ai.chat"}),
        scope="site",
        turn="t",
        effect_key="t/1/0",
        call_remote_tool=call_remote_tool,
    )
    block = ToolCallBlock(tool_call_id="c", tool_name="pim_getProduct0", input={"query": "bread", "limit": 3})
    started_ns = time.monotonic_ns()
    admitted = admit_call(toolset, block, context)
    assert isinstance(admitted, AdmittedCall)
    output = apply_result_policy(admitted.tool, run_tool(admitted, context, clock=Clock()))
    milliseconds = (time.monotonic_ns() - started_ns) / NS_PER_MS
    if build_envelope(output)["data"] != data:
        raise RuntimeError("The tool did not return its data.")
    return round(milliseconds, 3)


def _make_definition(number: int) -> ToolDefinition:
    manifest = {
        "name": f"pim.getProduct{number}",
        "description": "Finds products.",
        "inputSchema": {
            "type": "object",
            "required": ["query"],
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        },
        "outputSchema": {
            "type": "object",
            "required": ["items"],
            "properties": {"items": {"type": "array", "items": _ITEM_SCHEMA}},
        },
        "capability": "read",
        "timeoutMs": 3000,
        "retryPolicy": {"maxAttempts": 2},
        "idempotent": True,
    }
    return ToolDefinition(
        id=str(number),
        tenant="bench",
        manifest=manifest,
        endpoint="https://vendor.example/tool",
        created_at="2026-11-28T00:00:00.000Z",
    )
