"""A web page that tries to use the servers of this machine in all ways that a browser offers to a page.

attacks = [Attack("POST", url, body), …]
with serve_page() as origin_port: …                       # on a port of this machine
result = attack_from(page, f"http://evil.example:{origin_port}/", attacks)
result.readable                                            # what the page has read
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from playwright.sync_api import Page

from tests.threaded_server import ThreadedServer

PAGE = b"<!doctype html><title>A page</title><body></body>"
SCRIPT = """
async attacks => {
  const readable = [], patience = 20000;
  const note = (way, attack, text) => {
    if (text) readable.push([way, attack.method, attack.url, text.slice(0, 300)]);
  };
  const make = (name, members) => Object.assign(document.createElement(name), members);
  const load = (name, members) => new Promise(done => {
    const made = make(name, members);
    made.onload = made.onerror = done;
    document.body.append(made);
  });
  const ask = async (way, attack, options) => {
    const body = attack.method === "GET" ? undefined : attack.body;
    try {
      const answer = await fetch(attack.url, {method: attack.method, body, ...options});
      note(way, attack, answer.type === "opaque" ? "" : `${answer.status} ${await answer.text()}`);
    } catch { /* the browser does not let the page ask, or read */ }
  };
  const submit = (attack, index) => new Promise(done => {
    const frame = make("iframe", {name: `frame-${index}`});
    const method = attack.method === "GET" ? "get" : "post";
    const form = make("form", {action: attack.url, method, target: frame.name, enctype: "text/plain"});
    const [name, ...rest] = (attack.body || "a=b").split("=");
    form.append(make("input", {name, value: rest.join("=")}));
    document.body.append(frame, form);
    frame.onload = () => {
      try { note("frame", attack, frame.contentDocument.body.innerText); } catch { /* another origin's */ }
      done();
    };
    form.submit();
  });
  const connect = attack => new Promise(done => {
    const socket = new WebSocket(attack.url.replace("http", "ws"));
    socket.onopen = () => { note("socket", attack, "open"); done(); };
    socket.onerror = done;
  });
  const listen = attack => new Promise(done => {
    const source = new EventSource(attack.url);
    source.onopen = () => { note("events", attack, "open"); source.close(); done(); };
    source.onerror = () => { source.close(); done(); };
  });
  const request = attack => new Promise(done => {
    const made = new XMLHttpRequest();
    made.open(attack.method, attack.url);
    made.onloadend = () => { note("xhr", attack, made.status ? `${made.status} ${made.responseText}` : ""); done(); };
    made.send(attack.method === "GET" ? null : attack.body);
  });
  const everyWay = (attack, index) => [
    ask("cors", attack, {headers: attack.headers}),
    ask("with cookies", attack, {headers: attack.headers, credentials: "include"}),
    ask("plain", {...attack, method: attack.method === "GET" ? "GET" : "POST"}, {mode: "no-cors"}),
    request(attack), submit(attack, index), connect(attack),
    navigator.sendBeacon(attack.url, attack.body || ""),
    ...(attack.method === "GET" ? [
      load("img", {src: attack.url}), load("script", {src: attack.url}), load("iframe", {src: attack.url}),
      load("link", {rel: "stylesheet", href: attack.url}), listen(attack),
    ] : []),
  ];
  await Promise.race([
    Promise.allSettled(attacks.flatMap(everyWay)), new Promise(done => setTimeout(done, patience)),
  ]);
  return readable;
}
"""


@dataclass(frozen=True)
class Attack:
    """A request that would change something, or whose response says something."""

    method: str
    url: str
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    """With them, the browser asks first whether the page may."""

    def to_json(self) -> dict[str, Any]:
        return {"method": self.method, "url": self.url, "body": self.body, "headers": self.headers}


@dataclass(frozen=True)
class ReadResponse:
    """What a page has read of a response."""

    way: str
    method: str
    url: str
    text: str


def attack_from(page: Page, address: str, attacks: Sequence[Attack]) -> list[ReadResponse]:
    """Open the page at an address, let it attack, and return what it has read."""
    page.goto(address)
    read = page.evaluate(SCRIPT, [attack.to_json() for attack in attacks])
    return [ReadResponse(*members) for members in read]


@contextlib.contextmanager
def serve_page() -> Iterator[int]:
    """Serve the page on a port of this machine, under every name."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadedServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def rebind(page: Page, origin: str) -> str:
    """Let the page be served at an address whose name leads to a server of this machine afterwards.

    The browser has loaded the page from the attacker under that name, and then asks the name server again.
    """
    address = f"{origin}/attack.html"
    page.route(address, lambda route: route.fulfill(body=PAGE.decode(), content_type="text/html"))
    return address
