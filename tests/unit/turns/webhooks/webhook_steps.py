"""Register webhooks in tests, let their messages be delivered, and look at what came."""

from typing import Any

from fermata.domain.caller import Caller
from fermata.domain.errors import ServiceUnavailable
from fermata.webhooks.webhook_event import WebhookEvent
from fermata.webhooks.webhook_registry import add_webhook
from tests.scripted_tool_server import ScriptedToolServer
from tests.unit.turns import invariants
from tests.unit.turns.scripted_queue import ScriptedQueue
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

ADMIN = Caller(
    tenant="bakery", user="root", capabilities=frozenset({"ai.tools.manage", "ai.tools.write", "ai.tools.approve"})
)


def queue_of(stage: Stage) -> ScriptedQueue:
    queue = stage.resources.webhook_queue
    assert isinstance(queue, ScriptedQueue)
    return queue


def add(stage: Stage, receiver: ScriptedToolServer, *events: WebhookEvent, may_answer: bool = False) -> tuple[str, str]:
    """Register a webhook; return its id and its secret."""
    stored = add_webhook(stage.resources, ADMIN, receiver.url, events, may_answer=may_answer)
    return stored.view["id"], stored.signing_secret or ""


def deliver(stage: Stage) -> None:
    queue_of(stage).deliver(stage.resources)


def wait_for_editor(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n")))
    assert stage.run_workflow() == "waiting"


def finish(stage: Stage) -> None:
    stage.script_replies("Done.")
    assert stage.run_workflow() == "finished"
    invariants.check_invariants(stage, next_prompt=False)


def types_of(receiver: ScriptedToolServer) -> list[str]:
    return [call.body["type"] for call in receiver.calls]


def outbox_of(stage: Stage) -> list[str]:
    return [item["sk"] for item in stage.stored_items(stage.turn.pk) if item["sk"].startswith("w#")]


def raise_unavailable(*_: Any, **__: Any) -> Any:
    raise ServiceUnavailable("Too many writers.", retry_after=1)
