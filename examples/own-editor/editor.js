// A small page editor, in the place of yours: it shows a page that can be typed in, finds its elements by an id, and keeps it
// in the browser. It knows nothing of the agent.

const START = {
  html: "<main><h1>The bakery</h1><section><h2>Bread</h2><p>Baked every morning.</p></section></main>",
  css: "body { font: 18px/1.5 Georgia, serif; margin: 2rem auto; max-width: 40rem; padding: 0 1rem }",
};
const STORED = "own-editor";
const PAGE = { id: "home", title: "The bakery", slug: "home", rootNodeId: "root" };

const address = new URL(location.href);
const frame = document.querySelector("#page");
await new Promise((loaded) => {
  frame.addEventListener("load", loaded, { once: true });
  frame.srcdoc = "<!doctype html><style></style><body></body>";
});
// The frame is sandboxed without allow-scripts: nothing that gets into the page can run.
const { body, head } = frame.contentDocument;
const sheet = head.querySelector("style");

export const editor = {
  service: address.searchParams.get("service") ?? "http://127.0.0.1:8787",
  token: address.hash.slice(1),
  title: PAGE.title,
  snapshot: { page: PAGE, site: { pages: [PAGE], breakpoints: [], settings: {} } },
  get html() {
    return body.innerHTML;
  },
  get css() {
    return sheet.textContent;
  },
  get state() {
    return { html: body.innerHTML, css: sheet.textContent };
  },
  get revision() {
    const text = body.innerHTML + sheet.textContent;
    return `${text.length}-${Array.from(text).reduce((hash, letter) => (hash * 31 + letter.codePointAt(0)) | 0, 7)}`;
  },
  insert(parentId, index, html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    const added = [...template.content.children];
    const parent = find(parentId);
    parent.insertBefore(template.content, parent.children[index ?? parent.children.length] ?? null);
    save();
    return added.map((element) => element.getAttribute("uid"));
  },
  remove(id) {
    find(id).remove();
    save();
  },
  addCss(css) {
    sheet.textContent += `\n${css}`;
    save();
  },
  load(state) {
    body.innerHTML = state.html;
    sheet.textContent = state.css;
    save();
  },
};

function find(id) {
  const element = body.querySelector(`[uid="${CSS.escape(id)}"]`);
  if (!element) throw new Error(`There is no element ${id}.`);
  return element;
}

function save() {
  for (const element of body.querySelectorAll(":not([uid])"))
    element.setAttribute("uid", crypto.randomUUID().slice(0, 8));
  localStorage.setItem(STORED, JSON.stringify(editor.state));
}

editor.load(JSON.parse(localStorage.getItem(STORED)) ?? START);
body.contentEditable = "true";
body.addEventListener("input", save);
