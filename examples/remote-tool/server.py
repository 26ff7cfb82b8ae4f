"""A remote tool in Python: finds a product by its number. Needs `pip install standardwebhooks`.

    SIGNING_SECRET=whsec_… PORT=8000 python server.py

Put it behind https, and register it with `fermata tools register tool.json`.
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

PRODUCTS = {"SKU-123": {"sku": "SKU-123", "title": "Sourdough bread", "price": "4.20"}}
MAX_BYTES = 1_000_000
webhook = Webhook(os.environ["SIGNING_SECRET"])
answers: dict[str, tuple[int, dict]] = {}  # by Idempotency-Key: the same call again gets the same answer


def find_product(sku: str) -> tuple[int, dict]:
    product = PRODUCTS.get(sku)
    return (200, {"data": product}) if product else (404, {"error": f"There is no product {sku}."})


class Tool(BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            self.answer(*self.answer_call())
        except WebhookVerificationError:
            self.answer(401, {"error": "The signature is wrong."})
        except (ValueError, LookupError, TypeError):
            self.answer(400, {"error": "This is no call of a tool."})

    def answer_call(self) -> tuple[int, dict]:
        length = int(self.headers["content-length"])
        if length > MAX_BYTES:
            return 413, {"error": "The call is too large."}
        call = webhook.verify(self.rfile.read(length), dict(self.headers))
        key = self.headers["idempotency-key"]
        if key not in answers:
            answers[key] = find_product(str(call["arguments"]["sku"]))
        return answers[key]

    def answer(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Tool).serve_forever()
