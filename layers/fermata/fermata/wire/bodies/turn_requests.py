"""Define the bodies of requests that start, answer and undo turns."""

import base64
import binascii
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, PrivateAttr, StringConstraints, model_validator
from pydantic.config import JsonDict

from fermata.domain.audio_header import MAX_PROMPT_AUDIO, read_audio_type
from fermata.domain.blocks import AudioBlock, ImageBlock, TextBlock
from fermata.domain.errors import PayloadTooLarge
from fermata.domain.image_header import MAX_INPUT_IMAGE_PIXELS, read_image_header
from fermata.domain.page_context import AgentContext
from fermata.wire.bodies.fields import (
    NULL_SCHEMA,
    ContentSpaceName,
    LenientBody,
    ResourceId,
    Revision,
    StrictBody,
    UploadRef,
)

MAX_PROMPT_CHARACTERS = 400_000
MAX_PROMPT_IMAGES = 8
MAX_PROMPT_FILES = 8
"""Named by their addresses."""
MAX_FILE_URL_CHARACTERS = 4000
_MAX_PROMPT_PARTS = 1 + MAX_PROMPT_IMAGES + MAX_PROMPT_AUDIO + MAX_PROMPT_FILES


def _at_most(count: int, kind: str) -> JsonDict:
    """Build the JSON Schema of a list with at most `count` parts of a kind."""
    part: JsonDict = {"properties": {"kind": {"const": kind}}}
    return {"contains": part, "minContains": 0, "maxContains": count}


_ONE_IMAGE: JsonDict = {
    "oneOf": [
        {"required": ["data"], "properties": {"data": {"type": "string"}, "uploadRef": NULL_SCHEMA}},
        {"required": ["uploadRef"], "properties": {"uploadRef": {"type": "string"}, "data": NULL_SCHEMA}},
    ]
}
_ONE_SNAPSHOT: JsonDict = {
    "not": {
        "required": ["snapshot", "snapshotRef"],
        "properties": {"snapshot": {"not": NULL_SCHEMA}, "snapshotRef": {"type": "string"}},
    }
}
"""JSON Schemas of what the validators check: an image has one source, and a snapshot at most one."""


def _check_one_source(data: str | None, upload_ref: str | None) -> None:
    if (data is None) == (upload_ref is None):
        raise ValueError("must hold its image: either 'data' or 'uploadRef'")


class TextPart(LenientBody):
    """A text of a prompt."""

    kind: Literal["text"]
    text: Annotated[str, StringConstraints(max_length=MAX_PROMPT_CHARACTERS)]


class ImagePart(LenientBody):
    """An image of a prompt, in the request itself or uploaded before.

    Only its header is checked. It is re-encoded when it is known that the model accepts images.
    """

    model_config = ConfigDict(json_schema_extra=_ONE_IMAGE)

    kind: Literal["image"]
    mime_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: str | None = None
    upload_ref: UploadRef | None = None

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        _check_one_source(self.data, self.upload_ref)
        if self.data is not None:
            self._check_data(self.data)
        return self

    def _check_data(self, data: str) -> None:
        try:
            raw = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("must hold its image as base64") from None
        header = read_image_header(raw)
        if header is None or header.mime_type != self.mime_type or base64.b64encode(raw).decode() != data:
            raise ValueError(f"does not hold the {self.mime_type} it says it does")
        if header.pixel_count > (maximum := MAX_INPUT_IMAGE_PIXELS[self.mime_type]):
            raise PayloadTooLarge(
                f"An image of {self.mime_type} may have {maximum:,} pixels in all; this one is {header.width:,} by "
                f"{header.height:,}. Send a smaller one."
            )


class AudioPart(LenientBody):
    """A recording of a prompt, in the request itself or uploaded before (kind `audio`).

    What is said in it is written down before the turn starts, and the model reads that.
    """

    model_config = ConfigDict(json_schema_extra=_ONE_IMAGE)

    kind: Literal["audio"]
    mime_type: Literal["audio/mpeg", "audio/wav", "audio/mp4", "audio/webm", "audio/ogg"]
    data: str | None = None
    upload_ref: UploadRef | None = None

    @model_validator(mode="after")
    def _check_recording(self) -> Self:
        if (self.data is None) == (self.upload_ref is None):
            raise ValueError("must hold its recording: either 'data' or 'uploadRef'")
        if self.data is not None:
            try:
                raw = base64.b64decode(self.data, validate=True)
            except (binascii.Error, ValueError):
                raise ValueError("must hold its recording as base64") from None
            if read_audio_type(raw) != self.mime_type:
                raise ValueError(f"does not hold the {self.mime_type} it says it does")
        return self


class FilePart(LenientBody):
    """A file of a prompt, by its address: a picture, a recording or a text.

    It is downloaded before the turn starts, over https and from the public internet only. `mimeType` counts if its
    server names none.
    """

    kind: Literal["file"]
    url: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_FILE_URL_CHARACTERS),
        Field(json_schema_extra={"pattern": "^[hH][tT][tT][pP][sS]?:"}),
    ]
    name: Annotated[str, StringConstraints(max_length=200)] = ""
    mime_type: Annotated[str, StringConstraints(max_length=100)] = ""

    @model_validator(mode="after")
    def _check_address(self) -> Self:
        if not self.url.lower().startswith(("https:", "http:")):
            raise ValueError("must have an https address as its 'url'")
        return self


PromptPart = Annotated[TextPart | ImagePart | AudioPart | FilePart, Field(discriminator="kind")]


_HAS_CONTENT: JsonDict = {
    "anyOf": [
        {"properties": {"kind": {"enum": ["image", "audio", "file"]}}},
        {"properties": {"kind": {"const": "text"}, "text": {"pattern": r"\S"}}},
    ]
}
_ONE_PROMPT: JsonDict = {
    "oneOf": [
        {
            "required": ["prompt"],
            "properties": {"prompt": {"type": "string", "pattern": r"\S"}, "content": NULL_SCHEMA},
        },
        {
            "required": ["content"],
            "properties": {
                "content": {
                    "type": "array",
                    "contains": _HAS_CONTENT,
                    "allOf": [
                        _at_most(1, "text"),
                        _at_most(MAX_PROMPT_IMAGES, "image"),
                        _at_most(MAX_PROMPT_AUDIO, "audio"),
                        _at_most(MAX_PROMPT_FILES, "file"),
                    ],
                },
                "prompt": NULL_SCHEMA,
            },
        },
    ]
}
"""JSON Schema of what `ChatBody._check_prompt` checks."""


class SnapshotBody(LenientBody):
    """The editor's document, in the request itself or uploaded before, and its revision."""

    snapshot: Any = None
    snapshot_ref: UploadRef | None = None
    revision: Revision | None = None

    @model_validator(mode="after")
    def _check_snapshot(self) -> Self:
        if self.snapshot is not None and self.snapshot_ref is not None:
            raise ValueError("send either 'snapshot' or 'snapshotRef'")
        return self


class PageContext(StrictBody):
    """What the page says of itself to an agent of the workspace: its id, the query of its address, what it shares.

    `shared_state_read_only` is true for a page that takes no updates of what it shares.
    """

    page_id: Annotated[str, StringConstraints(max_length=500)] = ""
    url_query: dict[str, Any] = Field(default_factory=dict)
    shared_state: dict[str, Any] | None = None
    shared_state_read_only: bool = False

    def to_agent_context(self) -> AgentContext:
        """Return the context of a turn."""
        return AgentContext.model_validate(self.model_dump())


class ChatBody(SnapshotBody):
    """A prompt: either `prompt`, as older clients send it, or `content`.

    `when_busy` says what happens while another turn of the conversation runs: the prompt is refused, waits for its end,
    or ends it. `browser_tools` is false for a client that carries out no tool requests: its turn is offered no tools of
    the browser. `context` is for agents of the workspace, whose properties can refer to it. `space` is for agents that
    work in a content space: `site/environment`, instead of the conversation's.
    """

    model_config = ConfigDict(json_schema_extra=_ONE_PROMPT | _ONE_SNAPSHOT)

    conversation_id: ResourceId
    prompt: Annotated[str, StringConstraints(max_length=MAX_PROMPT_CHARACTERS)] | None = None
    content: Annotated[list[PromptPart], Field(json_schema_extra={"maxItems": _MAX_PROMPT_PARTS})] | None = None
    when_busy: Literal["reject", "enqueue", "interrupt"] = "reject"
    browser_tools: bool = True
    context: PageContext | None = None
    space: ContentSpaceName | None = None

    @model_validator(mode="after")
    def _check_prompt(self) -> Self:
        if (self.prompt is None) == (self.content is None):
            raise ValueError("send either 'prompt' or 'content'")
        parts = self.content or []
        if sum(isinstance(part, TextPart) for part in parts) > 1:
            raise ValueError("'content' may have one text at most")
        if sum(isinstance(part, ImagePart) for part in parts) > MAX_PROMPT_IMAGES:
            raise ValueError(f"'content' may have {MAX_PROMPT_IMAGES} images at most")
        if sum(isinstance(part, AudioPart) for part in parts) > MAX_PROMPT_AUDIO:
            raise ValueError(f"'content' may have {MAX_PROMPT_AUDIO} recordings at most")
        has_files = sum(isinstance(part, FilePart) for part in parts)
        if has_files > MAX_PROMPT_FILES:
            raise ValueError(f"'content' may have {MAX_PROMPT_FILES} files at most")
        if not has_files and not self.to_blocks():
            raise ValueError("message must contain text or an image")
        return self

    def to_blocks(self) -> tuple[TextBlock | ImageBlock | AudioBlock, ...]:
        """Convert the prompt to blocks: the text, trimmed, then the images, then the recordings.

        What was uploaded has its reference. Files that are named by their addresses are left out.
        """
        parts = self.content or []
        text = (self.prompt or "".join(part.text for part in parts if isinstance(part, TextPart))).strip()
        images = [part for part in parts if isinstance(part, ImagePart)]
        text_blocks = (TextBlock(text=text),) if text else ()
        image_blocks = (ImageBlock(mime_type=part.mime_type, data=part.data, blob=part.upload_ref) for part in images)
        recordings = [part for part in parts if isinstance(part, AudioPart)]
        audio_blocks = (
            AudioBlock(mime_type=part.mime_type, data=part.data, blob=part.upload_ref) for part in recordings
        )
        return (*text_blocks, *image_blocks, *audio_blocks)

    def image_places(self) -> tuple[str, ...]:
        """Return the path of each image of `to_blocks` in the body, for error messages."""
        return tuple(
            f"content.{index}.{'data' if part.upload_ref is None else 'uploadRef'}"
            for index, part in enumerate(self.content or [])
            if isinstance(part, ImagePart)
        )


def _without_default(schema: JsonDict) -> None:
    schema.pop("default")


class ToolOutputImage(LenientBody):
    """An image of a tool's output, in the request itself or uploaded before.

    One that cannot be decoded is left out, with a note to the model.
    """

    model_config = ConfigDict(json_schema_extra=_ONE_IMAGE)

    mime_type: str
    data: str | None = None
    upload_ref: UploadRef | None = None

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        _check_one_source(self.data, self.upload_ref)
        return self


class ToolOutputBody(LenientBody):
    """The output of an editor's tool: `ok` with `data`, or not `ok` with `error` (decision 0095).

    It may have other members: those of docs/revisions-and-undo.md, and the editor's own.
    """

    ok: bool
    data: Any = None
    error: str | None = None
    images: list[ToolOutputImage] | None = None
    revision: Annotated[Revision, Field(json_schema_extra=_without_default)] = ""

    _posted: dict[str, Any] = PrivateAttr()

    @model_validator(mode="wrap")
    @classmethod
    def _keep_posted(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        output = validate(value)
        output._posted = value
        return output

    @property
    def posted(self) -> dict[str, Any]:
        """The whole output as it was posted. A repeated answer is recognized by all of its members."""
        return self._posted


class ToolResultBody(SnapshotBody):
    """An answer to a tool request."""

    model_config = ConfigDict(json_schema_extra=_ONE_SNAPSHOT)

    bridge_id: ResourceId
    request_id: ResourceId
    result: ToolOutputBody


class UndoBody(StrictBody):
    """`through` is the effect key of the oldest edit to undo. Without it, all edits are undone."""

    through: ResourceId | None = None
