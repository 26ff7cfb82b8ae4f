/**
 * What went wrong, and what to do about it.
 *
 *     FermataError
 *       UnreachableError        no answer: offline, refused, reset or timed out
 *       InvalidResponseError    an answer that is not what the service sends
 *       TurnLostError           a turn that could not be followed to its end
 *       SchemaError             a tool whose schema this client cannot check
 *       RefusedError            an answer with an error status
 *         InvalidRequestError 400   SignedOutError    401   BudgetError       402   ForbiddenError 403
 *         NotFoundError       404   ConflictError     409   ExpiredError      410   TooLargeError  413
 *         ModelCannotError    422   RateLimitError    429   ServiceError      500 and above
 */

/** Base class. `message` says what is wrong, `hint` what a person can do. */
export class FermataError extends Error {
  name = "FermataError";
  /** The HTTP status; 0 where there was no answer. */
  status = 0;
  /** Names what a program can correct, such as `logRewound`; often empty. */
  code = "";
  /** What to do, in a sentence. */
  hint = "";
  /** Milliseconds after which the same request may succeed, if the service has said so. */
  retryAfter = 0;
  /**
   * The key of a start that failed: the same start once more, with this key and `conversationId`, joins the turn that the
   * first one may have started.
   *
   * @type {string | undefined}
   */
  idempotencyKey;
  /** The conversation of a start that failed. @type {string | undefined} */
  conversationId;

  /**
   * Whether the same request may succeed a moment later.
   *
   * @returns {boolean}
   */
  get retryable() {
    return false;
  }
}

export class UnreachableError extends FermataError {
  name = "UnreachableError";
  hint = "Check the connection to the network, and try again.";
  get retryable() {
    return true;
  }
}

export class InvalidResponseError extends FermataError {
  name = "InvalidResponseError";
  hint = "Check the service's address, and that no proxy changes its answers.";
  get retryable() {
    return true;
  }
}

export class TurnLostError extends FermataError {
  name = "TurnLostError";
  hint = "The turn may still run. Follow it again by its bridge.";
}

export class SchemaError extends FermataError {
  name = "SchemaError";
  hint = "Update @fermata/client: the service is newer.";
}

/** An answer with an error status. `message` is the service's own text. */
export class RefusedError extends FermataError {
  name = "RefusedError";
  /** The body of the answer, where it is an object. @type {Record<string, any>} */
  details = {};

  get retryable() {
    return this.status === 408 || this.status === 425 || this.status === 429 || this.status >= 500;
  }
}

export class InvalidRequestError extends RefusedError {
  name = "InvalidRequestError";
  hint = "Change the request as the message says.";
}
export class SignedOutError extends RefusedError {
  name = "SignedOutError";
  hint = "Sign in again.";
}
export class BudgetError extends RefusedError {
  name = "BudgetError";
  hint = "Wait until the budget renews, or ask for more.";
}
export class ForbiddenError extends RefusedError {
  name = "ForbiddenError";
  hint = "Ask who manages your account for the right to do this.";
}
export class NotFoundError extends RefusedError {
  name = "NotFoundError";
  hint = "It is gone, or somebody else's. Load the list again.";
}
export class ConflictError extends RefusedError {
  name = "ConflictError";
  hint = "Something else came first. Load it again, and try again.";
}
export class ExpiredError extends RefusedError {
  name = "ExpiredError";
  hint = "Send it again: it was kept for a limited time.";
}
export class TooLargeError extends RefusedError {
  name = "TooLargeError";
  hint = "Send less: smaller images, or a smaller document.";
}
export class ModelCannotError extends RefusedError {
  name = "ModelCannotError";
  hint = "Choose another model.";
}
export class RateLimitError extends RefusedError {
  name = "RateLimitError";
  hint = "Wait a moment, and try again.";
}
export class ServiceError extends RefusedError {
  name = "ServiceError";
  hint = "The service has a problem. Wait a moment, and try again.";
}

/** @type {Record<number, new (message: string) => RefusedError>} */
const CLASS_BY_STATUS = {
  400: InvalidRequestError,
  401: SignedOutError,
  402: BudgetError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  410: ExpiredError,
  413: TooLargeError,
  422: ModelCannotError,
  429: RateLimitError,
};

/**
 * Make the error of an answer.
 *
 * @param {number} status
 * @param {string} text The body.
 * @param {Headers} headers
 * @returns {RefusedError}
 */
export function errorFromResponse(status, text, headers) {
  const details = parseObject(text);
  const words = details.error?.message ?? details.error ?? details.message;
  const kind = CLASS_BY_STATUS[status] ?? (status >= 500 ? ServiceError : RefusedError);
  const error = new kind(typeof words === "string" && words ? words : `The service answered with status ${status}.`);
  error.status = status;
  error.details = details;
  if (typeof details.code === "string") error.code = details.code;
  // The service's own clock is meant, where it can be read; the browser's may be wrong.
  const now = Date.parse(headers.get("date") ?? "") || Date.now();
  error.retryAfter = parseRetryAfter(headers.get("retry-after"), now);
  return error;
}

/**
 * @param {string} text
 * @returns {Record<string, any>}
 */
function parseObject(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? value : {};
  } catch {
    return {};
  }
}

/**
 * Read a Retry-After header: seconds, or a date.
 *
 * @param {string | null} value
 * @param {number} [now]
 * @returns {number} Milliseconds; 0 where nothing can be read.
 */
export function parseRetryAfter(value, now = Date.now()) {
  if (!value) return 0;
  const milliseconds = /^\s*\d+\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isNaN(milliseconds) ? 0 : Math.max(milliseconds, 0);
}
