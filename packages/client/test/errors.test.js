import assert from "node:assert/strict";
import { test } from "node:test";
import * as errors from "../src/errors.js";

const { errorFromResponse, parseRetryAfter } = errors;

test("each status has its class, with the service's text and what to do", () => {
  const names = [400, 401, 402, 403, 404, 409, 410, 413, 422, 429, 500, 503].map((status) => {
    const error = errorFromResponse(status, '{"error":"Because."}', new Headers());
    assert.ok(error instanceof errors.RefusedError && error instanceof errors.FermataError);
    assert.deepEqual([error.status, error.message], [status, "Because."]);
    assert.ok(error.hint.endsWith("."), `${error.name} says what to do`);
    return error.name;
  });
  assert.deepEqual(names, [
    "InvalidRequestError",
    "SignedOutError",
    "BudgetError",
    "ForbiddenError",
    "NotFoundError",
    "ConflictError",
    "ExpiredError",
    "TooLargeError",
    "ModelCannotError",
    "RateLimitError",
    "ServiceError",
    "ServiceError",
  ]);
});

test("every class of errors says what to do", () => {
  for (const [name, kind] of Object.entries(errors)) {
    if (!name.endsWith("Error") || ["FermataError", "RefusedError"].includes(name)) continue;
    assert.equal(new kind("x").name, name);
    assert.match(new kind("x").hint, /\.$/, name);
  }
});

test("an answer that is no JSON has a text of its own", () => {
  for (const body of ["", "<html>Bad gateway</html>", "null", '"x"', '{"error":1}']) {
    assert.equal(errorFromResponse(502, body, new Headers()).message, "The service answered with status 502.");
  }
  assert.equal(errorFromResponse(429, '{"message":"Slow down"}', new Headers()).message, "Slow down");
});

test("only refusals that may pass are tried again", () => {
  const retried = [400, 401, 402, 403, 404, 408, 409, 410, 413, 422, 425, 429, 500, 502, 503, 504].filter(
    (status) => errorFromResponse(status, "", new Headers()).retryable,
  );
  assert.deepEqual(retried, [408, 425, 429, 500, 502, 503, 504]);
});

test("the code and the details of a refusal are kept", () => {
  const body = '{"error":"Gone back.","code":"logRewound","lastSeq":4}';
  const error = errorFromResponse(400, body, new Headers({ "retry-after": "7" }));
  assert.deepEqual([error.code, error.details.lastSeq, error.retryAfter], ["logRewound", 4, 7000]);
});

test("Retry-After is read in seconds and as a date", () => {
  assert.equal(parseRetryAfter("5"), 5000);
  assert.equal(parseRetryAfter("Wed, 21 Oct 2026 07:28:10 GMT", Date.parse("2026-10-21T07:28:00Z")), 10_000);
  for (const value of [null, "", "soon", "-3", "Wed, 21 Oct 2015 07:28:00 GMT"])
    assert.equal(parseRetryAfter(value), 0);
});
