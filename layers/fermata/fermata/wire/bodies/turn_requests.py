"""Define the bodies of requests that start, answer and undo turns. `prompt_parts.py` has what a prompt consists of."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, PrivateAttr, StringConstraints, model_validator
from pydantic.config import JsonDict

from fermata.domain.audio_header import MAX_PROMPT_AUDIO
from fermata.domain.blocks import AudioBlock, ImageBlock, TextBlock
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
from fermata.wire.bodies.prompt_parts import (
    MAX_PROMPT_CHARACTERS,
    MAX_PROMPT_FILES,
    MAX_PROMPT_IMAGES,
    ONE_IMAGE_SCHEMA,
    AudioPart,
    FilePart,
    ImagePart,
    PromptPart,
    TextPart,
    check_one_source,
)

_MAX_PROMPT_PARTS = 1 + MAX_PROMPT_IMAGES + MAX_PROMPT_AUDIO + MAX_PROMPT_FILES


def _at_most(count: int, kind: str) -> JsonDict:
    """Build the JSON Schema of a list with at most `count` parts of a kind."""
    part: JsonDict = {"properties": {"kind": {"const": kind}}}
    return {"contains": part, "minContains": 0, "maxContains": count}


_ONE_SNAPSHOT: JsonDict = {
    "not": {
        "required": ["snapshot", "snapshotRef"],
        "properties": {"snapshot": {"not": NULL_SCHEMA}, "snapshotRef": {"type": "string"}},
    }
}
"""JSON Schema of what `SnapshotBody._check_snapshot` checks."""

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

    model_config = ConfigDict(json_schema_extra=ONE_IMAGE_SCHEMA)

    mime_type: str
    data: str | None = None
    upload_ref: UploadRef | None = None

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        check_one_source(self.data, self.upload_ref)
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
