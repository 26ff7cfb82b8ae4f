"""Bad days on demand: what aws/faults.py injects, ordered by a test instead of by files written by hand.

seam.lose("dynamodb.TransactWriteItems")           # it happens, its answer never arrives
seam.refuse("dynamodb.PutItem", "ThrottlingException", contains="e#")
seam.die("dynamodb.TransactWriteItems", when="after")
"""

import itertools
import json
from pathlib import Path

import pytest

from fermata.aws import faults
from fermata.aws.desk import Desk


class Death(BaseException):
    """The process ended here: nobody catches this, nothing is cleaned up."""


class Seam:
    def __init__(self, desk: Desk, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(faults.os, "_exit", _die)
        self._folder = folder
        self._numbers = itertools.count(1)
        watch = faults.Faults(folder)
        for client in (desk.tables._client, desk.blobs._client):
            watch.attach(client)

    def lose(self, call: str, *, contains: str = "", skip: int = 0) -> None:
        self._rule(call, "lost", "after", contains, skip)

    def never_arrives(self, call: str, *, contains: str = "", skip: int = 0) -> None:
        self._rule(call, "lost", "before", contains, skip)

    def refuse(self, call: str, code: str, *, contains: str = "", skip: int = 0, times: int = 1) -> None:
        for _ in range(times):
            self._rule(call, f"error:{code}", "before", contains, skip)

    def die(self, call: str, *, when: str = "after", contains: str = "", skip: int = 0) -> None:
        self._rule(call, "exit", when, contains, skip)

    @property
    def is_spent(self) -> bool:
        """Whether every fault that was ordered has happened."""
        return not list(self._folder.glob("*.json"))

    def forget(self) -> None:
        for path in self._folder.glob("*.json"):
            path.unlink()

    def _rule(self, call: str, do: str, when: str, contains: str, skip: int) -> None:
        rule = {"call": call, "contains": contains, "when": when, "do": do, "skip": skip}
        (self._folder / f"{next(self._numbers):03d}.json").write_text(json.dumps(rule))


def _die(_status: int) -> None:
    raise Death
