"""Which models a credential opens: asked of its provider, with what the catalogue knows of them."""

from contextlib import closing
from typing import Any

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.credentials import credential_store, endpoints, known_capabilities, provider_urls
from fermata.credentials.credential import Credential
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError, BadGateway, InvalidRequest, NotFound, ProviderError, ServiceUnavailable
from fermata.domain.model_info import ListPrice, ModelInfo
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PricedModel, price_per_million_tokens

# Drivers load httpx, which most requests of this door do without: they are imported where they are used.

LIST_TIMEOUT_SECONDS = 10
MODEL_LIST_CACHE_SECONDS = 300
CATALOGUE_PRICED_PROVIDERS = ("anthropic", "openai")
"""Whose models cost at every address what the catalogue says."""


def list_credential_models(resources: Resources, caller: Caller, provider: str, credential_id: str) -> list[ModelInfo]:
    """For anybody of the tenant. What a provider said counts for five minutes."""
    from fermata.drivers.registry import get_provider

    get_provider(provider)
    credential = credential_store.read_credential(resources, caller.tenant, credential_id)
    if credential is None:
        raise NotFound(credential_store.CREDENTIAL_NOT_FOUND)
    if credential.provider_id != provider:
        raise InvalidRequest(f"This credential is for {credential.provider_id}, not for {provider}.")
    if not credential.is_current(resources.settings.key_id):
        raise credential_store.unreadable_key_error(credential)
    return add_catalogue_data(resources, provider, _get_cached_models(resources, credential))


def fetch_models(resources: Resources, credential: Credential) -> tuple[ModelInfo, ...]:
    """Asked now, of the provider and of nobody else; what it says its models can do is remembered for the turns.

    Raises ProviderError, or why the credential cannot be used.
    """
    from fermata.drivers import model_listing
    from fermata.drivers.transport.connection import ProviderConnection

    endpoint = endpoints.open_endpoint(resources, credential.tenant, credential.id, credential.version)
    guard = provider_urls.make_url_guard(resources.settings)
    with (
        closing(
            ProviderConnection(stall_seconds=LIST_TIMEOUT_SECONDS, total_seconds=LIST_TIMEOUT_SECONDS, guard=guard)
        ) as line,
        line.call_scope(),
    ):
        model_listing.check_api_key(credential.provider_id, line, endpoint)
        offered = model_listing.list_models(credential.provider_id, line, endpoint)
    known_capabilities.store_listed_capabilities(resources, credential, offered)
    return offered


def try_credential(resources: Resources, caller: Caller, credential_id: str) -> dict[str, Any]:
    """Whether a credential opens any model, in the contract's words: not working is an answer, not an error."""
    credential = credential_store.get_own_credential(resources, caller, credential_id)
    answer: dict[str, Any]
    try:
        count = len(fetch_models(resources, credential))
        answer = {"ok": True, "modelCount": count} if count else {"ok": False, "error": "No model is offered there."}
    except (ProviderError, ApiError) as error:
        answer = {"ok": False, "error": str(error)}
    observability.log_audit_event(
        "ai.credential.tested",
        tenant=caller.tenant,
        user=caller.user,
        credential=credential.id,
        provider=credential.provider_id,
        **answer,
    )
    return answer


def add_catalogue_data(resources: Resources, provider: str, models: tuple[ModelInfo, ...]) -> list[ModelInfo]:
    """With prices and window sizes, where they are the provider's own or the catalogue's list prices."""
    known = catalogue.get_catalogue(resources) if provider in CATALOGUE_PRICED_PROVIDERS else None
    return [_add_offer_data(model, known.find_priced_model(model.id) if known else None) for model in models]


def _add_offer_data(model: ModelInfo, offer: PricedModel | None) -> ModelInfo:
    if offer is None:
        return model.model_copy(update={"pricing": _own_price(model)})
    update: dict[str, Any] = {
        "context_window": offer.context_window or model.context_window,
        "pricing": ListPrice(
            input_per_mtok=float(offer.price.input_per_mtok), output_per_mtok=float(offer.price.output_per_mtok)
        ),
    }
    can = {"vision_input": offer.sees, "tool_calling": offer.calls}
    told = {name: says for name, says in can.items() if says is not None}
    return model.model_copy(update=update | {"capabilities": model.capabilities.model_copy(update=told)})


def _own_price(model: ModelInfo) -> ListPrice | None:
    price_in, price_out = map(price_per_million_tokens, model.per_token or (None, None))
    if price_in is None or price_out is None:
        return None
    return ListPrice(input_per_mtok=float(price_in), output_per_mtok=float(price_out))


def _get_cached_models(resources: Resources, credential: Credential) -> tuple[ModelInfo, ...]:
    """Only what the provider said is remembered: a server that was switched off is asked again the next time."""
    from fermata.drivers import model_listing

    key = ("models", credential.tenant, credential.id, credential.version)
    problem: ProviderError | None = None
    try:
        found = resources.cache.get_or_load(
            key, MODEL_LIST_CACHE_SECONDS, lambda: fetch_models(resources, credential) or None
        )
    except ProviderError as error:
        found, problem = None, error
    found = found or model_listing.get_fallback_models(credential.provider_id, problem)
    if problem is not None and not found:
        raise _refusal_from_error(problem) from problem
    return found


def _refusal_from_error(error: ProviderError) -> ApiError:
    observability.log_warning("provider.models_failed", code=error.code, status=error.status)
    if error.retryable:
        return ServiceUnavailable(error.message, retry_after=round(error.retry_after or 5))
    return BadGateway(error.message)
