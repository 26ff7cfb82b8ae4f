"""Define tool specifications for models, and the outputs of tool calls."""

from typing import Any

from fermata.domain.base import DomainModel


class ToolImage(DomainModel):
    """A base64 image in a tool's output."""

    mime_type: str
    data: str


class ToolOutput(DomainModel):
    """The outcome of a tool call: `data`, or an `error` for the model to read. No exception is raised for a failure.

    `conflict` means that nothing was done, because the document has changed since the call was planned (decision 0115).
    """

    ok: bool
    data: Any = None
    error: str | None = None
    images: tuple[ToolImage, ...] | None = None
    conflict: bool | None = None

    @classmethod
    def success(cls, data: Any = None) -> "ToolOutput":
        """Return the output of a call that succeeded. `data` is JSON for the model."""
        return cls(ok=True, data=data)

    @classmethod
    def failure(cls, error: str) -> "ToolOutput":
        """Return the output of a call that failed. The model reads `error`, so it says what to do instead."""
        return cls(ok=False, error=error)


class ToolSpec(DomainModel):
    """The description of a tool that the model receives."""

    name: str
    description: str
    input_schema: dict[str, Any]
