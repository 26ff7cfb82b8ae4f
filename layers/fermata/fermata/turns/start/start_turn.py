"""Start a turn from a prompt: check everything, write START, then start the workflow."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from fermata.agents.agent import Agent
from fermata.aws import observability
from fermata.aws.blob_store import prompt_folder
from fermata.aws.clock import is_valid_id, new_id
from fermata.aws.dynamodb_items_and_writes import Put, ReadItem, Update, Write
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store, message_store
from fermata.conversations.message_cuts import MessageCuts, add_cut
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.blocks import Block, TextBlock
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest
from fermata.domain.messages import Message
from fermata.domain.run_settings import RunSettings
from fermata.domain.value_dataclass import value_dataclass
from fermata.limits.count_use import UseCounter
from fermata.turns.accounting import commit_with_budget_hold, estimate_prompt_tokens
from fermata.turns.hooks.hook_points import build_hook_flags
from fermata.turns.mcp_pin import end_mcp_sessions
from fermata.turns.round.step_settings import build_step_settings
from fermata.turns.start.build_turn import TurnBuilder, build_situation
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
from fermata.turns.start.plan_messages import check_model_is_included, find_monthly_messages
from fermata.turns.start.prefetched_rows import PrefetchedRows
from fermata.turns.start.prompt_agent import choose_prompt_model, name_conversation_model, open_prompt_agent
from fermata.turns.start.prompt_space import choose_prompt_space
from fermata.turns.start.turn_prompt import TurnPrompt
from fermata.turns.store_snapshot_early import SnapshotStorage
from fermata.turns.turn import Turn
from fermata.turns.turn_state_from_log import TurnState
from fermata.usage.audit import user_labels
from fermata.webhooks.webhook import RegisteredWebhooks, build_webhooks_key


def start_turn(resources: Resources, caller: Caller, prompt: TurnPrompt) -> StartedTurn:
    """Start the turn of a prompt, or join the one that the same prompt with its Idempotency-Key has started.

    Every refusal comes before any row is written. The snapshot is stored while the rows are read, in a folder
    of the user, where it expires if the prompt is refused (decisions 0177 and 0298).

    Args:
        caller: The user for whom the turn runs until its end.
        prompt: The validated request.

    Raises:
        NotFound, InvalidRequest: Of the conversation, the images or the model.
        Unprocessable: The model lacks an ability that the prompt needs, or a recording has no speech.
        PaymentRequired: A budget does not cover the first request, or a recording; or the plan of the workspace has no
            such messages, or not this model.
        ServiceUnavailable, BadGateway: A recording could not be transcribed.
        TooManyRequests: The user or the tenant has reached a limit of prompts, turns or stored bytes.
        Conflict: Another turn holds the conversation, or the Idempotency-Key was used for another request.
    """
    key = prompt.idempotency_key
    turn_id = new_id()
    store = partial(_store_snapshot, resources, caller, prompt, turn_id)
    with SnapshotStorage(resources, caller, store, is_early=is_valid_id(prompt.conversation_id)) as snapshot:
        rows = PrefetchedRows(resources, caller, prompt.scope, prompt.conversation_id, key, turn_id)
        start = _TurnStart(resources, caller, prompt, turn_id, rows, snapshot)
        return start_once(resources, caller, key, prompt.digest, start.run, rows.read_item)


def _store_snapshot(resources: Resources, caller: Caller, prompt: TurnPrompt, turn_id: str) -> str:
    storable = prompt.snapshot_content.storable
    folder = prompt_folder(caller.tenant, caller.user, prompt.conversation_id, turn_id)
    return "" if storable is None else resources.blobs.put_compressed_json(folder, storable)


@value_dataclass(frozen=True)
class _TurnStart:
    """One attempt to start the turn of a prompt."""

    resources: Resources
    caller: Caller
    prompt: TurnPrompt
    turn_id: str
    rows: PrefetchedRows
    snapshot: SnapshotStorage

    def run(self) -> StartedTurn:
        """Check everything, write START and start the workflow. Raises as `start_turn`."""
        resources, caller, prompt, read_item = self.resources, self.caller, self.prompt, self.rows.read_item
        conversation = self._load_conversation(read_item)
        if conversation.scope != prompt.scope:
            raise InvalidRequest(f"This conversation belongs to scope {conversation.scope}, not {prompt.scope}.")
        opened = open_prompt_agent(resources, caller, prompt, read_item)
        chosen_model = choose_prompt_model(resources, caller.tenant, opened.agent, conversation, read_item)
        self.rows.remember_credential(chosen_model.credential_id)
        counter = UseCounter(resources, caller, prompt.limits, self.turn_id, read_item)
        # The turn that holds the conversation may have to end for this one, and does not if this one is refused.
        counter.require_room(prompt.count_use(self.turn_id, ending=conversation.claim or ""))
        if month := find_monthly_messages(resources, caller, prompt):
            month.require_room()
        check_model_is_included(resources, caller, prompt, chosen_model.model)
        check_model_abilities(resources, caller, chosen_model, prompt.scope, prompt.content)
        content = normalize_prompt_images(resources, caller, prompt.content, prompt.image_paths)
        self.snapshot.check()
        content = self._add_transcripts(content, opened.agent, chosen_model)
        space = choose_prompt_space(
            resources,
            caller,
            opened.agent,
            prompt.space,
            conversation.space,
            text="\n".join(block.text for block in content if isinstance(block, TextBlock)),
            ui_context=prompt.snapshot_content.value if opened.agent.space_situation else None,
        )
        situation = build_situation(opened.agent, prompt, opened.context, space)
        if conversation.claim:
            conversation = self._make_claimable(conversation)
            counter.read_again()
        builder = TurnBuilder(resources, caller, prompt, self.turn_id, self.rows)
        turn = builder.build_turn(opened, chosen_model, situation, space)
        with contextlib.ExitStack() as if_refused:
            if_refused.callback(end_mcp_sessions, resources, turn)
            started = self._commit_with_hold(turn, conversation, content, counter, opened.agent.settings)
            if_refused.pop_all()
        start_workflow(resources, turn)
        observability.emit_metrics({"TurnsStarted": 1})
        _log_start(turn)
        user_labels.store_user_label(resources, caller)
        return started

    def _add_transcripts(self, content: Sequence[Block], agent: Agent, model: ModelChoice) -> tuple[Block, ...]:
        """Return the content with what is said in its recordings. Raises as `PromptTranscripts.add_to`."""
        if not any(block.kind == "audio" for block in content):
            return tuple(content)
        from fermata.turns.start.choose_transcriber import choose_transcriber  # few prompts have recordings
        from fermata.turns.start.prompt_transcripts import PromptTranscripts

        find_transcriber = partial(choose_transcriber, self.resources, self.caller.tenant, agent, model)
        prompt, caller = self.prompt, self.caller
        folder = prompt_folder(caller.tenant, caller.user, prompt.conversation_id, self.turn_id)
        conversation, limits = prompt.conversation_id, prompt.limits
        transcripts = PromptTranscripts(
            self.resources, caller, prompt.scope, conversation, folder, limits, find_transcriber
        )
        return transcripts.add_to(content)

    def _load_conversation(self, read_item: ReadItem | None = None) -> Conversation:
        found = conversation_store.get_conversation(self.resources, self.caller, self.prompt.conversation_id, read_item)
        return name_conversation_model(self.resources, found, self.prompt.model_id)

    def _make_claimable(self, conversation: Conversation) -> Conversation:
        """End the turn that holds the conversation, or refuse this one. Raises as `ensure_claimable`."""
        prompt = self.prompt
        ensure_not_started(self.resources, self.caller, prompt.idempotency_key, prompt.digest)
        return ensure_claimable(
            self.resources,
            self.caller,
            conversation,
            prompt.dialect,
            self._load_conversation,
            prompt.content_digest,
            interrupts=prompt.interrupts,
        )

    def _commit_with_hold(
        self,
        turn: Turn,
        conversation: Conversation,
        content: Sequence[Block],
        counter: UseCounter,
        settings: RunSettings,
    ) -> StartedTurn:
        """Write START with the budget hold of the first request."""
        key = build_webhooks_key(self.resources, self.caller.tenant)
        state = TurnState(
            revision=self.prompt.revision,
            has_queued_prompts=self.prompt.has_queued_prompts,
            has_webhooks=RegisteredWebhooks.from_item(self.rows.read_item(key)).has_enabled,
            hook_flags=build_hook_flags(settings.hooks),
        )
        prompt_tokens = estimate_prompt_tokens(content, turn.situation, conversation.context_tokens)
        commit = partial(self._commit, turn, conversation, content, counter, state)
        answer_tokens = build_step_settings(settings, 1).max_output_tokens
        return commit_with_budget_hold(self.resources, turn, prompt_tokens, commit, answer_tokens=answer_tokens)

    def _commit(
        self,
        turn: Turn,
        conversation: Conversation,
        content: Sequence[Block],
        counter: UseCounter,
        state: TurnState,
        hold_writes: Sequence[Write],
    ) -> StartedTurn:
        """Write START, with the user's message, the idempotency key, the hold of the first request and the counts."""
        resources, prompt = self.resources, self.prompt
        cut_from = None if prompt.cut_after is None else find_cut_position(resources, conversation, prompt.cut_after)
        use = prompt.count_use(turn.id)
        counter.require_room(use)
        month = find_monthly_messages(resources, self.caller, prompt)
        stored = replace(state, snapshot_key=self.snapshot.get_key())

        def commit_at(position: int, count_writes: Sequence[Update]) -> StartedTurn:
            cuts = add_cut(conversation.cuts, position if cut_from is None else cut_from, position)
            return commit_start(
                resources,
                turn.model_copy(update={"limits_shard": counter.shard, "message_cuts": cuts}),
                replace(stored, next_position=position + 1),
                self._claim(conversation, turn, position, cuts, content),
                self._put_message(turn, conversation, content, position),
                *build_idempotency_puts(resources, turn, prompt.idempotency_key, prompt.digest),
                *prompt.build_start_writes(turn.id),
                *(month.build_writes() if month else ()),
                hold_writes=hold_writes,
                count_writes=count_writes,
            )

        try:
            started = counter.commit(use, partial(commit_at, find_free_position(resources, conversation)))
        except PositionTaken:
            started = counter.commit(use, partial(commit_at, find_position_behind_messages(resources, conversation)))
        return replace(started, prompt_rate=counter.describe_prompt_rate(use))

    def _claim(
        self, conversation: Conversation, turn: Turn, position: int, cuts: MessageCuts, content: Sequence[Block]
    ) -> Update:
        title = conversation_store.title_from_prompt(content)
        changed = None if cuts == conversation.cuts else cuts
        return build_claim_update(
            self.resources,
            conversation,
            turn,
            position + 1,
            title,
            cuts=changed,
            stores_model=bool(self.prompt.model_id and conversation.credential_id),
        )

    def _put_message(self, turn: Turn, conversation: Conversation, content: Sequence[Block], position: int) -> Put:
        now = self.resources.clock.now_iso()
        message = Message(position=position, role="user", content=tuple(content), turn=turn.id, created_at=now)
        return message_store.build_message_put(self.resources, turn.tenant, conversation.id, message)


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
