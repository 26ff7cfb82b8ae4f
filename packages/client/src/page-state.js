/** Let an agent of the workspace see fields of a page, and fill them in. */

/** @import { Executor, PageContext, ToolCall, ToolOutput } from "./types.js" */

export const UPDATE_PAGE_STATE = "update-page-state";

/**
 * The fields of a page.
 *
 * @typedef {object} PageFields
 * @property {() => Record<string, any>} read Returns the fields that the agent may see, by name, as JSON.
 * @property {(updates: Record<string, any>) => void | Promise<void>} [write] Fills in fields. It is only given fields that
 *   `read` returns. Without it, the agent can only see them.
 * @property {string} [pageId] Names the page.
 */

/**
 * Return an executor that also shows an agent the fields of a page and fills them in. It stores nothing: what is filled in is
 * the user's to send.
 *
 * @param {PageFields} fields
 * @param {Executor} [executor] Carries out all other tools.
 * @returns {Executor}
 */
export function withPageState(fields, executor) {
  const others = executor?.tools ?? (executor ? undefined : []);
  return {
    ...(executor?.snapshot && { snapshot: () => executor.snapshot?.() ?? {} }),
    ...(others && { tools: [...others, UPDATE_PAGE_STATE] }),
    context: async () => ({ ...(await executor?.context?.()), ...contextOf(fields) }),
    execute: async (call) => {
      if (call.toolName === UPDATE_PAGE_STATE) return fillIn(fields, call);
      if (executor) return executor.execute(call);
      throw new Error("nobody carries it out");
    },
  };
}

/**
 * @param {PageFields} fields
 * @returns {PageContext}
 */
function contextOf({ read, write, pageId }) {
  return { sharedState: read(), sharedStateReadOnly: !write, ...(pageId !== undefined && { pageId }) };
}

/**
 * Write the fields that the page has, and say which these were.
 *
 * @param {PageFields} fields
 * @param {ToolCall} call
 * @returns {Promise<ToolOutput>}
 */
async function fillIn({ read, write }, { input }) {
  if (!write) return { ok: false, error: "This page can only be read." };
  const shown = read();
  const isShown = (/** @type {string} */ name) => Object.hasOwn(shown, name);
  const written = Object.keys(input.updates).filter(isShown);
  if (written.length > 0) await write(Object.fromEntries(written.map((name) => [name, input.updates[name]])));
  return { ok: true, data: { written, ignored: Object.keys(input.updates).filter((name) => !isShown(name)) } };
}
