"""List the models that a credential opens, with what the price catalogue knows of them (decision 0044)."""

from contextlib import closing
from typing import Any

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.credentials import base_urls, credential_store, known_capabilities
from fermata.credentials.credential import Credential
from fermata.credentials.open_credential import CREDENTIAL_NOT_FOUND, read_credential, unreadable_key_error
from fermata.credentials.open_endpoint import open_endpoint
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError, BadGateway, InvalidRequest, NotFound, ProviderError, ServiceUnavailable
from fermata.domain.model_info import ListPrice, ModelInfo
from fermata.drivers.registry import get_model_traits, get_provider
from fermata.pricing import catalogue
from fermata.pricing.catalogue import CatalogueModel, price_per_million_tokens

# Connections load httpx, which most requests of this Lambda do without: they are imported where they are used.

LIST_TIMEOUT_SECONDS = 10
MODEL_LIST_CACHE_SECONDS = 300


def list_credential_models(resources: Resources, caller: Caller, provider: str, credential_id: str) -> list[ModelInfo]:
    """List the models of any credential of the tenant; what its provider said is cached for five minutes.

    Args:
        provider: The provider that the request's path names, to compare with the credential's.
        credential_id: A credential of any user of the tenant.

    Raises:
        InvalidRequest: The provider is unknown, or the credential is for another one.
        NotFound: There is no such credential.
        Conflict: Its key can no longer be decrypted.
        BadGateway, ServiceUnavailable: The provider refused, or may answer later.
    """
    get_provider(provider)
    credential = read_credential(resources, caller.tenant, credential_id)
    if credential is None:
        raise NotFound(CREDENTIAL_NOT_FOUND)
    if credential.provider_id != provider:
        raise InvalidRequest(f"This credential is for {credential.provider_id}, not for {provider}.")
    if not credential.is_current(resources.settings.key_id):
        raise unreadable_key_error(credential)
    return add_catalogue_data(resources, provider, _get_cached_models(resources, credential))


def fetch_models(resources: Resources, credential: Credential) -> tuple[ModelInfo, ...]:
    """Ask the provider now, and store what it says its models can do for the turns to come.

    Raises:
        ProviderError: The provider refused, failed or could not be reached.
        ApiError: The credential cannot be used.
    """
    from fermata.drivers import model_listing
    from fermata.drivers.transport.http_connection import HttpConnection

    endpoint = open_endpoint(resources, credential.tenant, credential.id, credential.version)
    connection = HttpConnection(
        stall_seconds=LIST_TIMEOUT_SECONDS,
        total_seconds=LIST_TIMEOUT_SECONDS,
        guard=base_urls.make_url_guard(resources.settings),
    )
    with closing(connection), connection.call_scope():
        model_listing.check_api_key(credential.provider_id, connection, endpoint)
        models = model_listing.list_models(credential.provider_id, connection, endpoint)
    known_capabilities.store_listed_capabilities(resources, credential, models)
    return models


def try_credential(resources: Resources, caller: Caller, credential_id: str) -> dict[str, Any]:
    """Return in the wire's form whether a credential opens any model; a provider's refusal is a result, not an error.

    Args:
        caller: The user who entered the credential.
        credential_id: The id, as a client sent it.

    Raises:
        NotFound: The caller has no such credential.
    """
    credential = credential_store.get_own_credential(resources, caller, credential_id)
    result: dict[str, Any]
    try:
        count = len(fetch_models(resources, credential))
        result = {"ok": True, "modelCount": count} if count else {"ok": False, "error": "No model is offered there."}
    except (ProviderError, ApiError) as error:
        result = {"ok": False, "error": str(error)}
    observability.log_audit_event(
        "ai.credential.tested",
        tenant=caller.tenant,
        user=caller.user,
        credential=credential.id,
        provider=credential.provider_id,
        **result,
    )
    return result


def find_list_price(resources: Resources, provider: str, model: str) -> ListPrice | None:
    """Return the catalogue's price of a model; None if it is unknown, or the provider does not make its models.

    Args:
        resources: Of the process.
        provider: The provider's name.
        model: The model's id.
    """
    prices = catalogue.get_catalogue(resources) if get_model_traits(provider).are_first_party else None
    found = prices.find_model(provider, model) if prices else None
    return _get_list_price(found)


def _get_list_price(found: CatalogueModel | None) -> ListPrice | None:
    if found is None or found.price is None:
        return None
    price = found.price
    return ListPrice(input_per_mtok=float(price.input_per_mtok), output_per_mtok=float(price.output_per_mtok))


def add_catalogue_data(resources: Resources, provider: str, models: tuple[ModelInfo, ...]) -> list[ModelInfo]:
    """Add prices: the catalogue's, if the provider makes its models, or else what the provider itself charges."""
    prices = catalogue.get_catalogue(resources) if get_model_traits(provider).are_first_party else None
    return [_add_price(model, prices.find_model(provider, model.id) if prices else None) for model in models]


def _add_price(model: ModelInfo, priced: CatalogueModel | None) -> ModelInfo:
    pricing = _get_list_price(priced)
    if priced is None or pricing is None:
        return model.model_copy(update={"pricing": _price_of_provider(model)})
    listed = {"vision_input": priced.can_read_images, "tool_calling": priced.can_call_tools}
    known = {name: value for name, value in listed.items() if value is not None}
    return model.model_copy(
        update={
            "context_window": priced.context_window or model.context_window,
            "pricing": pricing,
            "capabilities": model.capabilities.model_copy(update=known),
        }
    )


def _price_of_provider(model: ModelInfo) -> ListPrice | None:
    price_in, price_out = map(price_per_million_tokens, model.per_token or (None, None))
    if price_in is None or price_out is None:
        return None
    return ListPrice(input_per_mtok=float(price_in), output_per_mtok=float(price_out))


def _get_cached_models(resources: Resources, credential: Credential) -> tuple[ModelInfo, ...]:
    """Cache only what the provider said: a server that was switched off is asked again the next time."""
    from fermata.drivers import model_listing

    key = ("models", credential.tenant, credential.id, credential.version)
    models: tuple[ModelInfo, ...] | None = None
    error: ProviderError | None = None
    try:
        models = resources.cache.get_or_load(
            key, MODEL_LIST_CACHE_SECONDS, lambda: fetch_models(resources, credential) or None
        )
    except ProviderError as caught:
        error = caught
    models = models or model_listing.get_fallback_models(credential.provider_id, error)
    if error is not None and not models:
        raise _to_api_error(error) from error
    return models


def _to_api_error(error: ProviderError) -> ApiError:
    observability.log_warning("provider.models_failed", code=error.code, status=error.status)
    if error.retryable:
        return ServiceUnavailable(error.message, retry_after=round(error.retry_after or 5))
    return BadGateway(error.message)
