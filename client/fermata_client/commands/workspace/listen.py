"""`fermata listen`: be a webhook on this machine, and print what it is told."""

import contextlib
import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import click

from fermata_client.commands.common.errors import report_errors
from fermata_client.commands.common.options import json_anyway_option, service_options
from fermata_client.commands.common.service_connection import connect_to_service
from fermata_client.commands.workspace.webhooks import WEBHOOK_EVENTS
from fermata_client.terminal.plain_text import strip_control_chars

MAX_DELIVERY_BYTES = 10 * 1024 * 1024
PRINTED_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")


@click.command("listen")
@click.option("--event", "events", type=click.Choice(WEBHOOK_EVENTS), multiple=True, help="Which.  [default: all]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on.  [default: a free one]")
@click.option("--count", type=click.IntRange(min=1), help="End after so many events.  [default: until Ctrl-C]")
@json_anyway_option
@service_options
@report_errors
def listen(events: tuple[str, ...], port: int, count: int | None, url: str | None, token: str | None) -> None:
    """Print events of a service on this machine, one JSON object a line, with the headers of each delivery.

    It adds a webhook, and removes it at its end. A deployed service reaches public addresses only.
    """
    with (
        _signals_end_as_ctrl_c_does(),
        HTTPServer(("127.0.0.1", port), _Receiver) as server,
        connect_to_service(url, token) as client,
    ):
        address = f"http://127.0.0.1:{server.server_port}/"
        added = client.add_webhook(address, events=list(events))
        click.echo(f"Listening on {address}. The signing secret is {added['signingSecret']}", err=True)
        try:
            handled = 0
            while count is None or handled < count:
                server.handle_request()
                handled += 1
        finally:
            client.remove_webhook(added["webhook"]["id"])


@contextlib.contextmanager
def _signals_end_as_ctrl_c_does() -> Iterator[None]:
    """Let a closed terminal and a request to end remove the webhook too, which the service would try for days."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    handled = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, signal.default_int_handler) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Receiver(BaseHTTPRequestHandler):
    """Prints each delivery and answers 204."""

    timeout = 30

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_DELIVERY_BYTES:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        headers = {name: self.headers.get(name, "") for name in PRINTED_HEADERS}
        try:
            payload: Any = json.loads(body)
        except ValueError:
            payload = strip_control_chars(body.decode("utf-8", "replace"))
        click.echo(json.dumps({"headers": headers, "body": payload}))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing besides the deliveries."""
