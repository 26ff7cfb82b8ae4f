"""Store the turn row: everything that is fixed when a turn starts.

A round reads no setting of the tenant or the conversation, only this row.
"""

import json
import zlib
from typing import Any

from pydantic import Field

from fermata.agents.approval_policy import NO_POLICY, ApprovalPolicy
from fermata.aws.clock import is_valid_id, iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.domain.base import StoredModel, StoredNames
from fermata.domain.caller import Caller, Capability
from fermata.domain.conversation import get_root_conversation
from fermata.domain.dialect import OLDEST_GENERATION, ClientProtocol, Dialect, EditorGeneration, ToolNameVariant
from fermata.domain.errors import NotFound
from fermata.domain.page_context import NO_AGENT_CONTEXT, AgentContext
from fermata.domain.run_settings import OutputFormat
from fermata.domain.tools import ClientTool, DirectCall
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.next_invocation_hint import InvocationHint

OPEN_SHARDS = 4
"""Partitions of the index `open`, over which running turns are spread."""
UNDO_MARGIN_SECONDS = 3600
"""How long before the rows of the undone turn expire an undo has to have its answers (decision 0156)."""
TURN_NOT_FOUND_MESSAGE = "There is no such turn, or it has expired."


@value_dataclass(frozen=True)
class TurnPartition:
    """The partition of a turn's rows. `expires` is their TTL in epoch seconds."""

    tenant: str
    turn: str
    expires: int

    @property
    def pk(self) -> str:
        """The partition key of all rows of the turn."""
        return build_turn_pk(self.tenant, self.turn)


_STORED_TURN_NAMES = StoredNames(
    {
        "execution_number": "n",
        "is_listed": "listed",
        "has_budget": "budgeted",
        "undone_turn": "undoes",
        "undone_turn_expires": "undone_expires",
        "oldest_edit_to_undo": "through",
    }
)


class TurnParent(StoredModel):
    """The call that a sub-agent's turn answers.

    Attributes:
        effect_key: Of the call, in the turn that has made it.
        depth: 1 for a sub-agent that the turn of a user has asked.
        allowance: How many turns of sub-agents it may start, with those that these start.
    """

    turn: str
    effect_key: str
    depth: int
    allowance: int

    @property
    def round(self) -> int:
        """The round of the call."""
        return int(self.effect_key.rsplit("/", 2)[1])


class Turn(StoredModel, alias_generator=_STORED_TURN_NAMES, defer_build=False):
    """One turn. `id` is also the bridge id; `execution_number` is of the workflow execution that runs the turn now."""

    id: str
    tenant: str
    user: str
    scope: str
    agent: str = ""
    """The agent as `id@version`; empty for an undo, and for turns of releases without agents."""
    agent_context: AgentContext = NO_AGENT_CONTEXT
    """What the client has said about the page, if the turn's agent is one of the tenant."""
    agent_properties: dict[str, Any] = Field(default_factory=dict)
    """The agent's properties that contain operators, as they were resolved at the start (decision 0360)."""
    space: str = ""
    """The content space that its tools work in, as `site/environment`; empty for none."""
    parent: TurnParent | None = None
    """Set for the turn of a sub-agent (decision 0371)."""
    conversation: str
    provider: str
    model: str
    credential: str
    credential_version: int
    capabilities: tuple[str, ...]
    dialect: Dialect
    tool_names: ToolNameVariant = "seed"
    generation: EditorGeneration = OLDEST_GENERATION
    """Of the editor that started the turn; its tools have the schemas of this generation (decision 0210)."""
    policy: ApprovalPolicy = NO_POLICY
    """The tenant's policy of approvals when the turn started."""
    known_tools: dict[str, str] = Field(default_factory=dict)
    """Digests of the tools that the tenant had approved, where its policy asks for new ones."""
    offered_tools: tuple[str, ...] = ()
    """Canonical names of the tools that are offered, where there are too many for all; empty for all."""
    withheld_tools: tuple[str, ...] = ()
    """Canonical names of tools that are not offered, because nobody could carry them out: there is no content
    system, or the client has no browser tools."""
    has_browser_tools: bool = True
    """Whether its client carries out tool requests (decision 0354)."""
    protocol: ClientProtocol = ""
    """The protocol of the client that started the turn; empty for events a line (decision 0379)."""
    client_tools: tuple[ClientTool, ...] = ()
    """Tools that its client has declared and carries out (decision 0380)."""
    message_cuts: tuple[tuple[int, int], ...] = ()
    """Positions of messages that counted no more when the turn started (decision 0383)."""
    runs_confirmed_tools: bool = False
    """Whether tools that an agent's definition lets ask run unasked, because there is no page to ask on."""
    output: OutputFormat | None = None
    """The form that its client has asked its answer to have (decision 0440)."""
    direct_call: DirectCall | None = None
    """The call that the turn makes in place of asking a model."""
    mcp_pin: str = ""
    """The key of what the MCP servers of its agent have listed (decision 0375); empty for none."""
    mcp_warnings: tuple[str, ...] = ()
    """Which of their tools are missing, and why."""
    remote_tools: tuple[str, ...] = ()
    """The ids of the versions of the tenant's remote tools that the turn is offered (decision 0328)."""
    sealed_authorization: bytes = Field(default=b"", repr=False)
    """The user's Authorization header, if one of these tools is sent it (decision 0395)."""
    prompt_version: str
    situation: str
    max_rounds: int
    thinking_tokens: int = 0
    started_ms: int
    """Epoch milliseconds."""
    written_ms: int = 0
    """When a prompt that has waited was sent, or edited last; 0 for one that was sent when the turn started."""
    expires: int
    """Epoch seconds. After them the turn counts as gone, whether DynamoDB has deleted its rows yet or not."""
    has_budget: bool = False
    """Whether a budget applied when the turn started, so that each request needs a hold. Free models need none."""
    has_tool_budget: bool = False
    """Whether a budget applied when the turn started, whatever its model costs: tools may pay too."""
    undone_turn: str = ""
    """The turn whose edits this turn undoes. Such a turn asks no model (decision 0117)."""
    undone_turn_expires: int = 0
    """When the rows of the turn `undoes` expire, in epoch seconds."""
    oldest_edit_to_undo: str = ""
    """Journal key of the oldest edit to undo; empty for all edits."""
    prompt_digest: str = ""
    """Of the prompt that started the turn, by which a double click is recognized; empty for an undo."""
    limits_shard: int | None = None
    """Which of the tenant's rows counts the turn (decision 0239); None for turns of releases that counted none."""
    is_cancelled_on_disconnect: bool = False
    """Whether a proxy cancels the turn when its client has left (decision 0216)."""
    execution_number: int = 1
    state: str = "open"
    is_listed: bool = True
    """Whether the index `open` has it, from its start until it has ended and its execution knows that."""

    @property
    def partition(self) -> TurnPartition:
        """The partition of the turn's rows."""
        return TurnPartition(self.tenant, self.id, self.expires)

    @property
    def pk(self) -> str:
        """The partition key of all rows of the turn."""
        return self.partition.pk

    @property
    def started_at(self) -> str:
        """The instant of the start."""
        return iso_from_epoch(self.started_ms / 1000)

    @property
    def start_hint(self) -> dict[str, Any]:
        """Where the first invocation may start to read, as `InvocationHint`."""
        return InvocationHint(conversation=self.history_conversation).to_json()

    @property
    def history_conversation(self) -> str:
        """The conversation whose newest messages an invocation needs; empty for an undo."""
        return "" if self.undone_turn else self.conversation

    @property
    def undo_deadline(self) -> int:
        """Epoch seconds until when an undo may wait and still read the journal to report from; 0 if it is no undo."""
        return self.undone_turn_expires and self.undone_turn_expires - UNDO_MARGIN_SECONDS

    @property
    def root_conversation(self) -> str:
        """The conversation that the user sees; of a sub-agent's turn that of the turn which has asked first."""
        return get_root_conversation(self.conversation)

    @property
    def depth(self) -> int:
        """How many agents have asked each other before the turn's own."""
        return self.parent.depth if self.parent else 0

    @property
    def can_retract_text(self) -> bool:
        """Whether this turn's clients can remove text they have already shown."""
        return self.dialect != "instatic" and not self.protocol


def build_turn_pk(tenant: str, turn: str) -> str:
    """Build the partition key of all rows of a turn: its row, its log, its pauses, its journal."""
    return f"t#{tenant}#turn#{turn}"


def build_open_shard_key(turn: str) -> str:
    """Build the partition key of the index `open`, in which a turn is listed until it ends."""
    return f"open#{zlib.crc32(turn.encode()) % OPEN_SHARDS}"


_OMITTED_WHEN_EMPTY = (
    "offered_tools",
    "known_tools",
    "agent_properties",
    "space",
    "protocol",
    "client_tools",
    "parent",
    "message_cuts",
    "written_ms",
    "has_tool_budget",
    "runs_confirmed_tools",
    "output",
    "direct_call",
    "mcp_pin",
    "mcp_warnings",
)


def turn_to_item(turn: Turn) -> Item:
    excluded = {"execution_number", "state", "is_listed", "sealed_authorization"}
    excluded |= {"policy"} if turn.policy == NO_POLICY else set()
    excluded |= {name for name in _OMITTED_WHEN_EMPTY if not getattr(turn, name)}
    excluded |= {"agent_context"} if turn.agent_context == NO_AGENT_CONTEXT else set()
    pinned = turn.model_dump(mode="json", by_alias=True, exclude=excluded)
    return {
        "pk": turn.pk,
        "sk": "turn",
        "v": 1,
        "n": turn.execution_number,
        "state": turn.state,
        "data": json.dumps(pinned, separators=(",", ":")),
        "open": build_open_shard_key(turn.id),
        "openSince": turn.started_at,
        "ttl": turn.expires,
        **({"sealed": turn.sealed_authorization} if turn.sealed_authorization else {}),
    }


def turn_from_item(item: Item | None, now: float) -> Turn | None:
    """Return the stored turn, or None when there is no row or it has expired at `now` (epoch seconds)."""
    if item is None or item["ttl"] <= now:
        return None
    sealed = {"sealed_authorization": bytes(item["sealed"])} if "sealed" in item else {}
    outside = {"n": item["n"], "state": item["state"], "listed": "open" in item, **sealed}
    return Turn.from_stored(json.loads(item["data"]) | outside)


def load_turn(resources: Resources, tenant: str, turn_id: str) -> Turn | None:
    """Return the turn, or None when there is none or it has expired.

    Args:
        tenant: The tenant's name.
        turn_id: A well-formed id; use `find_turn` for one that came from outside.
    """
    item = resources.tables.get_item(resources.settings.bridges_table, build_turn_pk(tenant, turn_id), "turn")
    return turn_from_item(item, resources.clock.time())


def find_turn(resources: Resources, tenant: str, turn_id: str) -> Turn:
    """Return the turn with an id that came from outside.

    Args:
        resources: Of the process.
        tenant: The tenant whose turn it has to be.
        turn_id: The id.

    Raises:
        NotFound: The id is malformed, or the turn does not exist or has expired.
    """
    turn = load_turn(resources, tenant, turn_id) if is_valid_id(turn_id) else None
    if turn is None:
        raise NotFound(TURN_NOT_FOUND_MESSAGE)
    return turn


def find_turn_for_caller(resources: Resources, caller: Caller, bridge_id: str) -> Turn:
    """Return the caller's own turn. A caller with the capability `ai.turns.manage` sees all turns of the tenant.

    Args:
        caller: The user whose turn it has to be.
        bridge_id: The turn's id, as the client sent it.

    Raises:
        NotFound: The turn does not exist, has expired, or belongs to another user.
    """
    turn = find_turn(resources, caller.tenant, bridge_id)
    is_permitted = turn.user == caller.user or caller.has_capability(Capability.TURNS)
    if not is_permitted or not caller.allows_scope(turn.scope):
        raise NotFound(TURN_NOT_FOUND_MESSAGE)
    return turn
