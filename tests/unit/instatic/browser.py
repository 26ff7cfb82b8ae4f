"""Instatic's browser client as a server sees it: how each generation sends, parses and aborts.

    browser = Browser(url, "0.0.11", cookie)
    conversation = browser.begin()
    run = browser.send(conversation, "Add a footer")

It is written from docs/instatic.md, not from Instatic's code. It reads strictly in order: it does not read the stream
while it runs a tool and posts the result.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from tests.unit.instatic.schemas import (
    CONVERSATION,
    MESSAGE,
    NEWEST,
    Generation,
    block_shape,
    event_shape,
    find_schema_error,
)
from tests.waiting import BACKSTOP_SECONDS

AI = "/admin/api/ai"
Event = dict[str, Any]
Tool = Callable[[Any], dict[str, Any]]
BRIDGE_RETRY_SECONDS, BRIDGE_REFUSED_SECONDS = 3, 15
"""After which the editor asks for its bridge again: after any end or status, and after 401 or 403."""
STREAM_CUT_SHORT = "The response ended before the turn completed"


class SchemaError(AssertionError):
    """A response with status 200 that the browser's strict schema refuses: in the browser, the call fails."""


@dataclass
class ToolBadge:
    name: str
    state: str = "pending"
    error: str | None = None


@dataclass
class PanelRun:
    """One prompt as the panel shows it. `dropped` are the lines that a schema refused silently."""

    text: str = ""
    badges: dict[str, ToolBadge] = field(default_factory=dict)
    error: str | None = None
    usage: Event | None = None
    context: list[int] = field(default_factory=list)
    bridge: str = ""
    is_done: bool = False
    kinds: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


class LineParser:
    """Parse bytes to events: trimmed lines. Blank, invalid and refused lines are skipped; an open tail is lost."""

    def __init__(self, generation: Generation) -> None:
        self._generation, self._tail = generation, b""
        self.dropped: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Event]:
        *lines, self._tail = (self._tail + chunk).split(b"\n")
        for line in lines:
            event = self.parse(line.decode("utf-8", "replace").strip())
            if event is not None:
                yield event

    def parse(self, line: str) -> Event | None:
        if not line:
            return None
        try:
            value = json.loads(line)
        except ValueError:
            self.dropped.append(line)
            return None
        shape = event_shape(str(value.get("type")), self._generation) if isinstance(value, dict) else None
        if shape is None or find_schema_error(value, shape):
            self.dropped.append(line)
            return None
        return dict(value)


class Browser:
    def __init__(self, url: str, generation: Generation, cookie: str, origin: str) -> None:
        self.generation = generation
        self.tools: dict[str, Tool] = {}
        self.aborts_at: str | None = None
        """The type of event at which the user presses Stop: the fetch is aborted, and no other request is sent."""
        self.snapshot: Any = {"site": {"pages": []}, "page": {"id": "p"}}
        """The editor's document, sent with every prompt and every result."""
        self.http = httpx.Client(
            base_url=url + AI,
            headers={"cookie": f"instatic_admin_session={cookie}", "origin": origin},
            trust_env=False,
            timeout=BACKSTOP_SECONDS,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def hold_bridge(self, seconds: float) -> list[int]:
        """Keep the editor's bridge open as long as the editor is, by a clock that does not wait.

        Returns:
            The statuses of the requests that left the browser, and not those that it answered itself (RFC 9111).
        """
        statuses: list[int] = []
        scope = {"scope": "site"} if self.generation == NEWEST else {}
        now = kept_until = 0.0
        while now < seconds:
            if now >= kept_until:
                answer = self.http.get("/editor-bridge", params=scope)
                statuses.append(answer.status_code)
                age = re.search(r"max-age=(\d+)", answer.headers["cache-control"])
                kept_until = now + int(age[1]) if age else now
            is_refused = statuses[-1] in {401, 403}
            if is_refused and self.generation == "0.0.6":  # it gives up until the page is loaded again
                break
            now += BRIDGE_REFUSED_SECONDS if is_refused else BRIDGE_RETRY_SECONDS
        return statuses

    def create_conversation(self, credential: str, model: str, scope: str = "site") -> str:
        body = {"scope": scope, "credentialId": credential, "modelId": model}
        answer = self.http.post("/conversations", json=body)
        assert answer.status_code == 201, answer.text
        return str(self._check_shape(answer.json()["conversation"], CONVERSATION)["id"])

    def list_conversations(self, scope: str = "site") -> list[Event]:
        conversations = self.http.get("/conversations", params={"scope": scope}).json()["conversations"]
        return [self._check_shape(conversation, CONVERSATION) for conversation in conversations]

    def load_messages(self, conversation: str) -> list[Event]:
        """Load the conversation's messages, and check them block by block."""
        body = self.http.get(f"/conversations/{conversation}").json()
        messages = self._check_shape(body["conversation"], CONVERSATION)["messages"]
        for message in messages:
            self._check_shape(message, MESSAGE)
            for block in message["content"]:
                shape = block_shape(str(block.get("kind")), self.generation)
                if shape is None:
                    raise SchemaError(f"unknown block {block}")
                self._check_shape(block, shape)
        return list(messages)

    def send_prompt(self, conversation: str, prompt: str, *pictures: str, scope: str = "site") -> PanelRun:
        """Send a prompt and read the stream until it ends or the user stops it."""
        run = PanelRun()
        body = {"conversationId": conversation, "snapshot": self.snapshot, **self._prompt_members(prompt, pictures)}
        parser = LineParser(self.generation)
        try:
            with self.http.stream("POST", f"/chat/{scope}", json=body) as response:
                if response.status_code != 200:
                    run.error = self._format_refusal(response)
                    return run
                self._read_stream(response, parser, run)
        except httpx.TransportError as error:
            run.error = f"Agent request failed: {error}"
        run.dropped = parser.dropped
        return run

    def _prompt_members(self, prompt: str, pictures: tuple[str, ...]) -> dict[str, Any]:
        if self.generation != NEWEST:
            assert not pictures, "older browsers have no pictures to send"
            return {"prompt": prompt}
        text = [{"kind": "text", "text": prompt}] if prompt else []
        return {"content": [*text, *({"kind": "image", "mimeType": "image/jpeg", "data": one} for one in pictures)]}

    def _format_refusal(self, response: httpx.Response) -> str:
        response.read()
        if self.generation != NEWEST:
            return f"{response.status_code} {response.reason_phrase}"
        return str(response.json()["error"])

    def _read_stream(self, response: httpx.Response, parser: LineParser, run: PanelRun) -> None:
        for chunk in response.iter_raw():
            for event in parser.feed(chunk):
                self._handle_event(event, run)
                if event["type"] == self.aborts_at or run.error is not None:
                    return
        if not run.is_done and self.generation == NEWEST:
            run.error = STREAM_CUT_SHORT

    def _handle_event(self, event: Event, run: PanelRun) -> None:
        run.kinds.append(event["type"])
        match event["type"]:
            case "bridgeReady":
                run.bridge = event["bridgeId"]
            case "text":
                run.text += event["text"]
            case "toolCall":
                run.badges[event["toolCallId"]] = ToolBadge(event["toolName"])
            case "toolRequest":
                self._run_tool(event, run)
            case "toolResult":
                badge = run.badges[event["toolCallId"]]
                badge.state, badge.error = ("ok" if event["ok"] else "failed"), event.get("error")
            case "context":
                run.context.append(event["contextTokens"])
            case "usage":
                run.usage = event
            case "error":
                run.error = event["message"]
            case "done":
                run.is_done = True

    def _run_tool(self, event: Event, run: PanelRun) -> None:
        tool = self.tools.get(event["toolName"])
        result = tool(event["input"]) if tool else {"ok": False, "error": f"Unknown tool {event['toolName']}"}
        body = {"bridgeId": run.bridge, "requestId": event["requestId"], "result": result}
        answer = self.http.post("/tool-result", json=body | {"snapshot": self.snapshot})
        if answer.status_code == 404 and self.generation == NEWEST:
            run.error = answer.json()["error"]
        elif answer.status_code != 404:
            assert answer.json() == {"ok": True}, answer.text

    def _check_shape(self, value: Any, shape: Any) -> Event:
        problem = find_schema_error(value, shape)
        if problem:
            raise SchemaError(problem)
        return dict(value)
