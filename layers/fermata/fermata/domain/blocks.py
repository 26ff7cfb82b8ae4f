"""What a message is made of."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fermata.domain.base import DomainModel


class TextBlock(DomainModel):
    kind: Literal["text"] = "text"
    text: str


class ImageBlock(DomainModel):
    """Base64 image data, or the key of the blob that holds it (its bytes as they are, not base64).

    `width`, `height` and `size` (bytes of the image itself) are known once it lies in the bucket, as far as its header
    tells them.
    """

    kind: Literal["image"] = "image"
    mime_type: str
    data: str | None = None
    blob: str | None = None
    width: int | None = None
    height: int | None = None
    size: int | None = None


class ToolCallBlock(DomainModel):
    """The model asks for a tool. `input` is what it sent, unvalidated, immutable from here on."""

    kind: Literal["toolCall"] = "toolCall"
    tool_call_id: str
    tool_name: str
    input: Any = Field(default_factory=dict)
    malformed: bool | None = None
    """True when the argument text was not JSON or was cut off; such a call is never run."""


class ToolResultBlock(DomainModel):
    """What a call came to: the model reads `data` or `error`."""

    kind: Literal["toolResult"] = "toolResult"
    ok: bool
    error: str | None = None
    data: Any = None
    images: tuple[ImageBlock, ...] | None = None


class ReasoningBlock(DomainModel):
    """A provider's thinking, kept byte-exact. Only the same provider and model may see `payload` again."""

    kind: Literal["reasoning"] = "reasoning"
    provider: str
    model: str
    payload: dict[str, Any]


class BlobBlock(DomainModel):
    """Stands for a block that was too large for its row and lies in the bucket under `blob`.

    It keeps what pairing, listing and weighing need, so that nobody fetches a block to throw it away.
    """

    kind: Literal["blob"] = "blob"
    blob: str
    of: Literal["text", "toolCall", "toolResult", "reasoning"]
    size: int
    """Bytes of the block's JSON."""
    tool_call_id: str | None = None
    tool_name: str | None = None
    ok: bool | None = None
    error: str | None = None
    """The beginning of a failed result's error."""
    images: tuple[ImageBlock, ...] | None = None
    """A result's pictures; each lies in the bucket by itself."""
    provider: str | None = None
    model: str | None = None
    """Whose reasoning it is."""


Block = Annotated[
    TextBlock | ImageBlock | ToolCallBlock | ToolResultBlock | ReasoningBlock | BlobBlock,
    Field(discriminator="kind"),
]
