"""Define a tool: the record that every toolset consists of, and what its handler receives.

The same record is read when tools are offered (`Toolset.build_tool_specs`) and when a call is admitted
(`pipeline.admit_call`). Both ask `is_available_in`, `permits` and `is_in_phase`, so the model is never offered a tool
that it may not call.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import ConfigDict

from fermata.domain.base import DomainModel
from fermata.domain.caller import Capability
from fermata.domain.tools import ToolOutput, ToolSpec
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.schema.json_schema import build_json_schema

if TYPE_CHECKING:
    from fermata.content.opened_space import OpenedSpace
    from fermata.domain.events import Event
    from fermata.domain.tools import ToolOutput
    from fermata.hosts.content_host import ContentHost
    from fermata.plans.draft_session import DraftSession
    from fermata.tools.working_memory import EntityRule


DIGEST_CHARS = 16
"""Hexadecimal characters of a digest: 64 bits of the definition's SHA-256."""


def compute_definition_digest(definition: Any) -> str:
    """Return the digest of a definition of a tool or an agent, which is JSON."""
    canonical = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:DIGEST_CHARS]


class ToolInput(DomainModel):
    """Base class of tool inputs. An optional member defaults to None: the model may omit it but never send null."""

    model_config = ConfigDict(defer_build=True)


class NoInput(ToolInput):
    """The input of a tool that takes no arguments."""


class JsonInput(ToolInput):
    """The input of a tool whose schema is data: any members, which were validated against `Tool.declared_schema`."""

    model_config = ConfigDict(extra="allow")

    @property
    def arguments(self) -> dict[str, Any]:
        """The members as they were sent."""
        return dict(self.model_extra or {})


class Execution(StrEnum):
    """Who runs a tool."""

    SERVER = "server"
    BROWSER = "browser"
    REMOTE = "remote"
    MCP = "mcp"
    AGENT = "agent"


class Access(StrEnum):
    """Whether a tool only reads, or changes something."""

    READ = "read"
    WRITE = "write"


class Risk(StrEnum):
    """How much damage a wrong call can do."""

    SAFE = "safe"
    MODERATE = "moderate"
    HIGH = "high"


class Approval(StrEnum):
    """Whether a person must approve a call first. `POLICY`: if the tool writes or is of high risk.

    `UNLESS_NAMED`: unless a rule of the tenant allows the tool by its name, or its toolset by its name.
    """

    NEVER = "never"
    ALWAYS = "always"
    UNLESS_NAMED = "unlessNamed"
    BY_RISK = "policy"


class ContentWorkflow(StrEnum):
    """The content workflow that follows a write: a review or a merge in a governed editor."""

    NONE = "none"
    REVIEW = "review"
    AUTO_MERGE = "autoMerge"


class ToolFailure(Exception):
    """Raised by a handler to fail with a sentence that the model can act on."""


class TransientToolFailure(ToolFailure):
    """A failure that the next attempt may not meet (network, overload). Idempotent tools are retried after it."""


@value_dataclass(frozen=True, kw_only=True)
class ToolRetryPolicy:
    """How often a tool is tried, and how long.

    Attributes:
        max_attempts: Attempts in total.
        backoff_seconds: The wait before attempt n+1 is `backoff_seconds * n`.
        within_seconds: No attempt starts later than this after the first, so slow failures are not repeated.
    """

    max_attempts: int = 1
    backoff_seconds: float = 0.0
    within_seconds: float = math.inf


@value_dataclass(frozen=True, kw_only=True)
class ResultPolicy:
    """How much of a tool's result the model sees, and for how long."""

    persist: bool = True
    """Store successful data in the conversation, so that later turns replay it."""
    heavy: bool = False
    """Send only the newest result of this tool whole within a turn; earlier results are elided."""
    max_chars: int = 100_000
    """Limit on the JSON text of the data, and on the text of an error."""
    images: bool = True
    shows_whole: bool = False
    """Show clients all of the data, of which the model reads `max_chars`."""


@value_dataclass(frozen=True, kw_only=True)
class ToolEffects:
    """What a successful call changes, for clients that refresh it."""

    models: tuple[str, ...] = ()
    locales: tuple[str, ...] = ()
    snapshot: bool = False
    branches: bool = False


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _no_host() -> None:
    """Stand for a tenant without a content system."""


def _no_draft() -> None:
    """Stand for a call outside of a conversation."""


def _no_content() -> None:
    """Stand for a turn that works in no content space."""


def refuse_remote_call(_definition: str, _arguments: Mapping[str, Any], _effect_key: str) -> ToolOutput:
    """Stand for a turn without remote tools.

    Args:
        _definition: The id of a tool's version.
        _arguments: Of the call.
        _effect_key: Of the call.
    """
    return ToolOutput.failure("Remote tools cannot be called here.")


@value_dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a handler knows about its caller, turn and editor.

    Attributes:
        effect_key: The same for every repetition of one call (`pipeline.build_effect_key`).
        snapshot: The latest raw value that the editor posted in this turn, or None.
        open_host: Opens the tenant's content system on behalf of the caller; returns None if the tenant has none.
        open_draft: Opens the draft of the turn's conversation; returns None outside of one.
        open_content: Opens the content space that the turn works in; returns None if it has none.
        read_prompt: Returns the text of the prompt that started the turn.
        call_remote_tool: Calls the version of a remote tool with this id: its arguments, and the call's effect key.
    """

    tenant: str
    user: str
    capabilities: frozenset[str]
    scope: str
    turn: str
    effect_key: str = ""
    snapshot: Any = None
    open_host: "Callable[[], ContentHost | None]" = _no_host
    open_draft: "Callable[[], DraftSession | None]" = _no_draft
    open_content: "Callable[[], OpenedSpace | None]" = _no_content
    read_prompt: Callable[[], str] = str
    call_remote_tool: Callable[[str, Mapping[str, Any], str], ToolOutput] = refuse_remote_call
    role: str | None = None
    phase: str | None = None
    now: Callable[[], datetime] = _utc_now


ToolInputT = TypeVar("ToolInputT", bound=ToolInput, contravariant=True)


class ToolHandler(Protocol[ToolInputT]):
    """The function that runs a tool. It returns a ToolOutput, or plain data, which counts as success."""

    def __call__(self, tool_input: ToolInputT, context: ToolContext, /) -> object: ...


@value_dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool. `name` is the canonical name; `tool_names.py` derives the prefixed one.

    Nothing reads `workflow` and `required_model_abilities` yet (decision 0672).
    """

    name: str
    toolset: str
    description: str
    execution: Execution
    access: Access
    input_model: type[ToolInput] = NoInput
    declared_schema: Mapping[str, Any] | None = None
    """The input schema of a tool that a tenant has registered; its input model is `JsonInput` (decision 0326)."""
    output_schema: dict[str, Any] | None = None
    handler: ToolHandler[Any] | None = None
    sub_agent: str = ""
    """Of a tool that asks another agent: the agent's scope, with `@` and its version."""
    aliases: tuple[str, ...] = ()
    permissions: frozenset[str] = frozenset()
    """A caller needs one of these; empty means that every caller may use the tool."""
    scopes: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    phases: frozenset[str] = frozenset()
    """Empty scopes, roles or phases mean all of them."""
    tenant: str | None = None
    """The tenant that registered the tool; None means that every tenant has it."""
    risk: Risk = Risk.SAFE
    approval: Approval = Approval.NEVER
    confirmation_flag: str | None = None
    """The input member by which the model reports that the user confirmed (`confirmed`)."""
    describes_unconfirmed: bool = False
    """Whether its handler, called without the flag, does nothing and returns what it would do."""
    timeout_seconds: float | None = None
    """None means the timeout of the turn's settings."""
    retry: ToolRetryPolicy = field(default_factory=ToolRetryPolicy)
    idempotent: bool = False
    instant: bool = False
    """Answered within milliseconds from data that the turn holds, without side effects: call and result are written
    to the turn log together."""
    workflow: ContentWorkflow = ContentWorkflow.NONE
    affects: ToolEffects = field(default_factory=ToolEffects)
    required_model_abilities: frozenset[str] = frozenset()
    """Abilities of a model (`vision`) without which the tool is of no use."""
    vision_flag: str | None = None
    """The member of the browser's input that says whether the turn's model will see the result's images
    (`captureScreenshot`). It is added after validation, because the model must neither know nor set it."""
    extra_browser_input: Mapping[str, Any] = field(default_factory=dict)
    """Constant members that the browser's input has besides the model's arguments: some editor releases require
    them, the others ignore them."""
    works_without_host: Callable[[Any], bool] | None = None
    """Whether the tool can answer from this snapshot, for a tenant without a content system; None for a tool that never
    needs one (decision 0214)."""
    members_of_other_generations: frozenset[str] = frozenset()
    """Input members that only other generations of the editor know. A call that has one is refused, because without it
    the editor would do something else than the model asked for (decision 0210)."""
    result_policy: ResultPolicy = field(default_factory=ResultPolicy)
    entity_rules: "tuple[EntityRule, ...] | None" = ()
    """Where its results name entities worth remembering; without rules by the shape of the data; None for nowhere."""
    reads_outside_content: bool = False
    """Whether its results hold what people outside of the workspace may have written, such as web pages."""
    ends_turn: bool = False
    """Whether the turn ends with a call of the tool, as its event says. The other calls of its round are dropped."""
    build_events: "Callable[[ToolOutput, int], tuple[Event, ...]] | None" = None
    """Returns what the turn's log keeps of an output, given how many plans were refused in the turn before."""
    enabled: bool = True

    def __post_init__(self) -> None:
        if (self.handler is None) != (self.execution in (Execution.BROWSER, Execution.AGENT)):
            raise ValueError(
                f"Tool {self.name}: every tool needs `handler` but those of browsers and agents, which have none."
            )
        if bool(self.sub_agent) != (self.execution is Execution.AGENT):
            raise ValueError(f"Tool {self.name}: a tool names a sub-agent if it is run by one.")
        if self.instant and not (self.idempotent and self.execution is Execution.SERVER):
            raise ValueError(f"Tool {self.name}: only an idempotent server tool can be instant.")

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the input, which models and editors receive."""
        return build_json_schema(self.input_model) if self.declared_schema is None else dict(self.declared_schema)

    def get_spec(self, wire_name: str) -> ToolSpec:
        """Return what a model receives about the tool, the same object each time, so that drivers encode it once."""
        spec = self._spec_by_name.get(wire_name)
        if spec is None:
            spec = ToolSpec(name=wire_name, description=self.description, input_schema=self.input_schema)
            self._spec_by_name[wire_name] = spec
        return spec

    @cached_property
    def _spec_by_name(self) -> dict[str, ToolSpec]:
        return {}

    @cached_property
    def definition(self) -> dict[str, Any]:
        """What a decision about a call of the tool relies on, as JSON."""
        return {
            "name": self.name,
            "toolset": self.toolset,
            "description": self.description,
            "input": self.input_schema,
            "execution": self.execution.value,
            "access": self.access.value,
            "permissions": sorted(self.permissions),
            "risk": self.risk.value,
            "approval": self.approval.value,
            "confirmation": self.confirmation_flag,
            "idempotent": self.idempotent,
            "outside": self.reads_outside_content,
            "enabled": self.enabled,
            **({"agent": self.sub_agent} if self.sub_agent else {}),
        }

    @cached_property
    def digest(self) -> str:
        """The digest of the definition. A tool with another one is another tool to those who have approved it."""
        return compute_definition_digest(self.definition)

    def is_available_in(self, scope: str, tenant: str) -> bool:
        """Return whether the tool is enabled, and one of this tenant and scope."""
        return self.enabled and self.tenant in (None, tenant) and (not self.scopes or scope in self.scopes)

    def permits(self, capabilities: frozenset[str], role: str | None = None) -> bool:
        """Return whether a caller with these capabilities and this role may use the tool."""
        may_write = self.access is Access.READ or Capability.WRITE in capabilities
        has_permission = not self.permissions or not self.permissions.isdisjoint(capabilities)
        return may_write and has_permission and (not self.roles or role in self.roles)

    def is_in_phase(self, phase: str | None) -> bool:
        """Return whether the tool is offered in this phase of the document's workflow."""
        return not self.phases or phase in self.phases

    @property
    def needs_approval(self) -> bool:
        """Whether a person decides about each call. By risk: about writes, and about reads of high risk."""
        if self.approval is Approval.BY_RISK:
            return self.access is Access.WRITE or self.risk is Risk.HIGH
        return self.approval in (Approval.ALWAYS, Approval.UNLESS_NAMED)
