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
    doc.body.components().forEach(visit);
    return found;
  };
  const node = () => doc.ids.of(pick([...elements(), doc.body]));
  const selector = () => pick([".card", "li, b", "h2"]);
  const calls = [
    () => ["replaceNodeHtml", { nodeId: node(), html: pick(["<p>p</p>", "<li>l</li>", "words"]) }],
    () => ["deleteNode", { nodeId: node() }],
    () => ["updateNodeProps", { nodeId: node(), patch: { text: `T${random(99)}` } }],
    () => ["updateNodeProps", { nodeId: node(), patch: { title: `t${random(99)}`, lang: null } }],
    () => ["insertHtml", { parentId: node(), html: "<p>New</p>", index: random(3) }],
    () => ["moveNode", { nodeId: node(), newParentId: node(), newIndex: 0 }],
    () => ["duplicateNode", { nodeId: node() }],
    () => ["applyCss", { operation: "replace", css: `${selector()}{top:${random(9)}px}` }],
    () => ["applyCss", { operation: "delete", selectors: [selector()] }],
    () => ["applyCss", { css: `${selector()}{color:red}` }],
    () => ["read_document", {}],
  ];
  let marks = [];
  let markCount = 0;
  const shown = () => `${editor.getHtml()}${doc.rules.toText()}`;
  const changeAsUser = () => {
    const mark = `user${markCount++}x`;
    const texts = elements().filter((one) => !one.components().some((child) => child.get("type") !== "textnode"));
    const kind = random(4);
    if (kind === 0 && texts.length) pick(texts).components(mark);
    else if (kind === 1 && elements().length) pick(elements()).addAttributes({ title: mark });
    else if (kind === 2 && elements().length) pick(elements()).append(`<em>${mark}</em>`);
    else editor.Css.addRules(`${pick([".card", "h2"])}{--mark:${mark}}`);
    // a person may overwrite what they wrote before
    marks = [...marks, { mark, isKnown: false }].filter((one) => shown().includes(one.mark));
  };
  const problems = [];
  const patches = [];
  const counts = { conflicts: 0, done: 0 };
  let planned = (await executor.execute({ toolName: "read_document", input: {} })).revision;
  for (let number = 0; number < count; number++) {
    if (random(3) === 0) changeAsUser();
    const [toolName, input] = pick(calls)();
    const output = await executor.execute({ toolName, input, revision: planned });
    counts[output.conflict ? "conflicts" : "done"]++;
    const isRead = toolName === "read_document";
    const text = shown();
    // what the model has not read yet must be there still, whatever it asked for
    const lost = marks.filter(({ mark, isKnown }) => !isKnown && !text.includes(mark));
    if (lost.length) problems.push([number, toolName, input, lost.map(({ mark }) => mark)]);
    if (problems.length) break;
    // a model plans several calls before it sees what it has read
    // a copy may be all that is left of what a person wrote, and goes with its undo
    if (output.inverse && toolName !== "duplicateNode") patches.push(output.inverse[0].input);
    if (output.ok && !isRead) planned = output.revision;
    if (isRead && random(2) === 0) {
      planned = output.revision;
      for (const one of marks) one.isKnown = true;
    }
    await new Promise((done) => setTimeout(done, 6));
  }
  for (const patch of patches.reverse()) {
    if (random(4) === 0) changeAsUser();
    const before = marks.filter(({ mark }) => shown().includes(mark));
    const output = await executor.execute({ toolName: "restore", input: patch });
    const lost = before.filter(({ mark }) => !shown().includes(mark)).map(({ mark }) => mark);
    if (lost.length) problems.push(["restore", output.ok, lost, patch.patch.ops.map(({ op }) => op)]);
  }
  return { problems, ...counts };
};
