"""Follow one turn to its end, through broken connections, and carry out the browser tools it asks for."""

import logging
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from fermata_client.service.client import Event, FermataClient
from fermata_client.service.errors import FermataClientError, RequestRefusedError, TurnLostError, is_retryable
from fermata_client.service.retry import RetryPolicy
from fermata_client.turns.outcome import TurnOutcome
from fermata_client.turns.view import TurnView, fold_event

ToolOutput = dict[str, Any]
"""`{ok: true, data?, images?, revision?, inverse?}` or `{ok: false, error, conflict?, revision?, changes?}`."""

ToolExecutor = Callable[[Event], ToolOutput]
"""Carries out one `toolRequest`. What it raises becomes a failed result that the model reads."""

RevisionReader = Callable[[], str | None]
"""What the document is at now; None where nobody counts."""

EventListener = Callable[[Event, TurnView], None]

RESTING_STATUSES = ("paused", "held")
"""States of a bridge in which no reader needs to listen."""

MAX_CANCEL_FAILURES = 3

log = logging.getLogger(__name__)


def refuse_browser_tool(request: Event) -> ToolOutput:
    """The executor of a client that shows no page."""
    return {"ok": False, "error": f"{request.get('toolName')} needs an open page, and this client has none."}


def ignore_event(event: Event, view: TurnView) -> None:
    """Listens to nothing."""


def run_turn(
    client: FermataClient,
    scope: str,
    prompt: str | None = None,
    *,
    content: list[dict[str, Any]] | None = None,
    conversation_id: str | None = None,
    snapshot: Callable[[], Any] | None = None,
    revision: RevisionReader | None = None,
    executor: ToolExecutor = refuse_browser_tool,
    on_event: EventListener = ignore_event,
    idempotency_key: str | None = None,
    model: str | None = None,
    retry_policy: RetryPolicy | None = None,
) -> TurnOutcome:
    """Start a turn and stay with it until its terminal event. `snapshot` and `revision` are asked for every answer.

    Raises `Refused` when the service will not start it, `TurnLost` when it cannot be followed. A KeyboardInterrupt
    cancels the turn once and waits for its end; a second one is raised.
    """
    conversation = conversation_id or str(client.create_conversation(scope, model_id=model)["id"])
    first_snapshot = snapshot() if snapshot else None
    first_revision = revision() if revision else None
    key = idempotency_key or str(uuid.uuid4())
    start = _Start(client, scope, prompt, content, conversation, first_snapshot, first_revision, key)
    page = _Page(executor, snapshot, revision)
    run = _Run(client, start, page, on_event, retry_policy or RetryPolicy(), joined=idempotency_key is not None)
    return run.to_its_end(conversation)


def undo_turn(
    client: FermataClient,
    bridge_id: str,
    *,
    through: str | None = None,
    snapshot: Callable[[], Any] | None = None,
    revision: RevisionReader | None = None,
    executor: ToolExecutor = refuse_browser_tool,
    on_event: EventListener = ignore_event,
    idempotency_key: str | None = None,
    retry_policy: RetryPolicy | None = None,
) -> TurnOutcome:
    """Take an ended turn's edits back, the newest first, as far as the one with the effect key `through`.

    Raises as `run_turn` does: `Refused` with 409 where nothing is left to take back.
    """
    key = idempotency_key or str(uuid.uuid4())
    start = _Undo(client, bridge_id, through, key)
    page = _Page(executor, snapshot, revision)
    run = _Run(client, start, page, on_event, retry_policy or RetryPolicy(), joined=idempotency_key is not None)
    return run.to_its_end(None)


def follow_turn(
    client: FermataClient,
    bridge_id: str,
    *,
    view: TurnView | None = None,
    snapshot: Callable[[], Any] | None = None,
    revision: RevisionReader | None = None,
    executor: ToolExecutor = refuse_browser_tool,
    on_event: EventListener = ignore_event,
    retry_policy: RetryPolicy | None = None,
) -> TurnOutcome:
    """Attach to a turn that already runs, from the beginning or from a view kept earlier."""
    page = _Page(executor, snapshot, revision)
    run = _Run(client, None, page, on_event, retry_policy or RetryPolicy(), joined=True)
    run.view = view or TurnView()
    run.bridge_id = bridge_id
    return run.to_its_end(None)


@dataclass(frozen=True)
class _Start:
    """The request that starts the turn; sent again with the same key it joins what it started."""

    client: FermataClient
    scope: str
    prompt: str | None
    content: list[dict[str, Any]] | None
    conversation_id: str
    snapshot: Any
    revision: str | None
    key: str

    def stream(self) -> AbstractContextManager[Iterator[Event]]:
        return self.client.start_turn(self.scope, self.prompt, **self._rest())

    def bridge_id(self) -> str:
        return str(self.client.start_turn_detached(self.scope, self.prompt, **self._rest())["bridgeId"])

    def _rest(self) -> dict[str, Any]:
        return {
            "content": self.content,
            "conversation_id": self.conversation_id,
            "snapshot": self.snapshot,
            "revision": self.revision,
            "idempotency_key": self.key,
        }


@dataclass(frozen=True)
class _Undo:
    """The request that takes a turn's edits back; sent again with the same key it joins what it started."""

    client: FermataClient
    undone: str
    through: str | None
    key: str

    def stream(self) -> AbstractContextManager[Iterator[Event]]:
        return self.client.start_undo(self.undone, **self._rest())

    def bridge_id(self) -> str:
        return str(self.client.start_undo_detached(self.undone, **self._rest())["bridgeId"])

    def _rest(self) -> dict[str, Any]:
        return {"through": self.through, "idempotency_key": self.key}


@dataclass(frozen=True)
class _Page:
    """Who carries requests out, and what is told of the page with every answer."""

    executor: ToolExecutor
    snapshot: Callable[[], Any] | None
    revision: RevisionReader | None

    def told(self) -> tuple[Any, str | None]:
        return self.snapshot() if self.snapshot else None, self.revision() if self.revision else None


@dataclass
class _Run:
    client: FermataClient
    start: _Start | _Undo | None
    page: _Page
    on_event: EventListener
    patience: RetryPolicy
    joined: bool
    """Somebody else may have answered the requests we read: ask before acting."""

    view: TurnView = field(default_factory=TurnView)
    bridge_id: str | None = None
    results: dict[str, ToolOutput] = field(default_factory=dict)
    connections: int = 0
    events: int = 0
    stopping: bool = False

    def to_its_end(self, conversation_id: str | None) -> TurnOutcome:
        started = time.monotonic()
        try:
            self.follow()
        except KeyboardInterrupt:
            self.stop()
        return TurnOutcome(
            view=self.view,
            conversation_id=conversation_id,
            event_count=self.events,
            reconnect_count=max(0, self.connections - 1),
            seconds=time.monotonic() - started,
            is_interrupted=self.stopping,
        )

    def follow(self) -> None:
        """Only a terminal event ends a turn. Whatever else ends a stream, go on after the last event seen."""
        failures = 0
        while self.view.end is None:
            seen = self.view.seq
            error = self.listen()
            if self.view.end is not None:
                return
            if self.view.held is not None:
                failures = 0
                self.wait_while_held()
                continue
            failures = 0 if self.view.seq > seen else failures + 1
            if failures >= self.patience.max_failures:
                raise TurnLostError(self.lost(error)) from error
            if failures:
                self.patience.wait_before_retry(failures, error)

    def listen(self) -> FermataClientError | None:
        """Read one connection as far as it carries; the passing reason it broke off, if it had one."""
        self.connections += 1
        try:
            with self.open() as events:
                for event in events:
                    self.take(event)
                    if self.view.end is not None or self.view.held is not None:
                        return None
        except FermataClientError as error:
            if not is_retryable(error):
                raise
            return error
        return None

    def open(self) -> AbstractContextManager[Iterator[Event]]:
        if self.bridge_id is None and self.start is not None:
            return self.start.stream()
        return self.client.stream_events(str(self.bridge_id), self.view.seq)

    def take(self, event: Event) -> None:
        before, self.view = self.view, fold_event(self.view, event)
        if self.view is before:
            return
        self.bridge_id = self.bridge_id or self.view.bridge_id
        self.events += 1
        self.on_event(event, self.view)
        if event.get("type") == "toolRequest" and not self.stopping:
            self.act(event)

    def act(self, request: Event) -> None:
        """Carry the request out unless that was done before, here or elsewhere, and answer it."""
        if (self.joined or self.connections > 1) and not self.is_pending(request):
            return
        key = str(request.get("effectKey") or request["requestId"])
        if key not in self.results:
            self.results[key] = self.execute(request)
        self.answer(request, self.results[key])

    def is_pending(self, request: Event) -> bool:
        waiting = self.patience.call_with_retries(lambda: self.client.get_bridge(str(self.bridge_id))).get(
            "pending", []
        )
        return any(call.get("requestId") == request["requestId"] for call in waiting)

    def execute(self, request: Event) -> ToolOutput:
        try:
            return self.page.executor(request)
        except Exception as error:
            log.exception("%s failed", request.get("toolName"))
            return {"ok": False, "error": f"{request.get('toolName')} failed in the editor: {error}"}

    def answer(self, request: Event, result: ToolOutput) -> None:
        snapshot, revision = self.page.told()

        def post(said: ToolOutput) -> None:
            bridge, asked = str(self.bridge_id), str(request["requestId"])
            self.patience.call_with_retries(
                lambda: self.client.post_tool_result(bridge, asked, said, snapshot, revision)
            )

        forms = _forms(result)
        for number, said in enumerate(forms, 1):
            try:
                post(said)
            except RequestRefusedError as refused:
                if refused.status == 413 and number < len(forms):
                    continue
                if refused.status not in (404, 409):
                    raise
                # 404: it expired or the turn is over; 409: somebody else answered. The stream tells what became of it.
            return

    def wait_while_held(self) -> None:
        """Ask now and then instead of listening, until the turn moves."""
        seconds = float((self.view.held or {}).get("retryAfter", 5))
        first: tuple[Any, Any] | None = None
        while True:
            self.patience.sleep(seconds)
            bridge = self.patience.call_with_retries(lambda: self.client.get_bridge(str(self.bridge_id)))
            now = (bridge.get("status"), bridge.get("seq"))
            first = first or now
            if now != first or now[0] not in RESTING_STATUSES:
                self.view = replace(self.view, held=None)
                return

    def stop(self) -> None:
        """Cancel once, then listen until the turn says how it ended, as long as the service answers."""
        self.stopping = True
        self.patience = RetryPolicy(
            MAX_CANCEL_FAILURES, self.patience.first_delay, self.patience.max_delay, self.patience.sleep
        )
        if self.view.end is not None:
            return
        try:
            if self.bridge_id is None and self.start is not None:
                self.bridge_id = self.patience.call_with_retries(self.start.bridge_id)
            self.patience.call_with_retries(lambda: self.client.cancel_turn(str(self.bridge_id)))
            self.follow()
        except FermataClientError as error:
            log.info("the turn was left without a goodbye: %s", error)

    def lost(self, error: FermataClientError | None) -> str:
        reason = error or "The stream closed without a terminal event."
        if self.bridge_id is None:
            return f"The turn could not be started in {self.patience.max_failures} attempts. {reason}"
        return f"The turn {self.bridge_id} did not go on in {self.patience.max_failures} attempts. {reason}"


def _forms(result: ToolOutput) -> list[ToolOutput]:
    """The result, and what is sent in its place when it is too large: an edit that was made is not told as failed for
    the sake of its inverse.
    """
    bare = {name: member for name, member in result.items() if name != "inverse"}
    return [result, *([bare] if bare != result else []), {"ok": False, "error": "The result is too large to send."}]
