"""Rules for the seam in fermata/aws/fault_injection.py: what befalls the next AWS call of some kind."""

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import wait_until


class FaultRules:
    """A rule fires once, in whichever process makes the call; its file is gone from then on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)

    def add_rule(self, call: str, do: str, *, when: str = "before", contains: str = "", skip: int = 0) -> Path:
        rule = {"call": call, "do": do, "when": when, "contains": contains, "skip": skip}
        path = self.folder / f"{next(self._numbers):04d}.json"
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(rule))
        beside.rename(path)  # whole from the first moment, for functions look at this folder all the time
        return path

    @contextlib.contextmanager
    def expect_fault(
        self, call: str, do: str, *, when: str = "before", contains: str = "", skip: int = 0
    ) -> Iterator[Path]:
        """Fails when nothing has fired the rule by the end of the block."""
        path = self.add_rule(call, do, when=when, contains=contains, skip=skip)
        try:
            yield path
            wait_until(
                lambda: not path.exists(), f"somebody makes the call {call} with {contains!r}", timeout_seconds=5
            )
        finally:
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def hold_call(self, call: str, *, when: str = "before", contains: str = "") -> Iterator["CallGate"]:
        """The next such call stands still until the gate is opened, at the latest when the block is left."""
        opened = self.folder / f"gate-{next(self._numbers):04d}"
        gate = CallGate(self.add_rule(call, f"until:{opened}", when=when, contains=contains), opened)
        try:
            yield gate
        finally:
            gate.rule.unlink(missing_ok=True)
            gate.open()


@dataclass(frozen=True)
class CallGate:
    rule: Path
    opened: Path

    def wait_reached(self, timeout_seconds: float = 15) -> None:
        """Waits until somebody stands before the gate."""
        wait_until(lambda: not self.rule.exists(), "somebody makes the call", timeout_seconds)

    def open(self) -> None:
        self.opened.touch()
