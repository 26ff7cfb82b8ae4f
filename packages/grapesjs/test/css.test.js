import assert from "node:assert/strict";
import { test } from "node:test";
import { parseCss } from "../src/css/parse-css.js";
import { rulesToGrapes } from "../src/css/rule-json.js";
import { normalizePrelude, splitOutsideBrackets } from "../src/css/tokens.js";
import { formatNumber } from "../src/tokens/numbers.js";

/** @param {string} css */
const rulesOf = (css) => parseCss(css).map(({ selector, style, atRule, params }) => [atRule, params, selector, style]);

test("declarations are kept as they are written", () => {
  const css = "a{margin:var(--m) 2px;color:red;color:oklch(0.6 0.2 20);--X: {a:b};background:url(a;b.png) no-repeat}";
  assert.deepEqual(rulesOf(css), [
    [
      "",
      "",
      "a",
      {
        margin: "var(--m) 2px",
        color: ["red", "oklch(0.6 0.2 20)"],
        "--X": "{a:b}",
        background: "url(a;b.png) no-repeat",
      },
    ],
  ]);
});

test("nested rules are resolved, also in conditions and lists", () => {
  assert.deepEqual(rulesOf(".a,.b{top:0;&:hover{top:1px}.c &{top:2px}d{top:3px}@media print{top:4px}}"), [
    ["", "", ".a,.b", { top: "0" }],
    ["", "", ":is(.a,.b):hover", { top: "1px" }],
    ["", "", ".c :is(.a,.b)", { top: "2px" }],
    ["", "", ":is(.a,.b) d", { top: "3px" }],
    ["media", "print", ".a,.b", { top: "4px" }],
  ]);
});

test("a condition within a condition of its kind is one condition", () => {
  assert.deepEqual(rulesOf("@media (a:b){@media (c:d){e{top:0}}}"), [["media", "(a:b) and (c:d)", "e", { top: "0" }]]);
});

test("what cannot be stored is refused in words, and skipped where that is wanted", () => {
  for (const [css, words] of [
    ["@import 'x';", "@import cannot be kept"],
    ["@layer a,b;", "@layer without a block"],
    ["@scope (.a){b{top:0}}", "@scope cannot be kept"],
    ["@media print{@supports (a:b){c{top:0}}}", "@supports within @media"],
    ["a{top:0", "is missing"],
    ["a{top:0}}", "too many"],
    ["a{content:'x}", "not closed"],
    ["a{top}", "not a CSS declaration"],
    ["top:0;", "not a CSS rule"],
  ]) {
    assert.throws(() => parseCss(css), new RegExp(words.replace(/[()]/g, "\\$&")), css);
  }
  /** @type {string[]} */
  const refused = [];
  const kept = parseCss("@import 'x';a{top:0}@scope (b){c{top:0}}", { onRefusal: (words) => refused.push(words) });
  assert.deepEqual([kept.length, refused.length], [1, 2]);
});

test("classes, ids and states become selectors that the style manager can edit", () => {
  const [rule] = parseCss(".a.b:hover, #c, d > e, .f::before, .g:not(.h), .md\\:w-1{top:0}");
  assert.deepEqual(
    rulesToGrapes(rule).map(({ selectors, state, selectorsAdd }) => [selectors, state, selectorsAdd]),
    [
      [["a", "b"], "hover", undefined],
      [["#c"], undefined, undefined],
      [["f"], ":before", undefined],
      [[], undefined, "d > e, .g:not(.h), .md\\:w-1"],
    ],
  );
});

test("preludes that mean the same are the same", () => {
  assert.equal(normalizePrelude("@media  ( max-width : 600px )"), normalizePrelude("@media(max-width:600px)"));
  assert.equal(normalizePrelude("a  >  b,c"), "a>b,c");
  assert.equal(normalizePrelude('[x=" a , b "] /* note */ y'), '[x=" a , b "] y');
  assert.deepEqual(splitOutsideBrackets("a:is(b, c), [d='e,f'], g", ","), ["a:is(b, c)", "[d='e,f']", "g"]);
});

test("numbers are rounded half up, of their exact value", () => {
  assert.deepEqual([3.125, 1.005, -0.001, 20, 0.1 + 0.2].map(formatNumber), ["3.13", "1", "0", "20", "0.3"]);
});
