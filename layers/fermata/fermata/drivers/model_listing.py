"""Ask a provider which models it offers to a key (decision 0044)."""

import itertools
import json
from typing import Any

from fermata.domain.errors import ProviderError
from fermata.domain.lenient_json import UnreadableJson, read_bounded_json
from fermata.domain.model_info import ModelInfo
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.error_mapping import error_from_response
from fermata.drivers.model_labels import label_unnamed_models
from fermata.drivers.provider import Provider
from fermata.drivers.registry import get_model_traits, get_provider
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.connection_interface import ProviderConnection, ProviderResponse

MAX_LISTING_BYTES = 8 * 1024 * 1024
MAX_LISTED_MODELS = 2_000


@value_dataclass(frozen=True)
class ModelListClient:
    """Read JSON from one provider's server; what a provider's `list_models` works with."""

    provider: Provider
    connection: ProviderConnection
    endpoint: AuthenticatedEndpoint

    def get_json(self, path: str, query: str = "") -> Any:
        """Return the parsed response.

        Raises:
            ProviderError: The provider refused, failed, could not be reached, or answered what is no JSON.
        """
        url = self.endpoint.url_for(path) + query
        with self.connection.get(self.provider.label, url, self._build_headers()) as response:
            return self._parse_response(response)

    def post_json(self, path: str, body: Any) -> Any:
        """Return the parsed response. Errors are those of `get_json`."""
        return self.post_bytes(path, "application/json", json.dumps(body).encode())

    def post_bytes(self, path: str, content_type: str, body: bytes) -> Any:
        """Return the parsed response to a body of any type. Errors are those of `get_json`."""
        headers = self._build_headers() | {"content-type": content_type}
        with self.connection.post(self.provider.label, self.endpoint.url_for(path), headers, body) as response:
            return self._parse_response(response)

    def _build_headers(self) -> dict[str, str]:
        api_key = self.endpoint.plain_key
        if not api_key.isascii():
            raise error_from_response(self.provider.label, 401, {}, b"", api_key)
        common = {"accept": "application/json", "accept-encoding": "identity"}
        return common | self.provider.build_headers("", api_key)

    def _parse_response(self, response: ProviderResponse) -> Any:
        label, api_key = self.provider.label, self.endpoint.plain_key
        if response.status != 200:
            raise error_from_response(label, response.status, response.headers, response.read_error_body(), api_key)
        try:
            return read_bounded_json(response.read_body(MAX_LISTING_BYTES).decode("utf-8-sig", "replace"))
        except UnreadableJson as error:
            message = f"{label} error: what it answers is not JSON. Check its address in /admin/ai/providers."
            raise Failure.UNUSABLE_RESPONSE.to_error(message) from error


def list_models(
    provider_name: str, connection: ProviderConnection, endpoint: AuthenticatedEndpoint
) -> tuple[ModelInfo, ...]:
    """Ask the server for its models, in the order to show them, MAX_LISTED_MODELS at most.

    Args:
        provider_name: A name of PROVIDER_MODULES.
        connection: Its time limits apply to all pages of the list together.
        endpoint: The server and the API key.

    Raises:
        ProviderError: The provider refused, failed, answered what is no list, or could not be reached.
    """
    provider = get_provider(provider_name)
    client = ModelListClient(provider, connection, endpoint)
    with connection.call_scope():
        return label_unnamed_models(tuple(itertools.islice(provider.list_models(client), MAX_LISTED_MODELS)))


def get_fallback_models(provider_name: str, error: ProviderError | None) -> tuple[ModelInfo, ...]:
    """Return what to show of a provider that listed nothing or, if `error` says so, could not be reached."""
    unreachable = (Failure.UNREACHABLE.code, Failure.STALLED.code)
    if error is not None and error.code not in unreachable:
        return ()
    models = get_model_traits(provider_name)
    return label_unnamed_models(
        [
            ModelInfo(id=name, label=name, capabilities=models.get_capabilities(name), catalogue_source="fallback")
            for name in models.fallback_models
        ]
    )


def check_api_key(provider_name: str, connection: ProviderConnection, endpoint: AuthenticatedEndpoint) -> None:
    """Ask a server that lists its models to everybody whether the key is valid. Other servers are not asked.

    Args:
        provider_name: The name of a registered provider.
        connection: The connection on which the server is asked.
        endpoint: The server's address and the key.

    Raises:
        ProviderError: The key is not valid, or the server could not be asked.
    """
    provider = get_provider(provider_name)
    if provider.key_check_path is None:
        return
    try:
        ModelListClient(provider, connection, endpoint).get_json(provider.key_check_path)
    except ProviderError as error:
        if error.status != 404:  # a gateway in front of it may not have this path
            raise
