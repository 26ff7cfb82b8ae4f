/** Content: the sites of the workspace, their documents and models, and change sets that wait to be merged. */

import { ContentClient } from "@fermata/client/content";
import { assistantPane, showAssistant } from "../content/assistant-pane.js";
import { showChangeSet, showChangeSets } from "../content/change-sets.js";
import { showDocuments } from "../content/document-list.js";
import { showDocument } from "../content/document-page.js";
import { showModel, showModels } from "../content/models.js";
import { askForSpace } from "../content/space-dialog.js";
import { emptyView, field, h, showLoaded } from "../dom.js";
import { recall, remember } from "../storage.js";
import { words } from "../words/index.js";

/** @import { PageContext } from "../shell/shell.js" */
/**
 * @typedef {object} SpaceView What a part of the content page needs of its space.
 * @property {import("@fermata/client/content").ContentSpace} content
 * @property {string[]} locales The first one is the default.
 * @property {PageContext} context
 * @property {(...path: string[]) => string} linkTo The address of a part of the page.
 */

const LAST_SPACE = "fermata-last-space";
/** @type {{name: keyof typeof words.content.parts, path: string}[]} */
const PARTS = [
  { name: "documents", path: "documents" },
  { name: "models", path: "models" },
  { name: "changeSets", path: "change-sets" },
];

/** @param {HTMLElement} target @param {PageContext} context @param {string} path */
export function show(target, context, path) {
  const client = new ContentClient(context.session.clientOptions);
  const [site, environment, ...part] = path.split("/");
  const body = h("div", { class: "content-body" });
  const spacePlace = h("div", { class: "space-place" });
  const pane = assistantPane();
  target.append(
    h(
      "div",
      { class: "content-main" },
      h("header", { class: "page-head" }, h("h1", {}, words.shell.pages.content), spacePlace),
      h("p", { class: "lead" }, words.content.lead),
      body,
    ),
    pane,
  );
  const create = async () => {
    const made = await askForSpace(client);
    if (made) context.open(`content/${made.site}/${made.environment}`);
  };
  return showLoaded(
    body,
    () => client.spaces.list({ signal: context.signal }),
    (spaces) => {
      if (!spaces.length) return noSpacesView(create);
      const found = chooseSpace(spaces, site, environment);
      remember(LAST_SPACE, nameOf(found));
      showAssistant(pane, context, nameOf(found));
      spacePlace.replaceChildren(...spacePicker(spaces, found, create, context));
      return spaceView(client, found, part, context);
    },
  );
}

/** @param {() => void} create */
function noSpacesView(create) {
  const action = h("button", { type: "button", class: "button primary", onclick: create }, words.content.newSpace);
  return emptyView(words.content.noSpaces, words.content.noSpacesText, action);
}

/** @param {any} space */
const nameOf = ({ site, environment }) => `${site}/${environment}`;

/** @param {any[]} spaces @param {string} site @param {string | undefined} environment */
function chooseSpace(spaces, site, environment) {
  const wanted = site ? `${site}/${environment ?? "main"}` : recall(LAST_SPACE);
  return spaces.find((space) => nameOf(space) === wanted) ?? spaces[0];
}

/** @param {any[]} spaces @param {any} chosen @param {() => void} create @param {PageContext} context */
function spacePicker(spaces, chosen, create, context) {
  const select = h("select", { onchange: () => context.open(`content/${select.value}`) });
  select.append(...spaces.map((space) => h("option", { value: nameOf(space) }, space.title || nameOf(space))));
  select.value = nameOf(chosen);
  return [
    field(words.content.space, select),
    h("button", { type: "button", class: "button", onclick: create }, words.content.newSpace),
  ];
}

/** @param {ContentClient} client @param {any} space @param {string[]} part @param {PageContext} context */
function spaceView(client, space, part, context) {
  const { site, environment, locales } = space;
  const linkTo = (/** @type {string[]} */ ...path) =>
    `#/${["content", site, environment, ...path].map(encodeURIComponent).join("/")}`;
  /** @type {SpaceView} */
  const view = { content: client.space(site, environment), locales, context, linkTo };
  const [name = "documents", ...rest] = part;
  const links = PARTS.map((each) => {
    const link = h("a", { href: linkTo(each.path) }, words.content.parts[each.name]);
    if (each.path === name) link.setAttribute("aria-current", "page");
    return link;
  });
  const target = h("div");
  showPart(target, view, name, rest);
  return [h("div", { class: "segments", role: "group" }, ...links), target];
}

/** @param {HTMLElement} target @param {SpaceView} view @param {string} name @param {string[]} rest */
function showPart(target, view, name, [first, second]) {
  if (name === "models") return first ? showModel(target, view, first) : showModels(target, view);
  if (name === "change-sets") return first ? showChangeSet(target, view, first) : showChangeSets(target, view);
  return second ? showDocument(target, view, first, second) : showDocuments(target, view, first);
}
