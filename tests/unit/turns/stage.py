"""A turn by hand: the real verbs over moto, a provider that says what it is told, and a workflow one can watch.

stage = Stage(desk)
turn = stage.start("Add a footer")
stage.says(calls("insertHtml", parentId="root", html="<p>x</p>"))
stage.run()                       # as the machine would, until it waits
stage.answer(ok({"nodeIds": ["n1"]}))
stage.says("Done.")
stage.run()
"""

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fermata.aws.desk import Desk
from fermata.conversations import rows, threads
from fermata.credentials import keyring
from fermata.drivers import driver as drivers
from fermata.drivers.line import Line
from fermata.turns import advancing, answering, ending, looking, starting
from fermata.turns import log as logs
from fermata.turns.log import Entry
from fermata.turns.turn import Turn
from fermata.turns.work import Wake, epoch
from fermata.words.blocks import TextBlock, ToolCallBlock
from fermata.words.caller import Caller
from fermata.words.errors import ProviderError
from fermata.words.events import Event, Text, ToolRequest
from fermata.words.model import Ask, Piece, Reply, Stop, TextDelta, Tokens

ADA = Caller(
    tenant="bakery",
    user="ada",
    capabilities=frozenset(
        {"ai.chat", "ai.tools.write", "ai.providers.manage", "site.read", "site.structure.edit", "site.style.edit"}
    ),
)
CALL_IDS = itertools.count(1)


def call(name: str, **given: Any) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=f"call_{next(CALL_IDS)}", tool_name=name, input=given)


def calls(*blocks: ToolCallBlock, text: str = "", stop: Stop = Stop.TOOL_CALLS) -> list[Any]:
    said = [TextDelta(text=text)] if text else []
    content = (TextBlock(text=text), *blocks) if text else blocks
    return [*said, Reply(blocks=content, stop=stop, tokens=Tokens(prompt=10, completion=5))]


def says(text: str, stop: Stop = Stop.END) -> list[Any]:
    blocks = (TextBlock(text=text),) if text else ()
    said = [TextDelta(text=text)] if text else []
    return [*said, Reply(blocks=blocks, stop=stop, tokens=Tokens(prompt=10, completion=5))]


@dataclass
class ScriptedDriver:
    """Each request takes the next script: pieces to yield, exceptions to raise, functions to call in between."""

    provider: str = "anthropic"
    scripts: deque[list[Any]] = field(default_factory=deque)
    asks: list[Ask] = field(default_factory=list)

    def stream(self, ask: Ask, line: Line, endpoint: drivers.Endpoint) -> Iterator[Piece]:
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

    def start(self, tenant: str, turn: str, n: int) -> None:
        self.started.append((turn, n))

    def go_on(self, token: str, goal: str, *, seconds: int = 0, hint: dict[str, Any] | None = None) -> bool:
        self.sent.append((token, goal, seconds))
        if token not in self.open:
            return False
        self.open.remove(token)
        self.outputs[token] = {"next": goal, "seconds": seconds, "hint": hint}
        return True

    def beat(self, token: str) -> bool:
        self.beats.append(token)
        return token in self.open

    def state(self, turn: str, n: int) -> tuple[str, str]:
        return self.states.get((turn, n), ("RUNNING", "") if (turn, n) in self.started else ("MISSING", ""))


class Stage:
    def __init__(self, desk: Desk, monkeypatch: Any, caller: Caller = ADA) -> None:
        self.desk, self.caller = desk, caller
        self.workflow = HandWorkflow()
        desk.__dict__["workflow"] = self.workflow
        self.driver = ScriptedDriver()
        monkeypatch.setitem(drivers._DRIVERS, "anthropic", self.driver)
        credential = keyring.create(desk, caller, "anthropic", "apiKey", "key", "sk-ant-test")
        self.conversation = threads.create(desk, caller, "site", None, credential.id, "model-1")
        self.line = Line()
        self.tokens = itertools.count(1)
        self.wakes = itertools.count(1)
        self.turn: Turn | None = None

    def start(self, text: str = "Do something", **parts: Any) -> Turn:
        prompt = starting.Prompt(
            scope="site",
            conversation_id=self.conversation.id,
            content=(TextBlock(text=text),),
            dialect=parts.pop("dialect", "fermata"),
            **parts,
        )
        self.turn = starting.start(self.desk, self.caller, prompt).turn
        return self.turn

    def says(self, *script: Any) -> None:
        """What the next provider request yields: a text, or a list of pieces, errors and functions."""
        for one in script:
            self.driver.scripts.append(says(one) if isinstance(one, str) else list(one))

    def wake(self, *, n: int = 1, retry: int = 0, holds: bool = False, hint: Any = None, seconds: float = 900) -> Wake:
        token = f"token-{next(self.tokens)}"
        self.workflow.open.add(token)
        number = next(self.wakes)
        assert self.turn is not None
        return Wake(
            tenant=self.turn.tenant,
            turn=self.turn.id,
            n=n,
            token=token,
            epoch=epoch(n, f"2026-01-01T00:00:00.{number:06d}Z", retry),
            owner=f"owner-{number}",
            remaining=lambda: seconds,
            hint=hint,
            holds=holds,
        )

    def advance(self, wake: Wake | None = None, **how: Any) -> Wake:
        wake = wake or self.wake(**how)
        advancing.advance(self.desk, wake, None if wake.holds else self.line)
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

    def answer(self, result: Any, request_id: str = "", snapshot: Any = None, caller: Caller | None = None) -> None:
        assert self.turn is not None
        answering.answer(
            self.desk,
            caller or self.caller,
            bridge_id=self.turn.id,
            request_id=request_id or self.requests()[-1].request_id,
            result=result,
            snapshot=snapshot,
        )

    def cancel(self) -> str:
        assert self.turn is not None
        return str(ending.cancel(self.desk, self.caller, self.turn.id)["status"])

    def look(self) -> dict[str, Any]:
        assert self.turn is not None
        return looking.look(self.desk, self.caller, self.turn.id)

    def entries(self) -> list[Entry]:
        assert self.turn is not None
        return logs.since(self.desk, self.turn.pk, 1)

    def events(self) -> list[Event]:
        return [event for entry in self.entries() for event in entry.events]

    def types(self) -> list[str]:
        return [event.type for event in self.events()]

    def text(self) -> str:
        return "".join(event.text for event in self.events() if isinstance(event, Text))

    def requests(self) -> list[ToolRequest]:
        return [event for event in self.events() if isinstance(event, ToolRequest)]

    def messages(self) -> list[Any]:
        return rows.load(self.desk, self.caller.tenant, self.conversation.id)

    def claim(self) -> str | None:
        return threads.find(self.desk, self.caller, self.conversation.id).claim


def failure(
    code: str = "provider_overloaded", *, retryable: bool = True, retry_after: float | None = None
) -> Exception:
    return ProviderError(code, f"The provider failed: {code}.", retryable=retryable, retry_after=retry_after)


OK: dict[str, Any] = {"ok": True, "data": {"nodeIds": ["n1"]}}
