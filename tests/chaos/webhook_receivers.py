"""Servers of the tenant that are told about turns: one that only listens, and a robot that answers in its responses.

A queue delivers to them, which may deliver twice or late, and functions that may die.
"""

import contextlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from fermata.aws.resources import Resources
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.turns.webhooks.deliver_message import deliver_queue_record
from fermata.turns.webhooks.outbox import resend_outbox
from fermata.webhooks import send_event
from fermata.webhooks.webhook_registry import add_webhook
from tests.chaos.account_recorder import to_plain_row
from tests.chaos.evidence import TERMINAL_TYPES
from tests.chaos.memory_aws.attribute_values import Item
from tests.chaos.memory_aws.sqs import VISIBILITY_SECONDS, QueuedMessage
from tests.chaos.remote_tool_server import ToolConnection
from tests.chaos.scheduler import Process
from tests.chaos.simulated_cloud import FunctionProcess
from tests.chaos.users import TENANT, User
from tests.chaos.world_extension import WorldExtension

if TYPE_CHECKING:
    from tests.chaos.user_actions import UserActions
    from tests.chaos.world import World

LISTENER, ROBOT = "https://listener.example/events", "https://robot.example/events"
INVOCATIONS_AT_ONCE = 10
FUNCTION_SECONDS = 300.0
TIMEOUT_SECONDS = 15.0
SLOW_RATE = 0.1
SLOW_SECONDS = (3.0, 14.0)
OUTAGE_EVERY = 4
"""In one seed of so many, the listener is down at first."""
OUTAGE_SECONDS = 90.0
LONGEST_RETRY_SECONDS = 1300.0
LEFT_TO_ROBOT = 2
"""One call in so many is left to the robot by every browser."""
ANSWERED_BY_ROBOT = 3
"""Besides, it answers one in so many, as a browser does."""
DECISION_SIDES = 3


@dataclass
class SentEvent:
    """One request that a receiver got.

    Attributes:
        event_id, headers, body: As they arrived.
        invocation: The request id of the function that sent it.
        is_taken: Whether the receiver has answered that it has the event, and the answer has arrived.
        answer: What the receiver has answered besides.
    """

    receiver: str
    event_id: str
    headers: Mapping[str, str]
    body: bytes
    begun_at: float
    invocation: str
    at_once: int
    is_taken: bool = False
    answer: dict[str, Any] = field(default_factory=dict)


class WebhookReceivers(WorldExtension):
    """The receivers, and the platform's poller of their queue."""

    patience_seconds = 2 * VISIBILITY_SECONDS + LONGEST_RETRY_SECONDS

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self.sent: list[SentEvent] = []
        self.secrets: dict[str, str] = {}
        """By receiver."""
        self.delivered_at: dict[tuple[str, str], float] = {}
        """When a row first said so, by webhook and event."""
        self.untaken: set[str] = set()
        """Events that counted as delivered before what a response had answered was in the log."""
        self.names: dict[str, str] = {}
        """Receivers by the ids of their webhooks."""
        self._running = 0
        self._calls_under_way = 0
        self._begun_at = world.scheduler.now
        world.events.before_sweep = resend_outbox
        world.cloud.is_left_alone = lambda request: draw_side(request["effectKey"], "left", LEFT_TO_ROBOT) == 0
        self._watch_rows()

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(
            send_event, "open_guarded_connection", lambda **_: contextlib.nullcontext(ReceiverConnection(self))
        )

    def set_up(self, resources: Resources, credential: str, model: str) -> None:
        for url in (LISTENER, ROBOT):
            added = add_webhook(resources, User("ada").caller, url, (), may_answer=url == ROBOT)
            self.secrets[url], self.names[added.view["id"]] = added.signing_secret or "", url

    def start(self, actions: "UserActions") -> None:
        self.world.scheduler.start(Process("poller"), self._poll, name="poller")

    @property
    def is_quiet(self) -> bool:
        return not self.world.cloud.sqs.messages

    # the queue

    def _poll(self) -> None:
        scheduler, queue = self.world.scheduler, self.world.cloud.sqs
        while True:
            scheduler.wait("queue", lambda: self._running < INVOCATIONS_AT_ONCE)
            seconds = None if queue.due_at is None else max(queue.due_at - scheduler.now, 0.0)
            scheduler.wait("queue", lambda: queue.has_visible, seconds)
            message = queue.receive()
            if message is not None:
                self._running += 1
                scheduler.start(Process("poller"), self._make_invocation(message), name="poller")

    def _make_invocation(self, message: QueuedMessage) -> Callable[[], None]:
        def invoke() -> None:
            try:
                self._invoke(message)
            except Exception:  # noqa: BLE001 (the message comes again when it is visible again)
                return
            finally:
                self._running -= 1

        return invoke

    def _invoke(self, message: QueuedMessage) -> None:
        scheduler = self.world.scheduler
        fault = self.world.faults.draw("queue", "deliver")

        attributes = {"ApproximateReceiveCount": str(message.receives)}
        record = {"body": message.body, "receiptHandle": message.receipt, "attributes": attributes}

        def deliver(process: FunctionProcess) -> bool:
            assert process.resources is not None
            return deliver_queue_record(process.resources, record)

        if not self.world.cloud.call("deliver", deliver, FUNCTION_SECONDS):
            return
        if fault == "delivered twice":
            message.visible_at = scheduler.now + scheduler.random.uniform(0.0, 60.0)
        else:
            self.world.cloud.sqs.messages.remove(message)

    # the receivers

    def respond(self, url: str, headers: Mapping[str, str], body: bytes) -> ProviderResponse:
        """Take an event, or refuse it, or let the connection break before or after that."""
        scheduler, draw = self.world.scheduler, self.world.scheduler.random
        self._calls_under_way += 1
        invocation = scheduler.current.process.request_id
        sent = SentEvent(
            url, headers["webhook-id"], headers, body, scheduler.now, invocation, at_once=self._calls_under_way
        )
        self.sent.append(sent)
        try:
            is_slow = draw.random() < SLOW_RATE
            scheduler.switch("receiver", draw.uniform(*SLOW_SECONDS) if is_slow else draw.uniform(0.0, 1.0))
            return self._answer(sent)
        finally:
            self._calls_under_way -= 1

    def _answer(self, sent: SentEvent) -> ProviderResponse:
        fault = self.world.faults.draw("provider.receiver", "deliver")
        if fault == "silence":
            self.world.scheduler.switch("receiver", TIMEOUT_SECONDS)
            raise Failure.STALLED.to_error("No whole answer in time.")
        if fault == "unreachable":
            raise Failure.UNREACHABLE.to_error("The connection was lost.")
        if fault in ("rate limit", "overloaded", "refused") or self._is_down(sent.receiver):
            return ProviderResponse(503, {}, iter([b"later"]))
        answer = self._decide(json.loads(sent.body)["data"]["event"]) if sent.receiver == ROBOT else {}
        if fault is not None:  # it has taken the event, and nobody hears of that
            raise Failure.UNREACHABLE.to_error("The connection was lost.")
        sent.is_taken, sent.answer = True, answer
        return ProviderResponse(200, {}, iter([json.dumps(answer).encode()]))

    def _is_down(self, receiver: str) -> bool:
        is_outage = receiver == LISTENER and self.world.seed % OUTAGE_EVERY == 1
        return is_outage and self.world.scheduler.now - self._begun_at < OUTAGE_SECONDS

    def _decide(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out a call as an editor would, or decide about one; nothing for what others do."""
        if event["type"] == "approvalRequested":
            side = draw_side(event["approvalId"], "decision", DECISION_SIDES)
            return {"approved": side == 0, "reason": "the robot"} if side < DECISION_SIDES - 1 else {}
        if event["type"] != "toolRequest":
            return {}
        key = event["effectKey"]
        is_own = draw_side(key, "left", LEFT_TO_ROBOT) == 0 or draw_side(key, "own", ANSWERED_BY_ROBOT) == 0
        return {"result": self.world.page.carry_out(dict(event))} if is_own else {}

    # what rows say

    def _watch_rows(self) -> None:
        table = self.world.cloud.dynamodb.tables["bridges"]
        watch_before = table.on_change

        def watch(old: Item | None, new: Item | None) -> None:
            if watch_before:
                watch_before(old, new)
            if new is not None and "#hook#" in new["pk"]["S"]:
                row = to_plain_row(new)
                place = (str(row["pk"]).rpartition("#")[2], str(row["event_id"]))
                if row["state"] == "delivered" and place not in self.delivered_at:
                    self.delivered_at[place] = self.world.scheduler.now
                    self._note_untaken(*place)

        table.on_change = watch

    def _note_untaken(self, webhook: str, event_id: str) -> None:
        """Look for what a receiver has answered in the rows as they are at this moment."""
        for sent in self.sent:
            if (sent.event_id, sent.receiver) == (event_id, self.names[webhook]) and sent.is_taken and sent.answer:
                data = json.loads(sent.body)["data"]
                rows = self.world.cloud.dynamodb.tables["bridges"].partitions[f"t#{TENANT}#turn#{data['bridgeId']}"]
                entries = [item["data"]["S"] for sort_key, item in rows.items() if sort_key.startswith("e#")]
                events = [event for entry in entries for event in json.loads(entry)]
                if not any(settles(event, data["event"]) for event in events):
                    self.untaken.add(event_id)


def draw_side(key: str, what: str, sides: int) -> int:
    """Return a number below `sides` that depends on the key alone."""
    return zlib.crc32(f"{what} {key}".encode()) % sides


def settles(event: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Return whether an event of a log answers the one that a receiver was told of, or comes after the last moment."""
    closing = "toolResult" if asked["type"] == "toolRequest" else "approvalDecided"
    is_closing = event["type"] in ("toolResult", closing) and event["toolCallId"] == asked["toolCallId"]
    return is_closing or event["type"] in TERMINAL_TYPES


class ReceiverConnection(ToolConnection):
    """A connection to the receivers, on simulated time."""

    def __init__(self, receivers: WebhookReceivers) -> None:
        self._receivers = receivers

    @contextlib.contextmanager
    def post(
        self, label: str, url: str, headers: Mapping[str, str], body: bytes, *, request_name: str = ""
    ) -> Iterator[ProviderResponse]:
        self._receivers.world.scheduler.switch("receiver", 0.05)
        yield self._receivers.respond(url, headers, body)
