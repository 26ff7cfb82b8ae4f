"""Define the parts of a prompt: its text, images, recordings, and files that it names by their addresses."""

import base64
import binascii
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

from fermata.domain.audio_header import read_audio_type
from fermata.domain.errors import PayloadTooLarge
from fermata.domain.image_header import MAX_INPUT_IMAGE_PIXELS, read_image_header
from fermata.wire.bodies.fields import (
    NULL_SCHEMA,
    LenientBody,
    UploadRef,
)

MAX_PROMPT_CHARACTERS = 400_000
MAX_PROMPT_IMAGES = 8
MAX_PROMPT_FILES = 8
"""Named by their addresses."""
MAX_FILE_URL_CHARACTERS = 4000
ONE_IMAGE_SCHEMA: JsonDict = {
    "oneOf": [
        {"required": ["data"], "properties": {"data": {"type": "string"}, "uploadRef": NULL_SCHEMA}},
        {"required": ["uploadRef"], "properties": {"uploadRef": {"type": "string"}, "data": NULL_SCHEMA}},
    ]
}
"""JSON Schema of what `check_one_source` checks."""


def check_one_source(data: str | None, upload_ref: str | None) -> None:
    """Raise ValueError unless an image has one source, as `ONE_IMAGE_SCHEMA` says."""
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

    model_config = ConfigDict(json_schema_extra=ONE_IMAGE_SCHEMA)

    kind: Literal["image"]
    mime_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: str | None = None
    upload_ref: UploadRef | None = None

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        check_one_source(self.data, self.upload_ref)
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

    model_config = ConfigDict(json_schema_extra=ONE_IMAGE_SCHEMA)

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
