"""What one wake-up of a turn works with."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.conversations.history.conversation_history import ConversationHistory
from fermata.conversations.history.image_selection import count_images, filter_earlier_turns
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.domain.messages import Message
from fermata.domain.tools import ToolSpec
from fermata.drivers.retry_policy import RetryPolicy
from fermata.tools.registry import build_system_prompt, get_toolset
from fermata.tools.tool import ToolContext
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset
from fermata.turns import commits
from fermata.turns.commits import RoundCommit
from fermata.turns.pause import Pause
from fermata.turns.round.context_window import build_model_profile
from fermata.turns.round.heartbeat import Heartbeat
from fermata.turns.turn import Turn
from fermata.turns.turn_log import TurnLog

if TYPE_CHECKING:
    from fermata.hosts.client import HostClient

MAX_RELOADS = 50
"""How often one wake-up looks again because somebody else went on; more means that what is stored disagrees."""


@dataclass(frozen=True)
class Invocation:
    """Who woke us: one attempt of one state of one execution.

    `epoch` orders attempts (design §4, Owner); `owner` is this invocation. `remaining` tells the seconds this
    function may still run. `hint` is where a log entry was seen last, and decides nothing.
    """

    tenant: str
    turn: str
    execution_number: int
    token: str
    epoch: str
    owner: str
    remaining: Callable[[], float]
    hint: dict[str, Any] | None = None
    is_hold: bool = False
    """True in the Hold state: it waits without a clock and never works."""


def build_epoch(execution_number: int, entered_at: str, retry: int) -> str:
    """Sorts as the attempts came, with however many decimals the workflow writes its instants."""
    moment = datetime.fromisoformat(entered_at).astimezone(UTC).isoformat(timespec="microseconds")
    return f"{execution_number:04d}|{moment}|{retry:03d}"


@dataclass
class TurnContext:
    resources: Resources
    turn: Turn
    log: TurnLog
    invocation: Invocation
    pause: Pause | None = None
    """The current round's pause as this worker last saw or wrote it."""
    is_unused: bool = True
    """Nothing was asked or run in this invocation yet: it has its whole time, however little that is."""
    transcript: ConversationHistory | None = None
    """The conversation's newest messages, once read; this function alone adds to them until somebody else went on."""
    reload_count: int = 0
    last_host: "HostClient | None" = None
    """The content system that a tool asked last."""
    _snapshot: tuple[str, Any] = ("", None)

    def __post_init__(self) -> None:
        self.heartbeat = Heartbeat(self.resources, self.invocation.token)

    @cached_property
    def retry_policy(self) -> RetryPolicy:
        """Which failures of the provider are retried, how often and when."""
        settings = self.resources.settings
        return RetryPolicy(max_attempts=settings.provider_attempts, max_round_attempts=settings.max_round_attempts)

    @property
    def owns_round(self) -> bool:
        standing = self.log.state
        return standing.owner == self.invocation.owner and standing.epoch == self.invocation.epoch

    def load_snapshot(self) -> Any:
        """The newest value the editor posted, or None."""
        key = self.log.state.snapshot
        if key != self._snapshot[0]:
            self._snapshot = (key, self.resources.blobs.get_json(key) if key else None)
        return self._snapshot[1]

    def load_history(self) -> tuple[Message, ...]:
        if self.transcript is None:
            self.transcript = ConversationHistory(
                self.resources, self.turn.tenant, self.turn.conversation, self.model_profile
            )
        return self.transcript.compile_messages()

    def reduce_history(self) -> bool:
        """The provider says that the history is more than its model takes, or that it has too many images.

        First the images of earlier turns are left out, then half of what is sent, and half again. False when nothing
        more can be left out.
        """
        sent = self.load_history()
        amount, pictures = estimate_tokens(sent), sum(map(count_images, sent))
        if self.model_profile.reads_earlier_images and any(map(count_images, filter_earlier_turns(sent))):
            self.model_profile = replace(self.model_profile, reads_earlier_images=False)
        else:
            self.model_profile = replace(
                self.model_profile, max_history_tokens=amount // 2, max_images=max(1, pictures // 2)
            )
        self.transcript = None
        return estimate_tokens(self.load_history()) < amount

    def reduce_images(self) -> bool:
        """The provider cannot read an image, or its model cannot see: those of earlier turns are left out, then all.

        False when there are none.
        """
        sent = self.load_history()
        if self.model_profile.reads_earlier_images and any(map(count_images, filter_earlier_turns(sent))):
            self.model_profile = replace(self.model_profile, reads_earlier_images=False)
        elif any(map(count_images, sent)):
            self.model_profile = replace(self.model_profile, reads_images=False)
        else:
            return False
        self.transcript = None
        return True

    def reload(self) -> None:
        """Somebody else went on: forget what was read before it, and see what happened."""
        self.reload_count += 1
        if self.reload_count > MAX_RELOADS:
            raise RuntimeError(f"Turn {self.turn.id} moved on {MAX_RELOADS} times; its log and its pause do not agree.")
        self.pause = self.transcript = None
        self.log.read_new_entries()

    def commit(self, commit: RoundCommit) -> None:
        """Write it, and keep in mind what is now stored."""
        done = commits.write_round_commit(self.resources, self.log, commit)
        self.pause = done.pause
        if self.transcript is not None:
            self.transcript.add_messages(done.messages)

    @cached_property
    def toolset(self) -> Toolset:
        return get_toolset(self.turn.scope)

    @property
    def tool_names(self) -> ToolNaming:
        return ToolNaming(self.turn.tool_names)

    @cached_property
    def to_wire_name(self) -> Callable[[str], str]:
        """What this turn's editor calls a tool, whatever the model has called it."""
        return self.toolset.get_tool_namer(self.tool_names)

    @cached_property
    def system_prompt(self) -> str:
        return build_system_prompt(self.turn.scope, self.tool_names)

    @cached_property
    def tool_specs(self) -> tuple[ToolSpec, ...]:
        turn = self.turn
        return self.toolset.build_tool_specs(
            frozenset(turn.capabilities), turn.scope, self.tool_names, tenant=turn.tenant
        )

    @cached_property
    def model_profile(self) -> ModelProfile:
        return build_model_profile(self.resources, self.turn, self.toolset, self.system_prompt, self.tool_specs)

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
            host=self._host,
        )

    def _host(self) -> "HostClient | None":
        """The tenant's content system, in the name and with the rights of whoever started the turn."""
        from fermata.hosts.auth import HostCaller  # here, because most turns never ask it
        from fermata.hosts.client import open_host_client

        turn = self.turn
        errand = HostCaller(turn.tenant, turn.user, frozenset(turn.capabilities), turn.scope, turn.id)
        self.last_host = open_host_client(self.resources, errand)
        return self.last_host

    def abort_host_call(self) -> None:
        """The turn went on, or ended, without the tool that runs: what it waits for is not needed."""
        if self.last_host is not None:
            self.last_host.abort()

    @property
    def hint(self) -> dict[str, int]:
        """Where the next wake-up may begin to read."""
        return {"round": self.log.state.round, "entry": self.log.last_entry_number, "next": self.log.next_number}

    def new_nonce(self) -> str:
        return new_id(12)

    def has_time_for(self, seconds: float) -> bool:
        """Whether work of this length (and a minute for what is around it) still fits into this invocation."""
        return self.invocation.remaining() >= seconds + 60

    @property
    def has_time_for_model_request(self) -> bool:
        return self.has_time_for(self.resources.settings.provider_seconds)
