"""Bad days on demand: what aws/faults.py injects, ordered by a test instead of by files written by hand.

seam.lose("dynamodb.TransactWriteItems")           # it happens, its answer never arrives
seam.refuse("dynamodb.PutItem", "ThrottlingException", contains="e#")
seam.die("dynamodb.TransactWriteItems", when="before")
seam.meanwhile("dynamodb.PutItem", lambda: stage.answer(OK))    # somebody else acts right before it
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fermata.aws import faults
from fermata.aws.desk import Desk


class Death(BaseException):
    """The process ended here: nobody catches this, nothing is cleaned up."""


@dataclass(eq=False)
class Meanwhile:
    call: str
    contains: str
    skip: int
    act: Callable[[], object]


@dataclass
class Watch(faults.Faults):
    """The real seam, which also lets a test act in between, and counts."""

    folder: Path
    meanwhiles: list[Meanwhile] = field(default_factory=list)
    plans: dict[tuple[str, int], Callable[[], object]] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.folder)

    def before(self, model: Any, params: dict[str, Any], context: dict[str, Any], **more: Any) -> None:
        self.number += 1
        context["number"] = self.number
        self._follow_plan("before", self.number)
        super().before(model, params, context, **more)

    def after(self, context: dict[str, Any], **more: Any) -> None:
        super().after(context, **more)
        self._follow_plan("after", context["number"])

    def _follow_plan(self, when: str, number: int) -> None:
        act = self.plans.pop((when, number), None)
        if act is not None:
            act()

    def act(self, when: str, call: str, params: str) -> None:
        for one in list(self.meanwhiles):
            if one in self.meanwhiles and when == "before" and one.call == call and one.contains in params:
                one.skip -= 1
                if one.skip < 0:
                    self.meanwhiles.remove(one)
                    one.act()
        super().act(when, call, params)


class Seam:
    def __init__(self, desk: Desk, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("fermata.aws.faults.os._exit", _die)
        self._folder = folder
        self._numbers = itertools.count(1)
        self._watch = Watch(folder)
        self._clients: tuple[Any, ...] = (desk.tables._client, desk.blobs._client)
        for client in self._clients:
            self._watch.attach(client)

    def lose(self, call: str, *, contains: str = "", skip: int = 0) -> None:
        self._rule(call, "lost", "after", contains, skip)

    def never_arrives(self, call: str, *, contains: str = "", skip: int = 0) -> None:
        self._rule(call, "lost", "before", contains, skip)

    def refuse(self, call: str, code: str, *, contains: str = "", skip: int = 0, times: int = 1) -> None:
        for _ in range(times):
            self._rule(call, f"error:{code}", "before", contains, skip)

    def die(self, call: str, *, when: str = "after", contains: str = "", skip: int = 0) -> None:
        self._rule(call, "exit", when, contains, skip)

    def meanwhile(self, call: str, act: Callable[[], object], *, contains: str = "", skip: int = 0) -> None:
        self._watch.meanwhiles.append(Meanwhile(call, contains, skip, act))

    def at(self, number: int, act: Callable[[], object], *, when: str = "before") -> None:
        """Act at the n-th call that is made from now on, whatever it is."""
        self._watch.plans[when, self._watch.number + number] = act

    @property
    def number(self) -> int:
        """How many calls there have been."""
        return self._watch.number

    @property
    def is_spent(self) -> bool:
        """Whether everything that was ordered has happened."""
        return not list(self._folder.glob("*.json")) and not self._watch.meanwhiles and not self._watch.plans

    def forget(self) -> None:
        self._watch.meanwhiles.clear()
        self._watch.plans.clear()
        for path in self._folder.glob("*.json"):
            path.unlink()

    def close(self) -> None:
        for client in self._clients:
            client.meta.events.unregister("before-call", self._watch.before)
            client.meta.events.unregister("after-call", self._watch.after)

    def _rule(self, call: str, do: str, when: str, contains: str, skip: int) -> None:
        rule = {"call": call, "contains": contains, "when": when, "do": do, "skip": skip}
        (self._folder / f"{next(self._numbers):03d}.json").write_text(json.dumps(rule))


def _die(_status: int) -> None:
    raise Death
