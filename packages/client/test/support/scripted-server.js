/**
 * A server on a socket that sends whatever a test says, byte by byte.
 *
 *     const server = await openServer(t, { "GET /scopes": [html(502), reset, json({ scopes: [] })] });
 *     new Fermata({ baseUrl: server.url });
 *     server.requests                       // ["GET /scopes", …]
 *
 * A script is a list of answers, one for each request, the last one again and again. An answer is a function of the socket.
 */
import { createServer } from "node:net";
import { API } from "./fake-service.js";

const READ_FIRST = 20;

export async function openServer(t, scripts) {
  const requests = [];
  const sockets = new Set();
  const left = new Map(Object.entries(scripts).map(([request, answers]) => [request, [...answers]]));
  const server = createServer((socket) => {
    sockets.add(socket);
    let text = "";
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (end < 0 || text.length < end + 4 + length) return;
      const [, method, path] = /^(\S+) (\S+)/.exec(text);
      const request = `${method} ${path.replace(API, "").replace(/\?.*/, "")}`;
      requests.push({ request, path, head: text.slice(0, end), body: text.slice(end + 4, end + 4 + length) });
      text = text.slice(end + 4 + length);
      const answers = left.get(request) ?? [raw("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}")];
      (answers.length > 1 ? answers.shift() : answers[0])(socket);
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    count: (request) => requests.filter((each) => each.request === request).length,
  };
}

/** Send these bytes, and keep the connection. */
export const raw = (bytes) => (socket) => void socket.write(bytes);

/** An answer with a length. */
export function answer(status, body, headers = {}) {
  const bytes = Buffer.from(body);
  const given = { "content-type": "application/json", "content-length": bytes.length, ...headers };
  const lines = Object.entries(given).map(([name, value]) => `${name}: ${value}\r\n`);
  return raw(Buffer.concat([Buffer.from(`HTTP/1.1 ${status} Said\r\n${lines.join("")}\r\n`), bytes]));
}

export const json = (value, status = 200, headers = {}) => answer(status, JSON.stringify(value), headers);
export const html = (status) => answer(status, "<html><h1>Bad</h1></html>", { "content-type": "text/html" });

/** Reset the connection. */
export const reset = (socket) => void socket.resetAndDestroy();

/** A stream in pieces of so many bytes, and how it goes on: it ends, is cut, or stays open. */
export function stream(lines, { piece = 1_000_000, ending = "end", status = 200, type = "application/x-ndjson" } = {}) {
  const bytes = Buffer.concat(
    lines.map((line) => Buffer.from(typeof line === "string" ? line : `${JSON.stringify(line)}\n`)),
  );
  return async (socket) => {
    socket.write(`HTTP/1.1 ${status} Said\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`);
    for (let at = 0; at < bytes.length; at += piece) {
      const part = bytes.subarray(at, at + piece);
      socket.write(`${part.length.toString(16)}\r\n`);
      socket.write(part);
      socket.write("\r\n");
      if (at < piece * READ_FIRST) await new Promise((resolve) => setImmediate(resolve)); // the first ones are read alone
    }
    if (ending === "end") socket.write("0\r\n\r\n");
    if (ending === "reset") setImmediate(() => socket.resetAndDestroy());
  };
}
