"""Define the content blocks of a message: text, images, audio, tool calls, tool results and reasoning."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fermata.domain.base import DomainModel


class TextBlock(DomainModel, defer_build=False):
    kind: Literal["text"] = "text"
    text: str


class ImageBlock(DomainModel):
    """Base64 image data, or the key of the blob that holds the image's bytes (decision 0063).

    `width`, `height` and `size` (bytes of the image) are set once the image is stored, if its header states them.
    """

    kind: Literal["image"] = "image"
    mime_type: str
    data: str | None = None
    blob: str | None = None
    width: int | None = None
    height: int | None = None
    size: int | None = None


class AudioBlock(DomainModel):
    """A recording of a user: base64 data, or the key of the blob that holds its bytes. Models read its transcript.

    The transcript is part of the text of its message (decision 0500).
    """

    kind: Literal["audio"] = "audio"
    mime_type: str
    data: str | None = None
    blob: str | None = None
    size: int | None = None
    """The bytes of the recording, once it is stored."""


class ToolCallBlock(DomainModel, defer_build=False):
    """A tool call of the model. `input` is stored as the model sent it, before validation."""

    kind: Literal["toolCall"] = "toolCall"
    tool_call_id: str
    tool_name: str
    input: Any = Field(default_factory=dict)
    malformed: bool | None = None
    """True if the argument text was truncated or is not JSON. Such a call is never run."""
    problem: str | None = None
    """What is wrong with malformed arguments, for the model to read: the place and the text (decision 0197)."""


class ToolResultBlock(DomainModel, defer_build=False):
    """The result of a tool call. The model reads `data` or `error`."""

    kind: Literal["toolResult"] = "toolResult"
    ok: bool
    error: str | None = None
    data: Any = None
    images: tuple[ImageBlock, ...] | None = None


class ReasoningBlock(DomainModel):
    """A model's reasoning, stored unchanged. `payload` is sent back to the same provider and model only."""

    kind: Literal["reasoning"] = "reasoning"
    provider: str
    model: str
    payload: dict[str, Any]


class BlobBlock(DomainModel):
    """A reference to a block that was too large for its row and is stored as the blob `blob`.

    It repeats the members that pairing calls with results, listing messages and estimating tokens need, so that the
    blob is fetched only when its content is used.
    """

    kind: Literal["blob"] = "blob"
    blob: str
    replaced_kind: Literal["text", "toolCall", "toolResult", "reasoning"] = Field(alias="of")
    size: int
    """The size of the block's JSON in bytes."""
    tokens: int | None = None
    """Estimated tokens of the block's text. Blocks that were stored before have none."""
    tool_call_id: str | None = None
    tool_name: str | None = None
    input_digest: str | None = None
    """Of a call: the same for the same input. The content of the blob differs, because it has the call's id."""
    ok: bool | None = None
    error: str | None = None
    """The beginning of the error of a failed result."""
    images: tuple[ImageBlock, ...] | None = None
    """The images of a result, each stored as a blob of its own."""
    provider: str | None = None
    model: str | None = None
    """Set for reasoning, with `provider`: the model it came from."""


Block = Annotated[
    TextBlock | ImageBlock | AudioBlock | ToolCallBlock | ToolResultBlock | ReasoningBlock | BlobBlock,
    Field(discriminator="kind"),
]
