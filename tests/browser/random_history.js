async ({ seed, count }) => {
  let state = seed;
  const random = (limit) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor(state / 65536) % limit;
  };
  const pick = (list) => list[random(list.length)];
  const { document: doc } = executor;
  const elements = () => {
    const found = [];
    const visit = (one) => {
      if (!["textnode", "comment"].includes(one.get("type"))) found.push(one);
      one.components().forEach(visit);
    };
    editor.Pages.getAll().forEach((page) => page.getMainComponent().components().forEach(visit));
    return found;
  };
  const node = () => doc.ids.of(pick([...elements(), doc.body]));
  const page = () => pick(editor.Pages.getAll()).getId();
  const html = () =>
    pick([
      "<p>New <em>text</em></p>",
      "<li>Item</li>",
      '<div class="box" style="top:1px"><img src="b.png" alt=""><a href="#x">x</a></div>',
      "<tr><td>3</td></tr>",
      '<section id="extra"><h3>E</h3></section><style>.box{gap:1px}</style>',
      "words only",
      "<svg><path d='M0 0'/></svg>",
      '<form><label for="f">F</label><input id="f" name="f"><button>Go</button></form>',
      "<!-- note --><hr>",
    ]);
  const selector = () => pick([".card", ".box", "li, b", ":root", ".n > p", "h2:hover"]);
  const calls = [
    () => ["insertHtml", { parentId: node(), html: html(), index: random(4) }],
    () => ["insertHtml", { parentId: node(), html: html() }],
    () => ["replaceNodeHtml", { nodeId: node(), html: html() }],
    () => ["deleteNode", { nodeId: node() }],
    () => ["moveNode", { nodeId: node(), newParentId: node(), newIndex: random(3) }],
    () => ["moveNode", { nodeId: node(), newParentId: node(), newIndex: 0 }],
    () => ["duplicateNode", { nodeId: node(), count: 1 + random(2) }],
    () => ["updateNodeProps", { nodeId: node(), patch: { text: `T${random(99)}` } }],
    () => ["updateNodeProps", { nodeId: node(), patch: { id: pick(["a", "b", "c", null]), title: pick(["t", null]) } }],
    () => ["updateNodeProps", { nodeId: node(), patch: { src: pick(["b.png", "c.png"]), alt: pick(["x", null]) } }],
    () => ["renameNode", { nodeId: node(), label: `N${random(9)}` }],
    () => ["assignClass", { nodeId: node(), classId: pick(["card", "box"]) }],
    () => ["removeClass", { nodeId: node(), classId: pick(["card", "box"]) }],
    () => ["applyCss", { css: `${selector()}{margin:${random(9)}px;color:${pick(["red", "var(--c)"])}}` }],
    () => ["applyCss", { css: `@media (max-width:${pick([500, 600])}px){${selector()}{margin:${random(9)}px}}` }],
    () => [
      "applyCss",
      { css: `@keyframes k{from{top:0}to{top:${random(9)}px}}@font-face{font-family:F${random(3)};src:url(f)}` },
    ],
    () => ["applyCss", { operation: "delete", selectors: [selector()] }],
    () => ["applyCss", { operation: "remove-properties", selectors: [selector()], properties: ["margin"] }],
    () => [
      "set_color_tokens",
      { tokens: [{ slug: pick(["c", "d"]), lightValue: pick(["#123", "red"]), darkValue: "#456" }] },
    ],
    () => ["set_font_tokens", { tokens: [{ name: "body", googleFamily: pick(["Inter", "Lora"]) }] }],
    () => ["renamePage", { pageId: page(), title: `P${random(9)}`, slug: pick(["", "s1", "s2"]) }],
    () => ["setPageTemplate", { pageId: page(), target: { kind: "everywhere" } }],
    () => ["clearPageTemplate", { pageId: page() }],
    () => ["addPage", { title: `A${random(9)}` }],
    () => ["duplicatePage", { pageId: page(), title: "D" }],
    () => ["deletePage", { pageId: page() }],
    () => ["write_code_asset", { path: pick(["a.js", "b.js"]), type: "script", content: `${random(99)}` }],
  ];
  const settle = () => new Promise((done) => setTimeout(done, 6));
  const problems = [],
    edits = [],
    refused = {};
  const note = (what, edit, wanted, found) => {
    if (wanted !== found && problems.length < 4) problems.push([what, edits.indexOf(edit), edit?.call]);
  };
  const start = executor.revision();
  for (let turns = 0; edits.length < count && turns < 6 * count; turns++) {
    const call = pick(calls)();
    const before = executor.revision(),
      steps = editor.UndoManager.getStackGroup().length;
    const output = await executor.execute({ toolName: call[0], input: call[1] });
    if (!output.ok) {
      (refused[call[0]] ??= []).push(output.error);
      note("refused but changed", { call }, before, output.revision);
      continue;
    }
    await settle();
    if (output.revision !== executor.revision()) problems.push(["revision moved", edits.length, call]);
    const added = editor.UndoManager.getStackGroup().length - steps;
    if (added !== (output.inverse ? 1 : 0)) problems.push([`${added} steps`, edits.length, call]);
    if (output.inverse) edits.push({ call, before, after: output.revision, patch: output.inverse[0].input });
  }
  for (const edit of edits.toReversed()) {
    editor.UndoManager.undo();
    await settle();
    note("undo", edit, edit.before, executor.revision());
  }
  for (const edit of edits) {
    editor.UndoManager.redo();
    await settle();
    note("redo", edit, edit.after, executor.revision());
  }
  if (problems.length) return { problems, refused, count: edits.length };
  const project = JSON.parse(JSON.stringify(editor.getProjectData()));
  editor.loadProjectData(project);
  editor.UndoManager.clear();
  await new Promise((done) => setTimeout(done, 60));
  note("reload", edits.at(-1), edits.at(-1)?.after, executor.revision());
  for (const edit of edits.toReversed()) {
    const output = await executor.execute({ toolName: "restore", input: edit.patch });
    note(`restore ${output.error ?? ""} ${output.changes ?? ""}`, edit, edit.before, output.revision);
  }
  return { problems, refused, count: edits.length };
};
