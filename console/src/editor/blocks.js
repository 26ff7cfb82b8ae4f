/** What can be dragged onto a page. Styles are inline here; the editor makes rules of them. */

import { LANGUAGE, words } from "../words/index.js";

const { blocks } = words;

/** @param {string} path */
function shape(path) {
  return `<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${path}"/></svg>`;
}

const SECTION = "padding:48px 24px;max-width:1080px;margin:0 auto";

export const BLOCKS = [
  {
    id: "section",
    label: blocks.section,
    media: shape("M3 5h18v14H3zM3 9h18"),
    content: `<section style="${SECTION}"><h2>${blocks.aHeading}</h2><p>${blocks.someWords}</p></section>`,
  },
  {
    id: "columns-2",
    label: blocks.columns(2),
    media: shape("M3 5h8v14H3zM13 5h8v14h-8z"),
    content: columns(2),
  },
  {
    id: "columns-3",
    label: blocks.columns(3),
    media: shape("M3 5h5v14H3zM9.5 5h5v14h-5zM16 5h5v14h-5z"),
    content: columns(3),
  },
  {
    id: "heading",
    label: blocks.heading,
    media: shape("M6 5v14M18 5v14M6 12h12"),
    content: `<h2>${blocks.aHeading}</h2>`,
  },
  { id: "text", label: blocks.text, media: shape("M5 7h14M5 12h14M5 17h9"), content: `<p>${blocks.writeHere}</p>` },
  {
    id: "button",
    label: blocks.button,
    media: shape("M3 8h18v8H3zM8 12h8"),
    content: `<a href="#" style="display:inline-block;padding:12px 20px;border-radius:8px;background:#1c1b19;color:#fff;text-decoration:none">${blocks.aButton}</a>`,
  },
  {
    id: "image",
    label: blocks.picture,
    media: shape("M3 5h18v14H3zM3 16l5-5 5 5 3-3 5 5"),
    content: { type: "image", style: { "max-width": "100%" } },
    activate: true,
  },
  {
    id: "link",
    label: blocks.link,
    media: shape("M9 15l6-6M8 11l-2 2a3.5 3.5 0 0 0 5 5l2-2M16 13l2-2a3.5 3.5 0 0 0-5-5l-2 2"),
    content: `<a href="#">${blocks.aLink}</a>`,
  },
  {
    id: "list",
    label: blocks.list,
    media: shape("M9 7h11M9 12h11M9 17h11M4 7h1M4 12h1M4 17h1"),
    content: `<ul>${blocks.listItems.map((item) => `<li>${item}</li>`).join("")}</ul>`,
  },
  {
    id: "quote",
    label: blocks.quote,
    media: shape("M6 8h4v5H6zM6 13c0 3 1 4 3 4M14 8h4v5h-4zM14 13c0 3 1 4 3 4"),
    content: `<blockquote><p>${blocks.aQuote}</p></blockquote>`,
  },
];

/** @param {number} count */
function columns(count) {
  const column = `<div style="flex:1 1 220px"><h3>${blocks.aHeading}</h3><p>${blocks.someWords}</p></div>`;
  return `<section style="${SECTION};display:flex;flex-wrap:wrap;gap:32px">${column.repeat(count)}</section>`;
}

/** The page of a new site: few rules, with names and tokens that the agent can use too. */
export const FIRST_PAGE = `<!doctype html><html lang="${LANGUAGE}"><head><title>${blocks.newTitle}</title><style>
:root{--ink:#1d1f24;--paper:#ffffff;--brand:#2f5d50;--soft:#f3efe7}
body{margin:0;font-family:Georgia,"Times New Roman",serif;line-height:1.6;color:var(--ink);background:var(--paper)}
section{padding:56px 24px;max-width:960px;margin:0 auto;box-sizing:border-box}
.hero{max-width:none;padding:88px 24px;background:var(--soft);text-align:center}
.hero h1{font-size:44px;line-height:1.15;margin:0 0 12px}
.hero p{font-size:19px;margin:0 auto 28px;max-width:520px}
.button{display:inline-block;padding:12px 22px;border-radius:8px;background:var(--brand);color:var(--paper);text-decoration:none}
</style></head><body>
<section class="hero"><h1>${blocks.heroTitle}</h1><p>${blocks.heroText}</p><a class="button" href="#">${blocks.heroButton}</a></section>
</body></html>`;
