/** A call that cannot be carried out. Its message is a sentence that the model reads. */
export class ToolError extends Error {}

/** What a call would change was changed by somebody else. */
export class ConflictError extends ToolError {
  /**
   * @param {string} message
   * @param {string} [changes] what was changed, in words
   */
  constructor(message, changes = "") {
    super(message);
    this.changes = changes;
  }
}

/**
 * Throw a `ToolError`.
 * @param {string} message
 * @returns {never}
 */
export function refuse(message) {
  throw new ToolError(message);
}
