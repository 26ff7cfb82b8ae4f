/**
 * Who is signed in: on this machine by a link of `make run` and a cookie that scripts cannot read; on AWS by a token that the
 * tenant's own page has put into the address, which stays in this module.
 */

import { Fermata } from "@fermata/client";
import { words } from "./words/index.js";

/** @typedef {{signIn: "link" | "token", signInUrl?: string, missingPackages?: string[]}} Config */

export class Session {
  /** @type {string} */
  #token = "";
  /** What to tell a person who is not signed in. */
  problem = "";
  isSignedIn = false;

  /** @param {Config} config */
  constructor(config) {
    this.config = config;
    const token = config.signIn === "token" ? async () => this.#token : undefined;
    /** With them every client of the service is made. */
    this.clientOptions = { baseUrl: location.origin, token };
    this.client = new Fermata(this.clientOptions);
  }

  /** Read the config, and use up what the address holds. */
  static async open() {
    const secret = takeSecretFromAddress();
    const answer = await fetch(new URL("../config.json", import.meta.url), { cache: "no-store" });
    const session = new Session(await answer.json());
    await session.#begin(secret);
    return session;
  }

  /** @param {URLSearchParams} secret */
  async #begin(secret) {
    if (this.config.signIn === "token") {
      this.#token = secret.get("token") ?? "";
      this.isSignedIn = this.#token !== "";
      this.problem = words.signInReasons.noToken;
      return;
    }
    const code = secret.get("code");
    const answer = code ? await callSession("POST", { code }) : await callSession("GET");
    this.isSignedIn = Boolean(answer.signedIn);
    this.problem = wordsOfReason(answer);
  }

  async signOut() {
    this.#token = "";
    if (this.config.signIn === "link") await callSession("DELETE");
    location.reload();
  }
}

/** @param {{reason?: string, error?: string}} answer */
function wordsOfReason({ reason, error }) {
  const known = words.signInReasons;
  return reason && Object.hasOwn(known, reason) ? known[/** @type {keyof typeof known} */ (reason)] : (error ?? "");
}

/** @param {string} hash */
export function hasSecret(hash) {
  const secret = new URLSearchParams(hash.slice(1));
  return secret.has("code") || secret.has("token");
}

/**
 * Take a code or a token out of the address, so that it is neither in the history nor on the screen. What stays is the page that
 * the link wants to open.
 */
function takeSecretFromAddress() {
  const secret = new URLSearchParams(location.hash.slice(1));
  if (!hasSecret(location.hash)) return new URLSearchParams();
  const page = secret.get("open");
  history.replaceState(null, "", location.pathname + (page ? `#/${page}` : ""));
  return secret;
}

/**
 * @param {string} method
 * @param {object} [body]
 */
async function callSession(method, body) {
  const headers = body && { "content-type": "application/json" };
  const answer = await fetch(new URL("../session", import.meta.url), {
    method,
    headers,
    body: body && JSON.stringify(body),
  });
  return answer.json();
}
