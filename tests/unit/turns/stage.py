"""Run a turn step by step: the real turns package on moto, a scripted provider and a fake workflow.

stage = Stage(resources)
turn = stage.start_turn("Add a footer")
stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p>x</p>")))
stage.run_workflow()                       # until it waits for an answer
stage.answer_request(OK)
stage.script_replies("Done.")
stage.run_workflow()

`stage.faults` injects faults into AWS calls (tests/faults.py). state_machine.py runs a turn state by state, with
retries and time-outs.
"""

import gzip
import itertools
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fermata.aws.blob_store import CompressedJson
from fermata.aws.dynamodb_items_and_writes import Item, deserialize_item
from fermata.aws.lazy_snapshot import LazySnapshot, SnapshotContent
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store, message_store
from fermata.credentials import credential_store
from fermata.domain.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.errors import ProviderError
from fermata.domain.events import Event, TerminalEvent, TextEvent, ToolRequestEvent
from fermata.domain.messages import Message
from fermata.domain.model_io import FinishReason, ModelRequest, ModelResponse, StreamPart, TextDelta, TokenUsage
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.token_cost import Price
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.tool import Tool
from fermata.tools.toolset import Toolset
from fermata.turns import pause
from fermata.turns.answer.submit_tool_result import submit_tool_result
from fermata.turns.end.stop_turn import cancel_turn
from fermata.turns.pause import Pause
from fermata.turns.read.turn_status import get_turn_status
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.round import model_request
from fermata.turns.round.invocation import Invocation, build_epoch
from fermata.turns.round.run_turn_steps import run_turn_steps
from fermata.turns.start.start_turn import start_turn
from fermata.turns.start.turn_prompt import TurnPrompt
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry, log_entry_from_item
from fermata.turns.undo.start_undo import UndoRequest, start_undo
from tests.faults import FaultScript
from tests.stored_rows import read_partition
from tests.waiting import BACKSTOP_SECONDS

ADA = Caller(
    tenant="bakery",
    user="ada",
    capabilities=frozenset(
        {"ai.chat", "ai.tools.write", "ai.providers.manage", "site.read", "site.structure.edit", "site.style.edit"}
    ),
)
OK: dict[str, Any] = {"ok": True, "data": {"nodeIds": ["n1"]}}
MAX_THREAD_WAIT_SECONDS = BACKSTOP_SECONDS
"""How long a test waits for another thread, in real time."""
CALL_IDS = itertools.count(1)


def tool_call_block(name: str, /, **arguments: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=f"call_{next(CALL_IDS)}", tool_name=name, input=arguments)


def reply_with_calls(*blocks: ToolCallBlock, text: str = "", stop: FinishReason = FinishReason.TOOL_CALLS) -> list[Any]:
    deltas = [TextDelta(text=text)] if text else []
    content = (TextBlock(text=text), *blocks) if text else blocks
    return [*deltas, ModelResponse(blocks=content, stop=stop, tokens=TokenUsage(prompt=10, completion=5))]


def reply_with_text(text: str, stop: FinishReason = FinishReason.END, *, after: str = "") -> list[Any]:
    """Script a text reply. `after` is the text that the same reply has streamed already."""
    blocks = (TextBlock(text=after + text),) if text else ()
    deltas = [TextDelta(text=text)] if text else []
    return [*deltas, ModelResponse(blocks=blocks, stop=stop, tokens=TokenUsage(prompt=10, completion=5))]


def make_provider_error(
    code: str = "provider_overloaded",
    *,
    retryable: bool = True,
    retry_after: float | None = None,
    tokens: TokenUsage | None = None,
) -> ProviderError:
    error = ProviderError(code, f"The provider failed: {code}.", retryable=retryable, retry_after=retry_after)
    error.tokens = tokens
    return error


def as_posted_snapshot(snapshot: Any) -> LazySnapshot | None:
    """Return a snapshot as it is posted in a body, or as it was uploaded when it is compressed."""
    if snapshot is None or isinstance(snapshot, LazySnapshot):
        return snapshot
    if isinstance(snapshot, CompressedJson):
        value = json.loads(gzip.decompress(snapshot.body))
        return LazySnapshot(snapshot.digest, lambda: SnapshotContent(value, snapshot))
    return LazySnapshot.from_value(snapshot)


class RecordingConnection(HttpConnection):
    """Records sleeps instead of sleeping, and lets a test wait for `abort`."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps: list[float] = []
        self.aborted = threading.Event()

    def run_before_wait(self, action: Callable[[], object]) -> bool:
        """Say that it does not know when it waits: what is scripted comes from no socket."""
        return False

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)

    def abort(self) -> bool:
        self.aborted.set()
        return super().abort()

    def block_until_aborted(self) -> None:
        """Block as a stalled provider does. Used as a step of a script."""
        assert self.aborted.wait(MAX_THREAD_WAIT_SECONDS), "the connection was not aborted"
        raise make_provider_error("provider_closed", retryable=False)


@dataclass
class ScriptedDriver:
    """Each request takes the next script: parts to yield, exceptions to raise, functions to call in between."""

    provider: str = "anthropic"
    scripts: deque[list[Any]] = field(default_factory=deque)
    requests: list[ModelRequest] = field(default_factory=list)

    def stream(
        self, request: ModelRequest, connection: HttpConnection, endpoint: AuthenticatedEndpoint
    ) -> Iterator[StreamPart]:
        self.requests.append(request)
        for step in self.scripts.popleft():
            if isinstance(step, BaseException):
                raise step
            if callable(step):
                step()
            else:
                yield step


@dataclass
class FakeWorkflow:
    """Records what the service asks of Step Functions. A token can be used once."""

    started: list[tuple[str, int]] = field(default_factory=list)
    sent: list[tuple[str, str, int]] = field(default_factory=list)
    heartbeats: list[str] = field(default_factory=list)
    open_tokens: set[str] = field(default_factory=set)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    states: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    heartbeat_sent: threading.Event = field(default_factory=threading.Event)
    next_errors: deque[Exception] = field(default_factory=deque)
    """Raised by the next calls, one each, before they have an effect."""

    def start_execution(self, tenant: str, turn: str, n: int, *, hint: dict[str, Any] | None = None) -> None:
        self._raise_next_error()
        self.started.append((turn, n))

    def resume_execution(
        self, token: str, next_state: str, *, seconds: int = 0, hint: dict[str, Any] | None = None
    ) -> bool:
        self._raise_next_error()
        self.sent.append((token, next_state, seconds))
        if token not in self.open_tokens:
            return False
        self.open_tokens.remove(token)
        self.outputs[token] = {"next": next_state, "seconds": seconds, "hint": hint}
        return True

    def send_heartbeat(self, token: str) -> bool:
        self.heartbeats.append(token)
        self.heartbeat_sent.set()
        return token in self.open_tokens

    def describe_execution(self, turn: str, n: int) -> tuple[str, str]:
        return self.states.get((turn, n), ("RUNNING", "") if (turn, n) in self.started else ("MISSING", ""))

    def _raise_next_error(self) -> None:
        if self.next_errors:
            raise self.next_errors.popleft()


class Stage:
    """One user, one conversation, and the turn that was started last."""

    def __init__(
        self, resources: Resources, monkeypatch: Any, folder: Path | None = None, caller: Caller = ADA
    ) -> None:
        self.resources = resources
        self.caller = caller
        self.clock: Any = resources.clock
        self.workflow = FakeWorkflow()
        resources.__dict__["workflow"] = self.workflow
        self.driver = ScriptedDriver()
        self._monkeypatch = monkeypatch
        self._folder = folder
        monkeypatch.setattr(model_request, "get_provider", lambda _provider: self.driver)
        self.credential = credential_store.create_credential(
            resources, caller, "anthropic", "apiKey", "key", "sk-ant-test"
        )
        self.conversation = self.new_conversation()
        self.connection = RecordingConnection()
        self.tokens = itertools.count(1)
        self.entry_numbers = itertools.count(1)
        self._turn: Turn | None = None
        self._waiting_token = ""
        """Of the invocation that waits for an answer; the workflow continues with the hint of that answer."""

    @cached_property
    def faults(self) -> FaultScript:
        assert self._folder is not None
        return FaultScript(self.resources, self._folder, self._monkeypatch)

    def close(self) -> None:
        self.connection.close()
        if "faults" in self.__dict__:
            self.faults.close()

    def new_conversation(self) -> Conversation:
        self.conversation = conversation_store.create_conversation(
            self.resources, self.caller, "site", None, self.credential.id, "model-1"
        )
        return self.conversation

    def add_tools(self, *tools: Tool) -> None:
        """Add tools to the site's toolset for the rest of the test."""
        self._monkeypatch.setattr(
            "fermata.tools.site.toolset.SITE_TOOLSET", Toolset("site", (*SITE_TOOLSET.tools, *tools))
        )

    def set_price(self, **per_mtok: Any) -> None:
        catalogue.store_catalogue(
            self.resources,
            PriceCatalogue(refreshed_at=1, priced_models={"model-1": PricedModel(price=Price(**per_mtok))}),
        )

    def make_prompt(self, text: str = "Do something", **members: Any) -> TurnPrompt:
        return TurnPrompt(
            scope="site",
            conversation_id=self.conversation.id,
            content=(TextBlock(text=text), *members.pop("pictures", ())),
            dialect=members.pop("dialect", "fermata"),
            snapshot=as_posted_snapshot(members.pop("snapshot", None)),
            **members,
        )

    def start_turn(self, text: str = "Do something", **members: Any) -> Turn:
        return self.adopt_turn(start_turn(self.resources, self.caller, self.make_prompt(text, **members)).turn)

    def adopt_turn(self, turn: Turn) -> Turn:
        """Make a turn that was started elsewhere the stage's turn."""
        self._turn = turn
        self._waiting_token = ""
        return turn

    @property
    def turn(self) -> Turn:
        """The turn that was started last."""
        assert self._turn is not None, "start a turn first"
        return self._turn

    def script_replies(self, *replies: Any) -> None:
        """Script the next provider requests: each yields a text, or a list of parts, errors and functions."""
        for reply in replies:
            self.driver.scripts.append(reply_with_text(reply) if isinstance(reply, str) else list(reply))

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def next_entered_at(self) -> str:
        """Return the next instant at which the workflow enters a state."""
        return f"2026-01-01T00:00:00.{next(self.entry_numbers):06d}Z"

    def make_invocation(
        self,
        *,
        n: int = 1,
        retry: int = 0,
        holds: bool = False,
        hint: Any = None,
        seconds: float = 900,
        entered: str = "",
        owner: str = "",
    ) -> Invocation:
        token = f"token-{next(self.tokens)}"
        self.workflow.open_tokens.add(token)
        return Invocation(
            tenant=self.turn.tenant,
            turn=self.turn.id,
            execution_number=n,
            token=token,
            epoch=build_epoch(n, entered or self.next_entered_at(), retry),
            owner=owner or f"owner of {token}",
            remaining_seconds=lambda: seconds,
            hint=hint,
            is_hold=holds,
        )

    def advance_turn(
        self, invocation: Invocation | None = None, connection: HttpConnection | None = None, **fields: Any
    ) -> Invocation:
        """Advance the turn. A worker beside another one needs a connection of its own."""
        invocation = invocation or self.make_invocation(**fields)
        connection = None if invocation.is_hold else connection or self.connection
        run_turn_steps(self.resources, invocation, connection)
        return invocation

    def run_workflow(self) -> str:
        """Run as the workflow does from RunRound on; returns "finished", or "waiting" for an answer."""
        hint = self.workflow.outputs.get(self._waiting_token, {}).get("hint")
        output: dict[str, Any] = {"next": "round", "hint": hint}
        while output["next"] != "finish":
            invocation = self.advance_turn(hint=output["hint"], holds=output["next"] == "hold")
            if invocation.token not in self.workflow.outputs:
                self._waiting_token = invocation.token
                return "waiting"
            output = self.workflow.outputs[invocation.token]
        return "finished"

    def answer_request(
        self,
        result: Any,
        request_id: str = "",
        snapshot: Any = None,
        caller: Caller | None = None,
        revision: str = "",
    ) -> None:
        submit_tool_result(
            self.resources,
            caller or self.caller,
            bridge_id=self.turn.id,
            request_id=request_id or self.tool_requests()[-1].request_id,
            result=result,
            snapshot=as_posted_snapshot(snapshot),
            revision=revision,
        )

    def start_undo(self, turn: Turn | None = None, caller: Caller | None = None, **members: Any) -> Turn:
        """Start the undo of a turn. The undo becomes the stage's turn."""
        request = UndoRequest(bridge_id=(turn or self.turn).id, **({"dialect": "fermata"} | members))
        self._turn = start_undo(self.resources, caller or self.caller, request).turn
        self._waiting_token = ""
        return self._turn

    def cancel_turn(self) -> str:
        return str(cancel_turn(self.resources, self.caller, self.turn.id)["status"])

    def recover_turn(self, **options: Any) -> None:
        recover_turn(self.resources, self.turn.tenant, self.turn.id, **options)

    def show_turn(self) -> dict[str, Any]:
        return get_turn_status(self.resources, self.caller, self.turn.id)

    def entries(self) -> list[LogEntry]:
        return [
            log_entry_from_item(self.resources, item)
            for item in self.stored_items(self.turn.pk)
            if item["sk"].startswith("e#")
        ]

    def stored_items(self, pk: str, table: str = "bridges") -> list[Item]:
        """Return a partition without a call that could be counted, disturbed or delayed."""
        return sorted(map(deserialize_item, read_partition(table, pk)), key=lambda item: str(item["sk"]))

    def events(self) -> list[Event]:
        return [event for entry in self.entries() for event in entry.events]

    def event_types(self) -> list[str]:
        return [event.type for event in self.events()]

    def terminal_events(self) -> list[Event]:
        return [event for event in self.events() if isinstance(event, TerminalEvent)]

    def streamed_text(self) -> str:
        return "".join(event.text for event in self.events() if isinstance(event, TextEvent))

    def tool_requests(self) -> list[ToolRequestEvent]:
        return [event for event in self.events() if isinstance(event, ToolRequestEvent)]

    def load_pause(self, round_: int = 1) -> Pause:
        loaded = pause.load_pause(self.resources, self.turn, round_)
        assert loaded is not None
        return loaded

    def load_messages(self) -> list[Message]:
        return message_store.load_messages(self.resources, self.caller.tenant, self.conversation.id)

    def results_sent_to_model(self, request_index: int = -1) -> list[ToolResultBlock]:
        """Return the tool results in a request to the provider, by default the last one."""
        blocks = [block for message in self.driver.requests[request_index].messages for block in message.content]
        return [block for block in blocks if isinstance(block, ToolResultBlock)]

    def load_conversation(self) -> Conversation:
        return conversation_store.get_conversation(self.resources, self.caller, self.conversation.id)

    def claim(self) -> str | None:
        return self.load_conversation().claim

    def ledger_rows(self) -> list[Item]:
        return self.resources.tables.query_items(self.resources.settings.usage_table, self.turn.pk)

    def turn_row(self) -> Item:
        row = self.resources.tables.get_item(self.resources.settings.bridges_table, self.turn.pk, "turn")
        assert row is not None
        return row
