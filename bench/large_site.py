"""Measure a large site: the time to build its prompt, and the memory to carry its snapshot through a turn."""

import base64
import json
import random
import re
import time
from pathlib import Path
from typing import Any

from bench.harness import BenchHarness
from bench.latency import FINAL_STEP, SERVER_TOOL_STEP
from bench.report import ResultRow
from bench.stats import NS_PER_MS, LatencySamples
from fermata.agents import registry
from fermata.domain.caller import Capability
from local.seed import EDITOR_CAPABILITIES

PAGE_COUNT = 200
STYLE_RULE_COUNT = 400
COLOR_TOKEN_COUNT = 40
MAX_PROMPT_MS = 20
MAX_MEMORY_MB = 192
WARM_UP_PROMPTS = 3
SNAPSHOT_BYTES = 5_000_000
KB_PER_MB = 1024
CAPABILITIES = frozenset((*map(str, Capability), *EDITOR_CAPABILITIES))


def enlarge_snapshot(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return the snapshot with many pages and style rules, and a design system."""
    pages = [_make_page(number) for number in range(PAGE_COUNT)]
    rules = {rule["id"]: rule for rule in map(_make_style_rule, range(STYLE_RULE_COUNT))}
    colors = [_make_color_token(number) for number in range(COLOR_TOKEN_COUNT)]
    settings = snapshot["site"]["settings"] | {"framework": {"colors": {"tokens": colors}}}
    site = snapshot["site"] | {"pages": pages, "styleRules": rules, "settings": settings}
    current = {"type": "page", "id": pages[0]["id"]}
    return snapshot | {"site": site, "page": pages[0], "currentDocument": current}


def _make_page(number: int) -> dict[str, Any]:
    page = {"id": f"page-{number}", "slug": f"bread/{number}", "title": f"Bread number {number}", "nodes": {}}
    template = {"enabled": True, "target": {"kind": "postTypes", "tableSlugs": ["posts"]}, "priority": number}
    return page | {"rootNodeId": f"root-{number}"} | ({"template": template} if number % 20 == 19 else {})


def _make_style_rule(number: int) -> dict[str, Any]:
    name = f"card-{number}"
    styles = {"padding": "var(--space-m)", "color": "var(--primary)", "borderRadius": f"{number}px"}
    return {
        "id": f"rule-{number}",
        "name": name,
        "kind": "class",
        "selector": f".{name}",
        "order": number,
        "styles": styles,
        "contextStyles": {"mobile": {"padding": "var(--space-s)"}},
        "createdAt": 0,
        "updatedAt": number,
    }


def _make_color_token(number: int) -> dict[str, Any]:
    shades = {"enabled": True, "count": 6}
    return {
        "id": f"color-{number}",
        "slug": f"brand-{number}",
        "lightValue": f"hsl({number * 9} 60% 40%)",
        "darkModeEnabled": False,
        "generateUtilities": dict.fromkeys(("text", "background", "border", "fill"), True),
        "generateTransparent": True,
        "generateShades": shades,
        "generateTints": shades,
        "order": number,
    }


def measure_prompt_time(harness: BenchHarness, repetitions: int) -> ResultRow:
    """Time the tool list, the stable prompt and the situation, which every turn builds."""
    snapshot = enlarge_snapshot(harness.snapshot_at_revision())
    build_ms = [_time_prompt(snapshot) for _ in range(repetitions + WARM_UP_PROMPTS)]
    warm = LatencySamples.from_samples(build_ms[WARM_UP_PROMPTS:])
    return ResultRow(
        "prompt",
        f"tool list and prompt for {PAGE_COUNT} pages and {STYLE_RULE_COUNT} style rules",
        f"≤ {MAX_PROMPT_MS} ms p50",
        f"{warm.p50:.1f} p50, {warm.p95:.1f} p95 ms",
        warm.p50 <= MAX_PROMPT_MS,
        warm.to_json() | {"first": build_ms[0]},
    )


def _time_prompt(snapshot: dict[str, Any]) -> float:
    started_ns = time.monotonic_ns()
    tools = registry.get_toolset("site").build_tool_specs(CAPABILITIES, "site")
    prompt = registry.open_agent("site").build_system_prompt() + registry.open_agent("site").build_situation(snapshot)
    milliseconds = (time.monotonic_ns() - started_ns) / NS_PER_MS
    if not tools or f"page-{PAGE_COUNT - 1}=" not in prompt:
        raise RuntimeError("The prompt does not name all pages, or there are no tools.")
    return round(milliseconds, 1)


def measure_function_memory(harness: BenchHarness, snapshot_bytes: int = SNAPSHOT_BYTES) -> ResultRow:
    """Measure the peak memory of the round function's processes.

    The snapshot is posted with the prompt and again with an answer, and a tool of the service reads it after each.
    """
    snapshot = add_asset(enlarge_snapshot(harness.snapshot_at_revision()), snapshot_bytes)
    prompt = harness.script_model("heavy", [SERVER_TOOL_STEP, SERVER_TOOL_STEP, FINAL_STEP])
    turn = harness.run_turn(prompt, snapshot=snapshot)
    results = [event for _, event in turn.events if event["type"] == "toolResult"]
    if [event["ok"] for event in results] != [True, True]:
        raise RuntimeError(f"The large snapshot could not be read: {results}")
    title = f"the round function's memory, with a snapshot of {snapshot_bytes / 1_000_000:g} MB"
    target = f"≤ {MAX_MEMORY_MB} MB"
    peaks_kb = [peak_kb for pid in harness.cloud.worker_pids("round") if (peak_kb := peak_memory_kb(pid))]
    if not peaks_kb:
        return ResultRow("memory", title, target, "not reported by this system")
    peak_mb = max(peaks_kb) / KB_PER_MB
    return ResultRow(
        "memory", title, target, f"{peak_mb:.0f} MB", peak_mb <= MAX_MEMORY_MB, {"processes": len(peaks_kb)}
    )


def add_asset(snapshot: dict[str, Any], total_bytes: int) -> dict[str, Any]:
    """Return the snapshot with an image that brings its JSON to `total_bytes`."""
    missing_bytes = total_bytes - len(json.dumps(snapshot, separators=(",", ":")))
    content = random.Random(total_bytes).randbytes(max(0, missing_bytes - 100) * 3 // 4)
    file = {"id": "asset", "path": "assets/oven.jpg", "blob": base64.b64encode(content).decode()}
    return snapshot | {"site": snapshot["site"] | {"files": [file]}}


def peak_memory_kb(pid: int) -> int:
    """Return the peak resident memory of a process, with the pages it shares; 0 if the system does not report it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(peak[1]) if peak else 0
