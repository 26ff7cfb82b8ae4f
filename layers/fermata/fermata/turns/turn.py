"""The turn's own row: what was pinned when it started. Rounds read nothing else."""

import json
import zlib
from dataclasses import dataclass

from fermata.aws.clock import is_valid_id, iso_from_epoch
from fermata.aws.dynamodb import Item
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.domain.dialect import Dialect, ToolNameVariant
from fermata.domain.errors import NotFound

OPEN_SHARDS = 4


@dataclass(frozen=True)
class TurnPartition:
    """Where everything of a turn lies, and until when."""

    tenant: str
    turn: str
    expires: int

    @property
    def pk(self) -> str:
        return build_turn_pk(self.tenant, self.turn)


class Turn(DomainModel):
    """`id` is also the bridge id. `n` is the execution that runs it now; times are epoch milliseconds."""

    id: str
    tenant: str
    user: str
    scope: str
    conversation: str
    provider: str
    model: str
    credential: str
    credential_version: int
    capabilities: tuple[str, ...]
    dialect: Dialect
    tool_names: ToolNameVariant = "seed"
    prompt_version: str
    situation: str
    max_rounds: int
    thinking_tokens: int = 0
    started_ms: int
    expires: int
    """Epoch seconds after which nothing of this turn counts any more, whether deleted yet or not."""
    budgeted: bool = False
    """Whether its requests have to fit into a budget that was set when it started."""
    undoes: str = ""
    """The turn whose edits this one takes back; it asks no model."""
    through: str = ""
    """The oldest of those edits that it takes back, by its key in the journal; empty for all of them."""
    n: int = 1
    state: str = "open"

    @property
    def partition(self) -> "TurnPartition":
        return TurnPartition(self.tenant, self.id, self.expires)

    @property
    def pk(self) -> str:
        return self.partition.pk

    @property
    def can_retract_text(self) -> bool:
        """Whether this turn's clients can take back text they have shown."""
        return self.dialect != "instatic"


def build_turn_pk(tenant: str, turn: str) -> str:
    return f"t#{tenant}#turn#{turn}"


def open_turns_shard(turn: str) -> str:
    """The partition of the `open` index a turn sits in until it ends."""
    return f"open#{zlib.crc32(turn.encode()) % OPEN_SHARDS}"


def turn_to_item(turn: Turn) -> Item:
    pinned = turn.model_dump(mode="json", exclude={"n", "state"})
    return {
        "pk": turn.pk,
        "sk": "turn",
        "v": 1,
        "n": turn.n,
        "state": turn.state,
        "data": json.dumps(pinned, separators=(",", ":")),
        "open": open_turns_shard(turn.id),
        "openSince": iso_from_epoch(turn.started_ms / 1000),
        "ttl": turn.expires,
    }


def turn_from_item(row: Item | None, now: float) -> Turn | None:
    """The turn of a stored row; None when there is none or its lifetime is over."""
    if row is None or row["ttl"] <= now:
        return None
    return Turn.model_validate({**json.loads(row["data"]), "n": row["n"], "state": row["state"]})


def find_turn(resources: Resources, tenant: str, turn: str) -> Turn:
    """Raises NotFound for a turn that never was or whose lifetime is over."""
    known = is_valid_id(turn)
    row = (
        resources.tables.get_item(resources.settings.bridges_table, build_turn_pk(tenant, turn), "turn")
        if known
        else None
    )
    found = turn_from_item(row, resources.clock.time())
    if found is None:
        raise NotFound("There is no such turn, or it is too old to be remembered.")
    return found
