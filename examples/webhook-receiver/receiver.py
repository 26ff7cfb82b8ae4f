"""A webhook receiver in Python: prints each event once. Needs `pip install standardwebhooks`.

SIGNING_SECRET=whsec_… PORT=8000 python receiver.py
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

MAX_BYTES = 1_000_000
webhook = Webhook(os.environ["SIGNING_SECRET"])
seen_ids: set[str] = set()  # deliveries may come twice; keep them in a database in earnest


def handle(event: dict) -> None:
    data = event["data"]
    line = json.dumps({"type": event["type"], "bridge": data["bridgeId"], "event": data["event"]})
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            self.answer(self.take_delivery())
        except WebhookVerificationError:
            self.answer(401)
        except (ValueError, LookupError, TypeError):
            self.answer(400)

    def take_delivery(self) -> int:
        length = int(self.headers["content-length"])
        if length > MAX_BYTES:
            return 413
        event = webhook.verify(self.rfile.read(length), dict(self.headers))
        if self.headers["webhook-id"] not in seen_ids:
            handle(event)
            seen_ids.add(self.headers["webhook-id"])
        return 204

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
