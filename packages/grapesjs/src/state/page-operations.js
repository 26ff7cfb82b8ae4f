/** The operations that add, change and remove pages. */

/** @typedef {import("../document.js").EditorDocument} EditorDocument */
/** @typedef {import("./operations.js").OperationKind} OperationKind */

/** @type {OperationKind} */
const addPage = {
  apply(document, { json, at }) {
    const { Pages } = document.editor;
    for (const { component } of json.frames ?? []) document.ids.release(component);
    const page = Pages.add(JSON.parse(JSON.stringify(json)));
    if (at !== undefined && at < Pages.getAll().length - 1) Pages.move(page, { at });
    return [{ op: "removePage", id: page.getId() }];
  },
  expect: (_, { json }, state) => state.pages.has(json.id),
};

/** @type {OperationKind} */
const removePage = {
  apply(document, { id }) {
    const { Pages } = document.editor;
    const page = Pages.get(id);
    const at = Pages.getAll().indexOf(page);
    const json = JSON.parse(JSON.stringify(page));
    if (Pages.getSelected() === page) Pages.select(Pages.getAll().find((/** @type {any} */ other) => other !== page));
    Pages.remove(page);
    return [{ op: "addPage", json, at }];
  },
  expect(document, { id }, state) {
    const page = document.editor.Pages.get(id);
    return page && [state.pages.get(id), state.nodes.get(document.ids.of(page.getMainComponent()))?.deep];
  },
};

/** @type {OperationKind} */
const page = {
  isSetting: true,
  apply(document, { id, set }) {
    const target = document.editor.Pages.get(id);
    const names = Object.keys(set);
    const old = Object.fromEntries(names.map((name) => [name, target.get(name) ?? null]));
    for (const name of names) {
      // a member that never existed is not undone
      if (target.get(name) === undefined) target.set(name, null, { silent: true });
    }
    target.set(set);
    return [{ op: "page", id, set: old }];
  },
  expect(document, { id, set }) {
    const target = document.editor.Pages.get(id);
    return target && Object.keys(set).map((name) => target.get(name) ?? null);
  },
};

/** @type {Record<string, OperationKind>} */
export const PAGE_OPERATIONS = { addPage, removePage, page };
