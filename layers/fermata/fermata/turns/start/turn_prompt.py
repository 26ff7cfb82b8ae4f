"""Define a prompt as a client sent it, with the state of its editor."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Write
from fermata.aws.lazy_snapshot import LazySnapshot, SnapshotContent
from fermata.domain.blocks import Block
from fermata.domain.dialect import OLDEST_GENERATION, ClientProtocol, Dialect, EditorGeneration, ToolNameVariant
from fermata.domain.page_context import NO_AGENT_CONTEXT, AgentContext
from fermata.domain.run_settings import OutputFormat
from fermata.domain.tools import ClientTool, DirectCall
from fermata.domain.use_limits import DEFAULT_CALLER_LIMITS, CallerLimits
from fermata.domain.value_dataclass import value_dataclass
from fermata.limits.usage_counters import Use
from fermata.turns.start.normalize_prompt_images import compute_block_identity


def no_start_writes(_turn_id: str) -> Sequence[Write]:
    """Return no writes.

    Args:
        _turn_id: The turn that starts.
    """
    return ()


def compute_content_identity(content: Sequence[Block]) -> list[Any]:
    """Return a JSON value that is equal for equal content."""
    return [compute_block_identity(block) for block in content]


@value_dataclass(frozen=True)
class TurnPrompt:
    """A prompt as a client sent it, with the state of its editor."""

    scope: str
    conversation_id: str
    content: tuple[Block, ...]
    dialect: Dialect
    tool_names: ToolNameVariant = "seed"
    generation: EditorGeneration = OLDEST_GENERATION
    snapshot: LazySnapshot | None = None
    image_paths: tuple[str, ...] = ()
    """Where each image of `content` is in the request, for error messages."""
    revision: str = ""
    idempotency_key: str = ""
    max_rounds: int | None = None
    """The tenant's limit, where it is lower than the deployment's."""
    thinking_tokens: int | None = None
    """The tenant's setting, where it has one (decision 0080)."""
    limits: CallerLimits = DEFAULT_CALLER_LIMITS
    """What the user and the tenant may use (decision 0239)."""
    body_bytes: int = 0
    """The size of the request's body."""
    authorization: str = field(default="", repr=False)
    """The Authorization header of the request, for remote tools that are sent it. A queued prompt keeps none."""
    interrupts: bool = False
    """Whether the client asks to end the turn that holds the conversation."""
    has_browser_tools: bool = True
    """Whether the client carries out tool requests (decision 0354)."""
    protocol: ClientProtocol = ""
    """The protocol of the client, which the turn keeps."""
    client_tools: tuple[ClientTool, ...] | None = None
    """The tools that the client carries out; of the agent's own browser tools, those it does not name are withheld.
    None for a client that declares none."""
    notes: str = ""
    """What the client tells the agent about its page, as plain text."""
    cut_after: str | None = None
    """The turn behind which the conversation's messages count no more; all of them if it is empty, none for None."""
    runs_confirmed_tools: bool = False
    """Whether tools that an agent's definition lets ask run unasked."""
    output: OutputFormat | None = None
    """The form that the answer has to have, where the agent prescribes none."""
    direct_call: DirectCall | None = None
    """The call that the turn makes in place of asking a model."""
    has_queued_prompts: bool = False
    """Whether further prompts wait behind this one."""
    build_start_writes: Callable[[str], Sequence[Write]] = no_start_writes
    """Returns further writes of START, given the turn's id."""
    is_cancelled_on_disconnect: bool = False
    """Whether the proxy that sends the prompt cancels its turn when the client has left (decision 0216)."""
    agent_context: AgentContext = NO_AGENT_CONTEXT
    """What the client says about the page, for an agent of the tenant."""
    space: str = ""
    """The content space that the client names for this turn, as `site/environment`."""
    model_id: str = ""
    """The model that the client names for this turn and later ones, of the credential of the scope's default; empty for
    that of the conversation."""
    sent_digest: str = ""
    """The digest of the request, where the prompt was edited since (decision 0399), or its files were downloaded."""
    written_ms: int = 0
    """When the prompt was sent or edited last, if it has waited since."""
    is_counted: bool = False
    """Whether the prompt and its bytes were counted when it was queued."""

    @cached_property
    def digest(self) -> str:
        """Identifies the same prompt sent again, by its content: an image or snapshot may have been uploaded again.

        Empty without an idempotency key, because a snapshot is large.
        """
        if not self.idempotency_key or self.sent_digest:
            return self.sent_digest
        content = self._content_identity
        snapshot = self.snapshot.identity if self.snapshot else None
        identity = [self.scope, self.conversation_id, content, snapshot]
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    @cached_property
    def content_digest(self) -> str:
        """Identifies the same words and images, whatever the editor shows."""
        return hashlib.sha256(json.dumps(self._content_identity, sort_keys=True).encode()).hexdigest()[:32]

    @cached_property
    def _content_identity(self) -> list[Any]:
        return compute_content_identity(self.content)

    @cached_property
    def snapshot_content(self) -> SnapshotContent:
        """The snapshot, which the first use fetches."""
        return self.snapshot.fetch() if self.snapshot else SnapshotContent()

    def count_use(self, turn_id: str, *, ending: str = "") -> Use:
        """Return what the prompt counts as; `ending` is the turn that ends for its own."""
        if self.is_counted:
            return Use(turn=turn_id, ending=ending)
        return Use(prompts=1, turn=turn_id, ending=ending, stored_bytes=self.body_bytes)
