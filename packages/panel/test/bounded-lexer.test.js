import assert from "node:assert/strict";
import { test } from "node:test";
import { Lexer } from "marked";
import { parseMarkdown } from "../src/view/bounded-lexer.js";

/** Nesting of tokens. */
function depthOf(tokens = []) {
  return tokens.reduce((most, { tokens: inner, items }) => Math.max(most, 1 + depthOf(items ?? inner)), 0);
}

for (const [name, text] of [
  ["quotes", `${"> ".repeat(5_000)}a`],
  ["lists", `${"- ".repeat(5_000)}a`],
  ["numbers", `${"1. ".repeat(5_000)}a`],
  ["emphasis", "*a_".repeat(10_000)],
  ["brackets", "[a](".repeat(10_000)],
])
  test(`nested ${name} are text from some depth on, and nothing of them is lost`, () => {
    const tokens = parseMarkdown(text);
    assert.ok(depthOf(tokens) < 50);
    assert.equal(tokens.map((token) => token.raw).join(""), text);
  });

test("what people write is parsed as ever", () => {
  const text =
    "# Title\n\n**a** _b_ [c](https://example.com) `d` ~~e~~\n\n> > quote\n\n- x\n  - y\n    - z\n\n|a|b|\n|-|-|\n|*c*|d|\n";
  assert.deepEqual(JSON.stringify(parseMarkdown(text)), JSON.stringify(new Lexer().lex(text)));
});

test("a table of many emphasized cells is a table", () => {
  const table = `|a|b|\n|-|-|\n${"|**c**|_d_|\n".repeat(300)}`;
  assert.equal(parseMarkdown(table)[0].rows[299][0].tokens[0].type, "strong");
});
