"""Register the providers, and load one by its name.

To add a provider, write a module in `drivers/providers/` that defines `PROVIDER`, and add its line below
(docs/extending.md).
"""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from fermata.domain.errors import InvalidRequest
from fermata.domain.model_io import ModelRequest, StreamPart
from fermata.drivers.provider import ModelTraits, Provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint

if TYPE_CHECKING:
    from fermata.drivers.transport.connection_interface import ProviderConnection

PROVIDER_MODULES = {
    "anthropic": "fermata.drivers.providers.anthropic",
    "openai": "fermata.drivers.providers.openai",
    "openrouter": "fermata.drivers.providers.openrouter",
    "gemini": "fermata.drivers.providers.gemini",
    "ollama": "fermata.drivers.providers.ollama",
    "openai-compatible": "fermata.drivers.providers.openai_compatible",
}
"""The module of each provider, by the `providerId` of its credentials."""
MAX_QUOTED_NAME_CHARS = 40


class Driver(Protocol):
    """What a turn needs of a provider: a stream that ends with a `ModelResponse`, or raises `ProviderError`."""

    @property
    def name(self) -> str:
        """The `providerId` of the credentials it serves."""

    def stream(
        self, request: ModelRequest, connection: "ProviderConnection", endpoint: AuthenticatedEndpoint
    ) -> Iterator[StreamPart]:
        """Send one request and yield the parts of its response, as `Provider.stream` does."""


def get_provider(name: str) -> Provider:
    """Return the provider of that name; loads its module on first use.

    Raises:
        InvalidRequest: No provider has that name.
    """
    if name not in PROVIDER_MODULES:
        from fermata.drivers.error_mapping import redact_secrets  # only for errors

        quoted = redact_secrets(name, "", MAX_QUOTED_NAME_CHARS)
        raise InvalidRequest(f"Unknown provider: {quoted}. Use one of: {', '.join(sorted(PROVIDER_MODULES))}.")
    provider: Provider = import_module(PROVIDER_MODULES[name]).PROVIDER
    return provider


def get_model_traits(provider_name: str) -> ModelTraits:
    """Return what is known of a provider's models.

    A turn may outlive its provider: of one that is no longer registered, nothing is known.
    """
    return get_provider(provider_name).models if provider_name in PROVIDER_MODULES else ModelTraits()


def list_providers() -> list[Provider]:
    """Return all providers; loads every module."""
    return [get_provider(name) for name in PROVIDER_MODULES]
