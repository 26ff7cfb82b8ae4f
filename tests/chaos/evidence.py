"""Hold what a run leaves behind, as plain data: raw rows, HTTP answers, and what providers were sent.

The judge reads no more. Whatever runs turns can fill it in: the simulation does from its memory, a run on the local
cloud from its tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

Row = dict[str, Any]
"""An item as DynamoDB stores it, with plain values: numbers are Decimal."""
Event = dict[str, Any]
TERMINAL_TYPES = ("done", "error", "cancelled")


@dataclass
class ServedRequest:
    """One request that a provider was sent.

    Attributes:
        name: `<turn>.<round>.<attempt>`, as the connection was told.
        is_final: Whether a whole response was sent, rather than an error or a part.
        words: The words of the scripted text; no other text may be shown for it.
        model: The model that it asked for.
        body: All that it said to the model, as it was sent; empty if nobody has kept it.
        sent_at: When it arrived, in epoch seconds; 0 if nobody has noted it.
    """

    name: str
    provider: str
    is_final: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    words: list[str] = field(default_factory=list)
    model: str = ""
    body: str = ""
    sent_at: float = 0


@dataclass
class TurnsAtOnce:
    """How many turns counted for a user, or for the tenant, right after one more began to count."""

    owner: Literal["user", "tenant"]
    count: int


@dataclass
class Reader:
    """One client that follows a turn's log, from an event on, and reconnects when it is cut off."""

    received: list[tuple[int, Event]] = field(default_factory=list)
    """Events in the order in which they arrived, by their numbers."""

    @property
    def has_ended(self) -> bool:
        return bool(self.received) and self.received[-1][1]["type"] in TERMINAL_TYPES


@dataclass
class PageChange:
    """One call that an editor has carried out on its page."""

    effect_key: str
    patch: dict[str, str | None]
    """Cells of the page: their new values, None for those that it removed."""


@dataclass
class ClientTurn:
    """One prompt or undo of a user, and what its clients saw.

    Attributes:
        name: Chosen by the client; a prompt names it.
        bridge: The id that the service answered with; empty if no answer arrived.
        error: Why it was refused for good; empty if it was not.
        acknowledged: Results by request id that the service answered with success.
        must_succeed: Whether nothing disturbs it, so that it has to end as done.
        is_abandoned: Whether the client went away before it had an answer. Nobody repeats the prompt then.
        complaints: Answers of the service that no client may get.
        dialect: How its clients are spoken to.
        requested_at: When the request that starts it was sent, each time, in epoch seconds; empty if nobody knows.
        absences: When its readers were away, in epoch seconds.
        first_read_at: When a reader came for the first time, in epoch seconds; 0 if nobody knows.
        is_cancelled_by_user: Whether its user has asked to cancel it.
        snapshots: Notes in the snapshots that came with its prompt and with the answers that were acknowledged.
    """

    name: str
    kind: Literal["prompt", "undo"]
    conversation: str
    bridge: str = ""
    error: str = ""
    readers: list[Reader] = field(default_factory=lambda: [Reader()])
    acknowledged: dict[str, Any] = field(default_factory=dict)
    is_abandoned: bool = False
    must_succeed: bool = False
    complaints: list[str] = field(default_factory=list)
    dialect: str = "fermata"
    snapshots: list[str] = field(default_factory=list)
    requested_at: list[float] = field(default_factory=list)
    absences: list[tuple[float, float]] = field(default_factory=list)
    first_read_at: float = 0
    is_cancelled_by_user: bool = False

    @property
    def received(self) -> list[tuple[int, Event]]:
        """What the first reader got."""
        return self.readers[0].received

    @property
    def has_ended(self) -> bool:
        return self.readers[0].has_ended


@dataclass
class HoldTaken:
    """A budget's account right after a hold was taken, and its limit then."""

    hold: str
    account: Row
    limit: Decimal


@dataclass(frozen=True)
class LandedWrite:
    """One request that has changed tables.

    Attributes:
        rows: What it wrote, as table, partition and sort key.
        has_condition: Whether any of its writes has a condition.
        changed_by_copy: The rows that it would change if it landed again now, when everything is over.
    """

    rows: tuple[tuple[str, str, str], ...]
    has_condition: bool
    changed_by_copy: tuple[tuple[str, str, str], ...]


@dataclass
class Evidence:
    """What the judge reads.

    Attributes:
        bridges, conversations, usage: All rows of these tables.
        blobs: Objects of the bucket, by key.
        served: What the providers were sent, in its order.
        refusals: What a strict provider would have refused.
        page: The cells of the editors' page at the end.
        page_changes: Every call that changed the page, in its order.
        struck_requests: The request ids of function invocations that were killed or frozen.
        freezes: The name of each frozen process, and from when until when it was frozen, in epoch seconds.
        audits: Prompt and completion tokens that each audit showed, in the order in which they were read.
        executions: The status of each workflow execution, by name.
        execution_ends: When each of them ended, in epoch seconds; empty if nobody knows.
        sees_departures: Whether the service sees that a reader leaves.
        is_undisturbed: Whether no fault was meant to happen.
        calm_since: When the last fault could happen, or the last late request landed, in epoch seconds.
        errors: Errors that functions raised or logged and that are neither AWS's nor the API's.
        seconds_to_quiet: From the last fault, or the landing of the last late request, until nothing ran any more.
        seconds_allowed: How long that may take.
        deleted_conversations: Conversations that were deleted.
        titles: What conversations were renamed to, where the service has answered with success.
        complaints: Answers that no client may get, besides those of the turns.
        prices: USD per million prompt and completion tokens, by provider; empty if nobody knows them.
        owners: Conversations and the users who have created them; empty if nobody knows them.
        scopes: The scopes of conversations that are not of the site.
        child_scope: The scope of turns of sub-agents in those; empty if it is the same.
        ended_at: When the rows were read; 0 if nobody has noted it.
        holds_taken: Every hold of the workspace's budget, in the order in which they were taken.
        turns_at_once: How many turns counted, whenever one more began to count.
        turn_limits: How many turns of a user, and of the tenant, may run at once; empty if nobody knows.
        interruptions: Conversation and moment of each prompt that asked to end the turn which runs.
        landed_writes: Every request that has changed tables; empty if nobody has kept them.
    """

    turns: list[ClientTurn] = field(default_factory=list)
    bridges: list[Row] = field(default_factory=list)
    conversations: list[Row] = field(default_factory=list)
    usage: list[Row] = field(default_factory=list)
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    served: list[ServedRequest] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    page: dict[str, str] = field(default_factory=dict)
    page_changes: list[PageChange] = field(default_factory=list)
    struck_requests: set[str] = field(default_factory=set)
    freezes: list[tuple[str, float, float]] = field(default_factory=list)
    audits: list[int] = field(default_factory=list)
    executions: dict[str, str] = field(default_factory=dict)
    execution_ends: dict[str, float] = field(default_factory=dict)
    sees_departures: bool = False
    is_undisturbed: bool = False
    calm_since: float = float("inf")
    errors: list[str] = field(default_factory=list)
    seconds_to_quiet: float = 0.0
    seconds_allowed: float = 1800.0
    deleted_conversations: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)
    prices: Mapping[str, tuple[Decimal, Decimal]] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)
    scopes: Mapping[str, str] = field(default_factory=dict)
    child_scope: str = ""
    ended_at: float = 0.0
    holds_taken: list[HoldTaken] = field(default_factory=list)
    turns_at_once: list[TurnsAtOnce] = field(default_factory=list)
    turn_limits: Mapping[str, int] = field(default_factory=dict)
    interruptions: list[tuple[str, float]] = field(default_factory=list)
    landed_writes: list[LandedWrite] = field(default_factory=list)
