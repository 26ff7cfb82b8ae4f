"""Inject faults into AWS calls from a test, through the rules of aws/fault_injection.py.

faults.lose_response("dynamodb.TransactWriteItems")           # the call takes place, its response never arrives
faults.fail_call("dynamodb.PutItem", "ThrottlingException", contains="e#")
faults.kill_process("dynamodb.TransactWriteItems", when="before")
faults.interrupt("dynamodb.PutItem", lambda: stage.answer_request(OK))    # another client acts right before it
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from fermata.aws import fault_injection
from fermata.aws.resources import Resources


class ProcessDied(BaseException):
    """The process exits here. No code catches this exception, as no code runs after `os._exit`."""


def raise_connection_error() -> None:
    """Fail as a call whose connection is closed before its response."""
    raise ConnectionClosedError(endpoint_url="dynamodb")


@dataclass(eq=False)
class Interruption:
    """An action that runs right before a call."""

    call: str
    contains: str
    skip: int
    act: Callable[[], object]


@dataclass
class ScriptedFaultInjector(fault_injection.FaultInjector):
    """The real fault injector, which also runs a test's actions between calls and counts the calls."""

    folder: Path
    interruptions: list[Interruption] = field(default_factory=list)
    actions_by_call: dict[tuple[str, int], Callable[[], object]] = field(default_factory=dict)
    call_count: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.folder)

    def before_call(self, model: Any, params: dict[str, Any], context: dict[str, Any], **more: Any) -> None:
        self.call_count += 1
        context["number"] = self.call_count
        self._run_action("before", self.call_count)
        super().before_call(model, params, context, **more)

    def after_call(self, context: dict[str, Any], **more: Any) -> None:
        super().after_call(context, **more)
        self._run_action("after", context["number"])

    def _run_action(self, when: str, number: int) -> None:
        act = self.actions_by_call.pop((when, number), None)
        if act is not None:
            act()

    def apply_rules(self, when: str, call: str, request_text: str) -> None:
        for interruption in list(self.interruptions) if when == "before" else []:
            is_pending = interruption in self.interruptions  # an earlier one may have removed it
            if is_pending and interruption.call == call and interruption.contains in request_text:
                interruption.skip -= 1
                if interruption.skip < 0:
                    self.interruptions.remove(interruption)
                    interruption.act()
        super().apply_rules(when, call, request_text)


class FaultScript:
    """The faults of one test, for the DynamoDB and S3 clients of `resources`.

    `call` is `<service>.<operation>`, `contains` a text in the request, `skip` the number of calls that pass first.
    """

    def __init__(self, resources: Resources, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("fermata.aws.fault_injection.os._exit", _raise_process_died)
        self._folder = folder
        self._rule_numbers = itertools.count(1)
        self._injector = ScriptedFaultInjector(folder)
        self._clients: tuple[Any, ...] = (resources.tables._client, resources.blobs._client)
        for client in self._clients:
            self._injector.attach(client)

    def lose_response(self, call: str, *, contains: str = "", skip: int = 0) -> None:
        self._write_rule(call, "lost", "after", contains, skip)

    def lose_request(self, call: str, *, contains: str = "", skip: int = 0) -> None:
        self._write_rule(call, "lost", "before", contains, skip)

    def fail_call(self, call: str, code: str, *, contains: str = "", skip: int = 0, times: int = 1) -> None:
        for _ in range(times):
            self._write_rule(call, f"error:{code}", "before", contains, skip)

    def kill_process(self, call: str, *, when: str = "after", contains: str = "", skip: int = 0) -> None:
        self._write_rule(call, "exit", when, contains, skip)

    def interrupt(self, call: str, act: Callable[[], object], *, contains: str = "", skip: int = 0) -> None:
        self._injector.interruptions.append(Interruption(call, contains, skip, act))

    def interrupt_at_call(self, number: int, act: Callable[[], object], *, when: str = "before") -> None:
        """Run `act` at the n-th call from now on, whatever call it is."""
        self._injector.actions_by_call[when, self._injector.call_count + number] = act

    @property
    def call_count(self) -> int:
        """The number of calls so far."""
        return self._injector.call_count

    @property
    def is_spent(self) -> bool:
        """Whether every fault and interruption has happened."""
        return (
            not list(self._folder.glob("*.json"))
            and not self._injector.interruptions
            and not self._injector.actions_by_call
        )

    def clear(self) -> None:
        self._injector.interruptions.clear()
        self._injector.actions_by_call.clear()
        for path in self._folder.glob("*.json"):
            path.unlink()

    def close(self) -> None:
        for client in self._clients:
            client.meta.events.unregister("before-call", self._injector.before_call)
            client.meta.events.unregister("after-call", self._injector.after_call)

    def _write_rule(self, call: str, do: str, when: str, contains: str, skip: int) -> None:
        rule = {"call": call, "contains": contains, "when": when, "do": do, "skip": skip}
        (self._folder / f"{next(self._rule_numbers):03d}.json").write_text(json.dumps(rule))


def _raise_process_died(_status: int) -> None:
    raise ProcessDied
