"""Follow one turn to its terminal event, across broken connections, and answer its tool requests."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

from fermata_client.service.client import FermataClient
from fermata_client.service.errors import FermataClientError, RequestRefusedError, TurnLostError, is_retryable
from fermata_client.service.json_types import Event
from fermata_client.service.retry import RetryPolicy
from fermata_client.turns.event_reducer import TurnView, fold_event
from fermata_client.turns.outcome import TurnOutcome
from fermata_client.turns.start_requests import StartRequest
from fermata_client.turns.tool_answers import ToolAnswers

EventListener = Callable[[Event, TurnView], None]
"""Called once for each event, with the view after it.

An event of the type `logRewound` comes from the client itself: the service was restored from an older copy and no
longer has all events that were seen. The view is empty then, and the events of the turn follow from the first one on.
"""
LOG_REWOUND = "logRewound"

RESTING_STATUSES = ("paused", "held")
"""Statuses of a bridge in which no events come."""
DEFAULT_HELD_POLL_SECONDS = 5.0
MAX_CANCEL_FAILURES = 3

logger = logging.getLogger(__name__)


class TurnFollower:
    """One turn: started by `start`, or already running as the bridge of `view`."""

    def __init__(
        self,
        client: FermataClient,
        start: StartRequest | None,
        tool_answers: ToolAnswers,
        on_event: EventListener,
        retry_policy: RetryPolicy,
        view: TurnView | None = None,
    ) -> None:
        self._client = client
        self._start = start
        self._tool_answers = tool_answers
        self._on_event = on_event
        self._retry_policy = retry_policy
        self._view = view or TurnView()
        self._connection_count = 0
        self._event_count = 0
        self._is_stopping = False

    def run_to_end(self, conversation_id: str | None) -> TurnOutcome:
        """Follow the turn until it ends. A KeyboardInterrupt cancels it and waits for its end; a second one is raised.

        Raises:
            RequestRefusedError: the service refused to start the turn or to show it.
            TurnLostError: the turn did not go on within the retry policy.
        """
        started = time.monotonic()
        try:
            self._follow(self._retry_policy)
        except KeyboardInterrupt:
            self._cancel_and_follow()
        return TurnOutcome(
            view=self._view,
            conversation_id=conversation_id,
            event_count=self._event_count,
            reconnect_count=max(0, self._connection_count - 1),
            seconds=time.monotonic() - started,
            is_interrupted=self._is_stopping,
        )

    @property
    def _bridge_id(self) -> str:
        if self._view.bridge_id is None:
            raise RuntimeError("The turn has not been started.")
        return self._view.bridge_id

    @property
    def _may_be_answered(self) -> bool:
        """Whether the requests of the stream may have been answered before, here or by another client."""
        return self._start is None or self._start.may_join or self._connection_count > 1

    def _follow(self, retry_policy: RetryPolicy) -> None:
        """Read streams until the terminal event. Each new one goes on after the last event seen."""
        failure_count = 0
        while self._view.end is None:
            last_seq = self._view.seq
            error = self._read_stream()
            if self._view.end is not None:
                return
            if self._view.held is not None:
                failure_count = 0
                self._wait_while_held(retry_policy)
                continue
            failure_count = 0 if self._view.seq > last_seq else failure_count + 1
            if failure_count >= retry_policy.max_failures:
                raise TurnLostError(self._describe_loss(retry_policy, error)) from error
            if failure_count:
                retry_policy.wait_before_retry(failure_count, error)

    def _read_stream(self) -> FermataClientError | None:
        """Read one stream as far as it goes, and return the retryable error that ended it, if any."""
        self._connection_count += 1
        try:
            with self._open_stream() as events:
                for event in events:
                    self._handle_event(event)
                    if self._view.end is not None or self._view.held is not None:
                        return None
        except FermataClientError as error:
            if isinstance(error, RequestRefusedError) and error.code == LOG_REWOUND and self._view.seq > 0:
                self._start_again()
            elif not is_retryable(error):
                raise
            return error
        return None

    def _start_again(self) -> None:
        """Drop what was seen of the turn, because the service has an older log of it."""
        self._view = TurnView(bridge_id=self._bridge_id)
        self._on_event({"type": LOG_REWOUND}, self._view)

    def _open_stream(self) -> AbstractContextManager[Iterator[Event]]:
        if self._view.bridge_id is None and self._start is not None:
            return self._start.stream_events()
        return self._client.stream_events(self._bridge_id, self._view.seq)

    def _handle_event(self, event: Event) -> None:
        view = fold_event(self._view, event)
        if view is self._view:
            return
        self._view = view
        self._event_count += 1
        self._on_event(event, view)
        if event.get("type") == "toolRequest" and not self._is_stopping:
            self._answer_request(event)

    def _answer_request(self, request: Event) -> None:
        if self._may_be_answered and not self._tool_answers.is_pending(self._bridge_id, request):
            return
        self._tool_answers.answer(self._bridge_id, request)

    def _wait_while_held(self, retry_policy: RetryPolicy) -> None:
        """Poll the bridge instead of listening, until the turn moves.

        It may have moved before the first poll, and rest again until this client answers it.
        """
        held = self._view.held or {}
        poll_seconds = float(held.get("retryAfter", DEFAULT_HELD_POLL_SECONDS))
        known_seq = held.get("seq", self._view.seq)
        while True:
            retry_policy.sleep(poll_seconds)
            bridge = retry_policy.call_with_retries(lambda: self._client.get_bridge(self._bridge_id))
            if bridge.get("seq") != known_seq or bridge.get("status") not in RESTING_STATUSES:
                self._view = replace(self._view, held=None)
                return

    def _cancel_and_follow(self) -> None:
        """Cancel the turn and read on until it says how it ended, with fewer retries than before."""
        self._is_stopping = True
        if self._view.end is not None:
            return
        retry_policy = replace(self._retry_policy, max_failures=MAX_CANCEL_FAILURES)
        try:
            if self._view.bridge_id is None and self._start is not None:
                bridge_id = retry_policy.call_with_retries(self._start.start_detached)
                self._view = replace(self._view, bridge_id=bridge_id)
            retry_policy.call_with_retries(lambda: self._client.cancel_turn(self._bridge_id))
            self._follow(retry_policy)
        except FermataClientError as error:
            logger.info("the turn was left before it ended: %s", error)

    def _describe_loss(self, retry_policy: RetryPolicy, error: FermataClientError | None) -> str:
        reason = error or "The stream closed without a terminal event."
        attempts = f"in {retry_policy.max_failures} attempts"
        if self._view.bridge_id is None:
            return f"The turn could not be started {attempts}. {reason}"
        return f"The turn {self._view.bridge_id} did not go on {attempts}. {reason}"
