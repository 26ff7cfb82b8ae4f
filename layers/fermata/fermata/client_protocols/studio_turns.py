"""Start turns of the studio's agent for its own clients and for keys, and answer with what they do (decision 0474)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from fermata.aws.clock import new_id
from fermata.client_protocols.chat_conversations import find_chat, open_chat
from fermata.client_protocols.client_messages import ClientPrompt
from fermata.client_protocols.client_turns import ClientRequest, start_client_turn
from fermata.client_protocols.continue_turn import make_turn_fold
from fermata.content.content_space import SpaceKey
from fermata.content.space_access import find_space_for_caller
from fermata.conversations.conversation_store import get_conversation
from fermata.conversations.discard_unused import discarded_if_refused
from fermata.credentials.scope_defaults import read_default
from fermata.domain.blocks import TextBlock
from fermata.domain.conversation import Conversation
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.domain.plan_refusals import check_plan_model
from fermata.domain.value_dataclass import value_dataclass
from fermata.domain.workspace_plan import ALL_MODELS
from fermata.limits.count_use import UseCounter
from fermata.limits.monthly_messages import MonthlyMessages
from fermata.limits.usage_counters import Use
from fermata.tools.studio.affected_resources import collect_affected
from fermata.turns.start.commit_start import StartedTurn
from fermata.turns.start.conversation_claim import ConversationBusy
from fermata.turns.turn import Turn
from fermata.wire.bodies.turn_requests import SnapshotBody
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.studio_stream import StudioCall, StudioRenderer

STUDIO_SCOPE = "studio"
NO_CONVERSATION = "There is no such conversation in this project."


@value_dataclass(frozen=True)
class StudioMessage:
    """A message to the studio's agent.

    Attributes:
        conversation_id: The conversation, as the client names it. One that is not the caller's means a new one.
        model_id: The language model; empty for that of the conversation, or of the scope.
        ui_context: What the user has open.
        notes: What the agent is told besides.
    """

    text: str
    conversation_id: str = ""
    model_id: str = ""
    ui_context: Mapping[str, Any] = field(default_factory=dict)
    notes: str = ""


def find_studio_project(context: RequestContext, name: str) -> SpaceKey:
    """Return the project that a path names: `site`, or `site.environment`.

    Raises:
        InvalidRequest: It is no such name.
        Forbidden: The caller may not read it.
        NotFound: There is none.
    """
    return find_space_for_caller(context.resources, context.caller, read_project_name(name))[0]


def read_project_name(name: str) -> str:
    """Return the name of the content space that a segment of a path means."""
    return name.replace(".", "/", 1)


def start_studio_turn(
    context: RequestContext, project: SpaceKey, message: StudioMessage, month: MonthlyMessages
) -> StartedTurn:
    """Start the turn of a message, or join the one that the same request has started.

    A message that is refused leaves nothing: a conversation that was created for it goes again.

    Args:
        context: The request.
        project: The project that is worked on.
        message: The message.
        month: What the workspace and the sender may send in a month. START allows one more message, or refuses it.

    Raises:
        PaymentRequired: The plan of the workspace is locked, or has no such messages.
        TooManyRequests: The caller has reached a limit.
        ApiError: As `start_turn`.
    """
    text = message.text.strip()
    if not text:
        raise InvalidRequest("'message' is empty.")
    conversation, is_new = _open_conversation(context, project, message, month)
    with discarded_if_refused(context.resources, conversation, is_new=is_new):
        return _start_turn(context, project, message, month, conversation, text)


def _start_turn(
    context: RequestContext,
    project: SpaceKey,
    message: StudioMessage,
    month: MonthlyMessages,
    conversation: Conversation,
    text: str,
) -> StartedTurn:
    request = ClientRequest(
        protocol="studio",
        conversation=conversation,
        prompt=ClientPrompt((TextBlock(text=text),)),
        has_browser_tools=False,
        model_id=message.model_id,
        notes=message.notes,
        space=project.name,
        build_start_writes=lambda _turn_id: month.build_writes(),
    )
    snapshot = SnapshotBody(snapshot=dict(message.ui_context)) if message.ui_context else None
    try:
        return start_client_turn(context, snapshot, request)
    except ConversationBusy:
        month.require_room()  # raises if others have sent the last ones meanwhile
        raise


def find_studio_conversation(context: RequestContext, project: SpaceKey, conversation_id: str) -> Conversation:
    """Return a conversation of the caller with the studio's agent about a project.

    Raises:
        NotFound: The caller has no such conversation, or it is about something else.
    """
    try:
        found = get_conversation(context.resources, context.caller, conversation_id)
    except NotFound:
        raise NotFound(NO_CONVERSATION) from None
    if found.scope != STUDIO_SCOPE or found.space not in ("", project.name):
        raise NotFound(NO_CONVERSATION)
    return found


def make_studio_renderer(context: RequestContext, turn: Turn, *, is_whole: bool = False) -> StudioRenderer:
    """Return the renderer of a turn, before its first entry.

    Args:
        context: The request.
        turn: The turn.
        is_whole: As `StudioRenderer` has it.
    """
    fold = make_turn_fold(context.resources, turn)
    return StudioRenderer(fold, turn.conversation, _list_changes, is_whole=is_whole)


def _list_changes(calls: Sequence[StudioCall]) -> dict[str, Any]:
    return collect_affected(calls).to_wire()


def _open_conversation(
    context: RequestContext, project: SpaceKey, message: StudioMessage, month: MonthlyMessages
) -> tuple[Conversation, bool]:
    """Return the conversation that a message goes on with, or a new one; and whether it is new.

    A new one is created only for a message that is within the limits, so that refused ones leave nothing. The same
    request again, by its Idempotency-Key, means the same one.
    """
    if message.conversation_id:
        try:
            return find_studio_conversation(context, project, message.conversation_id), False
        except NotFound:
            pass  # one of somebody else, or of another project: a new one begins
    key = context.request.headers.get("idempotency-key", "")
    name = f"{project.name} {hashlib.sha256(key.encode()).hexdigest()[:32]}" if key else new_id()
    is_new = find_chat(context.resources, context.caller, STUDIO_SCOPE, name) is None
    if is_new:
        counter = UseCounter(context.resources, context.caller, context.caller_limits, name)
        counter.require_room(Use(prompts=1, turn=name))
        month.require_room()
        _check_model(context, message, month)
    chat = open_chat(context.resources, context.caller, STUDIO_SCOPE, name, space=project.name)
    if chat.space != project.name:
        raise Conflict("This Idempotency-Key was used for another conversation.")
    return chat, is_new


def _check_model(context: RequestContext, message: StudioMessage, month: MonthlyMessages) -> None:
    """Check that the plan includes the model of a new conversation. Raises as `check_plan_model`."""
    if month.subscription.included_models == ALL_MODELS:
        return
    default = None if message.model_id else read_default(context.resources, context.caller.tenant, STUDIO_SCOPE)
    if model := message.model_id or (default.model_id if default else ""):
        check_plan_model(month.subscription, model, context.resources.clock.time())
