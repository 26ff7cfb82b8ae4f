import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeJsonMarkup } from "../src/html/json-markup.js";

const MARKUP = '<section class="a">\n\t<p>Bread</p>\n</section>';

test("markup in a JSON string is read", () => {
  const sent = JSON.stringify(MARKUP);
  for (const form of [sent, ` ${sent}\n`, sent.slice(1, -1), '"<section class=\\"a\\">\n\t<p>Bread</p>\n</section>"']) {
    assert.equal(decodeJsonMarkup(form), MARKUP);
  }
  assert.equal(decodeJsonMarkup('"<p>Hello <b>x</b></p>"'), "<p>Hello <b>x</b></p>");
});

test("a quotation and other markup stay as they are", () => {
  const others = ['"<em>Great bread!</em>"', '"Great <b>bread</b>"', '"Hello"', '"', '""', "", "Hello", MARKUP];
  for (const text of [
    ...others,
    '<p title="a">x =\\"y\\"</p>',
    '<p class=\\"a\\">\\q</p>',
    '<pre>echo a=\\"b\\"</pre>',
    '"<p>a</p>" and "<p>b</p>"',
  ]) {
    assert.equal(decodeJsonMarkup(text), text);
  }
});
