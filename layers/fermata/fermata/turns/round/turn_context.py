"""Hold what one invocation works with: the turn, its log and pause, its history, its tools."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from fermata.agents.agent import Agent
from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.conversations.history.conversation_history import ConversationHistory, read_first_batch
from fermata.conversations.history.learned_limits import ModelKey
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.credentials.open_endpoint import open_endpoint
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError
from fermata.domain.events import Event
from fermata.domain.message_prefix_cache import MessagePrefixCache
from fermata.domain.messages import Message
from fermata.domain.run_settings import OutputFormat
from fermata.domain.tools import ToolSpec
from fermata.drivers.retry_policy import RetryPolicy
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.tools.tool import Access, ToolContext, refuse_remote_call
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset
from fermata.turns.next_invocation_hint import InvocationHint, hash_table_name
from fermata.turns.offered_tools import add_find_tools, build_offered_specs, list_found_tools
from fermata.turns.pause import Pause
from fermata.turns.round.context_window import build_model_profile
from fermata.turns.round.forced_answer import (
    ForcedAnswer,
    TurnProgress,
    force_answer_after_denied_cost,
    force_answer_in_last_round,
    force_answer_of_stuck_model,
)
from fermata.turns.round.heartbeat import Heartbeat
from fermata.turns.round.history_limits import HistoryLimits
from fermata.turns.round.invocation import Invocation
from fermata.turns.round.step_settings import StepSettings, build_step_settings
from fermata.turns.round_commit import RoundCommit, write_round_commit
from fermata.turns.turn import Turn
from fermata.turns.turn_agent import open_turn_agent
from fermata.turns.turn_log import TurnLog
from fermata.turns.turn_toolset import open_turn_toolset

if TYPE_CHECKING:
    from fermata.content.opened_space import OpenedSpace
    from fermata.content.sent_image import SentImage
    from fermata.hosts.content_host import ContentHost
    from fermata.plans.draft_session import DraftSession
    from fermata.turns.round.remote_calls import TurnRemoteTools

MAX_RELOADS = 50
"""How often one invocation reads the turn again because others moved it on. More means that stored rows disagree."""
TIME_RESERVE_SECONDS = 60
"""Seconds of an invocation that are left for the work around a request or a tool."""


@dataclass
class TurnContext:
    """The state of one invocation. It is changed in place while the invocation works."""

    resources: Resources
    turn: Turn
    log: TurnLog
    invocation: Invocation
    pause: Pause | None = None
    """The round's pause as this invocation last read or wrote it."""
    is_before_first_step: bool = True
    """Whether nothing was asked or run yet. A fresh invocation works even if its time looks too short for it."""
    history: ConversationHistory | None = None
    """The newest messages, once read. Only this invocation adds to them, until another one moves the turn on."""
    result_events: list[Event] = field(default_factory=list)
    """What the log keeps of the outputs of the calls that are run now, besides their results."""
    reload_count: int = 0
    last_host: "ContentHost | None" = None
    """The content system that a tool has called last."""
    prefetched_messages: Sequence[Message] | None = None
    """The newest messages first, if they were read together with the turn (decision 0178). `history` starts from them.
    """
    _snapshot: tuple[str, Any] = ("", None)

    def __post_init__(self) -> None:
        self.run_started_at = self.resources.clock.monotonic()
        self.heartbeat = Heartbeat(self.resources, self.invocation.token)
        self.message_prefix_cache = MessagePrefixCache()
        self._progress = TurnProgress(self.turn.id, self._is_edit)

    @cached_property
    def retry_policy(self) -> RetryPolicy:
        """Which failures of the provider are retried, how often and when."""
        settings, retries = self.resources.settings, self.agent.settings.max_retries
        attempts = settings.provider_attempts if retries is None else retries + 1
        return RetryPolicy(max_attempts=attempts, max_round_attempts=settings.max_round_attempts)

    @property
    def step_settings(self) -> StepSettings:
        """The settings of the current round."""
        return build_step_settings(self.agent.settings, self.log.state.round)

    @property
    def owns_round(self) -> bool:
        state = self.log.state
        return state.owner == self.invocation.owner and state.epoch == self.invocation.epoch

    def load_snapshot(self) -> Any:
        """Return the newest snapshot that the editor has posted, or None."""
        key = self.log.state.snapshot_key
        if key != self._snapshot[0]:
            self._snapshot = ("", None)  # there is no memory for two
            self._snapshot = (key, self.resources.blobs.get_json(key) if key else None)
        return self._snapshot[1]

    def load_history(self) -> tuple[Message, ...]:
        """Return the messages for the model, compiled within `limits`."""
        if self.history is None:
            turn = self.turn
            newest = self.prefetched_messages
            if newest is None:
                newest = read_first_batch(self.resources, turn.tenant, turn.conversation)
            self.limits.read_learned(newest)
            self.history = ConversationHistory(
                self.resources, turn.tenant, turn.conversation, self.model_profile, newest, turn.message_cuts
            )
            self._progress = TurnProgress(turn.id, self._is_edit)
        return self.history.compile_messages()

    def find_forced_answer(self) -> ForcedAnswer | None:
        """Return why the current round is asked without tools, if it is. Call it with the history loaded."""
        settings = self.resources.settings
        if self.history is not None:
            self._progress.read_messages(self.history.stored_messages)
        last = None if self.step_settings.requires_call else self.turn.max_rounds
        return (
            force_answer_in_last_round(self.log.state.round, last)
            or force_answer_after_denied_cost(is_cost_denied=self.log.state.is_cost_denied)
            or force_answer_of_stuck_model(self._progress, settings.max_repeated_calls, settings.max_failed_rounds)
        )

    def _is_edit(self, tool_name: str) -> bool:
        tool = self.toolset.find_tool(tool_name)
        return tool is not None and tool.access is Access.WRITE

    def prepare_model_request(self) -> None:
        """Read what a model request needs, so that it can be sent as soon as the log says so (decision 0146)."""
        self.load_history()
        with contextlib.suppress(ApiError):  # it is raised again, for the user, when the request is sent
            self.open_endpoint()

    def open_endpoint(self) -> AuthenticatedEndpoint:
        """Return where the model request goes, with its key. Raises as `open_endpoint`."""
        turn = self.turn
        if turn.credential.startswith("connection:"):
            from fermata.turns.agent_model_connection import open_connection_endpoint  # few turns have such a key

            return open_connection_endpoint(self.resources, turn.tenant, self.agent)
        return open_endpoint(self.resources, turn.tenant, turn.credential, turn.credential_version)

    def reduce_history(self, stated_window_tokens: int | None = None) -> bool:
        """Send less, after the provider has said that the history or its number of images exceeds a limit.

        Args:
            stated_window_tokens: How large the context window is, if the provider has said so.

        Returns:
            False when nothing more can be left out.
        """
        messages = self.load_history()
        self.limits.reduce_tokens(messages, stated_window_tokens)
        self.history = None
        return estimate_tokens(self.load_history()) < estimate_tokens(messages)

    def reduce_images(self, *, says_no_images: bool) -> bool:
        """Send fewer images, as `HistoryLimits.reduce_images`. Returns False when there are none."""
        if not self.limits.reduce_images(self.load_history(), says_no_images=says_no_images):
            return False
        self.history = None
        return True

    def reload(self) -> None:
        """Forget what was read and read the log again, after another writer has moved the turn on."""
        self.reload_count += 1
        if self.reload_count > MAX_RELOADS:
            raise RuntimeError(f"Turn {self.turn.id} moved on {MAX_RELOADS} times; its log and its pause do not agree.")
        self.pause = None
        self.history = None
        self.prefetched_messages = None
        self.log.read_new_entries()

    def commit(self, commit: RoundCommit) -> None:
        """Write a commit and keep what is stored now. Raises as `write_round_commit`."""
        result = write_round_commit(self.resources, self.log, commit)
        self.pause = result.pause
        self.prefetched_messages = None
        if self.history is not None:
            self.history.add_messages(result.messages)

    @cached_property
    def agent(self) -> Agent:
        """The agent that the turn has pinned."""
        return open_turn_agent(self.resources, self.turn)

    @property
    def output(self) -> OutputFormat | None:
        """The form that the answer has to have: the agent's own, or the one that the client has asked for."""
        return self.agent.settings.output or self.turn.output

    def open_provider_options(self) -> dict[str, Any]:
        """Return the options of the agent's provider, with the secrets that they name. Never store or log them.

        Raises:
            Conflict: A secret is not entered.
        """
        return self._provider_options

    @cached_property
    def _provider_options(self) -> dict[str, Any]:
        options = self.agent.settings.provider_options
        if not options:
            return {}
        from fermata.agents.definitions.tenant_secrets import resolve_secrets  # few agents have options

        resolved: dict[str, Any] = resolve_secrets(self.resources, self.turn.tenant, options)
        return resolved

    @cached_property
    def toolset(self) -> Toolset:
        """The tools of the turn's agent, as the turn's editor knows them, and the tenant's remote tools."""
        return add_find_tools(open_turn_toolset(self.resources, self.turn), self.turn)

    @property
    def tool_names(self) -> ToolNaming:
        """The variant of the tool names that the turn's client uses."""
        return ToolNaming(self.turn.tool_names)

    @cached_property
    def to_wire_name(self) -> Callable[[str], str]:
        """Maps a tool's name, as the model used it, to the name that the turn's editor knows (decision 0069)."""
        return self.toolset.get_tool_namer(self.tool_names)

    @cached_property
    def system_prompt(self) -> str:
        return self.agent.build_system_prompt(self.tool_names)

    @cached_property
    def tool_specs(self) -> tuple[ToolSpec, ...]:
        """The tools that the turn is offered from its beginning on."""
        return build_offered_specs(self.toolset, self.turn)

    def list_request_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools of the next request: those, and what the turn has found. Call it with the history loaded."""
        if not self.turn.offered_tools or self.history is None:
            return self.tool_specs
        found = list_found_tools(self.history.stored_messages, self.turn.id)
        return build_offered_specs(self.toolset, self.turn, found)

    @cached_property
    def limits(self) -> HistoryLimits:
        """How much of the conversation the model is sent."""
        turn = self.turn
        key = ModelKey(turn.provider, turn.model, turn.credential)
        return HistoryLimits(self._build_model_profile, key, self.resources.clock)

    @property
    def model_profile(self) -> ModelProfile:
        """The limits within which the history is compiled."""
        return self.limits.profile

    def _build_model_profile(self, stated_window_tokens: int | None = None) -> ModelProfile:
        return build_model_profile(
            self.resources,
            self.turn,
            self.toolset,
            self.system_prompt,
            self.tool_specs,
            self.agent.settings,
            stated_window_tokens=stated_window_tokens,
        )

    def build_tool_context(self, effect_key: str, snapshot: Any = None) -> ToolContext:
        turn = self.turn
        return ToolContext(
            tenant=turn.tenant,
            user=turn.user,
            capabilities=frozenset(turn.capabilities),
            scope=turn.scope,
            turn=turn.id,
            effect_key=effect_key,
            snapshot=snapshot,
            open_host=self._open_host,
            open_draft=self.open_draft,
            open_content=partial(self._open_content_space, effect_key),
            read_prompt=self._read_prompt,
            call_remote_tool=self.remote_tools.call if self.remote_tools else refuse_remote_call,
        )

    def _open_content_space(self, effect_key: str) -> "OpenedSpace | None":
        """Open the turn's content space for the user who started the turn, under the key of a call."""
        if not self.turn.space:
            return None
        from fermata.content.content_space import parse_space_name  # imported here: most turns work in no space
        from fermata.content.documents.document import ContentAuthor
        from fermata.content.opened_space import OpenedSpace
        from fermata.content.space_access import is_reviewed
        from fermata.turns.generate.embed_texts import open_embedder

        turn = self.turn
        author = ContentAuthor(turn.user, "agent", turn.id, effect_key)
        space = parse_space_name(turn.tenant, turn.space)
        caller = Caller(tenant=turn.tenant, user=turn.user, capabilities=frozenset(turn.capabilities))
        return OpenedSpace(
            self.resources,
            space,
            author,
            effect_key,
            partial(open_embedder, self.resources, space, caller),
            turn.root_conversation,
            is_reviewed=is_reviewed(caller),
            list_sent_images=self._list_sent_images,
        )

    def _list_sent_images(self) -> "list[SentImage]":
        """Return the images that the user has sent in the conversation."""
        from fermata.turns.round.sent_images import list_sent_images  # imported here: few turns work in a space

        self.load_history()
        return list_sent_images(self.resources, self.history.stored_messages if self.history else ())

    def open_draft(self, tool_call_id: str = "") -> "DraftSession":
        """Open the draft of the turn's conversation.

        Args:
            tool_call_id: The model's id of the call that may submit a plan.
        """
        from fermata.plans.draft_session import DraftSession  # imported here because few agents have drafts
        from fermata.plans.drafts.draft_rows import DraftLocation
        from fermata.turns.approvals.held_plan_listing import HeldPlanListing, make_plan_approval_id

        location = DraftLocation(self.turn.tenant, self.turn.conversation)
        listing = HeldPlanListing(self, tool_call_id)
        return DraftSession(self.resources, location, listing.build_writes, make_plan_approval_id)

    def _read_prompt(self) -> str:
        """Return the text of the user's prompt."""
        self.load_history()
        messages = self.history.stored_messages if self.history else ()
        blocks = [block for one in messages if one.turn == self.turn.id and one.role == "user" for block in one.content]
        return "\n".join(block.text for block in blocks if block.kind == "text")

    @cached_property
    def remote_tools(self) -> "TurnRemoteTools | None":
        """The tenant's tools that the turn has pinned, and the endpoints of its agent; None without any."""
        if not self.turn.remote_tools and not self.agent.connection:
            return None
        from fermata.turns.round.remote_calls import TurnRemoteTools  # imported here because few turns have such tools

        return TurnRemoteTools(
            self.resources,
            self.turn,
            lambda: self.history.stored_messages if self.history else (),
            self._open_content_space,
        )

    def _open_host(self) -> "ContentHost | None":
        """Open the tenant's content system with the identity and rights of the user who started the turn."""
        from fermata.hosts.auth import HostCaller  # imported here because most turns never call a host
        from fermata.hosts.open_content_host import open_content_host

        turn = self.turn
        host_caller = HostCaller(turn.tenant, turn.user, frozenset(turn.capabilities), turn.scope, turn.id)
        self.last_host = open_content_host(self.resources, host_caller)
        return self.last_host

    def abort_host_call(self) -> None:
        """Abort the call of the running tool, because the turn ended or went on without it."""
        for client in (self.last_host, self.remote_tools):
            if client is not None:
                client.abort()

    @property
    def invocation_hint(self) -> dict[str, Any]:
        """Where the next invocation may start to read, and start the next round from, as `InvocationHint`."""
        turn, log = self.turn, self.log
        hint = InvocationHint(
            log.state.round,
            log.last_entry_number,
            log.next_number,
            conversation=turn.history_conversation,
            state=log.state,
            expires=turn.expires,
            has_budget=turn.has_budget,
            table=hash_table_name(self.resources.settings.bridges_table),
        )
        return hint.to_json()

    def new_nonce(self) -> str:
        return new_id(12)

    def has_time_for(self, seconds: float) -> bool:
        """Return whether work that takes so long, and `TIME_RESERVE_SECONDS` more, still fits into this invocation."""
        return self.invocation.remaining_seconds() >= seconds + TIME_RESERVE_SECONDS

    @property
    def has_time_for_model_request(self) -> bool:
        return self.has_time_for(self.resources.settings.provider_seconds)
