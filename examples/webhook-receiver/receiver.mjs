// A webhook receiver in JavaScript: prints each event once. It needs Node.js and nothing else.
//
//     SIGNING_SECRET=whsec_… PORT=8000 node receiver.mjs
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const KEY = Buffer.from(process.env.SIGNING_SECRET.replace("whsec_", ""), "base64");
const TOLERANCE_SECONDS = 300;
const MAX_CHARACTERS = 1_000_000;
const seenIds = new Set(); // deliveries may come twice; keep them in a database in earnest

function isSigned(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures } = headers;
  if (!id || !signatures || !(Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_SECONDS)) return false;
  const expected = Buffer.from(`v1,${createHmac("sha256", KEY).update(`${id}.${timestamp}.${body}`).digest("base64")}`);
  return signatures.split(" ").some((signature) => {
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

function handle({ type, data }) {
  console.log(JSON.stringify({ type, bridge: data.bridgeId, event: data.event }));
}

async function takeDelivery(request) {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) {
    body += chunk;
    if (body.length > MAX_CHARACTERS) return 413;
  }
  if (!isSigned(request.headers, body)) return 401;
  const id = request.headers["webhook-id"];
  if (!seenIds.has(id)) {
    handle(JSON.parse(body));
    seenIds.add(id);
  }
  return 204;
}

createServer(async (request, response) => {
  // A client that leaves, or sends what is no event, must not end this program.
  response.writeHead(await takeDelivery(request).catch(() => 400)).end();
}).listen(Number(process.env.PORT), "127.0.0.1");
