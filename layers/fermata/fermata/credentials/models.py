"""Which models a credential opens: asked of its provider, with what the catalogue knows of them."""

from contextlib import closing
from typing import Any

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.credentials import abilities, addresses, keyring, opening
from fermata.credentials.credential import Credential
from fermata.pricing import catalogue
from fermata.pricing.catalogue import Offer, per_mtok
from fermata.words.caller import Caller
from fermata.words.errors import BadGateway, Invalid, NotFound, ProviderError, Refusal, Unavailable
from fermata.words.offered import ListPrice, Offered

# Drivers load httpx, which most requests of this door do without: they are imported where they are used.

PATIENCE = 10
REMEMBERED = 300
LISTED_PRICES = ("anthropic", "openai")
"""Whose models cost at every address what the catalogue says."""


def of_credential(desk: Desk, caller: Caller, provider: str, credential_id: str) -> list[Offered]:
    """For anybody of the tenant. What a provider said counts for five minutes."""
    from fermata.drivers.driver import driver_for

    driver_for(provider)
    credential = keyring.read(desk, caller.tenant, credential_id)
    if credential is None:
        raise NotFound(keyring.NOT_FOUND)
    if credential.provider_id != provider:
        raise Invalid(f"This credential is for {credential.provider_id}, not for {provider}.")
    if not credential.is_current(desk.settings.key_id):
        raise keyring.sealed_elsewhere(credential)
    return enriched(desk, provider, _remembered(desk, credential))


def live(desk: Desk, credential: Credential) -> tuple[Offered, ...]:
    """Asked now, of the provider and of nobody else; what it says its models can do is remembered for the turns.

    Raises ProviderError, or why the credential cannot be used.
    """
    from fermata.drivers import models
    from fermata.drivers.line import Line

    endpoint = opening.endpoint(desk, credential.tenant, credential.id, credential.version)
    guard = addresses.guard(desk.settings)
    with closing(Line(stall_seconds=PATIENCE, total_seconds=PATIENCE, guard=guard)) as line, line.call():
        models.check_key(credential.provider_id, line, endpoint)
        offered = models.offered(credential.provider_id, line, endpoint)
    abilities.remember(desk, credential, offered)
    return offered


def try_out(desk: Desk, caller: Caller, credential_id: str) -> dict[str, Any]:
    """Whether a credential opens any model, in the contract's words: not working is an answer, not an error."""
    credential = keyring.own(desk, caller, credential_id)
    answer: dict[str, Any]
    try:
        count = len(live(desk, credential))
        answer = {"ok": True, "modelCount": count} if count else {"ok": False, "error": "No model is offered there."}
    except (ProviderError, Refusal) as error:
        answer = {"ok": False, "error": str(error)}
    signals.audit(
        "ai.credential.tested",
        tenant=caller.tenant,
        user=caller.user,
        credential=credential.id,
        provider=credential.provider_id,
        **answer,
    )
    return answer


def enriched(desk: Desk, provider: str, models: tuple[Offered, ...]) -> list[Offered]:
    """With prices and window sizes, where they are the provider's own or the catalogue's list prices."""
    known = catalogue.known(desk) if provider in LISTED_PRICES else None
    return [_enriched(model, known.offer(model.id) if known else None) for model in models]


def _enriched(model: Offered, offer: Offer | None) -> Offered:
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


def _own_price(model: Offered) -> ListPrice | None:
    price_in, price_out = map(per_mtok, model.per_token or (None, None))
    if price_in is None or price_out is None:
        return None
    return ListPrice(input_per_mtok=float(price_in), output_per_mtok=float(price_out))


def _remembered(desk: Desk, credential: Credential) -> tuple[Offered, ...]:
    """Only what the provider said is remembered: a server that was switched off is asked again the next time."""
    from fermata.drivers import models

    key = ("models", credential.tenant, credential.id, credential.version)
    problem: ProviderError | None = None
    try:
        found = desk.memory.recall(key, REMEMBERED, lambda: live(desk, credential) or None)
    except ProviderError as error:
        found, problem = None, error
    found = found or models.fallback(credential.provider_id, problem)
    if problem is not None and not found:
        raise _refusal(problem) from problem
    return found


def _refusal(error: ProviderError) -> Refusal:
    signals.warn("provider.models_failed", code=error.code, status=error.status)
    if error.retryable:
        return Unavailable(error.message, retry_after=round(error.retry_after or 5))
    return BadGateway(error.message)
