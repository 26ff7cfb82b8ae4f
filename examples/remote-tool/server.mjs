// A remote tool in JavaScript: finds a product by its number. It needs Node.js and nothing else.
//
//     SIGNING_SECRET=whsec_… PORT=8000 node server.mjs
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const PRODUCTS = { "SKU-123": { sku: "SKU-123", title: "Sourdough bread", price: "4.20" } };
const KEY = Buffer.from(process.env.SIGNING_SECRET.replace("whsec_", ""), "base64");
const TOLERANCE_SECONDS = 300;
const MAX_CHARACTERS = 1_000_000;
const answers = new Map(); // by Idempotency-Key: the same call again gets the same answer

function isSigned(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures } = headers;
  if (!id || !signatures || !(Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_SECONDS)) return false;
  const expected = Buffer.from(`v1,${createHmac("sha256", KEY).update(`${id}.${timestamp}.${body}`).digest("base64")}`);
  return signatures.split(" ").some((signature) => {
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

function findProduct(sku) {
  const product = Object.hasOwn(PRODUCTS, sku) ? PRODUCTS[sku] : null;
  return product ? [200, { data: product }] : [404, { error: `There is no product ${sku}.` }];
}

async function answerCall(request) {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) {
    body += chunk;
    if (body.length > MAX_CHARACTERS) return [413, { error: "The call is too large." }];
  }
  if (!isSigned(request.headers, body)) return [401, { error: "The signature is wrong." }];
  const key = request.headers["idempotency-key"];
  if (!answers.has(key)) answers.set(key, findProduct(String(JSON.parse(body).arguments.sku)));
  return answers.get(key);
}

createServer(async (request, response) => {
  // A client that leaves, or sends what is no call, must not end this program.
  const [status, content] = await answerCall(request).catch(() => [400, { error: "This is no call of a tool." }]);
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(content));
}).listen(Number(process.env.PORT), "127.0.0.1");
