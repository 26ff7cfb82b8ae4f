"""Read the deployment's settings from environment variables."""

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fermata.domain.use_limits import CallerLimits, parse_use_limits

TURN_RETENTION_SECONDS = 7 * 86400
"""How long a turn's rows are kept after the latest moment at which it can still wait for an answer."""


def _check_url_object(text: str) -> str:
    urls: object = None
    with contextlib.suppress(ValueError):
        urls = json.loads(text)
    if not isinstance(urls, dict) or not all(isinstance(url, str) for url in urls.values()):
        raise ValueError("a JSON object of URLs is expected")
    return text


def _check_use_limits(text: str) -> str:
    parse_use_limits(text)
    return text


class SettingsError(RuntimeError):
    """An environment variable is missing or invalid. Only the operator can correct it."""


class Settings(BaseModel):
    """The settings of one deployment. A field is read from the environment variable with its name in capitals.

    Times are in seconds unless the name states another unit.
    """

    model_config = ConfigDict(frozen=True)

    conversations_table: str
    bridges_table: str
    pricing_table: str
    usage_table: str
    settings_table: str
    content_table: str
    bucket: str
    key_id: str
    state_machine_arn: str
    fermata_stage: str = "dev"
    provider_urls: Annotated[str, AfterValidator(_check_url_object)] = "{}"
    """Base URLs by provider, as a JSON object; they override the URLs of drivers/providers."""
    vector_bucket_arn: str = ""
    """The S3 vector bucket of the search; without one, vectors are kept in rows (decision 0520)."""
    webhook_queue_url: str = ""
    """The SQS queue of events for webhooks; without one, nothing is delivered."""
    tool_manifest_path: str = ""
    """A file that lists remote tools for all tenants (remote_tools/deployment_tools.py)."""
    public_url: str = ""
    """The address under which the service is reached, which remote tools are told for results that they send later."""
    catalogue_url: str = "https://openrouter.ai/api/v1/models"
    """The source of list prices and context window sizes (pricing/catalogue_refresh.py)."""

    heartbeat_seconds: int = 90
    """HeartbeatSeconds of the workflow's state RunRound. A longer pause moves to the state Hold (decision 0005)."""
    browser_wait_seconds: float = 90
    flush_ms: int = 250
    flush_bytes: int = 900
    poll_ms: int = 100
    idle_poll_ms: int = 500
    reader_seconds: float = 840
    reader_heartbeat_seconds: float = 12
    abandoned_seconds: float = 5
    """How long a turn of an Instatic client runs on without a reader (turns/read/abandonment.py, decision 0068)."""
    provider_stall_seconds: float = 120
    provider_seconds: float = 480
    """The maximum duration of one provider request."""
    provider_attempts: int = 3
    """The maximum number of requests while the provider fails before its first output."""
    max_answer_tokens: int = 8192
    """The token limit of one response. Drivers raise it where thinking counts against the same limit."""
    thinking_tokens: int = 0
    """The thinking budget of a request (decision 0080). 0 leaves it to the model."""
    unanswered_calls: Literal["fail", "tell_model"] = "fail"
    """What an unanswered browser call does: end the turn with an error, or report it to the model."""
    unpriced_models: Literal["refuse", "dearest"] = "refuse"
    """What a budget does with a model whose price is unknown: refuse it, or count it at the dearest known price."""
    max_rounds: int = 50
    max_repeated_calls: int = 3
    """How often a call with the same input is answered before the model must answer (decision 0202). 0: no limit."""
    max_failed_rounds: int = 5
    """How many rounds in a row may fail before the model must answer (decision 0202). 0: no limit."""
    default_window_tokens: int = 128_000
    """The context window assumed for a model whose real one is unknown."""
    ollama_window_tokens: int = 32_768
    """The context window requested from Ollama, which reloads a model when the value changes (decision 0072)."""
    max_round_attempts: int = 2
    """How often the model request of one round may start, counting restarts after its function crashed."""
    max_executions: int = 5
    """How many workflow executions one turn may use before it ends with an error."""
    start_grace_seconds: float = 10
    stalled_turn_seconds: float = 900
    hold_days: int = 30
    use_limits: Annotated[str, AfterValidator(_check_use_limits)] = ""
    """NAME=NUMBER,NAME=NUMBER: limits of tenants that have none of their own (docs/limits.md)."""
    fermata_faults: str = Field(default="")
    """A folder of fault rules, used on the local stage only (aws/fault_injection.py)."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """Read the settings.

        Raises:
            SettingsError: A variable is missing or invalid, or the stage `local` runs on AWS.
        """
        values = os.environ if environment is None else environment
        if _is_local_on_aws(values):
            raise SettingsError("Stage `local` is for one machine only. Deploy with Stage=dev or Stage=prod.")
        names = {name.upper(): name for name in cls.model_fields}
        fields = {field: values[name] for name, field in names.items() if values.get(name)}
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise SettingsError(_describe_invalid_variables(error)) from error

    def load_provider_urls(self) -> dict[str, str]:
        """Return the base URLs that override those of providers, by provider."""
        urls: dict[str, str] = json.loads(self.provider_urls)
        return urls

    @property
    def caller_limits(self) -> CallerLimits:
        """What a user and a tenant may use, unless the tenant has limits of its own."""
        return parse_use_limits(self.use_limits)

    @property
    def is_loopback_allowed(self) -> bool:
        """Whether credentials and hosts may use plain http to addresses on this machine."""
        return self.fermata_stage == "local"

    @property
    def turn_lifetime_seconds(self) -> int:
        """From a turn's start to the expiry of its rows: the longest hold and 7 days."""
        return self.hold_days * 86400 + TURN_RETENTION_SECONDS


def _describe_invalid_variables(error: ValidationError) -> str:
    """Name the missing variables, and every invalid one with what is wrong, without its value."""
    details = error.errors(include_input=False, include_url=False)
    missing = [str(detail["loc"][0]).upper() for detail in details if detail["type"] == "missing"]
    wrong = [f"{str(detail['loc'][0]).upper()}: {detail['msg']}." for detail in details if detail["type"] != "missing"]
    to_set = [f"Set these environment variables of the function: {', '.join(missing)}."] if missing else []
    return " ".join([*to_set, *wrong])


def _is_local_on_aws(environment: Mapping[str, str]) -> bool:
    """Return whether a function on AWS has the stage `local`, which would allow too much there.

    Only the local cloud sets AWS_ENDPOINT_URL for its functions.
    """
    is_function = bool(environment.get("AWS_LAMBDA_FUNCTION_NAME"))
    is_emulated = bool(environment.get("AWS_ENDPOINT_URL"))
    return environment.get("FERMATA_STAGE") == "local" and is_function and not is_emulated
