/** How cards of approvals look. */

export const APPROVAL_CSS = `
.approval { border-top: 1px solid var(--fermata-line); padding: 12px; display: flex; flex-direction: column; gap: 8px; font-size: var(--fermata-text-s); min-width: 0; }
.approval[data-state=waiting] { background: var(--fermata-surface); box-shadow: inset 3px 0 0 var(--fermata-warn); }
.approval:dir(rtl)[data-state=waiting] { box-shadow: inset -3px 0 0 var(--fermata-warn); }
.approval:not([data-state=waiting]) { padding: 6px 12px; }
.approval p { margin: 0; overflow-wrap: anywhere; } .approval p + p { margin-top: 4px; }
.approval-head { display: flex; flex-wrap: wrap; align-items: baseline; gap: 2px 8px; } .approval-head strong { font-weight: 600; color: var(--fermata-warn); }
.approval-quiet { color: var(--fermata-ink-2); } .approval code { font-family: var(--fermata-mono); font-size: 11px; overflow-wrap: anywhere; }
.approval-form { display: flex; flex-direction: column; gap: 10px; }
.approval-arguments { max-height: 240px; overflow: auto; padding: 8px 10px; border-radius: var(--fermata-radius-s); background: var(--fermata-surface-2); }
.approval-arguments dl { margin: 0; display: flex; flex-direction: column; gap: 6px; }
.approval-arguments dt { color: var(--fermata-ink-2); font-size: 11px; } .approval-arguments dd { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.approval-fields { display: flex; flex-direction: column; gap: 8px; }
.approval-field { display: flex; flex-direction: column; gap: 2px; } .approval-field > span { font-weight: 500; } .approval-field small { color: var(--fermata-ink-2); font-size: 11px; }
.approval-field textarea, .approval-field select { display: block; width: 100%; min-height: 34px; max-height: 240px; padding: 6px 8px; border: 1px solid var(--fermata-line); border-radius: var(--fermata-radius-s); background: var(--fermata-surface); color: inherit; font: inherit; line-height: 1.45; resize: vertical; }
.approval-field textarea:focus-visible, .approval-field select:focus-visible { outline: 2px solid var(--fermata-accent); outline-offset: 1px; }
.approval-field textarea.approval-code { font-family: var(--fermata-mono); font-size: 11px; } .approval-field input[type=checkbox] { align-self: flex-start; width: 18px; height: 18px; }
.approval-problem { color: var(--fermata-bad); }
.approval-buttons { display: flex; flex-wrap: wrap; gap: 8px; } .approval-buttons[hidden] { display: none; }
.approval-button { min-height: 34px; padding: 5px 14px; border: 1px solid var(--fermata-line); border-radius: var(--fermata-radius-s); background: var(--fermata-surface); color: var(--fermata-ink); font: inherit; font-weight: 500; cursor: pointer; }
.approval-button:hover { background: var(--fermata-surface-2); border-color: var(--fermata-ink-3); opacity: 1; }
.approval-button.primary { background: var(--fermata-accent); border-color: var(--fermata-accent); color: var(--fermata-accent-ink); }
.approval-button.primary:hover { background: color-mix(in srgb, var(--fermata-accent) 88%, var(--fermata-ink)); }
.approval-button.danger { background: var(--fermata-bad); border-color: var(--fermata-bad); color: var(--fermata-surface); }
.approval-form[aria-busy] .approval-button { opacity: .55; cursor: progress; }
.approval-outcome { color: var(--fermata-ink-2); } .approval-outcome:empty { display: none; } .approval-outcome:focus-visible { outline: 2px solid var(--fermata-accent); outline-offset: 1px; }
.approval[data-state=approved] .approval-outcome { color: var(--fermata-good); } .approval[data-state=denied] .approval-outcome { color: var(--fermata-bad); }
.approval [hidden] { display: none; }
@media (forced-colors: active) { .approval[data-state=waiting] { border: 1px solid; } }
`;
