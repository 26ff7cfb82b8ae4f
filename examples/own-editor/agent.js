import { Fermata } from "@fermata/client";
import { editor } from "./editor.js";

const tools = {
  read_document: () => ({ title: editor.title, html: editor.html, css: editor.css }),
  insertHtml: ({ parentId, index, html }) => ({ nodeIds: editor.insert(parentId, index, html) }),
  deleteNode: ({ nodeId }) => editor.remove(nodeId),
  applyCss: ({ css }) => editor.addCss(css),
  restore: ({ patch }) => editor.load(patch),
};
const execute = ({ toolName, input, revision }) => {
  const isEdit = toolName !== "read_document";
  if (isEdit && revision !== editor.revision)
    return { ok: false, conflict: true, error: "The page was changed meanwhile." };
  const inverse = { tool: "restore", input: { patch: editor.state } };
  const data = tools[toolName](input);
  return { ok: true, data, revision: editor.revision, ...(isEdit && { inverse }) };
};
const snapshot = () => ({ snapshot: editor.snapshot, revision: editor.revision });

export const executor = { tools: Object.keys(tools), execute, snapshot };
export const fermata = new Fermata({ baseUrl: editor.service, token: () => editor.token });
