"""Run a turn from its start to its terminal event: a prompt, an undo, or a turn that already runs."""

import uuid
from dataclasses import replace

from fermata_client.service.client import FermataClient
from fermata_client.service.json_types import Event, JsonObject
from fermata_client.service.retry import RetryPolicy
from fermata_client.turns.editor_callbacks import (
    EditorCallbacks,
    RevisionReader,
    SnapshotReader,
    ToolExecutor,
    refuse_browser_tool,
)
from fermata_client.turns.event_reducer import TurnView
from fermata_client.turns.follower import EventListener, TurnFollower
from fermata_client.turns.outcome import TurnOutcome
from fermata_client.turns.start_requests import StartTurn, StartUndo
from fermata_client.turns.tool_answers import ToolAnswers


def ignore_event(event: Event, view: TurnView) -> None:
    """Ignore an event."""


def run_turn(
    client: FermataClient,
    scope: str,
    prompt: str | None = None,
    *,
    content: list[JsonObject] | None = None,
    conversation_id: str | None = None,
    snapshot: SnapshotReader | None = None,
    revision: RevisionReader | None = None,
    executor: ToolExecutor = refuse_browser_tool,
    on_event: EventListener = ignore_event,
    idempotency_key: str | None = None,
    model: str | None = None,
    credential: str | None = None,
    retry_policy: RetryPolicy | None = None,
) -> TurnOutcome:
    """Start a turn and follow it to its terminal event.

    Args:
        prompt: the user's message as text; exclusive with `content`, which may hold images.
        conversation_id: None creates a conversation, with `model` and the id of a `credential` if given.
        snapshot: called at the start and for each answer, to send the site as it is then.
        revision: called like `snapshot`, for the document's revision.
        executor: carries out the browser tools. Each effect key is executed once.
        on_event: called once for each event.
        idempotency_key: a key that was used before joins the turn it started.

    Raises:
        RequestRefusedError: the service refused to start the turn.
        TurnLostError: the turn could not be followed within the retry policy.
        KeyboardInterrupt: the second one. The first one cancels the turn and waits for its end.
    """
    editor = EditorCallbacks(executor, snapshot, revision)
    conversation = conversation_id or str(
        client.create_conversation(scope, credential_id=credential, model_id=model)["id"]
    )
    start = StartTurn(
        client,
        scope,
        prompt,
        content,
        conversation,
        editor.read_snapshot(),
        editor.read_revision(),
        idempotency_key or str(uuid.uuid4()),
        may_join=idempotency_key is not None,
    )
    policy = retry_policy or RetryPolicy()
    follower = TurnFollower(client, start, ToolAnswers(client, editor, policy), on_event, policy)
    return follower.run_to_end(conversation)


def undo_turn(
    client: FermataClient,
    bridge_id: str,
    *,
    through: str | None = None,
    snapshot: SnapshotReader | None = None,
    revision: RevisionReader | None = None,
    executor: ToolExecutor = refuse_browser_tool,
    on_event: EventListener = ignore_event,
    idempotency_key: str | None = None,
    retry_policy: RetryPolicy | None = None,
) -> TurnOutcome:
    """Undo an ended turn's edits, newest first, down to the one with the effect key `through` (None: all).

    Arguments and errors are those of `run_turn`. `RequestRefusedError` with 409 means that nothing is left to undo.
    """
    editor = EditorCallbacks(executor, snapshot, revision)
    key = idempotency_key or str(uuid.uuid4())
    start = StartUndo(client, bridge_id, through, key, may_join=idempotency_key is not None)
    policy = retry_policy or RetryPolicy()
    follower = TurnFollower(client, start, ToolAnswers(client, editor, policy), on_event, policy)
    return follower.run_to_end(None)


def follow_turn(
    client: FermataClient,
    bridge_id: str,
    *,
    view: TurnView | None = None,
    snapshot: SnapshotReader | None = None,
    revision: RevisionReader | None = None,
    executor: ToolExecutor = refuse_browser_tool,
    on_event: EventListener = ignore_event,
    retry_policy: RetryPolicy | None = None,
) -> TurnOutcome:
    """Follow a turn that already runs, from its first event or after those of `view`. Arguments as in `run_turn`."""
    editor = EditorCallbacks(executor, snapshot, revision)
    policy = retry_policy or RetryPolicy()
    tool_answers = ToolAnswers(client, editor, policy)
    view_so_far = replace(view or TurnView(), bridge_id=bridge_id)
    return TurnFollower(client, None, tool_answers, on_event, policy, view_so_far).run_to_end(None)
