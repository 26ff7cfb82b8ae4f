"""What one wake-up of a turn works with."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fermata.aws.clock import new_id
from fermata.aws.desk import Desk
from fermata.conversations.album import count_pictures, earlier
from fermata.conversations.recipient import Recipient, weight
from fermata.conversations.transcript import Transcript
from fermata.tools.catalogue import system_prompt, toolset_for
from fermata.tools.names import Names
from fermata.tools.tool import ToolContext
from fermata.tools.toolset import Toolset
from fermata.turns import commits
from fermata.turns.commits import Commit
from fermata.turns.log import Log
from fermata.turns.pause import Pause
from fermata.turns.pulse import Pulse
from fermata.turns.recall import recipient_of
from fermata.turns.turn import Turn
from fermata.words.messages import Message
from fermata.words.tools import ToolSpec

if TYPE_CHECKING:
    from fermata.hosts.host import Host

MOST_MOVES = 50
"""How often one wake-up looks again because somebody else went on; more means that what is stored disagrees."""


@dataclass(frozen=True)
class Wake:
    """Who woke us: one attempt of one state of one execution.

    `epoch` orders attempts (design §4, Owner); `owner` is this invocation. `remaining` tells the seconds this
    function may still run. `hint` is where a log entry was seen last, and decides nothing.
    """

    tenant: str
    turn: str
    n: int
    token: str
    epoch: str
    owner: str
    remaining: Callable[[], float]
    hint: dict[str, Any] | None = None
    holds: bool = False
    """True in the Hold state: it waits without a clock and never works."""


def epoch(n: int, entered: str, retry: int) -> str:
    """Sorts as the attempts came, with however many decimals the workflow writes its instants."""
    moment = datetime.fromisoformat(entered).astimezone(UTC).isoformat(timespec="microseconds")
    return f"{n:04d}|{moment}|{retry:03d}"


@dataclass
class Work:
    desk: Desk
    turn: Turn
    log: Log
    wake: Wake
    pause: Pause | None = None
    """The current round's pause as this worker last saw or wrote it."""
    is_fresh: bool = True
    """Nothing was asked or run in this invocation yet: it has its whole time, however little that is."""
    transcript: Transcript | None = None
    """The conversation's newest messages, once read; this function alone adds to them until somebody else went on."""
    moves: int = 0
    asked: "Host | None" = None
    """The content system that a tool asked last."""
    _snapshot: tuple[str, Any] = ("", None)

    def __post_init__(self) -> None:
        self.pulse = Pulse(self.desk, self.wake.token)

    @property
    def owns_the_round(self) -> bool:
        standing = self.log.standing
        return standing.owner == self.wake.owner and standing.epoch == self.wake.epoch

    def snapshot(self) -> Any:
        """The newest value the editor posted, or None."""
        key = self.log.standing.snapshot
        if key != self._snapshot[0]:
            self._snapshot = (key, self.desk.blobs.get(key) if key else None)
        return self._snapshot[1]

    def messages(self) -> tuple[Message, ...]:
        if self.transcript is None:
            self.transcript = Transcript(self.desk, self.turn.tenant, self.turn.conversation, self.recipient)
        return self.transcript.history()

    def send_less(self) -> bool:
        """The provider says that the history is more than its model takes, or that it has too many images.

        First the images of earlier turns are left out, then half of what is sent, and half again. False when nothing
        more can be left out.
        """
        sent = self.messages()
        amount, pictures = weight(sent), sum(map(count_pictures, sent))
        if self.recipient.sees_earlier and any(map(count_pictures, earlier(sent))):
            self.recipient = replace(self.recipient, sees_earlier=False)
        else:
            self.recipient = replace(self.recipient, tokens=amount // 2, most_pictures=max(1, pictures // 2))
        self.transcript = None
        return weight(self.messages()) < amount

    def show_less(self) -> bool:
        """The provider cannot read an image, or its model cannot see: those of earlier turns are left out, then all.

        False when there are none.
        """
        sent = self.messages()
        if self.recipient.sees_earlier and any(map(count_pictures, earlier(sent))):
            self.recipient = replace(self.recipient, sees_earlier=False)
        elif any(map(count_pictures, sent)):
            self.recipient = replace(self.recipient, sees=False)
        else:
            return False
        self.transcript = None
        return True

    def look_again(self) -> None:
        """Somebody else went on: forget what was read before it, and see what happened."""
        self.moves += 1
        if self.moves > MOST_MOVES:
            raise RuntimeError(f"Turn {self.turn.id} moved on {MOST_MOVES} times; its log and its pause do not agree.")
        self.pause = self.transcript = None
        self.log.peek()

    def commit(self, commit: Commit) -> None:
        """Write it, and keep in mind what is now stored."""
        done = commits.write(self.desk, self.log, commit)
        self.pause = done.pause
        if self.transcript is not None:
            self.transcript.add(done.messages)

    @cached_property
    def toolset(self) -> Toolset:
        return toolset_for(self.turn.scope)

    @property
    def names(self) -> Names:
        return Names(self.turn.tool_names)

    @cached_property
    def on_the_wire(self) -> Callable[[str], str]:
        """What this turn's editor calls a tool, whatever the model has called it."""
        return self.toolset.naming(self.names)

    @cached_property
    def system(self) -> str:
        return system_prompt(self.turn.scope, self.names)

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        turn = self.turn
        return self.toolset.offered(frozenset(turn.capabilities), turn.scope, self.names, tenant=turn.tenant)

    @cached_property
    def recipient(self) -> Recipient:
        return recipient_of(self.desk, self.turn, self.toolset, self.system, self.tools)

    def context(self, effect_key: str, snapshot: Any = None) -> ToolContext:
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

    def _host(self) -> "Host | None":
        """The tenant's content system, in the name and with the rights of whoever started the turn."""
        from fermata.hosts.errand import Errand  # here, because most turns never ask it
        from fermata.hosts.host import open_host

        turn = self.turn
        errand = Errand(turn.tenant, turn.user, frozenset(turn.capabilities), turn.scope, turn.id)
        self.asked = open_host(self.desk, errand)
        return self.asked

    def hang_up(self) -> None:
        """The turn went on, or ended, without the tool that runs: what it waits for is not needed."""
        if self.asked is not None:
            self.asked.hang_up()

    @property
    def hint(self) -> dict[str, int]:
        """Where the next wake-up may begin to read."""
        return {"round": self.log.standing.round, "entry": self.log.entry, "next": self.log.next}

    def nonce(self) -> str:
        return new_id(12)

    def has_time_for(self, seconds: float) -> bool:
        """Whether work of this length (and a minute for what is around it) still fits into this invocation."""
        return self.wake.remaining() >= seconds + 60

    @property
    def has_time_to_ask(self) -> bool:
        return self.has_time_for(self.desk.settings.provider_seconds)
