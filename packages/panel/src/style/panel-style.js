/** The panel's style sheets. */

import { APPROVAL_CSS } from "../approvals/approval-style.js";
import { tokensCss } from "./tokens.js";

const CSS = `
:host { display: block; height: 100%; min-width: 280px; contain: content; }
:host([hidden]) { display: none; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.panel { position: relative; display: flex; flex-direction: column; height: 100%; overflow: hidden;
  background: var(--fermata-surface); color: var(--fermata-ink);
  font: 400 var(--fermata-text-m)/var(--fermata-leading) var(--fermata-font); text-align: start; }
h1, h2, h3, p, ul, ol, pre, blockquote { margin: 0; padding: 0; }
ul { list-style: none; }
button, input, textarea { font: inherit; color: inherit; }
button { cursor: pointer; border: 0; background: none; border-radius: var(--fermata-radius-s);
  transition: background var(--fermata-motion), color var(--fermata-motion), opacity var(--fermata-motion); }
button:disabled { cursor: default; opacity: .45; }
:focus-visible { outline: 2px solid var(--fermata-accent); outline-offset: 1px; }
.icon { width: 18px; height: 18px; flex: none; fill: none; stroke: currentColor; stroke-width: 1.75; stroke-linecap: round; stroke-linejoin: round; }
.hidden-words { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.icon-button { display: grid; place-items: center; width: 32px; height: 32px; color: var(--fermata-ink-2); flex: none; }
.icon-button:hover:not(:disabled, [aria-disabled=true]) { background: var(--fermata-surface-3); color: var(--fermata-ink); }

header { display: flex; align-items: center; gap: 2px; padding-block: 8px; padding-inline: 16px 8px; border-bottom: 1px solid var(--fermata-line); min-height: 49px; }
h1 { flex: 1; min-width: 0; font-size: var(--fermata-text-m); font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.meter { width: 44px; height: 6px; margin: 0 8px; border-radius: 3px; background: var(--fermata-surface-3); overflow: hidden; flex: none; }
.meter span { display: block; width: var(--used); height: 100%; background: var(--fermata-ink-3); transition: width var(--fermata-motion); }
.meter.full span { background: var(--fermata-warn); }
.banner { padding: 6px 16px; font-size: var(--fermata-text-s); background: var(--fermata-warn-soft); color: var(--fermata-warn); }

.thread { flex: 1; min-height: 0; overflow-y: auto; overscroll-behavior: contain; scrollbar-width: thin; padding: 16px; display: flex; flex-direction: column; }
.thread-items { display: flex; flex-direction: column; gap: 20px; }
.thread.loading::before { content: ""; width: 60%; height: 14px; border-radius: 7px; background: var(--fermata-surface-3); animation: breathe 1.4s ease-in-out infinite; }
.older { align-self: center; margin-bottom: 12px; }
.empty { margin: auto; max-width: 30ch; text-align: center; color: var(--fermata-ink-2); }
.empty h2 { font-size: var(--fermata-text-xl); font-weight: 600; line-height: 1.25; color: var(--fermata-ink); margin-bottom: 8px; text-wrap: balance; }
.user { align-self: flex-end; max-width: 88%; padding: 8px 12px; border-radius: var(--fermata-radius); background: var(--fermata-surface-3); white-space: pre-wrap; overflow-wrap: anywhere; }
.attached { display: block; max-width: 100%; max-height: 160px; min-height: 24px; border-radius: var(--fermata-radius-s); margin-bottom: 6px; }
.rounds { display: flex; flex-direction: column; gap: 10px; }
.round { display: flex; flex-direction: column; gap: 10px; min-width: 0; }

.prose { overflow-wrap: anywhere; min-width: 0; }
.prose > * + * { margin-top: .7em; }
.prose h3, .prose h4, .prose h5, .prose h6 { margin: 1em 0 0; font-size: var(--fermata-text-m); font-weight: 600; }
.prose ul { list-style: disc; } .prose ol { list-style: decimal; }
.prose ul, .prose ol { padding-inline-start: 1.4em; } .prose li + li { margin-top: .25em; }
.prose a { color: var(--fermata-accent); text-underline-offset: 2px; }
.prose code { font-family: var(--fermata-mono); font-size: .92em; background: var(--fermata-surface-2); padding: .1em .3em; border-radius: 4px; }
.prose pre { overflow-x: auto; padding: 10px 12px; background: var(--fermata-surface-2); border-radius: var(--fermata-radius-s); line-height: 1.45; }
.prose pre code { background: none; padding: 0; }
.prose blockquote { padding-inline-start: 12px; border-inline-start: 3px solid var(--fermata-line); color: var(--fermata-ink-2); }
.prose hr { border: 0; border-top: 1px solid var(--fermata-line); }
.prose .table { overflow-x: auto; } .prose table { border-collapse: collapse; font-size: var(--fermata-text-s); }
.prose td, .prose th { overflow-wrap: break-word; }
.prose th, .prose td { border: 1px solid var(--fermata-line); padding: 4px 8px; text-align: start; }

/* Each paragraph runs as its own words do, whatever the page's direction is; code runs to the right. */
.prose p, .prose li, .prose h3, .prose h4, .prose h5, .prose h6, .prose td, .prose th, .user p, .note, .note p, .problem p, .lock p, .empty p,
.thoughts, .status, textarea, ::placeholder { unicode-bidi: plaintext; }
header h1 { text-align: -webkit-match-parent; text-align: match-parent; }
.prose pre, .call-input { direction: ltr; text-align: left; }

summary { cursor: pointer; list-style: none; } summary::-webkit-details-marker { display: none; }
.reasoning summary { display: inline-flex; align-items: center; gap: 4px; color: var(--fermata-ink-3); font-size: var(--fermata-text-s); border-radius: var(--fermata-radius-s); }
.reasoning summary .icon { width: 14px; height: 14px; transform: rotate(-90deg); transition: transform var(--fermata-motion); }
:dir(rtl) > summary > .icon { transform: rotate(90deg); } .sheet-head .icon:dir(rtl) { transform: scaleX(-1); }
.reasoning[open] summary > .icon { transform: none; }
.thoughts { margin: 6px 0 0; padding-inline-start: 12px; border-inline-start: 2px solid var(--fermata-line); color: var(--fermata-ink-2); font-size: var(--fermata-text-s); white-space: pre-wrap; overflow-wrap: anywhere; max-height: 240px; overflow-y: auto; }

.call-box { border: 1px solid var(--fermata-line); border-radius: var(--fermata-radius); overflow: hidden; }
.call-box .earlier { display: block; width: 100%; min-height: 32px; padding: 6px 10px 6px 34px; border-radius: 0; border-bottom: 1px solid var(--fermata-line); color: var(--fermata-ink-3); font-size: var(--fermata-text-s); text-align: start; }
.call-box .earlier:hover { background: var(--fermata-surface-2); color: var(--fermata-ink); } .turn > .earlier { margin: 0 0 10px -8px; }
.call + .call { border-top: 1px solid var(--fermata-line); }
.call summary { display: flex; align-items: center; gap: 8px; padding: 6px 10px; font-size: var(--fermata-text-s); min-height: 32px; }
.call summary:hover { background: var(--fermata-surface-2); }
.call-state { flex: none; display: grid; place-items: center; width: 16px; color: var(--fermata-good); } .call-state .icon { width: 16px; height: 16px; }
.call[data-state=waiting] .call-state { color: var(--fermata-warn); } .call[data-state=failed] .call-state { color: var(--fermata-warn); } .call[data-state=open] .call-state { color: var(--fermata-ink-3); }
.dot { width: 7px; height: 7px; border-radius: 50%; background: var(--fermata-accent); animation: breathe 1.4s ease-in-out infinite; }
.call-name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.call-input { padding-block: 0 8px; padding-inline: 34px 10px; font-size: var(--fermata-text-s); color: var(--fermata-ink-2); }
.call-input pre { margin-top: 4px; max-height: 200px; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; font-family: var(--fermata-mono); font-size: 11px; }
.call-input code { font-family: var(--fermata-mono); font-size: 11px; overflow-wrap: anywhere; }
.call-error { padding-block: 0 8px; padding-inline: 34px 10px; font-size: var(--fermata-text-s); color: var(--fermata-warn); overflow-wrap: anywhere; }

.status { margin-top: 10px; color: var(--fermata-ink-3); font-size: var(--fermata-text-s); display: flex; align-items: center; gap: 8px; min-height: 20px; }
.status::before { content: ""; width: 7px; height: 7px; border-radius: 50%; background: var(--fermata-accent); animation: breathe 1.4s ease-in-out infinite; }
.turn-footer { margin-top: 8px; } .turn-footer:empty { display: none; } .turn-footer > * + * { margin-top: 8px; }
.summary { display: flex; align-items: center; gap: 8px; font-size: var(--fermata-text-s); color: var(--fermata-ink-3); min-height: 28px; }
.quiet { display: inline-flex; align-items: center; gap: 4px; padding: 4px 8px; font-size: var(--fermata-text-s); color: var(--fermata-ink-2); }
.summary .done { display: inline-flex; align-items: center; gap: 4px; padding: 4px 8px; } .summary .done .icon { width: 14px; height: 14px; }
.quiet .icon { width: 14px; height: 14px; } .quiet:hover:not(:disabled) { background: var(--fermata-surface-3); color: var(--fermata-ink); }
.summary > .quiet:first-child, .summary > .done:first-child { margin-inline-start: -8px; } .note.bad .quiet { flex: none; margin: -4px -8px -4px 0; color: inherit; font-weight: 500; white-space: nowrap; }
.cost { font-variant-numeric: tabular-nums; }
.note { padding: 8px 12px; border-radius: var(--fermata-radius-s); background: var(--fermata-surface-2); font-size: var(--fermata-text-s); color: var(--fermata-ink-2); overflow-wrap: anywhere; }
.note.bad, .note.warn { display: flex; align-items: flex-start; gap: 8px; } .note > div { flex: 1; min-width: 0; } .note .hint { color: var(--fermata-ink-2); }
.note.bad { background: var(--fermata-bad-soft); color: var(--fermata-bad); } .note.warn { background: var(--fermata-warn-soft); color: var(--fermata-warn); }
.note ul { list-style: disc; padding-inline-start: 1.4em; }

.lock { margin: 0 16px 12px; padding: 16px; border: 1px solid var(--fermata-line); border-radius: var(--fermata-radius); background: var(--fermata-surface-2); }
.lock h2 { font-size: var(--fermata-text-m); font-weight: 600; } .lock p { margin: 2px 0 12px; color: var(--fermata-ink-2); } .lock p:last-child { margin-bottom: 0; }
.primary { padding: 7px 14px; background: var(--fermata-accent); color: var(--fermata-accent-ink); font-weight: 500; }
.primary:hover { opacity: .9; }
.problem { display: flex; align-items: flex-start; gap: 8px; margin: 0 16px 12px; padding-block: 8px; padding-inline: 12px 8px; border-radius: var(--fermata-radius); background: var(--fermata-bad-soft); color: var(--fermata-bad); font-size: var(--fermata-text-s); }
.problem > div { flex: 1; padding-top: 5px; overflow-wrap: anywhere; } .problem .icon-button { color: inherit; } .problem .hint { color: var(--fermata-ink-2); }

.composer { padding: 0 16px 16px; } .composer .note { margin-bottom: 8px; }
.field { border: 1px solid var(--fermata-line); border-radius: 14px; background: var(--fermata-surface); transition: border-color var(--fermata-motion); }
.field:focus-within { border-color: var(--fermata-accent); }
textarea { display: block; width: 100%; min-height: 44px; max-height: 200px; padding: 12px 14px 4px; border: 0; background: none; resize: none; line-height: 1.45; }
textarea:focus-visible { outline: none; } /* the field around it shows the focus */
::placeholder { color: var(--fermata-ink-3); opacity: 1; }
.composer-row { display: flex; align-items: center; gap: 4px; padding: 4px 6px 6px; } .gap { flex: 1; }
.model { display: inline-flex; align-items: center; gap: 2px; min-width: 0; height: 32px; padding: 0 6px; font-size: var(--fermata-text-s); color: var(--fermata-ink-2); }
.model:hover:not(:disabled) { background: var(--fermata-surface-3); } .model .icon { width: 14px; height: 14px; }
.model-label { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.send { background: var(--fermata-accent); color: var(--fermata-accent-ink); border-radius: 50%; }
.send .icon.solid { fill: currentColor; }
.send:hover:not([aria-disabled=true]) { background: var(--fermata-accent); color: var(--fermata-accent-ink); opacity: .9; }
.send[aria-disabled=true] { cursor: default; background: var(--fermata-surface-3); color: var(--fermata-ink-3); opacity: 1; }
.thumbnails { display: flex; flex-wrap: wrap; gap: 8px; padding: 10px 12px 0; }
.thumbnails li { position: relative; } .thumbnails img { width: 56px; height: 56px; object-fit: cover; border-radius: var(--fermata-radius-s); display: block; }
.thumbnails .icon-button { position: absolute; top: -8px; inset-inline-end: -8px; width: 24px; height: 24px; border-radius: 50%; background: var(--fermata-ink); color: var(--fermata-surface); }
.thumbnails .icon-button .icon { width: 12px; height: 12px; }

.sheet { position: absolute; inset: 0; z-index: 1; display: flex; flex-direction: column; background: var(--fermata-surface); animation: rise var(--fermata-motion); }
.sheet-head { display: flex; align-items: center; gap: 4px; padding: 8px; min-height: 49px; border-bottom: 1px solid var(--fermata-line); }
.sheet-head h2 { font-size: var(--fermata-text-m); font-weight: 600; }
.sheet > input { margin: 12px 16px 4px; padding: 8px 12px; border: 1px solid var(--fermata-line); border-radius: var(--fermata-radius-s); background: var(--fermata-surface); }
.sheet > input:focus-visible { outline: none; border-color: var(--fermata-accent); }
.sheet-list { flex: 1; overflow-y: auto; padding: 8px; } .sheet-list h3 { padding: 8px 8px 4px; font-size: var(--fermata-text-s); font-weight: 600; color: var(--fermata-ink-3); }
.row { display: flex; align-items: center; border-radius: var(--fermata-radius-s); } .row:hover { background: var(--fermata-surface-2); }
.row-main { flex: 1; min-width: 0; display: flex; align-items: baseline; gap: 12px; padding: 8px; text-align: start; }
.row-title { flex: 1; min-width: 0; overflow: hidden; text-align: -webkit-match-parent; text-align: match-parent; text-overflow: ellipsis; white-space: nowrap; } .row-title .icon { width: 14px; height: 14px; margin-inline-start: 6px; vertical-align: -2px; color: var(--fermata-accent); }
.row-detail { font-size: var(--fermata-text-s); color: var(--fermata-ink-3); white-space: nowrap; }
.models .row-main { flex-direction: column; gap: 0; align-items: stretch; } .models .row-detail { white-space: normal; }
.row-main[aria-current] .row-title { font-weight: 600; }
.row .icon-button { opacity: 0; } .row:hover .icon-button, .row:focus-within .icon-button { opacity: 1; }
.empty-list { padding: 24px 16px; text-align: center; color: var(--fermata-ink-3); }
.skeleton { height: 18px; margin: 10px 8px; border-radius: 9px; background: var(--fermata-surface-3); animation: breathe 1.4s ease-in-out infinite; }
.drop { position: absolute; inset: 8px; z-index: 2; display: none; place-items: center; border: 2px dashed var(--fermata-accent); border-radius: var(--fermata-radius); background: var(--fermata-accent-soft); color: var(--fermata-accent); pointer-events: none; font-weight: 600; }
.dropping .drop { display: grid; }
@keyframes breathe { 50% { opacity: .35; } }
@keyframes rise { from { opacity: 0; transform: translateY(6px); } }
@media (prefers-reduced-motion: reduce) { *, ::before { animation: none !important; } }
@media (forced-colors: active) {
  .dot, .status::before, .meter span { forced-color-adjust: none; background: CanvasText; }
  .send, .primary, .note, .problem, .user, .prose pre { border: 1px solid; } .banner { border-bottom: 1px solid; }
  .send[aria-disabled=true] { color: GrayText; }
}
@media (hover: none) { .row .icon-button { opacity: 1; } }
`;

/** @type {CSSStyleSheet[] | undefined} */
let sheets;

/** The sheets that all panels of a page share. The page's own tokens count where it defines them. */
export function panelSheets() {
  sheets ??= [tokensCss(":host", (theme) => `:host([data-theme="${theme}"])`), CSS, APPROVAL_CSS].map((css) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    return sheet;
  });
  return sheets;
}
