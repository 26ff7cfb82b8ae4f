"""Start a turn for a chat client, or find the one that its chat is about."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from fermata.aws.clock import is_valid_id
from fermata.aws.dynamodb_items_and_writes import Write
from fermata.aws.resources import Resources
from fermata.client_protocols.client_messages import ClientPrompt
from fermata.domain.agent_ids import read_agent_id
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.dialect import ClientProtocol
from fermata.domain.errors import ApiError, BadGateway, PaymentRequired, ServiceUnavailable
from fermata.domain.events import ErrorEvent
from fermata.domain.page_context import NO_AGENT_CONTEXT, AgentContext
from fermata.domain.run_settings import FileDownloadLimits, OutputFormat
from fermata.domain.tools import ClientTool, DirectCall
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.start.commit_start import StartedTurn
from fermata.turns.start.idempotency import find_started_turn
from fermata.turns.start.start_turn import start_turn
from fermata.turns.start.turn_prompt import TurnPrompt, compute_content_identity, no_start_writes
from fermata.turns.turn import Turn, load_turn
from fermata.turns.turn_log import LogEntry, read_end_type, read_whole_log
from fermata.wire.bodies.find_snapshot import find_snapshot
from fermata.wire.bodies.turn_requests import SnapshotBody
from fermata.wire.http.routing import RequestContext
from fermata.wire.http.when_busy_header import is_interrupting

TURN_ID_CHARS = 21
MAX_REPEATED_STARTS = 20
BUDGET_EXHAUSTED_CODE = "budget_exhausted"


@value_dataclass(frozen=True)
class ClientRequest:
    """What a client asks for, whatever its protocol.

    Attributes:
        prompt: The new prompt.
        request_key: Names the request: the same for the same request sent again; empty if nothing does.
        client_tools: As `TurnPrompt` has them.
        notes: What the client tells the agent besides, as plain text.
        cut_after: The turn behind which the stored conversation is dropped; "" drops all of it, None nothing.
        model_id: As `TurnPrompt` has it.
        build_start_writes: Returns further writes of START, given the turn's id. A request that is sent again after
            its turn has ended with an error has made them already (decision 0513).
    """

    protocol: ClientProtocol
    conversation: Conversation
    prompt: ClientPrompt
    request_key: str = ""
    client_tools: tuple[ClientTool, ...] | None = None
    has_browser_tools: bool = True
    agent_context: AgentContext = NO_AGENT_CONTEXT
    notes: str = ""
    cut_after: str | None = None
    runs_confirmed_tools: bool = False
    output: OutputFormat | None = None
    direct_call: DirectCall | None = None
    space: str = ""
    model_id: str = ""
    build_start_writes: Callable[[str], Sequence[Write]] = no_start_writes


def start_client_turn(context: RequestContext, body: SnapshotBody | None, request: ClientRequest) -> StartedTurn:
    """Start the turn of a request. The same request again joins it, unless it has failed meanwhile.

    Args:
        context: The request.
        body: Has the snapshot of an editor.
        request: What it asks for.

    Raises:
        ApiError: As `start_turn`.
    """
    prompt = _build_prompt(context, body, request)
    for _ in range(MAX_REPEATED_STARTS):
        started = _join_or_start(context, request.prompt, prompt)
        end = read_end_type(context.resources, started.turn) if started.is_joined else None
        if end not in ("error", "cancelled"):
            return started
        build_writes = no_start_writes if end == "error" else request.build_start_writes
        key = f"{prompt.idempotency_key} {started.turn.id}"[-180:]
        prompt = replace(prompt, idempotency_key=key, build_start_writes=build_writes)
    return started


def _join_or_start(context: RequestContext, sent: ClientPrompt, prompt: TurnPrompt) -> StartedTurn:
    """Join the turn of the same request, or download the files that it names by address, and start its turn."""
    resources, caller = context.resources, context.caller
    if sent.download is None:
        return start_turn(resources, caller, prompt)
    if started := find_started_turn(resources, caller, prompt.idempotency_key, prompt.digest):
        return started
    return start_turn(resources, caller, download_prompt_files(resources, caller, sent, prompt))


def download_prompt_files(resources: Resources, caller: Caller, sent: ClientPrompt, prompt: TurnPrompt) -> TurnPrompt:
    """Return the prompt with the files that it names by address. It keeps the digest of what was sent.

    Args:
        resources: Of the process.
        caller: Who sends it.
        sent: The prompt as the client sent it.
        prompt: The same, with the addresses in place of the files.

    Raises:
        InvalidRequest, PayloadTooLarge: A file cannot be read.
        NotFound: The tenant has no such agent, or the caller may not ask it.
    """
    if sent.download is None:
        return prompt
    files = sent.download(_read_download_limits(resources, caller, prompt.scope))
    return replace(prompt, content=files.content, image_paths=files.image_paths, sent_digest=prompt.digest)


def _read_download_limits(resources: Resources, caller: Caller, scope: str) -> FileDownloadLimits:
    """Return what the agent that is asked says of files that are named by their address."""
    agent_id = read_agent_id(scope)
    if not agent_id:
        return FileDownloadLimits()
    from fermata.agents.definitions.agent_list import (  # imported here because few prompts have such files
        find_entry_for_caller,
        read_agent_list,
    )
    from fermata.agents.definitions.definition_store import (
        load_definition,  # imported here because few prompts have such files
    )

    entry = find_entry_for_caller(read_agent_list(resources, caller.tenant), caller, agent_id)
    try:
        definition = load_definition(resources, caller.tenant, f"{agent_id}@{entry.version}")
    except LookupError:  # the start of the turn says what is missing
        return FileDownloadLimits()
    return definition.parse_properties().settings.file_download


def _build_prompt(context: RequestContext, body: SnapshotBody | None, request: ClientRequest) -> TurnPrompt:
    limits = context.tenant.limits
    return TurnPrompt(
        scope=request.conversation.scope,
        conversation_id=request.conversation.id,
        content=request.prompt.content,
        image_paths=request.prompt.image_paths,
        dialect="fermata",
        snapshot=find_snapshot(context.resources, context.caller, body) if body else None,
        revision=(body.revision if body else None) or "",
        idempotency_key=_make_key(context, request),
        max_rounds=limits.max_rounds,
        thinking_tokens=limits.thinking_tokens,
        limits=context.caller_limits,
        body_bytes=len(context.request.body),
        authorization=context.authorization,
        interrupts=is_interrupting(context),
        has_browser_tools=request.has_browser_tools,
        protocol=request.protocol,
        client_tools=request.client_tools,
        agent_context=request.agent_context,
        notes=request.notes,
        cut_after=request.cut_after,
        runs_confirmed_tools=request.runs_confirmed_tools,
        output=request.output,
        direct_call=request.direct_call,
        space=request.space,
        model_id=request.model_id,
        build_start_writes=request.build_start_writes,
    )


def _make_key(context: RequestContext, request: ClientRequest) -> str:
    """Return the key of the request: the client's own, or one that follows from what it asks for."""
    own_key = context.request.headers.get("idempotency-key", "")[:200]
    if own_key or not request.request_key:
        return own_key
    content = [compute_content_identity(request.prompt.content), request.cut_after]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    name = hashlib.sha256(request.request_key.encode()).hexdigest()[:24]
    return f"{request.protocol} {request.conversation.id} {name} {digest}"


def find_client_turn(
    resources: Resources, caller: Caller, conversation: Conversation, message_id: str = ""
) -> Turn | None:
    """Return the turn of an assistant's message, or else the one that runs in the conversation; None if there is none.

    Args:
        resources: Of the process.
        caller: Whose turn it is.
        conversation: The conversation.
        message_id: As the client has it: the turn's id, or one that begins with it.
    """
    candidates = (message_id[:TURN_ID_CHARS], conversation.claim or "")
    for turn_id in candidates:
        turn = load_turn(resources, caller.tenant, turn_id) if is_valid_id(turn_id) else None
        if turn and turn.conversation == conversation.id and turn.user == caller.user and not turn.undone_turn:
            return turn
    return None


def read_started_entries(resources: Resources, started: StartedTurn) -> list[LogEntry]:
    """Return the entries that are known of a started turn."""
    return read_whole_log(resources, started.turn.pk) if started.is_joined else [started.entry]


def make_failure_error(failure: ErrorEvent) -> ApiError:
    """Return the error that answers for a turn that has failed, to a client that reads the answer as a whole.

    Args:
        failure: How the turn has ended.
    """
    if failure.code == BUDGET_EXHAUSTED_CODE:  # the workspace's own, which no provider can help with
        return PaymentRequired(failure.message)
    return ServiceUnavailable(failure.message) if failure.retryable else BadGateway(failure.message)
