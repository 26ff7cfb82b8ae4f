/** What a turn did, from its log: one line for each round and each tool call, with their times. */

/**
 * @typedef {object} ToolLine
 * @property {string} id
 * @property {string} name
 * @property {"done" | "failed" | "open" | "dropped"} state
 * @property {number} startedAt Epoch milliseconds.
 * @property {number | undefined} milliseconds How long the model waited for its result.
 * @property {any} input
 * @property {string} [error]
 */

/**
 * @typedef {object} RoundLine
 * @property {number} round
 * @property {number} startedAt
 * @property {number | undefined} milliseconds From its start until its calls were known, or until the turn ended.
 * @property {number | undefined} firstByte Milliseconds from its start to the first text.
 * @property {number} characters
 * @property {ToolLine[]} tools
 */

const ENDS = ["done", "error", "cancelled"];

/**
 * @param {any[]} log
 * @returns {RoundLine[]}
 */
export function roundsOf(log) {
  /** @type {RoundLine[]} */
  const rounds = [];
  /** @type {Map<string, ToolLine>} */
  const tools = new Map();
  for (const line of log) {
    const at = Date.parse(line.at);
    const current = rounds[rounds.length - 1];
    if (line.type === "roundStarted") startRound(rounds, line.round, at);
    else if (!current) continue;
    else if (line.type === "text" || line.type === "reasoning") addText(current, line, at);
    else if (line.type === "toolCall") addCall(current, tools, line, at);
    else if (line.type === "toolResult") finishCall(tools.get(line.toolCallId), line, at);
    else if (ENDS.includes(line.type)) endTurn(current, tools, at);
  }
  return rounds;
}

/** @param {RoundLine} round @param {Map<string, ToolLine>} tools @param {number} at */
function endTurn(round, tools, at) {
  round.milliseconds ??= at - round.startedAt;
  for (const tool of tools.values()) if (tool.state === "open") tool.state = "dropped";
}

/** @param {RoundLine[]} rounds @param {number} round @param {number} at */
function startRound(rounds, round, at) {
  const again = rounds[rounds.length - 1]?.round === round;
  if (again) rounds.pop(); // a worker that took it over from another one
  rounds.push({ round, startedAt: at, milliseconds: undefined, firstByte: undefined, characters: 0, tools: [] });
}

/** @param {RoundLine} round @param {any} line @param {number} at */
function addText(round, line, at) {
  round.firstByte ??= at - round.startedAt;
  if (line.type === "text") round.characters += line.characters;
}

/** @param {RoundLine} round @param {Map<string, ToolLine>} tools @param {any} line @param {number} at */
function addCall(round, tools, line, at) {
  round.milliseconds ??= at - round.startedAt;
  /** @type {ToolLine} */
  const tool = {
    id: line.toolCallId,
    name: line.toolName,
    state: "open",
    startedAt: at,
    milliseconds: undefined,
    input: line.input,
  };
  round.tools.push(tool);
  tools.set(tool.id, tool);
}

/** @param {ToolLine | undefined} tool @param {any} line @param {number} at */
function finishCall(tool, line, at) {
  if (!tool) return;
  tool.state = line.ok ? "done" : "failed";
  tool.milliseconds = at - tool.startedAt;
  tool.error = line.error;
}
