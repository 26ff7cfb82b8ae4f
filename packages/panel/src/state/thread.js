/** Turn the stored messages of a conversation into the items of a thread. */

/** @import { CallView, RoundView, TurnView } from "./turn-view.js" */
import { emptyTurn } from "./turn-view.js";

/**
 * @typedef {object} ThreadImage
 * @property {string} [url] A path on the service, which is fetched with the caller's token.
 * @property {Blob} [blob] An image that was just attached.
 */

/**
 * @typedef {object} UserItem
 * @property {"user"} kind
 * @property {string} key
 * @property {string} text
 * @property {ThreadImage[]} images
 */

/**
 * @typedef {object} TurnItem
 * @property {"turn"} kind
 * @property {string} key
 * @property {TurnView} view
 * @property {boolean} [isStored] It was read from stored messages, which have no reasoning.
 * @property {string} [bridgeId] The turn's bridge, where it is known.
 * @property {number} [edits] How many of its edits can be undone, as far as it is known.
 * @property {boolean} [isUndone]
 * @property {boolean} [isLost] It could not be followed to its end.
 */

/** @typedef {UserItem | TurnItem} ThreadItem */

/** @typedef {Record<string, any>} MessageLine A line of `GET conversations/{id}`. */

/**
 * @param {MessageLine[]} lines In order.
 * @returns {ThreadItem[]}
 */
export function itemsFromMessages(lines) {
  /** @type {ThreadItem[]} */
  const items = [];
  for (const line of lines) {
    if (line.role === "user") items.push(userItem(line));
    else if (line.role === "tool") setResult(lastTurn(items, line), line);
    else addAssistantLine(lastTurn(items, line), line);
  }
  return items;
}

/** @param {MessageLine} line @returns {UserItem} */
function userItem(line) {
  const text = line.content.filter((/** @type {any} */ block) => block.kind === "text");
  const images = line.content.filter((/** @type {any} */ block) => block.kind === "image");
  return {
    kind: "user",
    key: line.id,
    text: text.map((/** @type {any} */ block) => block.text).join("\n\n"),
    images: images.map((/** @type {any} */ block) => ({ url: block.url })),
  };
}

/**
 * The turn that a line belongs to: the last one, or a new one behind a prompt.
 *
 * @param {ThreadItem[]} items
 * @param {MessageLine} line
 * @returns {TurnItem}
 */
function lastTurn(items, line) {
  const last = items.at(-1);
  if (last?.kind === "turn") return last;
  const bridgeId = line.id.slice(0, line.id.lastIndexOf("-"));
  /** @type {TurnItem} */
  const item = { kind: "turn", key: line.id, view: storedTurn(), isStored: true, bridgeId };
  items.push(item);
  return item;
}

/** @returns {TurnView} */
function storedTurn() {
  return { ...emptyTurn(), end: { type: "done" } };
}

/**
 * @param {TurnItem} item
 * @param {MessageLine} line
 */
function addAssistantLine(item, line) {
  if (line.turnUsage) item.view.usage = line.turnUsage; // the last one has the turn's total
  const last = item.view.rounds.at(-1);
  const round = last && !last.isClosed ? last : openRound(item);
  for (const block of line.content) {
    if (block.kind === "text") round.text += (round.text && "\n\n") + block.text;
    if (block.kind === "toolCall")
      round.calls.push({ id: block.toolCallId, name: block.toolName, input: block.input, state: "ok" });
  }
}

/** @param {TurnItem} item @returns {RoundView} */
function openRound(item) {
  /** @type {RoundView} */
  const round = { text: "", reasoning: "", calls: [], isClosed: false };
  item.view.rounds.push(round);
  return round;
}

/**
 * @param {TurnItem} item
 * @param {MessageLine} line
 */
function setResult(item, line) {
  const result = line.content.find((/** @type {any} */ block) => block.kind === "toolResult");
  const isAsked = (/** @type {CallView} */ call) => call.id === line.toolCallId;
  const round = item.view.rounds.findLast(({ calls }) => calls.some(isAsked)); // ids may come again in later rounds
  const call = round?.calls.findLast(isAsked);
  if (!round || !call) return;
  if (result) Object.assign(call, { state: result.ok ? "ok" : "failed", error: result.error });
  round.isClosed = true;
}
