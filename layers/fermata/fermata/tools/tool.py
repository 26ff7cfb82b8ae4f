"""The one record every tool of every toolset is, and what its function is given.

A tool is read twice: `Toolset.offered` shows it to the model, `pipeline.admit` checks a call of it. Both ask the
same record (`exists_for`, `permits`, `in_phase`), so what is offered and what is allowed cannot drift apart.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import ConfigDict

from fermata.domain.base import DomainModel
from fermata.domain.caller import Capability
from fermata.tools.schema.json_schema import build_json_schema

if TYPE_CHECKING:
    from fermata.hosts.client import HostClient


class ToolInput(DomainModel):
    """What a tool takes. Optional members default to None, which the model may leave out but never send."""

    model_config = ConfigDict(defer_build=True)


class NoInput(ToolInput):
    pass


class Execution(StrEnum):
    SERVER = "server"
    BROWSER = "browser"
    REMOTE = "remote"
    MCP = "mcp"
    AGENT = "agent"


class Access(StrEnum):
    READ = "read"
    WRITE = "write"


class Risk(StrEnum):
    SAFE = "safe"
    MODERATE = "moderate"
    HIGH = "high"


class Approval(StrEnum):
    """Whether a person must agree first. `POLICY`: to whatever writes or is of high risk."""

    NEVER = "never"
    ALWAYS = "always"
    POLICY = "policy"


class ContentWorkflow(StrEnum):
    """What a content workflow does after a write (a governed editor's review or merge)."""

    NONE = "none"
    REVIEW = "review"
    AUTO_MERGE = "autoMerge"


class ToolFailure(Exception):
    """A handler's way to fail with a sentence the model can act on."""


class TransientToolFailure(ToolFailure):
    """A failure that may be gone at the next attempt (network, overload); an idempotent tool is tried again."""


@dataclass(frozen=True, kw_only=True)
class ToolRetryPolicy:
    """Attempts in total. The wait before attempt n+1 is `backoff_seconds * n`; none begins later than `within_seconds`
    after the first, so that what failed slowly is not asked for again.
    """

    max_attempts: int = 1
    backoff_seconds: float = 0.0
    within_seconds: float = math.inf


@dataclass(frozen=True, kw_only=True)
class ResultPolicy:
    persist: bool = True
    """Keep successful data in the conversation, so that later turns replay it."""
    heavy: bool = False
    """Only the latest result of this tool stays whole within a turn; earlier ones are elided."""
    max_chars: int = 100_000
    """How much JSON text of the data, and of an error, the model gets to see."""
    images: bool = True


@dataclass(frozen=True, kw_only=True)
class ToolEffects:
    """What a successful call changes, for clients that refresh (models, locales, snapshot, branches)."""

    models: tuple[str, ...] = ()
    locales: tuple[str, ...] = ()
    snapshot: bool = False
    branches: bool = False


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _no_host() -> None:
    """Nobody is asked."""


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """Who calls, where and when. `snapshot` is the latest raw value the editor posted in this turn, or None; `host`
    opens the tenant's content system in the caller's name, or says None where it has none.
    """

    tenant: str
    user: str
    capabilities: frozenset[str]
    scope: str
    turn: str
    effect_key: str = ""
    snapshot: Any = None
    host: "Callable[[], HostClient | None]" = _no_host
    role: str | None = None
    phase: str | None = None
    now: Callable[[], datetime] = _utc_now


ToolInputT = TypeVar("ToolInputT", bound=ToolInput, contravariant=True)


class ToolHandler(Protocol[ToolInputT]):
    """What carries a tool out on our side: a ToolOutput, or plain data, which counts as success."""

    def __call__(self, given: ToolInputT, context: ToolContext, /) -> object: ...


@dataclass(frozen=True, kw_only=True)
class Tool:
    """Everything there is to know about one tool. `name` is the canonical one; dialects are `names.py`'s business."""

    name: str
    toolset: str
    description: str
    execution: Execution
    capability: Access
    input: type[ToolInput] = NoInput
    output_schema: dict[str, Any] | None = None
    run: ToolHandler[Any] | None = None
    aliases: tuple[str, ...] = ()
    permissions: frozenset[str] = frozenset()
    """Any one of these is enough; empty means everyone."""
    scopes: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    phases: frozenset[str] = frozenset()
    """Empty scopes, roles or phases mean all of them."""
    tenant: str | None = None
    """The tenant that registered it; None means that every tenant has it."""
    risk: Risk = Risk.SAFE
    approval: Approval = Approval.NEVER
    confirmation: str | None = None
    """The input flag by which the model reports that the user confirmed (`confirmed`)."""
    timeout_seconds: float | None = None
    """None leaves it to the turn's settings."""
    retry: ToolRetryPolicy = field(default_factory=ToolRetryPolicy)
    idempotent: bool = False
    instant: bool = False
    """Answered within milliseconds from what the turn has at hand, and harmless: its result is told in the same
    breath as its call."""
    workflow: ContentWorkflow = ContentWorkflow.NONE
    affects: ToolEffects = field(default_factory=ToolEffects)
    needs_model: frozenset[str] = frozenset()
    """Model abilities without which the tool is pointless (`vision`)."""
    vision_flag: str | None = None
    """The member of the browser's input that says whether the turn's model will see the result's images. It is set
    behind validation, because the model must neither know nor set it (`captureScreenshot`)."""
    extra_browser_input: Mapping[str, Any] = field(default_factory=dict)
    """What the browser's input has besides, always the same and nothing to the model: editors of one generation
    insist on it, the others pass over it."""
    result: ResultPolicy = field(default_factory=ResultPolicy)
    extract: tuple[str, ...] = ()
    """Paths into the data that name entities worth remembering."""
    enabled: bool = True

    def __post_init__(self) -> None:
        if (self.run is None) != (self.execution is Execution.BROWSER):
            raise ValueError(
                f"Tool {self.name}: every tool but a browser tool needs `run`, and a browser tool has none."
            )
        if self.instant and not (self.idempotent and self.execution is Execution.SERVER):
            raise ValueError(f"Tool {self.name}: only an idempotent server tool can be instant.")

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        return build_json_schema(self.input)

    def is_available_in(self, scope: str, tenant: str) -> bool:
        return self.enabled and self.tenant in (None, tenant) and (not self.scopes or scope in self.scopes)

    def permits(self, capabilities: frozenset[str], role: str | None = None) -> bool:
        may_write = self.capability is Access.READ or Capability.WRITE in capabilities
        has_permission = not self.permissions or not self.permissions.isdisjoint(capabilities)
        return may_write and has_permission and (not self.roles or role in self.roles)

    def is_in_phase(self, phase: str | None) -> bool:
        return not self.phases or phase in self.phases

    @property
    def needs_approval(self) -> bool:
        if self.approval is Approval.POLICY:
            return self.capability is Access.WRITE or self.risk is Risk.HIGH
        return self.approval is Approval.ALWAYS
