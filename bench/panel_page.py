"""Measure the agent panel in a real browser: how long streamed text keeps it busy, and what turns leave in memory."""

import json
from collections.abc import Iterator

from bench.browser_page import MISSING_TEXT, can_run_pages, evaluate_in_browser
from bench.report import ResultRow

DELTAS = 5_000
CALLS = 10_000
TURNS = 50
MAX_TASK_MS = 100
MAX_GROWTH = 1.1
IMPORTS = {"@fermata/panel": "/panel/src/index.js", "marked": "/node_modules/marked/lib/marked.esm.js"}
PAGE = f"""<!doctype html><html lang="en"><title>Bench</title><link rel="icon" href="data:,">
<script type="importmap">{json.dumps({"imports": IMPORTS})}</script>
<style>body {{ margin: 0; height: 100vh }}</style><body><fermata-panel></fermata-panel></body></html>"""
MEMORY_ARGUMENTS = ("--enable-precise-memory-info", "--js-flags=--expose-gc")
START = """
  await import("@fermata/panel");
  const conversation = {id: "c", title: "Bench", messages: [], contextTokens: 0};
  const panel = document.querySelector("fermata-panel");
  const pause = ms => new Promise(done => setTimeout(done, ms));
  const words = n => n % 40 === 0 ? "\\n\\n" : n % 25 === 0 ? "\\n- item " : n % 7 === 0 ? "**word** " : "`word` and ";
  let stream = async function* (count) {
    for (let n = 1; n <= count; n++) {
      yield {type: "text", text: words(n), seq: n};
      if (n % 10 === 0) await pause(4);
    }
    yield {type: "done", seq: count + 1};
  };
  let length;
  const client = {
    credentials: {list: async () => [{id: "k", providerId: "p", displayLabel: "K"}]}, models: {list: async () => []},
    defaults: {list: async () => ({site: {credentialId: "k", modelId: "m"}})}, journal: async () => [],
    conversations: {
      create: async () => conversation, get: async () => ({conversation}), list: async () => ({conversations: []}),
    },
    start: async () => ({id: "b", conversationId: "c", events: () => stream(length), cancel() {}, detach() {}}),
  };
  panel.client = client;
  await pause(200);
  const root = panel.shadowRoot;
  const runTurn = async count => {
    length = count;
    await panel.ask("Go");
    while (root.querySelector(".turn.running")) await pause(10);
    await pause(30);
  };
"""
NOTE_TASKS = """
  const tasks = [];
  const note = list => tasks.push(...list.getEntries().map(entry => entry.duration));
  new PerformanceObserver(note).observe({type: "longtask"});
"""
MEASURE_CALLS = (
    """async ({calls}) => {"""
    + START
    + NOTE_TASKS
    + """
  stream = async function* () {
    const of = n => ({toolCallId: `c${n >> 1}`, toolName: "applyCss"});
    let seq = 0;
    const input = {css: ".a { color: red }"};
    for (let n = 0; n < calls * 2; n += 2) yield {...of(n), type: "toolCall", input, seq: ++seq};
    for (let n = 0; n < calls * 2; n++) {
      yield {...of(n), type: n % 2 ? "toolResult" : "toolRequest", effectKey: "e", ok: true, seq: ++seq};
      if (n % 10 === 0) await pause(1);
    }
    yield {type: "done", seq: ++seq};
  };
  await runTurn(0);
  await pause(100);
  return {longest: Math.max(0, ...tasks), tasks: tasks.length, rows: root.querySelectorAll(".call").length};
}"""
)
MEASURE_TASKS = (
    """async ({deltas}) => {"""
    + START
    + NOTE_TASKS
    + """
  await runTurn(deltas);
  await pause(100);
  const letters = root.querySelector(".prose").textContent.length;
  return {longest: Math.max(0, ...tasks), tasks: tasks.length, letters};
}"""
)
MEASURE_MEMORY = (
    """async ({turns}) => {"""
    + START
    + """
  const heaps = [];
  for (let n = 1; n <= turns; n++) {
    await runTurn(60);
    root.querySelector("header button:last-of-type").click();
    await pause(20);
    gc();
    heaps.push(performance.memory.usedJSHeapSize);
  }
  return {heaps};
}"""
)


def measure_panel() -> Iterator[ResultRow]:
    """Measure a turn of 5,000 pieces of text, one of 10,000 calls, and the memory of 50 turns in new conversations."""
    text_title = f"longest task of the page in a turn of {DELTAS:,} pieces of text"
    calls_title = f"longest task of the page in a turn of {CALLS:,} tool calls"
    memory_title = f"the panel's memory after {TURNS} turns, to that after 10"
    if not can_run_pages():
        yield ResultRow("panel.task", text_title, f"≤ {MAX_TASK_MS} ms", MISSING_TEXT)
        yield ResultRow("panel.calls", calls_title, f"≤ {MAX_TASK_MS} ms", MISSING_TEXT)
        yield ResultRow("panel.memory", memory_title, f"≤ {MAX_GROWTH} ×", MISSING_TEXT)
        return
    yield _make_task_row("panel.task", text_title, evaluate_in_browser(PAGE, MEASURE_TASKS, {"deltas": DELTAS}))
    yield _make_task_row("panel.calls", calls_title, evaluate_in_browser(PAGE, MEASURE_CALLS, {"calls": CALLS}))
    heaps = evaluate_in_browser(PAGE, MEASURE_MEMORY, {"turns": TURNS}, browser_arguments=MEMORY_ARGUMENTS)["heaps"]
    growth = heaps[-1] / heaps[9]
    numbers = {"mb": [round(heap / 1e6, 2) for heap in (heaps[0], heaps[9], heaps[-1])]}
    result = f"{growth:.2f} × ({heaps[-1] / 1e6:.1f} MB)"
    yield ResultRow("panel.memory", memory_title, f"≤ {MAX_GROWTH} ×", result, growth <= MAX_GROWTH, numbers)


def _make_task_row(name: str, title: str, measured: dict[str, float]) -> ResultRow:
    longest = measured["longest"]
    result = f"{longest:.0f} ms" if longest else "none over 50 ms"
    return ResultRow(name, title, f"≤ {MAX_TASK_MS} ms", result, longest <= MAX_TASK_MS, measured)
