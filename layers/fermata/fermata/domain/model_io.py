"""Define model requests and responses in a form that is independent of the provider."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from pydantic import ConfigDict, Field, SkipValidation

from fermata.domain.base import DomainModel
from fermata.domain.blocks import Block
from fermata.domain.message_prefix_cache import MessagePrefixCache
from fermata.domain.messages import Message
from fermata.domain.run_settings import OutputFormat, ToolChoice
from fermata.domain.tools import ToolSpec


class SamplingSettings(DomainModel, defer_build=False):
    """How a model chooses its words. What is None or empty is left to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop_sequences: tuple[str, ...] = ()

    def list_set(self) -> list[tuple[str, Any]]:
        """Return the names and values of what is set."""
        values = ((name, getattr(self, name)) for name in type(self).model_fields)
        return [(name, value) for name, value in values if value is not None and value != ()]


DEFAULT_SAMPLING = SamplingSettings()


class ModelRequest(DomainModel, defer_build=False):
    """One provider request.

    `system` is the stable part of the prompt. `volatile` changes with every turn and is sent last, so that the prefix
    before it can be cached (decision 0060).
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str = ""
    """`<turn>.<round>.<attempt>`. It names the request for the connection, and is not sent to the provider (decision
    0171)."""
    model: str
    system: str
    volatile: str = ""
    instruction: str = ""
    """What the service itself asks of the model in this round. It follows the frame of `volatile`, because what is
    inside of the frame is data (decision 0255)."""
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 8192
    thinking_tokens: int = 0
    call_tools: bool = True
    """False in a turn's last round. The tools are still sent, because the cached prefix contains them."""
    tool_choice: ToolChoice = "auto"
    """Whether the model has to call a tool, or one of that name. Without tools, or with `call_tools` off, it says
    nothing."""
    sampling: SamplingSettings = DEFAULT_SAMPLING
    output: OutputFormat | None = None
    """The schema of the answer, for providers that can enforce one."""
    provider_options: dict[str, Any] = Field(default_factory=dict)
    """Options by provider, as an agent has them."""
    scope: str = ""
    """The scope of the conversation. Providers with named prompt caches use it as part of the name."""
    window_tokens: int = 32_768
    """The context window to request from providers that let the request choose it (Ollama)."""
    message_prefix_cache: SkipValidation[MessagePrefixCache] = Field(
        default_factory=MessagePrefixCache, exclude=True, repr=False
    )
    """What the last request of the same conversation has computed from its messages (decision 0204)."""

    @property
    def forced_tool(self) -> str:
        """The name of the tool that has to be called, `*` for any; empty if the model may answer in words."""
        if not self.tools or not self.call_tools or self.tool_choice in ("auto", "none"):
            return ""
        return "*" if isinstance(self.tool_choice, str) else self.tool_choice.tool_name


class FinishReason(StrEnum):
    """The provider's reason for ending a response."""

    END = "end"
    TOOL_CALLS = "toolCalls"
    MAX_TOKENS = "maxTokens"
    REFUSAL = "refusal"
    PAUSE = "pause"
    """The provider expects the same request again, extended by this response (Anthropic's `pause_turn`)."""


class TokenUsage(DomainModel, defer_build=False):
    """The tokens one provider request used, as its provider counts them."""

    prompt: int = 0
    completion: int = 0
    cache_read: int = 0
    cache_creation: int = 0
    cached_within: bool = False
    """Whether `prompt` includes cached tokens. It does not for Anthropic, and does for all other providers."""
    raw: dict[str, Any] | None = None
    reported_cost: Decimal | None = None
    """The cost in USD, if the provider reports it. It takes precedence over price lists."""

    @property
    def context_tokens(self) -> int:
        """The part of the context window that the request filled."""
        return self.prompt if self.cached_within else self.prompt + self.cache_read + self.cache_creation

    @property
    def uncached_prompt_tokens(self) -> int:
        """The prompt tokens billed at the input rate. Never negative, even if a provider reports more cached tokens."""
        return max(0, self.prompt - self.cache_read - self.cache_creation) if self.cached_within else self.prompt


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the response's text, as it streams in. There are thousands, so nothing is validated."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning, as it streams in."""

    text: str


class ModelResponse(DomainModel, defer_build=False):
    """The complete response to one provider request. A driver yields it last."""

    blocks: tuple[Block, ...]
    stop: FinishReason
    tokens: TokenUsage
    tokens_known: bool = True
    warning: str | None = None
    """A message for the user about the response, such as that the server truncated the prompt."""
    is_prompt_cut: bool = False
    """Whether the warning says that the server truncated the prompt, which a turn tells once."""
    refusal: str | None = None
    """The provider's explanation, if the reason is `FinishReason.REFUSAL`."""


StreamPart = TextDelta | ReasoningDelta | ModelResponse
