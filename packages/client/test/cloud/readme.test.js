import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { newClient, newEditor, TOKEN, URL_OF_CLOUD } from "../support/cloud.js";

const PLACEHOLDER = "https://agent.example.com";
const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
/** In this folder the package finds itself by its name. */
const folder = new URL(`../../dist/readme-${process.pid}/`, import.meta.url);

mkdirSync(folder, { recursive: true });
after(() => rmSync(folder, { recursive: true }));

const examples = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(({ 1: code, index }) => {
  const [, heading] = readme.slice(0, index).match(/.*^## (.*?)$/ms);
  return { heading, code };
});

/** Give the examples what the README says that they have. */
function setUpPage() {
  const shown = [];
  const made = newEditor();
  Object.assign(globalThis, {
    getToken: async () => TOKEN,
    show: (text) => shown.push(text),
    editor: {
      executor: made,
      html: '<main uid="root"></main>',
      revision: undefined,
      fill() {},
      insert(_parentId, html) {
        this.html += html;
        return "n1";
      },
      picture: async () => readFileSync(process.env.FERMATA_LARGE_PNG),
    },
  });
  return shown;
}

test("every example of the README runs", async (t) => {
  const plainFetch = globalThis.fetch;
  assert.ok(examples.length >= 9);
  for (const [index, { heading, code }] of examples.entries()) {
    await t.test(`${index + 1}: ${heading}`, async () => {
      const shown = setUpPage();
      const file = new URL(`example-${index}.js`, folder);
      const scripted = code.replaceAll(PLACEHOLDER, URL_OF_CLOUD);
      writeFileSync(fileURLToPath(file), scripted);
      await import(file.href);
      if (code.includes("show(") && !code.includes("activeTurn")) assert.ok(shown.length > 0, "it shows something");
      globalThis.fetch = plainFetch;
    });
  }
});

test("the executor of the README edits the page", async () => {
  const { code } = examples.find(({ code }) => code.includes("insertHtml"));
  setUpPage();
  const file = new URL("executor.js", folder);
  writeFileSync(fileURLToPath(file), code.replaceAll(PLACEHOLDER, URL_OF_CLOUD));
  await import(file.href);
  assert.match(globalThis.editor.html, /<section[\s\S]*pricing/i);
  assert.ok(newClient());
});
