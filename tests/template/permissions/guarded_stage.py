"""Let the work of a stage be done with the resources of a function, and change what its functions may reach."""

from collections.abc import Callable
from typing import Any

import pytest

from fermata.aws.message_queue import MessageQueue
from fermata.domain.caller import Caller, Capability
from tests.template.permission_guard import GuardedResources
from tests.unit.turns.stage import Stage

LARGE = "x" * 40_000
"""More than a row may have: it is stored in the bucket."""
SNAPSHOT = {"site": {"pages": []}, "page": {"id": "p"}, "filler": LARGE}
StageOf = Callable[[str], Stage]


def record_messages(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the messages that are queued from now on."""
    sent: list[Any] = []
    monkeypatch.setattr(MessageQueue, "send", lambda _self, message, delay_seconds=0: sent.append(message))
    return sent


def run_locally_without_queue(functions: dict[str, Any]) -> None:
    """Let all functions reach servers on this machine, and need no queue."""
    for function in functions.keys() - {"stage"}:
        here = functions[function].settings.model_copy(update={"fermata_stage": "local"})
        object.__setattr__(functions[function], "settings", here)
        functions[function].__dict__["webhook_queue"] = MessageQueue(None, "")


def may_also_approve(caller: Caller) -> Caller:
    return caller.model_copy(update={"capabilities": caller.capabilities | {Capability.APPROVE, Capability.WRITE}})


def with_settings(function: GuardedResources, settings: Any) -> GuardedResources:
    changed = GuardedResources(settings, function.clock, function.guard)
    changed.__dict__["workflow"] = function.workflow
    return changed
