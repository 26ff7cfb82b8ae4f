/** Who may work in a project, as what, and on which models and languages. */

import { announce, askInDialog, field, h, showLoaded, table } from "../dom.js";
import { words } from "../words/index.js";

/** @import { SpaceView } from "../content/space-page.js" */
/** @import { SpaceMember } from "./member-rights.js" */
import { parseRights } from "./member-rights.js";

const ROLES = /** @type {const} */ (["viewer", "reviewer", "editor"]);

/** @param {HTMLElement} target @param {SpaceView} view */
export function showMembers(target, view) {
  const load = () =>
    showLoaded(
      target,
      () => view.content.members.list({ signal: view.context.signal }),
      ({ isListed, members }) => membersView(isListed, members, view, load),
    );
  return load();
}

/** @param {boolean} isListed @param {SpaceMember[]} members @param {SpaceView} view @param {() => void} reload */
function membersView(isListed, members, view, reload) {
  const { add, listed, unlisted, endList, nobody, columns, caption } = words.studio.members;
  const ask = () => askForMember(view, undefined, reload);
  const end = () => askToEndList(view, reload);
  const tools = h(
    "div",
    { class: "content-tools" },
    isListed && h("button", { type: "button", class: "button", onclick: end }, endList),
    h("button", { type: "button", class: "button primary", onclick: ask }, add),
  );
  const rows = members.map((member) => memberRow(member, view, reload));
  const heads = [columns.user, columns.role, columns.models, columns.locales, columns.actions];
  return [
    tools,
    h("p", { class: "quiet-text" }, isListed ? listed : unlisted),
    members.length > 0 ? table(caption, heads, rows) : isListed && h("p", { class: "quiet-text" }, nobody),
  ];
}

/** @param {SpaceMember} member @param {SpaceView} view @param {() => void} reload */
function memberRow(member, view, reload) {
  const { roles, all, change } = words.studio.members;
  const { user, role, models, locales } = member;
  const only = (/** @type {string[] | undefined} */ names) =>
    names ? h("div", { class: "tags" }, ...names.map((name) => h("span", { class: "tag" }, name))) : all;
  const button = (/** @type {string} */ text, /** @type {() => void} */ onclick) =>
    h("button", { type: "button", class: "link", "aria-label": `${text} ${user}`, onclick }, text);
  return [
    h("bdi", {}, user),
    roles[/** @type {keyof typeof roles} */ (role)] ?? role,
    only(models),
    only(locales),
    h(
      "div",
      { class: "row-actions" },
      button(change, () => askForMember(view, member, reload)),
      button(words.remove, () => askToRemove(view, member, reload)),
    ),
  ];
}

/** @param {SpaceView} view @param {SpaceMember | undefined} member @param {() => void} reload */
async function askForMember(view, member, reload) {
  const { add, changeTitle, user, userHint, role, roles, roleHint, saved } = words.studio.members;
  const { models, modelsHint, locales, localesHint } = words.studio.members;
  const name = h("input", { name: "user", required: true, value: member?.user ?? "", readOnly: Boolean(member) });
  const choice = h("select", { name: "role" }, ...ROLES.map((each) => h("option", { value: each }, roles[each])));
  choice.value = member?.role ?? "editor";
  const list = (/** @type {string} */ of, /** @type {string[] | undefined} */ known) =>
    h("input", { name: of, value: (known ?? []).join(", "), autocomplete: "off", spellcheck: false });
  const content = [
    field(user, name, member ? undefined : userHint),
    field(role, choice, roleHint),
    field(models, list("models", member?.models), modelsHint),
    field(locales, list("locales", member?.locales), `${localesHint} ${view.locales.join(", ")}.`),
  ];
  const done = await askInDialog(member ? changeTitle(member.user) : add, content, {
    action: member ? words.content.document.save : words.add,
    onAction: async (data) => {
      const { user: wanted, rights } = parseRights(data);
      await view.content.members.put(wanted, rights);
    },
  });
  if (!done) return;
  announce(saved);
  reload();
}

/** @param {SpaceView} view @param {SpaceMember} member @param {() => void} reload */
async function askToRemove(view, { user }, reload) {
  const { removeTitle, removeText, removed } = words.studio.members;
  const done = await askInDialog(removeTitle(user), [h("p", {}, removeText)], {
    action: words.remove,
    isDangerous: true,
    onAction: () => view.content.members.remove(user),
  });
  if (!done) return;
  announce(removed);
  reload();
}

/** @param {SpaceView} view @param {() => void} reload */
async function askToEndList(view, reload) {
  const { endList, endListText, ended } = words.studio.members;
  const done = await askInDialog(`${endList}?`, [h("p", {}, endListText)], {
    action: endList,
    isDangerous: true,
    onAction: () => view.content.members.removeList(),
  });
  if (!done) return;
  announce(ended);
  reload();
}
