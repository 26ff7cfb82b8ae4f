"""Time the tools of the GrapesJS plugin in a real browser, on a page of 500 elements."""

from statistics import median

from bench.browser_page import MISSING_TEXT, can_run_pages, evaluate_in_browser
from bench.report import ResultRow

MAX_P50_MS = 20
TITLE = "a tool in GrapesJS, 500 elements"
PAGE = """<!doctype html><html><head><title>Bench</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="/node_modules/grapesjs/dist/css/grapes.min.css">
<script src="/node_modules/grapesjs/dist/grapes.min.js"></script></head><body><div id="gjs"></div></body></html>"""
MEASURE = """
async repetitions => {
  const {default: fermata, createExecutor} = await import("/grapesjs/src/index.js");
  const section = n => `<section class="s s${n}" id="s${n}"><h2>Section ${n}</h2><p class="lead">Some <b>words</b></p>
    <ul><li>a</li><li>b</li><li><a href="#s${n}">c</a></li></ul></section>`;
  const rule = n => `.s${n}{margin:${n}px;padding:var(--m)}@media (max-width:600px){.s${n} h2{color:red}}`;
  const numbers = Array.from({length: 55}, (_, n) => n);
  const editor = grapesjs.init({
    container: "#gjs", storageManager: false, telemetry: false, cssIcons: "", plugins: [fermata],
    components: numbers.map(section).join(""), style: ":root{--m:4px}" + numbers.map(rule).join(""),
  });
  await new Promise(done => editor.onReady(() => setTimeout(done, 200)));
  const executor = createExecutor(editor);
  const uid = selector => executor.document.ids.of(editor.getWrapper().find(selector)[0]);
  const body = executor.document.ids.of(editor.getWrapper());
  const times = {};
  const run = async (toolName, input) => {
    const start = performance.now();
    const output = await executor.execute({toolName, input});
    (times[toolName] ??= []).push(performance.now() - start);
    if (!output.ok) throw new Error(`${toolName}: ${output.error}`);
    await new Promise(done => setTimeout(done, 5));
    return output;
  };
  for (let n = 0; n < repetitions; n++) {
    await run("read_document", {});
    const made = await run("insertHtml", {parentId: uid("#s3"), html: `<p class="n">new <i>x</i></p>`});
    await run("updateNodeProps", {nodeId: uid("#s4 h2"), patch: {text: `T${n}`, title: `x${n}`}});
    await run("replaceNodeHtml", {nodeId: uid("#s5 ul"), html: `<li>${n}</li><li>b</li>`});
    await run("moveNode", {nodeId: uid("#s6"), newParentId: uid("#s7"), newIndex: 0});
    await run("moveNode", {nodeId: uid("#s6"), newParentId: body, newIndex: 3});
    await run("duplicateNode", {nodeId: uid("#s8 li")});
    await run("deleteNode", {nodeId: uid("#s8 li")});
    await run("applyCss", {css: `.s1{margin:${n}px}.x${n}{color:red}`});
    await run("assignClass", {nodeId: uid("#s9 h2"), classId: "lead"});
    await run("removeClass", {nodeId: uid("#s9 h2"), classId: "lead"});
    await run("set_color_tokens", {tokens: [{slug: `b${n}`, lightValue: "#123"}]});
    await run("restore", made.inverse[0].input);
  }
  let elements = 0;
  executor.document.reader.read().nodes.forEach(() => elements++);
  return {times, elements};
}
"""


def measure_editor_tools(repetitions: int) -> ResultRow:
    """Measure the median over all calls of all tools. Without Chromium and the packages, say what is missing."""
    key, target = "editor.tools", f"p50 ≤ {MAX_P50_MS} ms"
    if not can_run_pages():
        return ResultRow(key, TITLE, target, MISSING_TEXT)
    measured = evaluate_in_browser(PAGE, MEASURE, repetitions)
    p50_by_tool = {name: round(median(times), 1) for name, times in measured["times"].items()}
    p50 = median(time for times in measured["times"].values() for time in times)
    numbers = {"elements": measured["elements"], "p50Ms": p50_by_tool}
    return ResultRow(key, TITLE, target, f"p50 {p50:.1f} ms", p50 <= MAX_P50_MS, numbers)
