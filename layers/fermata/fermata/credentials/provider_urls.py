"""Where each provider is reached, and where a request may go at all."""

from urllib.parse import urlsplit

from fermata.aws.settings import Settings
from fermata.credentials.credential import Credential
from fermata.domain.errors import InvalidRequest
from fermata.drivers.transport.url_guard import UrlGuard


def get_default_url(settings: Settings, provider: str) -> str | None:
    """The address of a provider that everybody reaches at the same one."""
    return _default_urls(settings).get(provider)


def make_url_guard(settings: Settings) -> UrlGuard:
    """For every line to a provider: trusts the deployment's own addresses, and no others that are not public."""
    return UrlGuard(_default_urls(settings).values(), loopback=settings.is_loopback_allowed)


def get_credential_url(settings: Settings, credential: Credential) -> str:
    found = credential.base_url or get_default_url(settings, credential.provider_id)
    if found is None:
        raise InvalidRequest(
            f"{credential.provider_id} needs an address: enter the credential again, with its baseUrl."
        )
    return found


def is_same_origin(one: str | None, other: str) -> bool:
    """Same scheme, host and port."""
    return one is not None and urlsplit(one)[:2] == urlsplit(other)[:2]


def _default_urls(settings: Settings) -> dict[str, str]:
    return {
        "anthropic": settings.anthropic_url,
        "openai": settings.openai_url,
        "openrouter": settings.openrouter_url,
    }
