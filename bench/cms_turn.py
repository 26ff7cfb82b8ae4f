"""Measure what a turn of the CMS agent takes besides its model: the time of each of five tools on content."""

import time
import uuid
from itertools import pairwise
from typing import Any

import httpx

from bench.harness import BenchHarness, ScriptStep
from bench.latency import FINAL_STEP, WARM_UP_TURNS
from bench.report import ResultRow
from bench.stats import NS_PER_MS, LatencySamples
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, DocumentContent
from fermata.content.model_store import create_space
from local import seed

MAX_TOOL_MS = 60
_AUTHOR = ContentAuthor("bench")
_KEY = "cms-turn"
_SPACE = SpaceKey(seed.TENANT, "cms-turn")


def list_tool_steps(slug: str) -> list[ScriptStep]:
    """Return five answers of the model that ask for a tool each: lists and reads, a change, a new page, a search.

    Args:
        slug: The slug and id of a page that exists.
    """
    calls: list[tuple[str, dict[str, Any]]] = [
        ("cms_getPages", {}),
        ("cms_getPage", {"slug": slug}),
        ("cms_updatePage", {"id": slug, "name": f"Dark rye {slug}"}),
        ("cms_createPage", {"name": f"Oats {slug}", "slug": f"oats-{slug}"}),
        ("cms_findResource", {"query": f"dark rye {slug}"}),
    ]
    return [{"toolCalls": [{"name": name, "input": tool_input}]} for name, tool_input in calls]


def measure_cms_turn(harness: BenchHarness, repetitions: int) -> ResultRow:
    """Time a turn from the model's last byte to its next request, divided by its tools.

    Args:
        harness: The running service.
        repetitions: How many turns are measured.
    """
    create_space(harness.resources, _SPACE, ContentSpace(), _AUTHOR)
    headers = {"authorization": f"Bearer {harness.cloud.token}"}
    with httpx.Client(base_url=harness.cloud.url, headers=headers, trust_env=False, timeout=60) as http:
        measured = [_time_turn(harness, http) for _ in range(repetitions + WARM_UP_TURNS)][WARM_UP_TURNS:]
    samples = LatencySamples.from_samples(measured)
    return ResultRow(
        "cms_turn",
        "a turn of the CMS agent with 5 tools, our time for each of them",
        f"≤ {MAX_TOOL_MS} ms p50",
        f"{samples.p50:.1f} p50, {samples.p95:.1f} p95 ms",
        samples.p50 <= MAX_TOOL_MS,
        samples.to_json(),
    )


def _time_turn(harness: BenchHarness, http: httpx.Client) -> float:
    slug = f"rye-{time.monotonic_ns()}"
    content = DocumentContent(title="Rye", slug=slug)
    create_document(harness.resources, _SPACE, "page", _AUTHOR, content, document_id=slug)
    steps = list_tool_steps(slug)
    prompt = harness.script_model(_KEY, [*steps, FINAL_STEP])
    harness.forget_model_requests(_KEY)
    body = {"prompt": prompt, "sessionId": str(uuid.uuid4()), "cmsTarget": {"siteId": _SPACE.site}}
    answer = http.post("/v1/agent/generate", json=body).raise_for_status().json()["data"]
    if len(answer["toolResults"]) != len(steps) or not all(one["result"]["success"] for one in answer["toolResults"]):
        raise RuntimeError(f"A tool of the CMS agent has failed: {answer['toolResults']}")
    requests = harness.model_requests(_KEY)
    gaps_ns = sum(after["arrivedNs"] - before["lastByteNs"] for before, after in pairwise(requests))
    return float(gaps_ns / NS_PER_MS / len(steps))
