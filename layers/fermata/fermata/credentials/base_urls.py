"""Decide which base URL a credential's requests go to, and which URLs requests may go to at all (decision 0042)."""

from urllib.parse import urlsplit

from fermata.aws.security_events import log_refused_address
from fermata.aws.settings import Settings, SettingsError
from fermata.credentials.credential import Credential
from fermata.domain.errors import InvalidRequest
from fermata.drivers.registry import get_provider, list_providers
from fermata.drivers.transport.url_guard import UrlGuard, is_loopback_host


def get_default_url(settings: Settings, provider_name: str) -> str | None:
    """Return the base URL that all users of a provider share; None if each credential names its own.

    The deployment's `PROVIDER_URLS` override the provider's record.

    Raises:
        InvalidRequest: No provider has that name.
    """
    return settings.load_provider_urls().get(provider_name) or get_provider(provider_name).default_url


def make_url_guard(settings: Settings) -> UrlGuard:
    """Make the guard of every connection to a provider.

    It trusts the default URLs, wherever they are; all other addresses must be public (decision 0041).

    Raises:
        SettingsError: `PROVIDER_URLS` names a provider that does not exist.
    """
    _check_provider_names(settings)
    urls = [get_default_url(settings, provider.name) for provider in list_providers()]
    trusted = [url for url in urls if url]
    return UrlGuard(trusted, loopback=settings.is_loopback_allowed, on_refusal=log_refused_address)


def list_local_urls(settings: Settings) -> list[str]:
    """Return the base URLs of servers on this machine that take the place of providers; none outside of a local stage.

    The demo model is such a server.
    """
    if not settings.is_loopback_allowed:
        return []
    urls = settings.load_provider_urls().values()
    return [url for url in urls if is_loopback_host(urlsplit(url).hostname or "")]


def _check_provider_names(settings: Settings) -> None:
    """Refuse the name of no provider. Its requests would go to the address that the setting is to replace."""
    known = [provider.name for provider in list_providers()]
    unknown = sorted(settings.load_provider_urls().keys() - set(known))
    if unknown:
        raise SettingsError(
            f"PROVIDER_URLS names {', '.join(map(repr, unknown))}. The providers are {', '.join(known)}."
        )


def get_credential_url(settings: Settings, credential: Credential) -> str:
    """Return the base URL that a credential's requests go to.

    Raises:
        InvalidRequest: Neither the credential nor its provider has one.
    """
    url = credential.base_url or get_default_url(settings, credential.provider_id)
    if url is None:
        raise InvalidRequest(
            f"{credential.provider_id} needs an address: enter the credential again, with its baseUrl."
        )
    return url


def is_same_origin(url: str | None, other_url: str) -> bool:
    """Compare scheme, host and port."""
    return url is not None and urlsplit(url)[:2] == urlsplit(other_url)[:2]
