"""Start a turn once per Idempotency-Key: the same request again joins the turn that it has started."""

import hashlib
from collections.abc import Callable

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Put, ReadItem
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError, Conflict
from fermata.turns.start.commit_start import StartedTurn, start_workflow
from fermata.turns.turn import Turn, find_turn
from fermata.turns.turn_log import read_last_entry

IDEMPOTENCY_KEY_SECONDS = 24 * 3600
KEY_USED_MESSAGE = "This Idempotency-Key was used for another request. Use a new key for a new prompt."


def start_once(
    resources: Resources,
    caller: Caller,
    key: str,
    digest: str,
    start: Callable[[], StartedTurn],
    read_item: ReadItem | None = None,
) -> StartedTurn:
    """Return the turn that `key` has started, or call `start`.

    Args:
        key: Chosen by the client; empty when it sends none.
        digest: Of the request's content.
        read_item: Reads the key's row before `start`; by default with a request.

    Raises:
        Conflict: The key was used for another request; or as `start` raises it.
    """
    if started := find_started_turn(resources, caller, key, digest, read_item):
        return started
    try:
        return start()
    except ApiError:
        # The same request may have come twice at once, and the other one was faster: what refuses this one may be the
        # turn that it has asked for, which holds the conversation and the budget.
        if started := find_started_turn(resources, caller, key, digest):
            return started
        raise


def ensure_not_started(resources: Resources, caller: Caller, key: str, digest: str) -> None:
    """Return if the key has still started no turn. Called before the turn that holds a claim is ended.

    A claim is written together with the key. So the turn of a claim that was read before this is not the request's own
    (decision 0151).

    Raises:
        Conflict: The same request has come twice at once, and the other one was faster. `start_once` joins its turn.
    """
    if find_started_turn(resources, caller, key, digest):
        raise Conflict("This request has started its turn already.", retry_after=2)


def find_started_turn(
    resources: Resources, caller: Caller, key: str, digest: str, read_item: ReadItem | None = None
) -> StartedTurn | None:
    """Return the turn that the key has started, or None when the key is empty or new.

    Args:
        read_item: Reads the key's row; by default with a request.

    Raises:
        Conflict: The key was used for another request.
    """
    if not key:
        return None
    item = (read_item or resources.tables.get_item_by_key)(
        build_idempotency_key(resources, caller.tenant, caller.user, key)
    )
    if item is None or item["ttl"] <= resources.clock.time():
        return None
    if item["digest"] != digest:
        raise Conflict(KEY_USED_MESSAGE)
    turn = find_turn(resources, caller.tenant, item["turn"])
    first_entry = read_last_entry(resources, turn.pk, at_or_before=1)
    last_entry = read_last_entry(resources, turn.pk)
    if first_entry is None or last_entry is None:
        return None
    if last_entry.state.phase == "started":
        start_workflow(resources, turn)
    return StartedTurn(turn, first_entry, is_joined=True)


def build_idempotency_puts(resources: Resources, turn: Turn, key: str, digest: str) -> list[Put]:
    """Return the write that stores the key of the request that starts a turn; nothing for an empty key."""
    if not key:
        return []
    table, pk, sk = build_idempotency_key(resources, turn.tenant, turn.user, key)
    now = int(resources.clock.time())
    item: Item = {
        "pk": pk,
        "sk": sk,
        "v": 1,
        "turn": turn.id,
        "digest": digest,
        "ttl": now + IDEMPOTENCY_KEY_SECONDS,
    }
    condition = "attribute_not_exists(pk) OR #ttl <= :now"
    return [Put(table, item, condition=condition, values={":now": now}, names={"#ttl": "ttl"})]


def build_idempotency_key(resources: Resources, tenant: str, user: str, key: str) -> ItemKey:
    """Return where the turn of an Idempotency-Key is stored."""
    partition = idempotency_partition(tenant, user)
    return ItemKey(resources.settings.bridges_table, partition, hashlib.sha256(key.encode()).hexdigest())


def idempotency_partition(tenant: str, user: str) -> str:
    """Return the partition of a user's Idempotency-Keys."""
    return f"t#{tenant}#u#{user}#idempotency"


def build_transcript_prefix(conversation: str) -> str:
    """Return how the sort keys of transcripts of a conversation's recordings begin, in the same partition."""
    return f"audio#{conversation}#"
