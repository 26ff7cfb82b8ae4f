"""Define the settings that steer how an agent's turns run: limits, sampling, rules for steps, history and hooks."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from fermata.domain.base import DomainModel

DEFAULT_FILE_DOWNLOAD_BYTES = 20 * 1024 * 1024
DEFAULT_FILE_DOWNLOAD_MS = 30_000


def _read_milliseconds(value: Any) -> Any:
    """Return a bare number as the limit of the whole turn."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {"totalMs": value} if is_number else value


def _list_stops(value: Any) -> Any:
    """Return the tools to stop at as a list. An empty one could only be a mistake."""
    if isinstance(value, list) and not value:
        raise ValueError("The list is empty. Name a tool, or leave it out.")
    return [value] if isinstance(value, str) else value


class _SettingsModel(DomainModel):
    """The base of these models. Few functions validate one, so that most are built on first use (decision 0358)."""


_Name = Annotated[str, StringConstraints(min_length=1)]
_Count = Annotated[int, Field(strict=True, ge=1)]
_Names = tuple[_Name, ...]
_StrictBool = Annotated[bool, Field(strict=True)]


class NamedToolChoice(_SettingsModel):
    """The model has to call this tool."""

    type: Literal["tool"] = "tool"
    tool_name: _Name


ToolChoice = Literal["auto", "required", "none"] | NamedToolChoice


class RunTimeLimits(_SettingsModel, defer_build=False):
    """How long a turn, a step and the wait for the next part of a response may take, in milliseconds."""

    total_ms: _Count | None = None
    step_ms: _Count | None = None
    chunk_ms: _Count | None = None


class StepRule(_SettingsModel):
    """What is different in some steps. Steps are counted from 1; `steps` alone decides where it is present."""

    steps: tuple[_Count, ...] | None = None
    first: Annotated[_Count | None, Field(alias="from")] = None
    last: Annotated[_Count | None, Field(alias="to")] = None
    active_tools: _Names | None = None
    tool_choice: ToolChoice | None = None
    max_output_tokens: _Count | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None


PruneRange = Annotated[
    str, StringConstraints(pattern=r"^(all|none|before-last-message|before-last-[1-9][0-9]{0,3}-messages)$")
]


class ToolCallPruneRule(_SettingsModel):
    """Which calls are left out: those of `tools`, or of all tools."""

    type: PruneRange
    tools: _Names | None = None


class PruneRules(_SettingsModel):
    """What of earlier messages the model is not sent again."""

    reasoning: Literal["all", "before-last-message", "none"] = "none"
    tool_calls: PruneRange | tuple[ToolCallPruneRule, ...] = "none"
    empty_messages: Literal["keep", "remove"] = "remove"


class TranscriptionSettings(_SettingsModel):
    """Which model turns audio of users into text."""

    connection_id: _Name
    model: _Name
    provider_options: dict[str, Any] = Field(default_factory=dict)


class FileDownloadLimits(_SettingsModel):
    """Limits of a file that a message names by its address. `timeout` is in milliseconds."""

    max_bytes: _Count = DEFAULT_FILE_DOWNLOAD_BYTES
    timeout: _Count = DEFAULT_FILE_DOWNLOAD_MS


class RunHooks(_SettingsModel):
    """The endpoints that are called at points of a turn, by their ids. Only `on_finish` is waited for."""

    on_start: _Names = ()
    on_step_start: _Names = ()
    on_tool_call_start: _Names = ()
    on_tool_call_finish: _Names = ()
    on_step_finish: _Names = ()
    on_finish: _Names = ()

    @property
    def endpoint_ids(self) -> tuple[str, ...]:
        """All endpoints that are named, each once."""
        lists = (getattr(self, name) for name in type(self).model_fields)
        return tuple(dict.fromkeys(endpoint for names in lists for endpoint in names))


class OutputFormat(_SettingsModel):
    """The JSON Schema that an answer has to match, with its name for the provider."""

    name: _Name = "answer"
    description: str = ""
    json_schema: Annotated[dict[str, Any], Field(alias="schema")]


def _read_output(value: Any) -> Any:
    """Return a bare JSON Schema as an output format."""
    return {"schema": value} if isinstance(value, dict) and "schema" not in value else value


class RunSettings(_SettingsModel):
    """How the turns of an agent run. Whatever is None or empty is left to the deployment and the provider.

    Attributes:
        max_steps: How many model requests a turn may make.
        stop_on_tool_call: The turn ends after the step in which one of these tools is called.
        active_tools: The tools that are offered; None for all.
        max_output_tokens: The limit of each response.
        max_retries: How often a failed request is sent again.
        repair_tool_call: Whether input that does not match a tool's schema goes back to the model.
        prepare_step: The first rule that matches a step counts.
        prune: What of the history is left out; None for nothing.
        generate_title: Whether the first turn of a conversation gives it a title.
        page_context: Whether the instructions begin with what the page has sent.
        provider_options: Options by provider, which are sent as they are.
        output: The schema of the answer; None for text.
    """

    max_steps: _Count | None = None
    stop_on_tool_call: Annotated[_Names, BeforeValidator(_list_stops)] = ()
    tool_choice: ToolChoice = "auto"
    active_tools: _Names | None = None
    max_output_tokens: _Count | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: _Count | None = None
    frequency_penalty: Annotated[float, Field(ge=-1, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-1, le=1)] | None = None
    seed: Annotated[int, Field(strict=True)] | None = None
    stop_sequences: _Names = ()
    max_retries: Annotated[int, Field(strict=True, ge=0)] | None = None
    timeout: Annotated[RunTimeLimits | None, BeforeValidator(_read_milliseconds)] = None
    repair_tool_call: _StrictBool = False
    prepare_step: tuple[StepRule, ...] = ()
    prune: PruneRules | None = None
    generate_title: _StrictBool = False
    page_context: _StrictBool = False
    transcription: TranscriptionSettings | None = None
    file_download: FileDownloadLimits = FileDownloadLimits.model_construct()
    provider_options: dict[str, Any] = Field(default_factory=dict)
    output: Annotated[OutputFormat | None, BeforeValidator(_read_output)] = None
    hooks: RunHooks = RunHooks.model_construct()


DEFAULT_RUN_SETTINGS = RunSettings.model_construct()
