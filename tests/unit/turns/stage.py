"""A turn by hand: the real verbs over moto, a provider that says what it is told, and a workflow one can watch.

stage = Stage(desk)
turn = stage.start("Add a footer")
stage.says(calls(call("insertHtml", parentId="root", html="<p>x</p>")))
stage.run()                       # as the machine would, until it waits
stage.answer(OK)
stage.says("Done.")
stage.run()

`stage.seam` orders bad days (tests/seam.py); machine.py runs a turn step by step, retries and alarms included.
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

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item, unpack
from fermata.conversations import rows, threads
from fermata.credentials import keyring
from fermata.drivers.driver import Endpoint
from fermata.drivers.line import Line
from fermata.pricing import catalogue
from fermata.pricing.catalogue import Catalogue, Offer
from fermata.pricing.prices import Price
from fermata.tools.site.tools import SITE
from fermata.tools.tool import Tool
from fermata.tools.toolset import Toolset
from fermata.turns import advancing, answering, asking, ending, looking, recovering, starting, undoing
from fermata.turns import log as logs
from fermata.turns import pause as pauses
from fermata.turns.log import Entry
from fermata.turns.pause import Pause
from fermata.turns.turn import Turn
from fermata.turns.work import Wake, epoch
from fermata.words.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from fermata.words.caller import Caller
from fermata.words.conversation import Conversation
from fermata.words.errors import ProviderError
from fermata.words.events import TERMINAL, Event, Text, ToolRequest
from fermata.words.messages import Message
from fermata.words.model import Ask, Piece, Reply, Stop, TextDelta, Tokens
from tests.desk import REGION
from tests.seam import Seam

ADA = Caller(
    tenant="bakery",
    user="ada",
    capabilities=frozenset(
        {"ai.chat", "ai.tools.write", "ai.providers.manage", "site.read", "site.structure.edit", "site.style.edit"}
    ),
)
OK: dict[str, Any] = {"ok": True, "data": {"nodeIds": ["n1"]}}
PATIENCE = 5.0
"""Real seconds a test waits at most for another thread."""
CALL_IDS = itertools.count(1)


def call(name: str, **given: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=f"call_{next(CALL_IDS)}", tool_name=name, input=given)


def calls(*blocks: ToolCallBlock, text: str = "", stop: Stop = Stop.TOOL_CALLS) -> list[Any]:
    said = [TextDelta(text=text)] if text else []
    content = (TextBlock(text=text), *blocks) if text else blocks
    return [*said, Reply(blocks=content, stop=stop, tokens=Tokens(prompt=10, completion=5))]


def says(text: str, stop: Stop = Stop.END, *, after: str = "") -> list[Any]:
    """`after` is what the same reply has said already."""
    blocks = (TextBlock(text=after + text),) if text else ()
    said = [TextDelta(text=text)] if text else []
    return [*said, Reply(blocks=blocks, stop=stop, tokens=Tokens(prompt=10, completion=5))]


def failure(
    code: str = "provider_overloaded",
    *,
    retryable: bool = True,
    retry_after: float | None = None,
    tokens: Tokens | None = None,
) -> ProviderError:
    error = ProviderError(code, f"The provider failed: {code}.", retryable=retryable, retry_after=retry_after)
    error.tokens = tokens
    return error


class HandLine(Line):
    """Waits are written down, not waited; a hang-up can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.hung_up = threading.Event()

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    def hang_up(self) -> bool:
        self.hung_up.set()
        return super().hang_up()

    def stay_until_hung_up(self) -> None:
        """A provider that sends nothing any more; to be put into a script."""
        assert self.hung_up.wait(PATIENCE), "nobody hung up"
        raise failure("provider_closed", retryable=False)


@dataclass
class ScriptedDriver:
    """Each request takes the next script: pieces to yield, exceptions to raise, functions to call in between."""

    provider: str = "anthropic"
    scripts: deque[list[Any]] = field(default_factory=deque)
    asks: list[Ask] = field(default_factory=list)

    def stream(self, ask: Ask, line: Line, endpoint: Endpoint) -> Iterator[Piece]:
        self.asks.append(ask)
        for step in self.scripts.popleft():
            if isinstance(step, BaseException):
                raise step
            if callable(step):
                step()
            else:
                yield step


@dataclass
class HandWorkflow:
    """What Step Functions would have been told; tokens are good once."""

    started: list[tuple[str, int]] = field(default_factory=list)
    sent: list[tuple[str, str, int]] = field(default_factory=list)
    beats: list[str] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    states: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    beaten: threading.Event = field(default_factory=threading.Event)
    troubles: deque[Exception] = field(default_factory=deque)
    """Raised by the next calls, one each, before they do anything."""

    def start(self, tenant: str, turn: str, n: int) -> None:
        self._stumble()
        self.started.append((turn, n))

    def go_on(self, token: str, goal: str, *, seconds: int = 0, hint: dict[str, Any] | None = None) -> bool:
        self._stumble()
        self.sent.append((token, goal, seconds))
        if token not in self.open:
            return False
        self.open.remove(token)
        self.outputs[token] = {"next": goal, "seconds": seconds, "hint": hint}
        return True

    def beat(self, token: str) -> bool:
        self.beats.append(token)
        self.beaten.set()
        return token in self.open

    def state(self, turn: str, n: int) -> tuple[str, str]:
        return self.states.get((turn, n), ("RUNNING", "") if (turn, n) in self.started else ("MISSING", ""))

    def _stumble(self) -> None:
        if self.troubles:
            raise self.troubles.popleft()


class Stage:
    def __init__(self, desk: Desk, monkeypatch: Any, folder: Path | None = None, caller: Caller = ADA) -> None:
        self.desk, self.caller = desk, caller
        self.clock: Any = desk.clock
        self.workflow = HandWorkflow()
        desk.__dict__["workflow"] = self.workflow
        self.driver = ScriptedDriver()
        self._monkeypatch, self._folder = monkeypatch, folder
        monkeypatch.setattr(asking, "driver_for", lambda _provider: self.driver)
        self.credential = keyring.create(desk, caller, "anthropic", "apiKey", "key", "sk-ant-test")
        self.conversation = self.new_conversation()
        self.line = HandLine()
        self.tokens = itertools.count(1)
        self.moments = itertools.count(1)
        self._turn: Turn | None = None

    @cached_property
    def seam(self) -> Seam:
        assert self._folder is not None
        return Seam(self.desk, self._folder, self._monkeypatch)

    def close(self) -> None:
        self.line.close()
        if "seam" in self.__dict__:
            self.seam.close()

    def new_conversation(self) -> Conversation:
        self.conversation = threads.create(self.desk, self.caller, "site", None, self.credential.id, "model-1")
        return self.conversation

    def learn(self, *tools: Tool) -> None:
        """More tools for the site, until the test is over."""
        self._monkeypatch.setattr("fermata.tools.site.tools.SITE", Toolset("site", (*SITE.tools, *tools)))

    def price(self, **per_mtok: Any) -> None:
        catalogue.keep(self.desk, Catalogue(refreshed=1, offers={"model-1": Offer(price=Price(**per_mtok))}))

    def prompt(self, text: str = "Do something", **parts: Any) -> starting.Prompt:
        return starting.Prompt(
            scope="site",
            conversation_id=self.conversation.id,
            content=(TextBlock(text=text), *parts.pop("pictures", ())),
            dialect=parts.pop("dialect", "fermata"),
            **parts,
        )

    def start(self, text: str = "Do something", **parts: Any) -> Turn:
        self._turn = starting.start(self.desk, self.caller, self.prompt(text, **parts)).turn
        return self._turn

    @property
    def turn(self) -> Turn:
        """The one that was started last."""
        assert self._turn is not None, "start a turn first"
        return self._turn

    def says(self, *script: Any) -> None:
        """What the next provider request yields: a text, or a list of pieces, errors and functions."""
        for one in script:
            self.driver.scripts.append(says(one) if isinstance(one, str) else list(one))

    def pass_time(self, seconds: float) -> None:
        self.clock.go_on(seconds)

    def entered(self) -> str:
        """The next instant at which the workflow enters a state."""
        return f"2026-01-01T00:00:00.{next(self.moments):06d}Z"

    def wake(
        self,
        *,
        n: int = 1,
        retry: int = 0,
        holds: bool = False,
        hint: Any = None,
        seconds: float = 900,
        entered: str = "",
        owner: str = "",
    ) -> Wake:
        token = f"token-{next(self.tokens)}"
        self.workflow.open.add(token)
        return Wake(
            tenant=self.turn.tenant,
            turn=self.turn.id,
            n=n,
            token=token,
            epoch=epoch(n, entered or self.entered(), retry),
            owner=owner or f"owner of {token}",
            remaining=lambda: seconds,
            hint=hint,
            holds=holds,
        )

    def advance(self, wake: Wake | None = None, line: Line | None = None, **how: Any) -> Wake:
        """Another line for whoever works while somebody else still does."""
        wake = wake or self.wake(**how)
        advancing.advance(self.desk, wake, None if wake.holds else (line or self.line))
        return wake

    def run(self) -> str:
        """As the machine runs it from RunRound on, until it finishes or waits for a token; says which."""
        output: dict[str, Any] = {"next": "round", "hint": None}
        while output["next"] != "finish":
            wake = self.advance(hint=output["hint"], holds=output["next"] == "hold")
            if wake.token not in self.workflow.outputs:
                return "waiting"
            output = self.workflow.outputs[wake.token]
        return "finished"

    def answer(
        self,
        result: Any,
        request_id: str = "",
        snapshot: Any = None,
        caller: Caller | None = None,
        revision: str = "",
    ) -> None:
        answering.answer(
            self.desk,
            caller or self.caller,
            bridge_id=self.turn.id,
            request_id=request_id or self.requests()[-1].request_id,
            result=result,
            snapshot=snapshot,
            revision=revision,
        )

    def undo(self, turn: Turn | None = None, caller: Caller | None = None, **wish: Any) -> Turn:
        """The turn that takes another's edits back: from now on it is the stage's turn."""
        wished = undoing.Wish(bridge_id=(turn or self.turn).id, **({"dialect": "fermata"} | wish))
        self._turn = undoing.undo(self.desk, caller or self.caller, wished).turn
        return self._turn

    def cancel(self) -> str:
        return str(ending.cancel(self.desk, self.caller, self.turn.id)["status"])

    def recover(self, **how: Any) -> None:
        recovering.recover(self.desk, self.turn.tenant, self.turn.id, **how)

    def look(self) -> dict[str, Any]:
        return looking.look(self.desk, self.caller, self.turn.id)

    def entries(self) -> list[Entry]:
        return [logs.entry(self.desk, item) for item in self.stored(self.turn.pk) if item["sk"].startswith("e#")]

    def stored(self, pk: str, table: str = "bridges") -> list[Item]:
        """A partition as moto holds it, past everything that counts, disturbs or delays calls."""
        backend = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION]
        found = backend.tables[table].items.get(DynamoType({"S": pk}), {})
        return sorted(
            (unpack(item.to_json()["Attributes"]) for item in found.values()), key=lambda item: str(item["sk"])
        )

    def events(self) -> list[Event]:
        return [event for entry in self.entries() for event in entry.events]

    def types(self) -> list[str]:
        return [event.type for event in self.events()]

    def terminals(self) -> list[Event]:
        return [event for event in self.events() if isinstance(event, TERMINAL)]

    def text(self) -> str:
        return "".join(event.text for event in self.events() if isinstance(event, Text))

    def requests(self) -> list[ToolRequest]:
        return [event for event in self.events() if isinstance(event, ToolRequest)]

    def pause(self, round_: int = 1) -> Pause:
        found = pauses.load(self.desk, self.turn, round_)
        assert found is not None
        return found

    def messages(self) -> list[Message]:
        return rows.load(self.desk, self.caller.tenant, self.conversation.id)

    def read_by_the_model(self, ask: int = -1) -> list[ToolResultBlock]:
        """The results of calls in what a provider was sent last."""
        blocks = [block for message in self.driver.asks[ask].messages for block in message.content]
        return [block for block in blocks if isinstance(block, ToolResultBlock)]

    def thread(self) -> Conversation:
        return threads.find(self.desk, self.caller, self.conversation.id)

    def claim(self) -> str | None:
        return self.thread().claim

    def ledger(self) -> list[Item]:
        return self.desk.tables.query(self.desk.settings.usage_table, self.turn.pk)

    def turn_row(self) -> Item:
        found = self.desk.tables.get(self.desk.settings.bridges_table, self.turn.pk, "turn")
        assert found is not None
        return found
