/**
 * Fold the events of a turn into what a person sees of it. Folding is pure: an event that was seen, one after the end and
 * one of an unknown type leave the view as it is.
 */

/** @import { ApprovalView } from "../approvals/approval-view.js" */
import { approvalFromEvent, withDecision } from "../approvals/approval-view.js";
import { appendCall, changeCallAt, findCall } from "./call-list.js";

/**
 * @typedef {object} CallView
 * @property {string} id
 * @property {string} name
 * @property {any} input
 * @property {"pending" | "ok" | "failed"} state
 * @property {string} [error]
 * @property {boolean} [isConflict] Nothing was done, because the document had changed.
 * @property {boolean} [isInEditor] The editor was asked to carry it out.
 * @property {string} [effectKey]
 * @property {ApprovalView} [approval] A person has to decide about it, or has.
 */

/**
 * One response of the model.
 *
 * @typedef {object} RoundView
 * @property {string} text
 * @property {string} reasoning
 * @property {CallView[]} calls
 * @property {boolean} isClosed Its calls are being worked on, so that what follows belongs to a new round.
 */

/**
 * @typedef {object} TurnView
 * @property {number} seq The number of the last event seen.
 * @property {string} [bridgeId]
 * @property {string} [undoes] The bridge whose edits this turn takes back.
 * @property {RoundView[]} rounds
 * @property {{message: string, code?: string}[]} warnings
 * @property {Record<string, any>} [usage]
 * @property {Record<string, any>} [context]
 * @property {Record<string, any>} [held] Nothing happens until somebody acts.
 * @property {Record<string, any>} [end] The terminal event.
 */

/** @typedef {{type: string, seq?: number} & Record<string, any>} TurnEvent */

/** @returns {TurnView} */
export function emptyTurn() {
  return { seq: 0, rounds: [], warnings: [] };
}

/** @type {Record<string, (view: TurnView, event: TurnEvent) => TurnView>} */
const FOLDS = {
  bridgeReady: (view, event) => ({ ...view, bridgeId: event.bridgeId, undoes: event.undoes }),
  text: (view, event) => changeOpenRound(view, (round) => ({ ...round, text: round.text + event.text })),
  reasoning: (view, event) => changeOpenRound(view, (round) => ({ ...round, reasoning: round.reasoning + event.text })),
  toolCall: (view, event) => {
    const call = {
      id: event.toolCallId,
      name: event.toolName,
      input: event.input,
      state: /** @type {const} */ ("pending"),
    };
    return changeOpenRound(view, (round) => ({ ...round, calls: appendCall(round.calls, call) }));
  },
  toolRequest: (view, event) => changeCall(closeRound(view), event, { isInEditor: true, effectKey: event.effectKey }),
  toolResult: (view, event) =>
    changeCall(closeRound(view), event, {
      state: event.ok ? "ok" : "failed",
      error: event.error,
      isConflict: event.conflict === true,
    }),
  approvalRequested: (view, event) => changeCall(closeRound(view), event, { approval: approvalFromEvent(event) }),
  approvalDecided: (view, event) =>
    changeCall(view, event, ({ approval }) => (approval ? { approval: withDecision(approval, event) } : {})),
  context: (view, event) => ({ ...closeRound(view), context: event }),
  usage: (view, event) => ({ ...view, usage: event }),
  roundRetracted: (view) => ({ ...view, rounds: view.rounds.filter((round) => round.isClosed) }),
  held: (view, event) => ({ ...view, held: event }),
  warning: (view, { message, code }) => ({ ...view, warnings: [...view.warnings, { message, code }] }),
  done: end,
  error: end,
  cancelled: end,
};

/**
 * @param {TurnView} view
 * @param {TurnEvent} event
 * @returns {TurnView}
 */
export function foldEvent(view, event) {
  if (event.type === "logRewound") return { ...emptyTurn(), bridgeId: view.bridgeId, undoes: view.undoes };
  if (view.end) return view;
  if (event.seq === undefined) return event.type === "held" ? { ...view, held: event } : view;
  if (event.seq <= view.seq) return view;
  const advanced = { ...view, seq: event.seq, held: undefined };
  return Object.hasOwn(FOLDS, event.type) ? FOLDS[event.type](advanced, event) : advanced;
}

/**
 * All calls of a turn, in order.
 *
 * @param {TurnView} view
 * @returns {CallView[]}
 */
export function callsOf(view) {
  return view.rounds.flatMap((round) => round.calls);
}

/**
 * Whether a person has to decide about a call.
 *
 * @param {CallView} call
 */
export function isAwaitingDecision(call) {
  return call.state === "pending" && call.approval?.state === "waiting";
}

/**
 * @param {TurnView} view
 * @param {TurnEvent} event
 * @returns {TurnView}
 */
function end(view, event) {
  return { ...closeRound(view), end: event };
}

/**
 * @param {TurnView} view
 * @param {(round: RoundView) => RoundView} change
 * @returns {TurnView}
 */
function changeOpenRound(view, change) {
  const last = view.rounds.at(-1);
  if (!last || last.isClosed) {
    const opened = { text: "", reasoning: "", calls: [], isClosed: false };
    return { ...view, rounds: [...view.rounds, change(opened)] };
  }
  return { ...view, rounds: [...view.rounds.slice(0, -1), change(last)] };
}

/** @param {TurnView} view @returns {TurnView} */
function closeRound(view) {
  const last = view.rounds.at(-1);
  if (!last || last.isClosed) return view;
  return { ...view, rounds: [...view.rounds.slice(0, -1), { ...last, isClosed: true }] };
}

/**
 * Change the call that an event belongs to, in whichever round it is.
 *
 * @param {TurnView} view
 * @param {TurnEvent} event
 * @param {Partial<CallView> | ((call: CallView) => Partial<CallView>)} change
 * @returns {TurnView}
 */
function changeCall(view, event, change) {
  for (let at = view.rounds.length - 1; at >= 0; at -= 1) {
    const round = view.rounds[at];
    const place = findCall(round.calls, event.toolCallId); // ids may come again in later rounds
    if (place < 0) continue;
    const call = round.calls[place];
    const changed = typeof change === "function" ? change(call) : change;
    const calls = changeCallAt(round.calls, place, { ...call, ...changed });
    return { ...view, rounds: view.rounds.with(at, { ...round, calls }) };
  }
  return view;
}
