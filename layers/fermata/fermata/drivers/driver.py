"""What every provider's voice can do, and where to find each one."""

from collections.abc import Iterator
from typing import Protocol

from fermata.drivers.anthropic import Anthropic
from fermata.drivers.endpoint import Endpoint
from fermata.drivers.line import Line
from fermata.drivers.ollama import OLLAMA
from fermata.drivers.openai import OPENAI
from fermata.drivers.openai_compatible import OPENAI_COMPATIBLE
from fermata.drivers.openrouter import OPENROUTER
from fermata.words.errors import Invalid
from fermata.words.model import Ask, Piece

__all__ = ["PROVIDERS", "Driver", "Endpoint", "driver_for"]


class Driver(Protocol):
    """Says one `Ask` to a provider. The last piece is a `Reply`; anything else that happens is a `ProviderError`."""

    @property
    def provider(self) -> str: ...

    def stream(self, ask: Ask, line: Line, endpoint: Endpoint) -> Iterator[Piece]: ...


_DRIVERS: dict[str, Driver] = {
    driver.provider: driver for driver in (Anthropic(), OPENAI, OPENROUTER, OLLAMA, OPENAI_COMPATIBLE)
}
PROVIDERS = tuple(_DRIVERS)


def driver_for(provider: str) -> Driver:
    found = _DRIVERS.get(provider)
    if found is None:
        raise Invalid(f"Unknown provider: {provider}. Use one of: {', '.join(sorted(_DRIVERS))}.")
    return found
