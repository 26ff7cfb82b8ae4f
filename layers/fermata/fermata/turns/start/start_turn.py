"""Start a turn from a prompt: check everything, write START, then start the workflow."""

from collections.abc import Sequence
from functools import partial

from fermata.agents.agent import Agent
from fermata.agents.page_context import build_page_context
from fermata.agents.policy_store import build_policy_key, policy_from_item
from fermata.aws import observability
from fermata.aws.blob_store import prompt_folder
from fermata.aws.clock import is_valid_id, new_id
from fermata.aws.dynamodb_items_and_writes import Update, Write
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store, message_store
from fermata.conversations.message_cuts import add_cut
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.agent_context import AgentContext
from fermata.domain.blocks import Block
from fermata.domain.caller import Caller, Capability
from fermata.domain.content_frames import escape_frames_in_text
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest
from fermata.domain.json_shortening import shorten_text
from fermata.domain.messages import Message
from fermata.domain.run_settings import RunHooks
from fermata.drivers.registry import get_model_traits
from fermata.hosts.host_record import build_host_key
from fermata.limits.count_use import UseCounter
from fermata.remote_tools.pinned_tools import pin_remote_tools
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset
from fermata.turns.accounting import commit_with_budget_hold, estimate_prompt_tokens
from fermata.turns.approvals.decision_commit import read_known_tools
from fermata.turns.approvals.decision_trail import build_known_tools_key
from fermata.turns.hooks.hook_points import build_hook_flags
from fermata.turns.offered_tools import select_offered_tools
from fermata.turns.snapshot_storage import SnapshotStorage
from fermata.turns.start.commit_start import PositionTaken, StartedTurn, commit_start, start_workflow
from fermata.turns.start.conversation_claim import (
    build_claim_update,
    ensure_claimable,
    find_free_position,
    find_position_behind_messages,
)
from fermata.turns.start.cut_position import find_cut_position
from fermata.turns.start.idempotency import build_idempotency_puts, ensure_not_started, start_once
from fermata.turns.start.model_checks import check_model_abilities
from fermata.turns.start.normalize_prompt_images import normalize_prompt_images
from fermata.turns.start.prefetched_rows import PrefetchedRows
from fermata.turns.start.prompt_agent import choose_prompt_model, open_prompt_agent
from fermata.turns.start.turn_prompt import TurnPrompt
from fermata.turns.turn import Turn
from fermata.turns.turn_state_from_log import TurnState
from fermata.usage.audit import user_labels
from fermata.usage.budgets.budget_limits import Budgets, get_budgets
from fermata.webhooks.webhook import RegisteredWebhooks, build_webhooks_key

SYSTEM_PROMPT_VERSION = "1"
DEFAULT_STEP_LIMIT = 10
"""Of an agent of a tenant that does not say how many model requests its turns may make."""
NO_BROWSER_TOOLS_NOTE = (
    "No editor is connected in this turn: you cannot read the document beyond what is said here, and cannot change it. "
    "Answer in words, and say so where a change is asked for."
)
MAX_SITUATION_CHARS = 24_000
"""The situation is part of the turn's row and of every request. The model reads more of the editor's state by tools."""


def start_turn(resources: Resources, caller: Caller, prompt: TurnPrompt) -> StartedTurn:
    """Start the turn of a prompt, or join the one that the same prompt with its Idempotency-Key has started.

    Every refusal comes before any row is written. The snapshot is stored while the rows are read, in a folder
    of the user, where it expires if the prompt is refused (decisions 0177 and 0298).

    Args:
        caller: The user for whom the turn runs until its end.
        prompt: The validated request.

    Raises:
        NotFound, InvalidRequest: Of the conversation, the images or the model.
        Unprocessable: The model lacks an ability that the prompt needs.
        PaymentRequired: A budget does not cover the first request.
        TooManyRequests: The user or the tenant has reached a limit of prompts, turns or stored bytes.
        Conflict: Another turn holds the conversation, or the Idempotency-Key was used for another request.
    """
    key = prompt.idempotency_key
    turn_id = new_id()
    store = partial(_store_snapshot, resources, caller, prompt, turn_id)
    with SnapshotStorage(resources, caller, store, is_early=is_valid_id(prompt.conversation_id)) as snapshot:
        rows = PrefetchedRows(resources, caller, prompt.scope, prompt.conversation_id, key, turn_id)
        start = partial(_start, resources, caller, prompt, turn_id, rows, snapshot)
        return start_once(resources, caller, key, prompt.digest, start, rows.read_item)


def _store_snapshot(resources: Resources, caller: Caller, prompt: TurnPrompt, turn_id: str) -> str:
    storable = prompt.snapshot_content.storable
    folder = prompt_folder(caller.tenant, caller.user, prompt.conversation_id, turn_id)
    return "" if storable is None else resources.blobs.put_compressed_json(folder, storable)


def _start(
    resources: Resources,
    caller: Caller,
    prompt: TurnPrompt,
    turn_id: str,
    rows: PrefetchedRows,
    snapshot: SnapshotStorage,
) -> StartedTurn:
    load_conversation = partial(conversation_store.get_conversation, resources, caller, prompt.conversation_id)
    conversation = load_conversation(rows.read_item)
    if conversation.scope != prompt.scope:
        raise InvalidRequest(f"This conversation belongs to scope {conversation.scope}, not {prompt.scope}.")
    opened = open_prompt_agent(resources, caller, prompt, rows.read_item)
    agent = opened.agent
    chosen_model = choose_prompt_model(resources, caller.tenant, agent, conversation, rows.read_item)
    rows.remember_credential(chosen_model.credential_id)
    counter = UseCounter(resources, caller, prompt.limits, turn_id, rows.read_item)
    # The turn that holds the conversation may have to end for this one, and does not if this one is refused.
    counter.require_room(prompt.count_use(turn_id, ending=conversation.claim or ""))
    check_model_abilities(resources, caller, chosen_model, prompt.scope, prompt.content)
    content = normalize_prompt_images(resources, caller, prompt.content, prompt.image_paths)
    snapshot.check()
    situation = _build_situation(agent, prompt, opened.context)
    if conversation.claim:
        ensure_not_started(resources, caller, prompt.idempotency_key, prompt.digest)
        conversation = ensure_claimable(
            resources,
            caller,
            conversation,
            prompt.dialect,
            load_conversation,
            prompt.content_digest,
            interrupts=prompt.interrupts,
        )
        counter.read_again()
    withheld_tools = _list_withheld_tools(resources, caller, prompt, agent, rows)
    budgets = get_budgets(resources, caller.tenant, refresh=True, read_item=rows.read_item)
    turn = _build_turn(resources, caller, prompt, agent, turn_id, chosen_model, situation, budgets, withheld_tools)
    turn = _pin_policy(resources, turn, agent, rows)
    turn = turn.model_copy(update={"agent_context": opened.context, "agent_properties": opened.resolved})
    # The tools of a tenant's own agent are those that its definition names.
    remote_tools = () if agent.connection else pin_remote_tools(resources, caller.tenant, prompt.scope, rows.read_item)
    turn = turn.model_copy(update={"remote_tools": remote_tools})
    turn = turn.model_copy(update={"offered_tools": select_offered_tools(resources, turn, prompt.content)})
    prompt_tokens = estimate_prompt_tokens(prompt.content, turn.situation, conversation.context_tokens)
    webhooks = RegisteredWebhooks.from_item(rows.read_item(build_webhooks_key(resources, caller.tenant)))
    commit = partial(
        _commit_turn,
        resources,
        prompt,
        content,
        conversation,
        turn,
        snapshot,
        counter,
        webhooks.has_enabled,
        agent.settings.hooks,
    )
    started = commit_with_budget_hold(resources, turn, prompt_tokens, commit)
    start_workflow(resources, turn)
    observability.emit_metrics({"TurnsStarted": 1})
    _log_start(turn)
    user_labels.store_user_label(resources, caller)
    return started


def _list_withheld_tools(
    resources: Resources, caller: Caller, prompt: TurnPrompt, agent: Agent, rows: PrefetchedRows
) -> tuple[str, ...]:
    """List the tools that need a content system, if the tenant has none, and the browser's, if the client has none.

    The turn keeps the list from its start, so that providers can cache the tools.
    """
    toolset = agent.get_toolset(prompt.generation)
    has_host = rows.read_item(build_host_key(resources, caller.tenant)) is not None
    without_host = () if has_host else toolset.list_tools_without_host(prompt.snapshot_content.value)
    return (*without_host, *_list_tools_without_client(prompt, toolset))


def _list_tools_without_client(prompt: TurnPrompt, toolset: Toolset) -> tuple[str, ...]:
    """List the browser's tools that the client does not carry out."""
    browser_tools = toolset.list_browser_tools()
    if not prompt.has_browser_tools:
        return browser_tools
    if prompt.client_tools is None:
        return ()
    declared = {tool.name for name in prompt.client_tools if (tool := toolset.find_tool(name.name))}
    return tuple(name for name in browser_tools if name not in declared)


def _build_situation(agent: Agent, prompt: TurnPrompt, context: AgentContext) -> str:
    """Build the part of the prompt that changes from turn to turn. Without browser tools it says so first."""
    if agent.connection:
        return build_page_context(context) if agent.settings.page_context else ""
    situation = agent.build_situation(prompt.snapshot_content.value, ToolNaming(prompt.tool_names))
    if prompt.notes:
        situation = f"{situation}\n\n{escape_frames_in_text(prompt.notes)}".strip()
    return situation if prompt.has_browser_tools else f"{NO_BROWSER_TOOLS_NOTE}\n\n{situation}".rstrip()


def _log_start(turn: Turn) -> None:
    observability.log_audit_event(
        "ai.chat.started",
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        turn=turn.id,
        provider=turn.provider,
        model=turn.model,
    )


def _build_turn(
    resources: Resources,
    caller: Caller,
    prompt: TurnPrompt,
    agent: Agent,
    turn_id: str,
    chosen_model: ModelChoice,
    situation: str,
    budgets: Budgets,
    withheld_tools: tuple[str, ...],
) -> Turn:
    now = resources.clock.time()
    settings = resources.settings
    return Turn(
        id=turn_id,
        tenant=caller.tenant,
        user=caller.user,
        scope=prompt.scope,
        agent=agent.reference,
        conversation=prompt.conversation_id,
        provider=chosen_model.provider,
        model=chosen_model.model,
        credential=chosen_model.credential_id,
        credential_version=chosen_model.version,
        capabilities=tuple(sorted(caller.capabilities - {Capability.APPROVE})),  # no tool may decide for its user
        dialect=prompt.dialect,
        tool_names=prompt.tool_names,
        generation=prompt.generation,
        withheld_tools=withheld_tools,
        prompt_version=SYSTEM_PROMPT_VERSION,
        has_browser_tools=prompt.has_browser_tools,
        protocol=prompt.protocol,
        client_tools=prompt.client_tools or (),
        runs_confirmed_tools=prompt.runs_confirmed_tools,
        situation=shorten_text(situation, MAX_SITUATION_CHARS),
        max_rounds=count_max_rounds(settings.max_rounds, agent, prompt.max_rounds),
        thinking_tokens=settings.thinking_tokens if prompt.thinking_tokens is None else prompt.thinking_tokens,
        has_budget=_is_budgeted(resources, caller, chosen_model, budgets),
        prompt_digest=prompt.content_digest,
        is_cancelled_on_disconnect=prompt.is_cancelled_on_disconnect,
        started_ms=int(now * 1000),
        written_ms=prompt.written_ms,
        expires=int(now) + settings.turn_lifetime_seconds,
    )


def count_max_rounds(max_rounds: int, agent: Agent, tenant_max_rounds: int | None = None) -> int:
    """Return the lowest limit of rounds.

    Args:
        max_rounds: The deployment's.
        agent: The agent of the turn.
        tenant_max_rounds: The tenant's, if it has one.
    """
    steps = agent.settings.max_steps or (DEFAULT_STEP_LIMIT if agent.connection else max_rounds)
    return min(max_rounds, tenant_max_rounds or max_rounds, agent.max_rounds or max_rounds, steps)


def _pin_policy(resources: Resources, turn: Turn, agent: Agent, rows: PrefetchedRows) -> Turn:
    """Pin the tenant's policy, and the tools that it knows where a policy asks for new ones."""
    policy = policy_from_item(rows.read_item(build_policy_key(resources, turn.tenant))).policy
    asks_for_new_tools = policy.new_tools or agent.policy.new_tools
    known = rows.read_item(build_known_tools_key(resources, turn.tenant)) if asks_for_new_tools else None
    return turn.model_copy(update={"policy": policy, "known_tools": read_known_tools(known)})


def _is_budgeted(resources: Resources, caller: Caller, chosen_model: ModelChoice, budgets: Budgets) -> bool:
    """Return whether a limit applies to the turn.

    `budgets` were read past the cache, so that a limit applies to every turn that starts after it was set.
    """
    month = resources.clock.now_iso()[:7]
    accounts = budgets.list_accounts(caller.tenant, caller.user, month)
    return bool(accounts) and not get_model_traits(chosen_model.provider).are_free


def _commit_turn(
    resources: Resources,
    prompt: TurnPrompt,
    content: Sequence[Block],
    conversation: Conversation,
    turn: Turn,
    snapshot: SnapshotStorage,
    counter: UseCounter,
    has_webhooks: bool,
    hooks: RunHooks,
    hold_writes: Sequence[Write],
) -> StartedTurn:
    """Write START, with the user's message, the idempotency key, the hold of the first request and the counts."""

    def commit_at(position: int, count_writes: Sequence[Update]) -> StartedTurn:
        message = _build_prompt_message(resources, turn, content, position)
        cuts = add_cut(conversation.cuts, position if cut_from is None else cut_from, position)
        return commit_start(
            resources,
            turn.model_copy(update={"limits_shard": counter.shard, "message_cuts": cuts}),
            TurnState(
                next_position=position + 1,
                snapshot_key=snapshot_key,
                revision=prompt.revision,
                has_queued_prompts=prompt.has_queued_prompts,
                has_webhooks=has_webhooks,
                hook_flags=build_hook_flags(hooks),
            ),
            build_claim_update(
                resources,
                conversation,
                turn,
                position + 1,
                conversation_store.title_from_prompt(prompt.content),
                cuts=None if cuts == conversation.cuts else cuts,
            ),
            message_store.build_message_put(resources, turn.tenant, conversation.id, message),
            *build_idempotency_puts(resources, turn, prompt.idempotency_key, prompt.digest),
            *prompt.build_start_writes(turn.id),
            hold_writes=hold_writes,
            count_writes=count_writes,
        )

    cut_from = None if prompt.cut_after is None else find_cut_position(resources, conversation, prompt.cut_after)
    use = prompt.count_use(turn.id)
    counter.require_room(use)
    snapshot_key = snapshot.get_key()
    try:
        return counter.commit(use, partial(commit_at, find_free_position(resources, conversation)))
    except PositionTaken:
        return counter.commit(use, partial(commit_at, find_position_behind_messages(resources, conversation)))


def _build_prompt_message(resources: Resources, turn: Turn, content: Sequence[Block], position: int) -> Message:
    now = resources.clock.now_iso()
    return Message(position=position, role="user", content=tuple(content), turn=turn.id, created_at=now)
