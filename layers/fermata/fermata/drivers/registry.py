"""What every provider's voice can do, and where to find each one."""

from collections.abc import Iterator
from functools import cache
from typing import Protocol

from fermata.domain.errors import InvalidRequest
from fermata.domain.model_io import ModelRequest, StreamPart
from fermata.drivers.transport.connection import ProviderConnection
from fermata.drivers.transport.endpoint import Endpoint

__all__ = ["PROVIDER_NAMES", "Driver", "Endpoint", "get_provider"]


class Driver(Protocol):
    """Says one `Ask` to a provider. The last piece is a `Reply`; anything else that happens is a `ProviderError`."""

    @property
    def name(self) -> str: ...

    def stream(self, ask: ModelRequest, line: ProviderConnection, endpoint: Endpoint) -> Iterator[StreamPart]: ...


MAX_QUOTED_NAME_CHARS = 40
PROVIDER_NAMES = ("anthropic", "openai", "openrouter", "ollama", "openai-compatible")


@cache
def get_provider(provider: str) -> Driver:
    """Loaded when it is asked for, because a turn speaks to one provider."""
    match provider:
        case "anthropic":
            from fermata.drivers.anthropic import ANTHROPIC

            return ANTHROPIC
        case "openai":
            from fermata.drivers.providers.openai import OPENAI

            return OPENAI
        case "openrouter":
            from fermata.drivers.providers.openrouter import OPENROUTER

            return OPENROUTER
        case "ollama":
            from fermata.drivers.ollama import OLLAMA

            return OLLAMA
        case "openai-compatible":
            from fermata.drivers.providers.openai_compatible import OPENAI_COMPATIBLE

            return OPENAI_COMPATIBLE
    from fermata.drivers.error_mapping import redact_secrets

    named = redact_secrets(provider, "", MAX_QUOTED_NAME_CHARS)
    raise InvalidRequest(f"Unknown provider: {named}. Use one of: {', '.join(sorted(PROVIDER_NAMES))}.")
