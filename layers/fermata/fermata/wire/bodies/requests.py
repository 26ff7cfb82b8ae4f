"""Request bodies. Chat and tool-result ignore members they do not know, because other client generations send
them; everything else refuses them by name, but from Instatic's browsers. Nothing is coerced: a number is not a string.
"""

import base64
import binascii
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StringConstraints,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from fermata.aws import uploads
from fermata.domain.blocks import ImageBlock, TextBlock
from fermata.domain.errors import PayloadTooLarge
from fermata.domain.image_header import MAX_INPUT_IMAGE_PIXELS, read_image_header
from fermata.domain.scopes import Scope

MAX_PROMPT_CHARACTERS = 400_000
MAX_PROMPT_IMAGES = 8
_MAX_REVISION_CHARACTERS = 200
_MAX_ANNOUNCED_BYTES = 999_999_999
"""More than any upload may have; which kind may have how much is said where it is refused."""


def _sendable(key: str) -> str:
    """A key travels in a header."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError("must be a key: printable ASCII without spaces")
    return key


_NOT_BLANK = Field(json_schema_extra={"pattern": r"\S"})
_Id = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), _NOT_BLANK]
_ApiKey = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=500),
    AfterValidator(_sendable),
    Field(json_schema_extra={"pattern": r"^\s*[!-~]*\s*$"}),
]
"""Empty where a server asks for none."""
_UploadRef = Annotated[str, StringConstraints(min_length=1, max_length=uploads.MAX_UPLOAD_REF_CHARS)]
"""Of an upload, as `POST uploads` answered it."""
_Revision = Annotated[str, StringConstraints(min_length=1, max_length=_MAX_REVISION_CHARACTERS)]
"""Of the editor's document; nobody else reads it."""
_Url = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000), _NOT_BLANK]


_NULL: JsonDict = {"type": "null"}


def _given(member: str) -> JsonDict:
    """JSON Schema for: it is there, and not null."""
    return {"required": [member], "properties": {member: {"type": "string"}}}


def _at_most(count: int, kind: str) -> JsonDict:
    """JSON Schema for: the list holds no more parts of that kind."""
    part: JsonDict = {"properties": {"kind": {"const": kind}}}
    return {"contains": part, "minContains": 0, "maxContains": count}


class LenientBody(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore", strict=True)


class StrictBody(LenientBody):
    model_config = ConfigDict(extra="forbid")


_ONE_IMAGE: JsonDict = {
    "oneOf": [
        {"required": ["data"], "properties": {"data": {"type": "string"}, "uploadRef": _NULL}},
        {"required": ["uploadRef"], "properties": {"uploadRef": {"type": "string"}, "data": _NULL}},
    ]
}
_ONE_SNAPSHOT: JsonDict = {
    "not": {
        "required": ["snapshot", "snapshotRef"],
        "properties": {"snapshot": {"not": _NULL}, "snapshotRef": {"type": "string"}},
    }
}
"""In the words of JSON Schema: an image is given in one way, and a snapshot in one at most."""


class TextPart(LenientBody):
    kind: Literal["text"]
    text: Annotated[str, StringConstraints(max_length=MAX_PROMPT_CHARACTERS)]


class ImagePart(LenientBody):
    """In the request itself, or uploaded before. Looked at from outside only: it is drawn anew once it is known that
    its model can see (turns/start/prompt_images.py).
    """

    model_config = ConfigDict(json_schema_extra=_ONE_IMAGE)

    kind: Literal["image"]
    mime_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: str | None = None
    upload_ref: _UploadRef | None = None

    @model_validator(mode="after")
    def _is_an_image(self) -> "ImagePart":
        if (self.data is None) == (self.upload_ref is None):
            raise ValueError("must hold its image: either 'data' or 'uploadRef'")
        if self.data is not None:
            self._check(self.data)
        return self

    def _check(self, data: str) -> None:
        try:
            raw = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("must hold its image as base64") from None
        picture = read_image_header(raw)
        if picture is None or picture.mime_type != self.mime_type or base64.b64encode(raw).decode() != data:
            raise ValueError(f"does not hold the {self.mime_type} it says it does")
        if picture.pixel_count > (most := MAX_INPUT_IMAGE_PIXELS[self.mime_type]):
            raise PayloadTooLarge(
                f"An image of {self.mime_type} may have {most:,} pixels in all; this one is {picture.width:,} by "
                f"{picture.height:,}. Send a smaller one."
            )


PromptPart = Annotated[TextPart | ImagePart, Field(discriminator="kind")]


_SAYS_SOMETHING: JsonDict = {
    "anyOf": [
        {"properties": {"kind": {"const": "image"}}},
        {"properties": {"kind": {"const": "text"}, "text": {"pattern": r"\S"}}},
    ]
}
_ONE_FORM: JsonDict = {
    "oneOf": [
        {"required": ["prompt"], "properties": {"prompt": {"type": "string", "pattern": r"\S"}, "content": _NULL}},
        {
            "required": ["content"],
            "properties": {
                "content": {
                    "type": "array",
                    "contains": _SAYS_SOMETHING,
                    "allOf": [_at_most(1, "text"), _at_most(MAX_PROMPT_IMAGES, "image")],
                },
                "prompt": _NULL,
            },
        },
    ]
}
"""What `_asks_something` checks, in the words of JSON Schema."""


class SnapshotBody(LenientBody):
    """What the editor shows, in the request itself or uploaded before; and what its document is at."""

    snapshot: Any = None
    snapshot_ref: _UploadRef | None = None
    revision: _Revision | None = None

    @model_validator(mode="after")
    def _shows_one_snapshot(self) -> Self:
        if self.snapshot is not None and self.snapshot_ref is not None:
            raise ValueError("send either 'snapshot' or 'snapshotRef'")
        return self


class ChatBody(SnapshotBody):
    """A prompt, in the old form (`prompt`) or the new one (`content`); both at once are refused."""

    model_config = ConfigDict(json_schema_extra=_ONE_FORM | _ONE_SNAPSHOT)

    conversation_id: _Id
    prompt: Annotated[str, StringConstraints(max_length=MAX_PROMPT_CHARACTERS)] | None = None
    content: Annotated[list[PromptPart], Field(json_schema_extra={"maxItems": MAX_PROMPT_IMAGES + 1})] | None = None

    @model_validator(mode="after")
    def _asks_something(self) -> "ChatBody":
        if (self.prompt is None) == (self.content is None):
            raise ValueError("send either 'prompt' or 'content'")
        parts = self.content or []
        if sum(isinstance(part, TextPart) for part in parts) > 1:
            raise ValueError("'content' may have one text at most")
        if sum(isinstance(part, ImagePart) for part in parts) > MAX_PROMPT_IMAGES:
            raise ValueError(f"'content' may have {MAX_PROMPT_IMAGES} images at most")
        if not self.to_blocks():
            raise ValueError("message must contain text or an image")
        return self

    def to_blocks(self) -> tuple[TextBlock | ImageBlock, ...]:
        """What the user said: the text trimmed and first, then the images, those uploaded by their reference."""
        parts = self.content or []
        text = (self.prompt or "".join(part.text for part in parts if isinstance(part, TextPart))).strip()
        images = [part for part in parts if isinstance(part, ImagePart)]
        said = (TextBlock(text=text),) if text else ()
        return (*said, *(ImageBlock(mime_type=one.mime_type, data=one.data, blob=one.upload_ref) for one in images))

    def image_places(self) -> tuple[str, ...]:
        """Where each image of `blocks` stands in the body."""
        return tuple(
            f"content.{index}.{'data' if part.upload_ref is None else 'uploadRef'}"
            for index, part in enumerate(self.content or [])
            if isinstance(part, ImagePart)
        )


def _without_default(schema: JsonDict) -> None:
    schema.pop("default")


class ToolOutputImage(LenientBody):
    """Looked at when the answer is taken: one that cannot be opened is left out, and the model is told."""

    mime_type: str
    data: str


class ToolOutputBody(LenientBody):
    """What an editor's tool came to: `ok` with `data`, or not `ok` with `error`. Members beyond these are the editor's
    own, and those of docs/editing.md.
    """

    ok: bool
    data: Any = None
    error: str | None = None
    images: list[ToolOutputImage] | None = None
    revision: Annotated[_Revision, Field(json_schema_extra=_without_default)] = ""

    _posted: dict[str, Any] = PrivateAttr()

    @model_validator(mode="wrap")
    @classmethod
    def _keep(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        output = read(value)
        output._posted = value
        return output

    @property
    def posted(self) -> dict[str, Any]:
        """All of it, as it came: the same answer again is told by its every member."""
        return self._posted


class ToolResultBody(SnapshotBody):
    model_config = ConfigDict(json_schema_extra=_ONE_SNAPSHOT)

    bridge_id: _Id
    request_id: _Id
    result: ToolOutputBody


class UndoBody(StrictBody):
    """`through` is the effect key of the oldest edit to take back; without it all of them are."""

    through: _Id | None = None


def _whole(number: Any) -> Any:
    """JSON has one kind of number: 2.0 is as whole as 2."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


class NewUpload(StrictBody):
    """`bytes` and `sha256` (in hexadecimal) of what will be uploaded."""

    kind: uploads.UploadKind
    size: Annotated[int, Field(ge=1, le=_MAX_ANNOUNCED_BYTES, alias="bytes"), BeforeValidator(_whole)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class NewConversation(StrictBody):
    """An empty title is none."""

    scope: Scope
    title: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] | None = None
    credential_id: _Id | None = None
    model_id: _Id | None = None


class ConversationChange(StrictBody):
    title: _Title | None = None
    credential_id: _Id | None = None
    model_id: _Id | None = None


class NewCredential(StrictBody):
    """How the members go together is checked where it is known which providers are served, and where they are."""

    provider_id: _Id
    auth_mode: Literal["apiKey", "baseUrl"]
    display_label: _Title
    api_key: _ApiKey | None = None
    base_url: _Url | None = None


class CredentialChange(StrictBody):
    model_config = ConfigDict(
        json_schema_extra={"anyOf": [_given("displayLabel"), _given("apiKey"), _given("baseUrl")]}
    )

    display_label: _Title | None = None
    api_key: _ApiKey | None = None
    base_url: _Url | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> "CredentialChange":
        if self.display_label is None and self.api_key is None and self.base_url is None:
            raise ValueError("send what is to change: 'displayLabel', 'apiKey' or 'baseUrl'")
        return self


class NewDefault(StrictBody):
    credential_id: _Id
    model_id: _Id


MIN_BUDGET_USD = 0.000_001


def _countable(usd: float) -> float:
    """A table holds no number however small, and nobody is shown less than a millionth."""
    if 0 < usd < MIN_BUDGET_USD:
        raise ValueError(f"must be 0, or {MIN_BUDGET_USD:f} at least")
    return usd


_BudgetUsd = Annotated[
    float,
    Field(ge=0, le=1_000_000_000, json_schema_extra={"anyOf": [{"const": 0}, {"minimum": MIN_BUDGET_USD}]}),
    AfterValidator(_countable),
]
MAX_BUDGET_USERS = 300
"""All of them lie in one item, which may have 400 KB; a name may have 800 bytes."""


class NewBudgetLimits(StrictBody):
    """What is left out or null has no limit."""

    daily_usd: _BudgetUsd | None = None
    monthly_usd: _BudgetUsd | None = None


class NewUserBudgetLimits(NewBudgetLimits):
    user_id: _Id


class NewBudgets(StrictBody):
    """All limits at once; `each_user` is for those who are not in `users`."""

    tenant: NewBudgetLimits = NewBudgetLimits()
    each_user: NewBudgetLimits = NewBudgetLimits()
    users: Annotated[list[NewUserBudgetLimits], Field(max_length=MAX_BUDGET_USERS)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _names_each_user_once(self) -> "NewBudgets":
        names = [user.user_id for user in self.users]
        if len(set(names)) != len(names):
            raise ValueError("'users' may name each user once")
        return self
