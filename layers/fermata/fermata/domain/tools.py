"""What a tool comes to, whoever carried it out."""

from typing import Any

from fermata.domain.base import DomainModel


class ToolImage(DomainModel):
    mime_type: str
    data: str


class ToolOutput(DomainModel):
    """`ok` with `data`, or not ok with `error`: a tool's failure is data the model reads.

    `conflict`: nothing was done, because the document is no longer what the call was planned on.
    """

    ok: bool
    data: Any = None
    error: str | None = None
    images: tuple[ToolImage, ...] | None = None
    conflict: bool | None = None

    @classmethod
    def success(cls, data: Any = None) -> "ToolOutput":
        return cls(ok=True, data=data)

    @classmethod
    def failure(cls, error: str) -> "ToolOutput":
        return cls(ok=False, error=error)


class ToolSpec(DomainModel):
    """A tool as the model is told about it."""

    name: str
    description: str
    input_schema: dict[str, Any]
