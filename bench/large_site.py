"""A large site: what it takes to tell a model about it, and to carry its snapshot through a turn."""

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
from fermata.domain.caller import Capability
from fermata.tools import registry
from local.seed import EDITOR_CAPABILITIES

PAGE_COUNT, STYLE_RULE_COUNT, COLOR_TOKEN_COUNT = 200, 400, 40
MAX_PROMPT_MS, MAX_MEMORY_MB = 20, 256
SNAPSHOT_BYTES = 5_000_000
KB_PER_MB = 1024
"""In KB, as Linux tells them."""
CAPABILITIES = frozenset((*map(str, Capability), *EDITOR_CAPABILITIES))


def enlarge_snapshot(snapshot: dict[str, Any]) -> dict[str, Any]:
    """The snapshot of a site of so many pages and style rules, with a design system."""
    pages = [_page(number) for number in range(PAGE_COUNT)]
    rules = {rule["id"]: rule for rule in map(_rule, range(STYLE_RULE_COUNT))}
    colors = [_color(number) for number in range(COLOR_TOKEN_COUNT)]
    settings = snapshot["site"]["settings"] | {"framework": {"colors": {"tokens": colors}}}
    site = snapshot["site"] | {"pages": pages, "styleRules": rules, "settings": settings}
    current = {"type": "page", "id": pages[0]["id"]}
    return snapshot | {"site": site, "page": pages[0], "currentDocument": current}


def _page(number: int) -> dict[str, Any]:
    page = {"id": f"page-{number}", "slug": f"bread/{number}", "title": f"Bread number {number}", "nodes": {}}
    template = {"enabled": True, "target": {"kind": "postTypes", "tableSlugs": ["posts"]}, "priority": number}
    return page | {"rootNodeId": f"root-{number}"} | ({"template": template} if number % 20 == 19 else {})


def _rule(number: int) -> dict[str, Any]:
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


def _color(number: int) -> dict[str, Any]:
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


def measure_prompt_time(stage: BenchHarness, times: int) -> ResultRow:
    """Tool list, stable prompt and situation, as every turn has them made."""
    snapshot = enlarge_snapshot(stage.snapshot_at_revision())
    taken = [_built(snapshot) for _ in range(times + 3)]
    warm = LatencySamples.from_samples(taken[3:])
    what = f"tool list and prompt for {PAGE_COUNT} pages and {STYLE_RULE_COUNT} style rules"
    result = f"{warm.p50:.1f} p50, {warm.p95:.1f} p95 ms"
    return ResultRow(
        "prompt",
        what,
        f"≤ {MAX_PROMPT_MS} ms p50",
        result,
        warm.p50 <= MAX_PROMPT_MS,
        warm.to_json() | {"first": taken[0]},
    )


def _built(snapshot: dict[str, Any]) -> float:
    started = time.monotonic_ns()
    tools = registry.get_toolset("site").build_tool_specs(CAPABILITIES, "site")
    told = registry.build_system_prompt("site") + registry.build_situation("site", snapshot)
    taken = (time.monotonic_ns() - started) / NS_PER_MS
    if not tools or f"page-{PAGE_COUNT - 1}=" not in told:
        raise RuntimeError("The prompt does not tell of all pages, or there are no tools.")
    return round(taken, 1)


def measure_function_memory(stage: BenchHarness, size: int = SNAPSHOT_BYTES) -> ResultRow:
    """Posted with the prompt and again with an answer, and read by a tool of ours after each: the most memory that any
    process of the round's function ever had.
    """
    snapshot = add_asset(enlarge_snapshot(stage.snapshot_at_revision()), size)
    read = {"toolCalls": [{"name": "list_documents"}]}
    told = stage.run_turn(stage.script_model("heavy", [SERVER_TOOL_STEP, read, FINAL_STEP]), snapshot=snapshot)
    results = [event for _, event in told.events if event["type"] == "toolResult"]
    if [event["ok"] for event in results] != [True, True]:
        raise RuntimeError(f"The large snapshot could not be read: {results}")
    peaks = [peak for pid in stage.cloud.worker_pids("round") if (peak := peak_memory_kb(pid))]
    what = f"the round function's memory, with a snapshot of {size / 1_000_000:g} MB"
    if not peaks:
        return ResultRow("memory", what, f"≤ {MAX_MEMORY_MB} MB", "not told by this system")
    most = max(peaks) / KB_PER_MB
    return ResultRow(
        "memory", what, f"≤ {MAX_MEMORY_MB} MB", f"{most:.0f} MB", most <= MAX_MEMORY_MB, {"processes": len(peaks)}
    )


def add_asset(snapshot: dict[str, Any], size: int) -> dict[str, Any]:
    """The snapshot with a picture in it that makes it that large as JSON."""
    rest = size - len(json.dumps(snapshot, separators=(",", ":")))
    blob = base64.b64encode(random.Random(size).randbytes(max(0, rest - 100) * 3 // 4)).decode()
    file = {"id": "asset", "path": "assets/oven.jpg", "blob": blob}
    return snapshot | {"site": snapshot["site"] | {"files": [file]}}


def peak_memory_kb(pid: int) -> int:
    """The most resident memory a process ever had, what it shares with its template included; 0 when unknown."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) if found else 0
