/** What is known of an approval, from events of a turn and from the service's list. */

/** @typedef {"waiting" | "approved" | "denied" | "expired" | "stale" | "cancelled"} ApprovalState */

/**
 * @typedef {object} ApprovalView
 * @property {string} id
 * @property {string} toolName
 * @property {any} input
 * @property {string} inputHash Of the input that is shown, to which a decision binds.
 * @property {string} description What the tool does.
 * @property {string[]} reasons
 * @property {string} deadline
 * @property {ApprovalState} state
 * @property {string} [decidedBy]
 * @property {string} [reason] What who has decided says about it.
 * @property {any} [changedInput] The arguments that the approver has put in the place of the model's.
 */

/**
 * @param {Record<string, any>} event `approvalRequested`
 * @returns {ApprovalView}
 */
export function approvalFromEvent(event) {
  const { approvalId, toolName, input, inputHash, description, reasons, deadline } = event;
  const kept = { description: description ?? "", reasons: Array.isArray(reasons) ? reasons : [] };
  return { id: approvalId, toolName, input, inputHash, deadline, state: "waiting", ...kept };
}

/**
 * @param {ApprovalView} approval
 * @param {Record<string, any>} event `approvalDecided`
 * @returns {ApprovalView}
 */
export function withDecision(approval, { outcome, reason, input }) {
  const changed = input === undefined || input === null ? {} : { changedInput: input };
  return { ...approval, state: outcome, reason, ...changed };
}

/**
 * @param {Record<string, any>} answer An approval of `GET approvals`.
 * @returns {ApprovalView}
 */
export function approvalFromService(answer) {
  const { approvalId, toolName, input, inputHash, description, reasons, deadline, state, decidedBy, reason } = answer;
  return { id: approvalId, toolName, input, inputHash, description, reasons, deadline, state, decidedBy, reason };
}
