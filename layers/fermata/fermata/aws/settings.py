"""What the deployment decides: read once from the environment, by name."""

import os
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

TURN_RETENTION_SECONDS = 7 * 86400
"""How long a turn is remembered after the latest moment at which it may still wait for somebody."""


class SettingsError(RuntimeError):
    """The environment does not hold what this deployment needs; the operator can mend it."""


class Settings(BaseModel):
    """Every field is an environment variable in capitals. Times are seconds unless the name says otherwise."""

    model_config = ConfigDict(frozen=True)

    conversations_table: str
    bridges_table: str
    pricing_table: str
    usage_table: str
    settings_table: str
    bucket: str
    key_id: str
    state_machine_arn: str
    fermata_stage: str = "dev"
    anthropic_url: str = "https://api.anthropic.com"
    openai_url: str = "https://api.openai.com"
    openrouter_url: str = "https://openrouter.ai/api"
    catalogue_url: str = "https://openrouter.ai/api/v1/models"
    """Where list prices and window sizes come from (pricing/catalogue_refresh.py)."""

    heartbeat_seconds: int = 90
    """HeartbeatSeconds of the workflow's RunRound: a pause that outlasts it is held without one."""
    browser_wait_seconds: float = 90
    flush_ms: int = 250
    flush_bytes: int = 900
    poll_ms: int = 100
    idle_poll_ms: int = 500
    reader_seconds: float = 840
    reader_heartbeat_seconds: float = 12
    abandoned_seconds: float = 5
    """How long a turn of Instatic's browsers runs without a reader, if it can be seen (turns/read/abandonment.py)."""
    provider_stall_seconds: float = 120
    provider_seconds: float = 480
    """The longest one provider request may take."""
    provider_attempts: int = 3
    """How often a provider is asked that fails before it has said anything."""
    max_answer_tokens: int = 8192
    """Tokens of one answer. Where thinking counts against the same limit, drivers add room for it."""
    thinking_tokens: int = 0
    """Tokens a model is told to think before it answers; 0: each does as it does by itself."""
    unanswered_calls: Literal["fail", "tell_model"] = "fail"
    """What an unanswered browser call does: end the turn with an error, or tell the model and go on."""
    max_rounds: int = 50
    default_window_tokens: int = 128_000
    """The context window, in tokens, of a model whose real one nobody knows."""
    ollama_window_tokens: int = 32_768
    """The context window that Ollama is asked for; it loads a model anew for another one."""
    max_round_attempts: int = 2
    """How often one round's model request may be begun anew after its function died."""
    max_executions: int = 5
    """How many executions one turn may use before it ends with an error."""
    start_grace_seconds: float = 10
    stalled_turn_seconds: float = 900
    hold_days: int = 30
    fermata_faults: str = Field(default="")
    """A folder of fault rules; obeyed on the local stage only (aws/fault_injection.py)."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        values = os.environ if environment is None else environment
        if _is_local_on_aws(values):
            raise SettingsError("Stage `local` is for one machine only. Deploy with Stage=dev or Stage=prod.")
        names = {name.upper(): name for name in cls.model_fields}
        found = {field: values[name] for name, field in names.items() if values.get(name)}
        try:
            return cls.model_validate(found)
        except ValidationError as problem:
            wrong = ", ".join(str(error["loc"][0]).upper() for error in problem.errors())
            raise SettingsError(f"Set these environment variables of the function: {wrong}.") from problem

    @property
    def is_loopback_allowed(self) -> bool:
        """Whether a credential may name an address on this machine, in plain http: on the local stage only."""
        return self.fermata_stage == "local"

    @property
    def turn_lifetime_seconds(self) -> int:
        """Start + longest hold + 7 days: when everything of a turn expires (design §4, Lifetime)."""
        return self.hold_days * 86400 + TURN_RETENTION_SECONDS


def _is_local_on_aws(environment: Mapping[str, str]) -> bool:
    """The local cloud's functions are told where AWS is; AWS's own are not. There the stage would open too much."""
    in_function, told = environment.get("AWS_LAMBDA_FUNCTION_NAME"), environment.get("AWS_ENDPOINT_URL")
    return environment.get("FERMATA_STAGE") == "local" and bool(in_function) and not told
