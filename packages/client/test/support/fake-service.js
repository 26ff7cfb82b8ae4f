/**
 * A service in memory, as a `fetch`, for tests of the client's own rules.
 *
 *     const service = new FakeService();
 *     service.on("GET", "/bridges/t1/events", () => service.stream([{ type: "done", seq: 1 }]));
 *     new Fermata({ fetch: service.fetch, wait: service.wait });
 *     service.requests                                  // what was sent, and `service.waits` how long was waited
 */

export const API = "/admin/api/ai";

export class FakeService {
  requests = [];
  waits = [];
  problems = [];
  #handlers = new Map();

  /** Answer a request by this function, or by the functions of a list, one after another, the last one again and again. */
  on(method, path, ...handlers) {
    this.#handlers.set(`${method} ${path}`, handlers);
    return this;
  }

  /** Requests of this method and path. */
  sent(method, path) {
    return this.requests.filter((request) => request.method === method && request.path === path);
  }

  get options() {
    return { fetch: this.fetch, wait: this.wait, onProblem: (problem) => this.problems.push(problem) };
  }

  wait = async (milliseconds, signal) => {
    signal?.throwIfAborted();
    this.waits.push(milliseconds);
    await new Promise((resolve) => setImmediate(resolve));
  };

  fetch = async (url, init = {}) => {
    const { pathname, searchParams } = new URL(url, "http://service.example");
    const path = pathname.replace(API, "");
    const method = init.method ?? "GET";
    const body = typeof init.body === "string" ? JSON.parse(init.body) : init.body;
    const headers = new Headers(init.headers);
    const request = { method, path, query: Object.fromEntries(searchParams), headers, body, init };
    this.requests.push(request);
    const handlers = this.#handlers.get(`${method} ${path}`) ?? [() => json(404, { error: `No ${method} ${path}` })];
    const handler = handlers.length > 1 ? handlers.shift() : handlers[0];
    const answer = await handler(request);
    init.signal?.throwIfAborted();
    if (answer instanceof Error) throw answer;
    return answer;
  };
}

/** An answer with a JSON body. */
export function json(status, value, headers = {}) {
  const body = status === 204 ? null : JSON.stringify(value);
  return new Response(body, { status, headers: { "content-type": "application/json", ...headers } });
}

/** A stream of these events. `ending` says how it goes on: it is closed, breaks, or stays open until it is aborted. */
export function stream(events, { ending = "close", signal } = {}) {
  const encoder = new TextEncoder();
  return new Response(
    new ReadableStream({
      start(controller) {
        for (const event of events)
          controller.enqueue(encoder.encode(event === "" ? "\n" : `${JSON.stringify(event)}\n`));
        if (ending === "close") controller.close();
        signal?.addEventListener("abort", () => controller.error(signal.reason));
        if (ending === "break") setTimeout(() => controller.error(new TypeError("terminated")));
      },
    }),
  );
}

/** A network failure, as `fetch` reports it. */
export const noNetwork = () => new TypeError("fetch failed");

/** Read all events of a turn. */
export async function collect(turn) {
  const events = [];
  for await (const event of turn.events()) events.push(event);
  return events;
}

export const TOOLS = [
  {
    name: "insertHtml",
    execution: "browser",
    capability: "write",
    description: "",
    permissions: [],
    inputSchema: {
      type: "object",
      properties: { parentId: { type: "string", minLength: 1 }, html: { type: "string" } },
      required: ["parentId", "html"],
    },
  },
  {
    name: "read_document",
    execution: "browser",
    capability: "read",
    description: "",
    permissions: [],
    inputSchema: { type: "object", properties: {} },
  },
];
