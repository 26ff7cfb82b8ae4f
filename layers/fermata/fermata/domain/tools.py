"""Define tool specifications for models, and the outputs of tool calls."""

from typing import Any

from pydantic import Field

from fermata.domain.base import DomainModel


class ToolImage(DomainModel):
    """A base64 image in a tool's output."""

    mime_type: str
    data: str


class ToolExecution(DomainModel):
    """How the call of a tool with a manifest went: the members that its envelope has besides data and message.

    Attributes:
        code: Why it failed (`remote_tools/manifest_tool_executor.py`); None for a success.
        retryable: For a failure, whether the same call may succeed later.
        latency_ms: Milliseconds of all attempts, with the waits between them.
        attempts: How often it was tried; 0 for one whose work goes on later.
    """

    code: str | None = None
    retryable: bool | None = None
    latency_ms: int = 0
    attempts: int = 1
    deferred: bool | None = None
    """Set for a result that stands for one that comes later."""


AWAITED_CODE = "awaited"
"""The code of a call whose tool sends its result later. No client sees it."""


class ToolOutput(DomainModel, defer_build=False):
    """The outcome of a tool call: `data`, or an `error` for the model to read. No exception is raised for a failure.

    `conflict` means that nothing was done, because the document has changed since the call was planned (decision 0115).
    """

    ok: bool
    data: Any = None
    error: str | None = None
    images: tuple[ToolImage, ...] | None = None
    conflict: bool | None = None
    execution: ToolExecution | None = None
    """Set for tools with a manifest."""
    whole_data: Any = Field(default=None, exclude=True)
    """What clients are shown where the model reads only a part of it. No row stores it with the output."""

    @property
    def is_awaited(self) -> bool:
        """Whether the tool has accepted the call, and sends its result later."""
        return self.execution is not None and self.execution.code == AWAITED_CODE

    @classmethod
    def awaited(cls, seconds: float) -> "ToolOutput":
        """Return what stands for the result of a call that is awaited for so many seconds."""
        execution = ToolExecution(code=AWAITED_CODE, attempts=0)
        return cls(ok=False, data={"seconds": seconds}, error="The result is awaited.", execution=execution)

    @classmethod
    def success(cls, data: Any = None) -> "ToolOutput":
        """Return the output of a call that succeeded. `data` is JSON for the model."""
        return cls(ok=True, data=data)

    @classmethod
    def failure(cls, error: str) -> "ToolOutput":
        """Return the output of a call that failed. The model reads `error`, so it says what to do instead."""
        return cls(ok=False, error=error)


class ClientTool(DomainModel):
    """A tool that the client of a turn has declared, and carries out itself."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = Field(default_factory=dict)


class DirectCall(DomainModel):
    """A call of a tool that a turn makes without asking a model (decision 0444). `tool_name` is the canonical one."""

    tool_name: str
    input: dict[str, Any] = Field(default_factory=dict)


_SUB_AGENT_MEMBERS = frozenset({"_subAgent", "agentId", "text"})


def build_sub_agent_data(agent_id: str, text: str) -> dict[str, Any]:
    """Return the data of a sub-agent's answer. The model that has asked it reads the text only."""
    return {"_subAgent": True, "agentId": agent_id, "text": text}


def read_sub_agent_text(data: Any) -> str | None:
    """Return the text of a sub-agent's answer; None for the data of any other result."""
    if not isinstance(data, dict) or data.get("_subAgent") is not True or data.keys() != _SUB_AGENT_MEMBERS:
        return None
    return str(data["text"])


class ToolSpec(DomainModel, defer_build=False):
    """The description of a tool that the model receives."""

    name: str
    description: str
    input_schema: dict[str, Any]
