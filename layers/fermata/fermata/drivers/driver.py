"""What every provider's voice can do, and where to find each one."""

from collections.abc import Iterator
from functools import cache
from typing import Protocol

from fermata.drivers.endpoint import Endpoint
from fermata.drivers.line import Line
from fermata.words.errors import Invalid
from fermata.words.model import Ask, Piece

__all__ = ["PROVIDERS", "Driver", "Endpoint", "driver_for"]


class Driver(Protocol):
    """Says one `Ask` to a provider. The last piece is a `Reply`; anything else that happens is a `ProviderError`."""

    @property
    def provider(self) -> str: ...

    def stream(self, ask: Ask, line: Line, endpoint: Endpoint) -> Iterator[Piece]: ...


MOST_OF_A_NAME = 40
PROVIDERS = ("anthropic", "openai", "openrouter", "ollama", "openai-compatible")


@cache
def driver_for(provider: str) -> Driver:
    """Loaded when it is asked for, because a turn speaks to one provider."""
    match provider:
        case "anthropic":
            from fermata.drivers.anthropic import ANTHROPIC

            return ANTHROPIC
        case "openai":
            from fermata.drivers.openai import OPENAI

            return OPENAI
        case "openrouter":
            from fermata.drivers.openrouter import OPENROUTER

            return OPENROUTER
        case "ollama":
            from fermata.drivers.ollama import OLLAMA

            return OLLAMA
        case "openai-compatible":
            from fermata.drivers.openai_compatible import OPENAI_COMPATIBLE

            return OPENAI_COMPATIBLE
    from fermata.drivers.failures import redact

    named = redact(provider, "", MOST_OF_A_NAME)
    raise Invalid(f"Unknown provider: {named}. Use one of: {', '.join(sorted(PROVIDERS))}.")
