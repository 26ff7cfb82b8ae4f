"""Store the prompts that wait for their conversation: one row each, in the index `open` until they start."""

import json
from typing import Any, Literal

from pydantic import TypeAdapter

from fermata.aws.blob_store import conversation_folder
from fermata.aws.dynamodb_items_and_writes import Item, Update
from fermata.aws.lazy_snapshot import LazySnapshot
from fermata.aws.resources import Resources
from fermata.domain.base import StoredModel
from fermata.domain.blocks import Block, TextBlock
from fermata.domain.caller import Caller
from fermata.domain.dialect import Dialect, EditorGeneration, ToolNameVariant
from fermata.domain.json_shortening import shorten_text
from fermata.domain.page_context import NO_AGENT_CONTEXT, AgentContext
from fermata.domain.use_limits import CallerLimits, UseLimits
from fermata.turns.start.turn_prompt import TurnPrompt

QueuedPromptState = Literal["waiting", "started", "dropped", "failed"]
QUEUE_INDEX_PARTITION = "queue"
"""The partition of the index `open` in which waiting prompts are listed."""
QUEUED_PROMPT_SECONDS = 7 * 86_400
MAX_PREVIEW_TEXT_CHARS = 500
_CONTENT: TypeAdapter[tuple[Block, ...]] = TypeAdapter(tuple[Block, ...])


class QueuedPrompt(StoredModel):
    """A prompt that waits. Its content and snapshot are in the blob `content_key`.

    `version` changes with each edit, and a prompt starts only in the version that was read. It starts under the
    Idempotency-Key with which it was sent, so that the same request joins its turn later (decision 0399).
    """

    id: str
    tenant: str
    user: str
    conversation: str
    scope: str
    capabilities: tuple[str, ...]
    label: str = ""
    api_key: str = ""
    """The id of the API key with which it was sent."""
    dialect: Dialect
    tool_names: ToolNameVariant
    generation: EditorGeneration
    revision: str = ""
    has_browser_tools: bool = True
    agent_context: AgentContext = NO_AGENT_CONTEXT
    space: str = ""
    max_rounds: int | None = None
    thinking_tokens: int | None = None
    user_limits: UseLimits
    tenant_limits: UseLimits
    body_bytes: int = 0
    is_counted: bool = False
    """Whether the prompt and its bytes count already."""
    idempotency_key: str = ""
    digest: str = ""
    """Of the request with this key."""
    content_key: str
    written_ms: int = 0
    """When it was sent, or edited last."""
    edited_text_key: str = ""
    """The blob of the text that has replaced that of the content."""
    text: str
    """The beginning of the prompt's text."""
    created_at: str
    expires: int
    version: int = 1
    state: QueuedPromptState = "waiting"
    turn: str = ""
    """The turn that it has started."""
    error: str = ""
    """Why it could not start."""

    @property
    def sort_key(self) -> str:
        """The id alone, so that the same request, sent twice at once, is stored once."""
        return build_queue_key(self.tenant, self.conversation, self.id)[1]

    @property
    def caller(self) -> Caller:
        """Who has sent it, with the rights of then."""
        return Caller(tenant=self.tenant, user=self.user, capabilities=frozenset(self.capabilities), label=self.label)


def queue_partition(tenant: str, conversation: str) -> str:
    """Return the partition of a conversation's queue in the table `bridges`."""
    return f"t#{tenant}#c#{conversation}#queue"


def build_queue_key(tenant: str, conversation: str, prompt_id: str) -> tuple[str, str]:
    """Return the partition and the sort key of a prompt in the table `bridges`.

    Args:
        tenant: The tenant's name.
        conversation: The conversation's id.
        prompt_id: The prompt's id.
    """
    return queue_partition(tenant, conversation), f"q#{prompt_id}"


def build_queued_prompt(resources: Resources, caller: Caller, prompt: TurnPrompt, prompt_id: str) -> QueuedPrompt:
    """Store the content of a prompt, and return its record, which is not stored yet.

    Args:
        resources: The bucket and the clock.
        caller: Who has sent it.
        prompt: The prompt.
        prompt_id: Its id in the queue.
    """
    now = resources.clock.time()
    return QueuedPrompt(
        id=prompt_id,
        tenant=caller.tenant,
        user=caller.user,
        conversation=prompt.conversation_id,
        scope=prompt.scope,
        capabilities=tuple(sorted(caller.capabilities)),
        label=caller.label,
        api_key=caller.api_key,
        dialect=prompt.dialect,
        tool_names=prompt.tool_names,
        generation=prompt.generation,
        revision=prompt.revision,
        has_browser_tools=prompt.has_browser_tools,
        agent_context=prompt.agent_context,
        space=prompt.space,
        max_rounds=prompt.max_rounds,
        thinking_tokens=prompt.thinking_tokens,
        user_limits=prompt.limits.user,
        tenant_limits=prompt.limits.tenant,
        body_bytes=prompt.body_bytes,
        is_counted=True,
        written_ms=int(now * 1000),
        idempotency_key=prompt.idempotency_key,
        digest=prompt.digest,
        content_key=store_prompt_content(
            resources, caller.tenant, prompt.conversation_id, prompt.content, prompt.snapshot_content.value
        ),
        text=preview_text(prompt.content),
        created_at=resources.clock.now_iso(),
        expires=int(now) + QUEUED_PROMPT_SECONDS,
    )


def store_prompt_content(
    resources: Resources, tenant: str, conversation: str, content: tuple[Block, ...], snapshot: Any
) -> str:
    """Store the content of a prompt and the state of its editor, and return the key of the blob."""
    value = {"content": _CONTENT.dump_python(content, mode="json", by_alias=True), "snapshot": snapshot}
    return resources.blobs.put_json(conversation_folder(tenant, conversation), value)


def load_prompt_content(resources: Resources, queued: QueuedPrompt) -> tuple[tuple[Block, ...], Any]:
    """Return the content of a queued prompt as it was edited last, and the snapshot that came with it."""
    value = resources.blobs.get_json(queued.content_key)
    content = _CONTENT.validate_python(value["content"])
    if queued.edited_text_key:
        images = (block for block in content if not isinstance(block, TextBlock))
        content = (TextBlock(text=resources.blobs.get_json(queued.edited_text_key)), *images)
    return content, value["snapshot"]


def store_edited_text(resources: Resources, queued: QueuedPrompt, text: str) -> str:
    """Store the new text of a prompt alone: images and snapshot may be thousands of times as large."""
    return resources.blobs.put_json(conversation_folder(queued.tenant, queued.conversation), text)


def preview_text(content: tuple[Block, ...]) -> str:
    text = " ".join(block.text for block in content if isinstance(block, TextBlock))
    return shorten_text(text, MAX_PREVIEW_TEXT_CHARS)


def build_turn_prompt(resources: Resources, queued: QueuedPrompt) -> TurnPrompt:
    """Return the prompt as it was sent, or edited. Its Idempotency-Key lets it start once."""
    content, snapshot = load_prompt_content(resources, queued)
    return TurnPrompt(
        scope=queued.scope,
        conversation_id=queued.conversation,
        content=content,
        dialect=queued.dialect,
        tool_names=queued.tool_names,
        generation=queued.generation,
        snapshot=None if snapshot is None else LazySnapshot.from_value(snapshot),
        revision=queued.revision,
        has_browser_tools=queued.has_browser_tools,
        agent_context=queued.agent_context,
        space=queued.space,
        idempotency_key=queued.idempotency_key or f"queued {queued.id}",
        sent_digest=queued.digest or f"queued {queued.id}",
        is_counted=queued.is_counted,
        written_ms=queued.written_ms,
        max_rounds=queued.max_rounds,
        thinking_tokens=queued.thinking_tokens,
        limits=CallerLimits(user=queued.user_limits, tenant=queued.tenant_limits),
        body_bytes=queued.body_bytes,
    )


def queued_prompt_to_item(queued: QueuedPrompt) -> Item:
    """Return the row of a prompt. While it waits, it is in the index `open`."""
    index_keys = {"open": QUEUE_INDEX_PARTITION, "openSince": queued.created_at}
    return {
        "pk": queue_partition(queued.tenant, queued.conversation),
        "sk": queued.sort_key,
        "v": 1,
        "ttl": queued.expires,
        "state": queued.state,
        "version": queued.version,
        "data": json.dumps(queued.to_stored_json(exclude=frozenset({"state", "version"})), separators=(",", ":")),
        **(index_keys if queued.state == "waiting" else {}),
    }


def queued_prompt_from_item(item: Item) -> QueuedPrompt:
    return QueuedPrompt.from_stored({**json.loads(item["data"]), "state": item["state"], "version": item["version"]})


def list_queued_prompts(resources: Resources, tenant: str, conversation: str) -> list[QueuedPrompt]:
    """Return the prompts of a conversation's queue, also those that wait no more, the oldest first."""
    table = resources.settings.bridges_table
    rows = resources.tables.query_items(table, queue_partition(tenant, conversation))
    now = resources.clock.time()
    prompts = [queued_prompt_from_item(row) for row in rows if row["ttl"] > now]
    return sorted(prompts, key=lambda queued: (queued.created_at, queued.id))


def build_change(resources: Resources, before: QueuedPrompt, after: QueuedPrompt) -> Update:
    """Return the write that replaces a waiting prompt, if nobody has changed it since it was read."""
    item = queued_prompt_to_item(after)
    is_waiting = after.state == "waiting"
    removal = "" if is_waiting else " REMOVE #open, openSince"
    return Update(
        resources.settings.bridges_table,
        item["pk"],
        before.sort_key,
        f"SET #data = :data, #state = :state, #version = :next{removal}",
        {
            ":data": item["data"],
            ":state": after.state,
            ":next": before.version + 1,
            ":read": before.version,
            ":waiting": "waiting",
        },
        names={"#data": "data", "#state": "state", "#version": "version"} | ({} if is_waiting else {"#open": "open"}),
        condition="#state = :waiting AND #version = :read",
    )
