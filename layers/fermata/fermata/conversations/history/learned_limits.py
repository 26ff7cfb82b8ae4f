"""Remember in a conversation what was refused: its length, its images, and what the refusal has said of the model.

The response to a request that was reduced holds a mark, and so does each response after it (decision 0267). The history
is read for every request anyway, so the mark costs no call. It counts for a day, and only for the same credential and
model (decision 0343).
"""

from collections.abc import Iterable

from fermata.domain.blocks import Block, ReasoningBlock
from fermata.domain.messages import Message
from fermata.domain.value_dataclass import value_dataclass

_MARK_TYPE = "fermata.limits"
LEARNED_LIMITS_SECONDS = 24 * 60 * 60
"""Then it is asked again: servers are started anew with a larger window, and names come to mean other models."""


@value_dataclass(frozen=True)
class ModelKey:
    """What limits are remembered for."""

    provider: str
    model: str
    credential: str


@value_dataclass(frozen=True)
class LearnedLimits:
    """What refusals have said of a model.

    Attributes:
        window_tokens: How large its window is, if a refusal has said so.
        reads_images: False if a refusal has said that it reads none.
        history_tokens: To how many tokens the history was cut after a refusal that states no window.
        images_after: Images of messages up to this position are left out, because they were refused.
        learned_at: When the first of it was learned, in seconds.
    """

    window_tokens: int | None = None
    reads_images: bool = True
    history_tokens: int | None = None
    images_after: int | None = None
    learned_at: float = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether no refusal has said anything."""
        return self == LearnedLimits(learned_at=self.learned_at)

    def build_mark(self, key: ModelKey) -> ReasoningBlock:
        """Build the block that holds the limits. Like reasoning it is stored, and shown to nobody."""
        payload = {
            "type": _MARK_TYPE,
            "credential": key.credential,
            "windowTokens": self.window_tokens,
            "readsImages": self.reads_images,
            "historyTokens": self.history_tokens,
            "imagesAfter": self.images_after,
            "learnedAt": int(self.learned_at),
        }
        return ReasoningBlock(provider=key.provider, model=key.model, payload=payload)


NO_LEARNED_LIMITS = LearnedLimits()


def is_limits_mark(block: Block) -> bool:
    return block.kind == "reasoning" and block.payload.get("type") == _MARK_TYPE


def find_learned_limits(newest_first: Iterable[Message], key: ModelKey, *, now: float) -> LearnedLimits:
    """Return the limits in the newest mark for this credential and model, unless it is too old.

    Args:
        newest_first: Messages of the conversation, the newest first.
        key: The credential and model that will be asked.
        now: The time in seconds since 1970, for the age of the mark.
    """
    for message in newest_first:
        for block in message.content:
            if block.kind == "reasoning" and _is_mark_of(block, key):
                return _read_mark(block, now)
    return NO_LEARNED_LIMITS


def _is_mark_of(block: ReasoningBlock, key: ModelKey) -> bool:
    origin = ModelKey(block.provider, block.model, str(block.payload.get("credential")))
    return is_limits_mark(block) and origin == key


def _read_mark(block: ReasoningBlock, now: float) -> LearnedLimits:
    learned_at = block.payload.get("learnedAt")
    if not isinstance(learned_at, int | float) or not 0 <= now - learned_at < LEARNED_LIMITS_SECONDS:
        return NO_LEARNED_LIMITS
    return LearnedLimits(
        window_tokens=_read_count(block, "windowTokens"),
        reads_images=block.payload.get("readsImages") is not False,
        history_tokens=_read_count(block, "historyTokens"),
        images_after=_read_count(block, "imagesAfter"),
        learned_at=learned_at,
    )


def _read_count(block: ReasoningBlock, name: str) -> int | None:
    value = block.payload.get(name)
    return value if isinstance(value, int) and value >= 0 else None
