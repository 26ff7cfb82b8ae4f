"""Write rules for the fault injection into the AWS calls of deployed functions (aws/fault_injection.py)."""

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import wait_until

_rule_numbers = itertools.count(1)
"""Shared by all tests: functions count the calls that match a rule by the name of its file."""


class FaultRules:
    """A rule fires once, in whichever process makes the call; its file is gone from then on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add_rule(self, call: str, do: str, *, when: str = "before", contains: str = "", skip: int = 0) -> Path:
        rule = {"call": call, "do": do, "when": when, "contains": contains, "skip": skip}
        path = self.folder / f"{next(_rule_numbers):04d}.json"
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(rule))
        beside.rename(path)  # whole from the first moment, for functions look at this folder all the time
        return path

    @contextlib.contextmanager
    def expect_fault(
        self, call: str, do: str, *, when: str = "before", contains: str = "", skip: int = 0
    ) -> Iterator[Path]:
        """Add a rule, and fail when no call has matched it after the block."""
        path = self.add_rule(call, do, when=when, contains=contains, skip=skip)
        try:
            yield path
            wait_until(lambda: not path.exists(), f"a call {call} with {contains!r}")
        finally:
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def hold_call(self, call: str, *, when: str = "before", contains: str = "") -> Iterator["CallGate"]:
        """Make the next such call wait until the gate is opened, at the latest at the end of the block."""
        opened = self.folder / f"gate-{next(_rule_numbers):04d}"
        gate = CallGate(self.add_rule(call, f"until:{opened}", when=when, contains=contains), opened)
        try:
            yield gate
        finally:
            gate.rule.unlink(missing_ok=True)
            gate.open()


@dataclass(frozen=True)
class CallGate:
    """A call that waits until the file `opened` exists. The file `rule` is removed when the call is made."""

    rule: Path
    opened: Path

    def wait_reached(self) -> None:
        """Wait until the call is made."""
        wait_until(lambda: not self.rule.exists(), "the call is made")

    def open(self) -> None:
        self.opened.touch()
