"""A turn by hand: the real verbs over moto, a provider that says what it is told, and a workflow one can watch.

stage = Stage(resources)
turn = stage.start("Add a footer")
stage.says(calls(call("insertHtml", parentId="root", html="<p>x</p>")))
stage.run()                       # as the machine would, until it waits
stage.answer(OK)
stage.says("Done.")
stage.run()

`stage.faults` orders bad days (tests/faults.py); machine.py runs a turn step by step, retries and alarms included.
"""

import itertools
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType

from fermata.aws.dynamodb import Item, deserialize_item
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
from fermata.drivers.registry import Endpoint
from fermata.drivers.transport.connection import ProviderConnection
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.prices import Price
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
from fermata.turns.round.advance_turn import advance_turn
from fermata.turns.round.invocation import Invocation, build_epoch
from fermata.turns.start.start_turn import TurnPrompt, start_turn
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry, log_entry_from_item
from fermata.turns.undo.start_undo import UndoRequest, start_undo
from tests.faults import FaultScript
from tests.resources import REGION

ADA = Caller(
    tenant="bakery",
    user="ada",
    capabilities=frozenset(
        {"ai.chat", "ai.tools.write", "ai.providers.manage", "site.read", "site.structure.edit", "site.style.edit"}
    ),
)
OK: dict[str, Any] = {"ok": True, "data": {"nodeIds": ["n1"]}}
MAX_THREAD_WAIT_SECONDS = 5.0
"""Real seconds a test waits at most for another thread."""
CALL_IDS = itertools.count(1)


def tool_call_block(name: str, **given: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=f"call_{next(CALL_IDS)}", tool_name=name, input=given)


def reply_with_calls(*blocks: ToolCallBlock, text: str = "", stop: FinishReason = FinishReason.TOOL_CALLS) -> list[Any]:
    said = [TextDelta(text=text)] if text else []
    content = (TextBlock(text=text), *blocks) if text else blocks
    return [*said, ModelResponse(blocks=content, stop=stop, tokens=TokenUsage(prompt=10, completion=5))]


def reply_with_text(text: str, stop: FinishReason = FinishReason.END, *, after: str = "") -> list[Any]:
    """`after` is what the same reply has said already."""
    blocks = (TextBlock(text=after + text),) if text else ()
    said = [TextDelta(text=text)] if text else []
    return [*said, ModelResponse(blocks=blocks, stop=stop, tokens=TokenUsage(prompt=10, completion=5))]


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


class RecordingConnection(ProviderConnection):
    """Waits are written down, not waited; a hang-up can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps: list[float] = []
        self.aborted = threading.Event()

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)

    def abort(self) -> bool:
        self.aborted.set()
        return super().abort()

    def block_until_aborted(self) -> None:
        """A provider that sends nothing any more; to be put into a script."""
        assert self.aborted.wait(MAX_THREAD_WAIT_SECONDS), "nobody hung up"
        raise make_provider_error("provider_closed", retryable=False)


@dataclass
class ScriptedDriver:
    """Each request takes the next script: pieces to yield, exceptions to raise, functions to call in between."""

    provider: str = "anthropic"
    scripts: deque[list[Any]] = field(default_factory=deque)
    requests: list[ModelRequest] = field(default_factory=list)

    def stream(self, ask: ModelRequest, line: ProviderConnection, endpoint: Endpoint) -> Iterator[StreamPart]:
        self.requests.append(ask)
        for step in self.scripts.popleft():
            if isinstance(step, BaseException):
                raise step
            if callable(step):
                step()
            else:
                yield step


@dataclass
class FakeWorkflow:
    """What Step Functions would have been told; tokens are good once."""

    started: list[tuple[str, int]] = field(default_factory=list)
    sent: list[tuple[str, str, int]] = field(default_factory=list)
    heartbeats: list[str] = field(default_factory=list)
    open_tokens: set[str] = field(default_factory=set)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    states: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    heartbeat_sent: threading.Event = field(default_factory=threading.Event)
    next_errors: deque[Exception] = field(default_factory=deque)
    """Raised by the next calls, one each, before they do anything."""

    def start_execution(self, tenant: str, turn: str, n: int) -> None:
        self._stumble()
        self.started.append((turn, n))

    def resume_execution(
        self, token: str, next_state: str, *, seconds: int = 0, hint: dict[str, Any] | None = None
    ) -> bool:
        self._stumble()
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

    def _stumble(self) -> None:
        if self.next_errors:
            raise self.next_errors.popleft()


class Stage:
    def __init__(
        self, resources: Resources, monkeypatch: Any, folder: Path | None = None, caller: Caller = ADA
    ) -> None:
        self.resources, self.caller = resources, caller
        self.clock: Any = resources.clock
        self.workflow = FakeWorkflow()
        resources.__dict__["workflow"] = self.workflow
        self.driver = ScriptedDriver()
        self._monkeypatch, self._folder = monkeypatch, folder
        monkeypatch.setattr(model_request, "get_provider", lambda _provider: self.driver)
        self.credential = credential_store.create_credential(
            resources, caller, "anthropic", "apiKey", "key", "sk-ant-test"
        )
        self.conversation = self.new_conversation()
        self.connection = RecordingConnection()
        self.tokens = itertools.count(1)
        self.moments = itertools.count(1)
        self._turn: Turn | None = None

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
        """More tools for the site, until the test is over."""
        self._monkeypatch.setattr(
            "fermata.tools.site.toolset.SITE_TOOLSET", Toolset("site", (*SITE_TOOLSET.tools, *tools))
        )

    def set_price(self, **per_mtok: Any) -> None:
        catalogue.store_catalogue(
            self.resources,
            PriceCatalogue(refreshed_at=1, priced_models={"model-1": PricedModel(price=Price(**per_mtok))}),
        )

    def make_prompt(self, text: str = "Do something", **parts: Any) -> TurnPrompt:
        return TurnPrompt(
            scope="site",
            conversation_id=self.conversation.id,
            content=(TextBlock(text=text), *parts.pop("pictures", ())),
            dialect=parts.pop("dialect", "fermata"),
            **parts,
        )

    def start_turn(self, text: str = "Do something", **parts: Any) -> Turn:
        self._turn = start_turn(self.resources, self.caller, self.make_prompt(text, **parts)).turn
        return self._turn

    @property
    def turn(self) -> Turn:
        """The one that was started last."""
        assert self._turn is not None, "start a turn first"
        return self._turn

    def script_replies(self, *script: Any) -> None:
        """What the next provider request yields: a text, or a list of pieces, errors and functions."""
        for one in script:
            self.driver.scripts.append(reply_with_text(one) if isinstance(one, str) else list(one))

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def next_entered_at(self) -> str:
        """The next instant at which the workflow enters a state."""
        return f"2026-01-01T00:00:00.{next(self.moments):06d}Z"

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
        self, wake: Invocation | None = None, line: ProviderConnection | None = None, **how: Any
    ) -> Invocation:
        """Another line for whoever works while somebody else still does."""
        wake = wake or self.make_invocation(**how)
        advance_turn(self.resources, wake, None if wake.is_hold else (line or self.connection))
        return wake

    def run_workflow(self) -> str:
        """As the machine runs it from RunRound on, until it finishes or waits for a token; says which."""
        output: dict[str, Any] = {"next": "round", "hint": None}
        while output["next"] != "finish":
            wake = self.advance_turn(hint=output["hint"], holds=output["next"] == "hold")
            if wake.token not in self.workflow.outputs:
                return "waiting"
            output = self.workflow.outputs[wake.token]
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
            snapshot=snapshot,
            revision=revision,
        )

    def start_undo(self, turn: Turn | None = None, caller: Caller | None = None, **wish: Any) -> Turn:
        """The turn that takes another's edits back: from now on it is the stage's turn."""
        wished = UndoRequest(bridge_id=(turn or self.turn).id, **({"dialect": "fermata"} | wish))
        self._turn = start_undo(self.resources, caller or self.caller, wished).turn
        return self._turn

    def cancel_turn(self) -> str:
        return str(cancel_turn(self.resources, self.caller, self.turn.id)["status"])

    def recover_turn(self, **how: Any) -> None:
        recover_turn(self.resources, self.turn.tenant, self.turn.id, **how)

    def show_turn(self) -> dict[str, Any]:
        return get_turn_status(self.resources, self.caller, self.turn.id)

    def entries(self) -> list[LogEntry]:
        return [
            log_entry_from_item(self.resources, item)
            for item in self.stored_items(self.turn.pk)
            if item["sk"].startswith("e#")
        ]

    def stored_items(self, pk: str, table: str = "bridges") -> list[Item]:
        """A partition as moto holds it, past everything that counts, disturbs or delays calls."""
        backend = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION]
        found = backend.tables[table].items.get(DynamoType({"S": pk}), {})
        return sorted(
            (deserialize_item(item.to_json()["Attributes"]) for item in found.values()),
            key=lambda item: str(item["sk"]),
        )

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
        found = pause.load_pause(self.resources, self.turn, round_)
        assert found is not None
        return found

    def load_messages(self) -> list[Message]:
        return message_store.load_messages(self.resources, self.caller.tenant, self.conversation.id)

    def results_sent_to_model(self, ask: int = -1) -> list[ToolResultBlock]:
        """The results of calls in what a provider was sent last."""
        blocks = [block for message in self.driver.requests[ask].messages for block in message.content]
        return [block for block in blocks if isinstance(block, ToolResultBlock)]

    def load_conversation(self) -> Conversation:
        return conversation_store.get_conversation(self.resources, self.caller, self.conversation.id)

    def claim(self) -> str | None:
        return self.load_conversation().claim

    def ledger_rows(self) -> list[Item]:
        return self.resources.tables.query_items(self.resources.settings.usage_table, self.turn.pk)

    def turn_row(self) -> Item:
        found = self.resources.tables.get_item(self.resources.settings.bridges_table, self.turn.pk, "turn")
        assert found is not None
        return found
