"""What we say to a provider and what comes back, in nobody's dialect."""

from decimal import Decimal
from enum import StrEnum
from typing import Any

from fermata.domain.base import DomainModel
from fermata.domain.blocks import Block
from fermata.domain.messages import Message
from fermata.domain.tools import ToolSpec


class ModelRequest(DomainModel):
    """One provider request. `system` is the stable part, `volatile` changes from turn to turn and comes last."""

    model: str
    system: str
    volatile: str = ""
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 8192
    thinking_tokens: int = 0
    call_tools: bool = True
    """False on a turn's last round: the tools stay, because the cached prefix holds them, but may not be called."""
    scope: str = ""
    """Where in the editor this is asked; names the prompt cache of providers that have it named."""
    window_tokens: int = 32_768
    """How large a context to ask for where the request decides it (Ollama)."""


class FinishReason(StrEnum):
    END = "end"
    TOOL_CALLS = "toolCalls"
    MAX_TOKENS = "maxTokens"
    REFUSAL = "refusal"
    PAUSE = "pause"
    """The provider wants the same request again with what it said so far (Anthropic's `pause_turn`)."""


class TokenUsage(DomainModel):
    """What one provider request used, as its provider counts it."""

    prompt: int = 0
    completion: int = 0
    cache_read: int = 0
    cache_creation: int = 0
    cached_within: bool = False
    """Whether `prompt` counts what the cache read and wrote too: Anthropic's does not, everybody else's does."""
    raw: dict[str, Any] | None = None
    reported_cost: Decimal | None = None
    """USD, exact, where the provider itself says what the request cost; it wins over any price list."""

    @property
    def context_tokens(self) -> int:
        """How much of the window the request filled."""
        return self.prompt if self.cached_within else self.prompt + self.cache_read + self.cache_creation

    @property
    def uncached_prompt_tokens(self) -> int:
        """What of the prompt is paid at the input rate; never below zero, whatever a provider claims of its cache."""
        return max(0, self.prompt - self.cache_read - self.cache_creation) if self.cached_within else self.prompt


class TextDelta(DomainModel):
    text: str


class ReasoningDelta(DomainModel):
    text: str


class ModelResponse(DomainModel):
    """The whole answer of one provider request; the last thing a driver yields."""

    blocks: tuple[Block, ...]
    stop: FinishReason
    tokens: TokenUsage
    tokens_known: bool = True
    warning: str | None = None
    """Something the user should know although there is an answer, such as a prompt that was cut without a word."""
    refusal: str | None = None
    """With `Stop.REFUSAL`: why, as far as the provider says."""


StreamPart = TextDelta | ReasoningDelta | ModelResponse
