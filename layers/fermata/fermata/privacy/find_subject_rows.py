"""Find the rows of a subject: conversations, turns, ledger rows, counts of a user, settings that a user entered."""

from collections.abc import Iterable, Iterator

from fermata.agents.definitions.agent_list import read_agent_list
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.conversations.conversation_rows import (
    BIN_SHARD_COUNT,
    USER_INDEX,
    bin_shard_partition,
    build_conversation_key,
    user_partition,
)
from fermata.conversations.message_store import conversation_partition
from fermata.domain.agent_ids import SCOPES, make_agent_scope
from fermata.editor_bridge.open_editors import editor_partition
from fermata.limits.limit_keys import user_limits_partition
from fermata.planner_api.chat_store import chats_partition
from fermata.privacy.data_subject import DataSubject
from fermata.turns.start.idempotency import build_transcript_prefix, idempotency_partition
from fermata.usage.budgets.budget_accounts import BudgetAccount
from fermata.usage.ledger.ledger_store import FIRST_LEDGER_MONTH, read_ledger_rows

AUTHOR_ATTRIBUTES = ("user", "updated_by", "created_by")
"""Attributes of settings that hold the id of the user who entered them."""
_DAY_SECONDS = 86_400


def iter_conversations(resources: Resources, subject: DataSubject, created_until: str = "~") -> Iterator[Item]:
    """Yield the rows of a conversation or of a user's conversations, also of those that are deleted but not purged.

    Args:
        created_until: An ISO instant. What was created after it is left out.
    """
    if subject.kind == "conversation":
        row = resources.tables.get_item_by_key(build_conversation_key(resources, subject.tenant, subject.id))
        yield from [row] if row else []
        return
    for row in _iter_rows_of_users(resources, subject):
        if row["tenant"] == subject.tenant and row["user"] == subject.id and row["created_at"] <= created_until:
            yield row


def _iter_rows_of_users(resources: Resources, subject: DataSubject) -> Iterator[Item]:
    table = resources.settings.conversations_table
    agents = read_agent_list(resources, subject.tenant).known_ids
    scopes = (*SCOPES, *map(make_agent_scope, agents))
    partitions = [user_partition(subject.tenant, subject.id, scope) for scope in scopes]
    partitions += [bin_shard_partition(shard) for shard in range(BIN_SHARD_COUNT)]
    for partition in partitions:
        yield from resources.tables.query_index(table, USER_INDEX, ("gpk", partition))


def iter_ledger_rows(resources: Resources, subject: DataSubject, names: Iterable[str] = ()) -> Iterator[Item]:
    """Yield the rows of a tenant's ledger that are about the subject.

    Args:
        names: Further names of the user: the pseudonym, once rows have it.
    """
    wanted = {subject.id, *names}
    attribute = subject.kind
    end = iso_from_epoch(resources.clock.time() + 2 * _DAY_SECONDS)
    for row in read_ledger_rows(resources, subject.tenant, FIRST_LEDGER_MONTH, end):
        if row.get(attribute) in wanted:
            yield row


def list_turns_of_conversation(resources: Resources, tenant: str, conversation: str) -> list[str]:
    """Return the ids of the turns that wrote to a conversation, or hold its claim, in the order of their messages."""
    table, pk = resources.settings.conversations_table, conversation_partition(tenant, conversation)
    rows = resources.tables.query_items(table, pk)
    named = [row["claim"] for row in rows if row.get("claim")]
    named += [row["turn"] for row in rows if row.get("turn")]
    return list(dict.fromkeys(named))


def list_bridges_partitions_of_user(subject: DataSubject) -> list[str]:
    """Return the partitions of the table `bridges` that are a user's own, besides turns."""
    account = BudgetAccount.for_user(subject.tenant, subject.id)
    return [
        account.pk,
        user_limits_partition(subject.tenant, subject.id),
        idempotency_partition(subject.tenant, subject.id),
        chats_partition(subject.tenant, subject.id),
        editor_partition(subject.tenant, subject.id),
    ]


def list_user_rows_of_conversation(tenant: str, conversation: str, user: str) -> list[tuple[str, str]]:
    """Return where a user's own partitions have rows of one conversation: each with what their sort keys begin with.

    Args:
        tenant: The tenant's name.
        conversation: The id of the conversation.
        user: Whose it is; empty if nobody knows, for none.
    """
    if not user:
        return []
    transcripts = idempotency_partition(tenant, user), build_transcript_prefix(conversation)
    return [transcripts, (chats_partition(tenant, user), f"{conversation}.")]


def iter_settings_by_user(resources: Resources, subject: DataSubject) -> Iterator[Item]:
    """Yield the tenant's settings and API keys that a user has entered."""
    for pk in (f"t#{subject.tenant}", f"t#{subject.tenant}#apikeys"):
        for row in resources.tables.query_items(resources.settings.settings_table, pk):
            if any(row.get(attribute) == subject.id for attribute in AUTHOR_ATTRIBUTES):
                yield row
