/** A page about one space of the workspace: which one it is, its parts, and the assistant beside them. */

import { ContentClient } from "@fermata/client/content";
import { emptyView, field, h, showLoaded } from "../dom.js";
import { recall, remember } from "../storage.js";
import { words } from "../words/index.js";
import { assistantPane, showAssistant } from "./assistant-pane.js";
import { askForSpace } from "./space-dialog.js";
import { closedPartView, closedSpaceView, note, sayRights } from "./space-rights.js";

/** @import { PageContext } from "../shell/shell.js" */
/** @import { ContentScope } from "./assistant-pane.js" */
/** @import { SpaceRight } from "./space-rights.js" */
/**
 * @typedef {object} SpaceView What a part of a page needs of its space.
 * @property {ContentClient} client
 * @property {import("@fermata/client/content").ContentSpace} content
 * @property {string} space `site/environment`
 * @property {string[]} locales The first one is the default.
 * @property {Set<SpaceRight>} may What the person may do here.
 * @property {PageContext} context
 * @property {(...path: string[]) => string} linkTo The address of a part of the page.
 */
/** @typedef {{name: string, path: string, needs?: "manage" | "keys" | "plan", show: (target: HTMLElement, view: SpaceView, ...rest: string[]) => unknown}} PagePart `needs` names the right without which it is closed. */
/**
 * @typedef {object} SpacePage
 * @property {"content" | "studio"} path
 * @property {ContentScope} scope Of its assistant.
 * @property {string} lead
 * @property {PagePart[]} parts The first one is shown where the address names none.
 * @property {(hash: string) => any} [readOpen] Returns what the assistant is told of the page's address with each prompt.
 */

const LAST_SPACE = "fermata-last-space";

/** @param {HTMLElement} target @param {PageContext} context @param {string} path @param {SpacePage} page */
export function showSpacePage(target, context, path, page) {
  const client = new ContentClient(context.session.clientOptions);
  const [site, environment, ...part] = path.split("/");
  const body = h("div", { class: "content-body" });
  const spacePlace = h("div", { class: "space-place" });
  const pane = assistantPane();
  target.classList.add("space-page");
  target.append(
    h(
      "div",
      { class: "content-main" },
      h("header", { class: "page-head" }, h("h1", {}, words.shell.pages[page.path]), spacePlace),
      h("p", { class: "lead" }, page.lead),
      body,
    ),
    pane,
  );
  const create = async () => {
    const made = await askForSpace(client);
    if (made) context.open(`${page.path}/${made.site}/${made.environment}`);
  };
  return showLoaded(
    body,
    () => client.spaces.list({ signal: context.signal }),
    (spaces) => {
      if (!spaces.length) return noSpacesView(create);
      const mayCreate = spaces.some(({ rights }) => rights.includes("manage")); // it is a right in the workspace
      const found = chooseSpace(spaces, site, environment);
      remember(LAST_SPACE, nameOf(found));
      showAssistant(pane, context, page, nameOf(found));
      spacePlace.replaceChildren(...spacePicker(spaces, found, mayCreate && create, context, page));
      return spaceView(client, found, part, context, page);
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

/** @param {any[]} spaces @param {any} chosen @param {false | (() => void)} create @param {PageContext} context @param {SpacePage} page */
function spacePicker(spaces, chosen, create, context, { path }) {
  const select = h("select", { onchange: () => context.open(`${path}/${select.value}`) });
  select.append(...spaces.map((space) => h("option", { value: nameOf(space) }, space.title || nameOf(space))));
  select.value = nameOf(chosen);
  return [
    field(words.content.space, select),
    ...(create ? [h("button", { type: "button", class: "button", onclick: create }, words.content.newSpace)] : []),
  ];
}

/** @param {ContentClient} client @param {any} space @param {string[]} path @param {PageContext} context @param {SpacePage} page */
function spaceView(client, space, path, context, page) {
  const { site, environment, locales, member } = space;
  /** @type {Set<SpaceRight>} */
  const may = new Set(space.rights);
  if (!may.size) return [closedSpaceView(member)];
  const linkTo = (/** @type {string[]} */ ...to) =>
    `#/${[page.path, site, environment, ...to].map(encodeURIComponent).join("/")}`;
  /** @type {SpaceView} */
  const view = {
    client,
    content: client.space(site, environment),
    space: nameOf(space),
    locales,
    may,
    context,
    linkTo,
  };
  const [name, ...rest] = path;
  const shown = page.parts.find((part) => part.path === name) ?? page.parts[0];
  const isOpen = (/** @type {PagePart} */ { needs }) => !needs || may.has(needs);
  const links = page.parts
    .filter((part) => part === shown || isOpen(part))
    .map((part) => {
      const link = h("a", { href: linkTo(part.path) }, part.name);
      if (part === shown) link.setAttribute("aria-current", "page");
      return link;
    });
  const target = h("div", { class: "space-part" });
  if (shown.needs && !isOpen(shown)) target.append(closedPartView(shown.needs));
  else shown.show(target, view, ...rest);
  const told = sayRights(may);
  return [h("div", { class: "segments", role: "group" }, ...links), told && note(told), target];
}
