"""A user who sends prompts while turns run, to wait or to interrupt, and who edits, drops and repeats them."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from fermata.turns.prompt_queue.start_queued_prompt import start_next_prompt
from tests.chaos.provider import make_prompt
from tests.chaos.scheduler import Process, Task
from tests.chaos.simulated_cloud import FunctionProcess, HttpAnswer
from tests.chaos.users import TENANT, User

if TYPE_CHECKING:
    from tests.chaos.world import World

TABS = 2
PROMPTS_PER_TAB = 3
INTERRUPT_RATE = 0.2
EDIT_RATE = 0.3
DROP_RATE = 0.2
REPEAT_RATE = 0.5
DOUBLE_CLICK_RATE = 0.3
MAX_ATTEMPTS = 25


@dataclass
class SentPrompt:
    """One prompt of the user, under one key, and what the service has answered.

    Attributes:
        name: The prompt says it, and no other prompt does.
        bridges: Every turn that an answer has named.
        prompt_ids: Every id in the queue that an answer has named.
        edits: Texts that were accepted in place of the first one, in their order.
        is_dropped: Whether the service has answered that it waits no more.
        refusal: The last error, of a prompt that was given up.
    """

    name: str
    when_busy: Literal["enqueue", "interrupt"]
    bridges: set[str] = field(default_factory=set)
    prompt_ids: set[str] = field(default_factory=set)
    edits: list[str] = field(default_factory=list)
    is_dropped: bool = False
    refusal: str = ""

    @property
    def is_taken(self) -> bool:
        """Whether the service has accepted it."""
        return bool(self.bridges or self.prompt_ids)


@dataclass
class Queuers:
    """Tabs of the user who works in the conversation. Beside them, readers start what waits, several at once."""

    world: "World"
    conversation: str = ""
    sent: list[SentPrompt] = field(default_factory=list)
    interruptions: list[tuple[str, float]] = field(default_factory=list)
    """Conversation and moment of each prompt that interrupts, as every one of Instatic's editors may."""
    interrupters: list[tuple[str, float]] = field(default_factory=list)
    """Name and moment of the same."""
    _tasks: list[Task] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def is_over(self) -> bool:
        return all(task.is_over for task in self._tasks)

    def start(self, conversation: str) -> None:
        self.conversation = conversation
        scheduler = self.world.scheduler
        for _ in range(TABS):
            self._tasks.append(scheduler.start(Process("tab"), self._work, name="tab"))
            scheduler.start(Process("reader"), self._start_what_waits, name="reader")

    def _start_what_waits(self) -> None:
        """Do what a function does that has streamed the end of a turn, at any moment."""

        def start(process: FunctionProcess) -> object:
            assert process.resources is not None
            return start_next_prompt(process.resources, TENANT, self.conversation)

        while True:
            self.world.scheduler.switch("reader", self.world.scheduler.random.uniform(1.0, 15.0))
            try:
                self.world.cloud.call("stream", start, 29.0)
            except Exception:  # noqa: BLE001 (the sweep does it then)
                continue

    def _work(self) -> None:
        scheduler = self.world.scheduler
        draw = scheduler.random
        for _ in range(PROMPTS_PER_TAB):
            scheduler.switch("tab", draw.uniform(0.0, 12.0))
            prompt = SentPrompt(f"q{next(self._numbers)}", "interrupt" if draw.random() < INTERRUPT_RATE else "enqueue")
            self.sent.append(prompt)
            if draw.random() < DOUBLE_CLICK_RATE:
                again = scheduler.start(Process("tab"), partial(self._send, prompt), name="tab", delay=draw.random())
                self._tasks.append(again)
            self._send(prompt)
            if prompt.prompt_ids:
                self._change(prompt)
            if draw.random() < REPEAT_RATE:
                scheduler.switch("tab", draw.uniform(0.0, 90.0))
                self._send(prompt)

    def _send(self, prompt: SentPrompt) -> None:
        """Send the request until it is answered, or for good refused."""
        text = make_prompt(prompt.name, 1, self.world.seed)
        content = [{"kind": "text", "text": text}]
        body = {"conversationId": self.conversation, "content": content, "whenBusy": prompt.when_busy}
        for _ in range(MAX_ATTEMPTS):
            if prompt.when_busy == "interrupt" or self.world.dialect == "instatic":
                self.interruptions.append((self.conversation, self.world.scheduler.now))
                self.interrupters.append((prompt.name, self.world.scheduler.now))
            answer = self._request("stream", "POST", "chat/site", body, prompt.name)
            if answer.is_success:
                queued = answer.body.get("queuedPrompt", {})
                prompt.prompt_ids |= {queued["promptId"]} if queued else set()
                bridge = answer.body.get("bridgeId") or queued.get("bridgeId")
                prompt.bridges |= {bridge} if bridge else set()
                return
            prompt.refusal = answer.error
            if answer.is_final:
                return
            self.world.scheduler.switch("tab", 3.0)

    def _change(self, prompt: SentPrompt) -> None:
        draw = self.world.scheduler.random
        path = f"conversations/{self.conversation}/queue/{min(prompt.prompt_ids)}"
        if draw.random() < EDIT_RATE:
            text = f"{make_prompt(prompt.name, 1, self.world.seed)} Edited."
            if self._request("tool_result", "PUT", path, {"prompt": text}).is_success:
                prompt.edits.append(text)
        if draw.random() < DROP_RATE:
            self.world.scheduler.switch("tab", draw.uniform(0.0, 10.0))
            prompt.is_dropped = self._request("tool_result", "DELETE", path).is_success

    def _request(self, function: str, method: str, path: str, body: Any = None, key: str = "") -> HttpAnswer:
        headers = {"idempotency_key": key} if key else {}
        return self.world.cloud.request(function, method, path, User("ada").token, body, **headers)
