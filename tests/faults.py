"""Bad days on demand: what aws/fault_injection.py injects, ordered by a test instead of by files written by hand.

faults.lose("dynamodb.TransactWriteItems")           # it happens, its answer never arrives
faults.refuse("dynamodb.PutItem", "ThrottlingException", contains="e#")
faults.die("dynamodb.TransactWriteItems", when="before")
faults.meanwhile("dynamodb.PutItem", lambda: stage.answer(OK))    # somebody else acts right before it
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fermata.aws import fault_injection
from fermata.aws.resources import Resources


class ProcessDied(BaseException):
    """The process ended here: nobody catches this, nothing is cleaned up."""


@dataclass(eq=False)
class Interruption:
    call: str
    contains: str
    skip: int
    act: Callable[[], object]


@dataclass
class ScriptedFaultInjector(fault_injection.FaultInjector):
    """The real faults, which also lets a test act in between, and counts."""

    folder: Path
    interruptions: list[Interruption] = field(default_factory=list)
    plans: dict[tuple[str, int], Callable[[], object]] = field(default_factory=dict)
    call_count: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.folder)

    def before_call(self, model: Any, params: dict[str, Any], context: dict[str, Any], **more: Any) -> None:
        self.call_count += 1
        context["number"] = self.call_count
        self._follow_plan("before", self.call_count)
        super().before_call(model, params, context, **more)

    def after_call(self, context: dict[str, Any], **more: Any) -> None:
        super().after_call(context, **more)
        self._follow_plan("after", context["number"])

    def _follow_plan(self, when: str, number: int) -> None:
        act = self.plans.pop((when, number), None)
        if act is not None:
            act()

    def apply_rules(self, when: str, call: str, params: str) -> None:
        for one in list(self.interruptions):
            if one in self.interruptions and when == "before" and one.call == call and one.contains in params:
                one.skip -= 1
                if one.skip < 0:
                    self.interruptions.remove(one)
                    one.act()
        super().apply_rules(when, call, params)


class FaultScript:
    def __init__(self, resources: Resources, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("fermata.aws.fault_injection.os._exit", _die)
        self._folder = folder
        self._numbers = itertools.count(1)
        self._watch = ScriptedFaultInjector(folder)
        self._clients: tuple[Any, ...] = (resources.tables._client, resources.blobs._client)
        for client in self._clients:
            self._watch.attach(client)

    def lose_response(self, call: str, *, contains: str = "", skip: int = 0) -> None:
        self._rule(call, "lost", "after", contains, skip)

    def lose_request(self, call: str, *, contains: str = "", skip: int = 0) -> None:
        self._rule(call, "lost", "before", contains, skip)

    def fail_call(self, call: str, code: str, *, contains: str = "", skip: int = 0, times: int = 1) -> None:
        for _ in range(times):
            self._rule(call, f"error:{code}", "before", contains, skip)

    def kill_process(self, call: str, *, when: str = "after", contains: str = "", skip: int = 0) -> None:
        self._rule(call, "exit", when, contains, skip)

    def interrupt(self, call: str, act: Callable[[], object], *, contains: str = "", skip: int = 0) -> None:
        self._watch.interruptions.append(Interruption(call, contains, skip, act))

    def interrupt_at_call(self, number: int, act: Callable[[], object], *, when: str = "before") -> None:
        """Act at the n-th call that is made from now on, whatever it is."""
        self._watch.plans[when, self._watch.call_count + number] = act

    @property
    def call_count(self) -> int:
        """How many calls there have been."""
        return self._watch.call_count

    @property
    def is_spent(self) -> bool:
        """Whether everything that was ordered has happened."""
        return not list(self._folder.glob("*.json")) and not self._watch.interruptions and not self._watch.plans

    def clear(self) -> None:
        self._watch.interruptions.clear()
        self._watch.plans.clear()
        for path in self._folder.glob("*.json"):
            path.unlink()

    def close(self) -> None:
        for client in self._clients:
            client.meta.events.unregister("before-call", self._watch.before_call)
            client.meta.events.unregister("after-call", self._watch.after_call)

    def _rule(self, call: str, do: str, when: str, contains: str, skip: int) -> None:
        rule = {"call": call, "contains": contains, "when": when, "do": do, "skip": skip}
        (self._folder / f"{next(self._numbers):03d}.json").write_text(json.dumps(rule))


def _die(_status: int) -> None:
    raise ProcessDied
