"""Where each provider is reached, and where a request may go at all."""

from urllib.parse import urlsplit

from fermata.aws.settings import Settings
from fermata.credentials.credential import Credential
from fermata.drivers.guard import Guard
from fermata.words.errors import Invalid


def home(settings: Settings, provider: str) -> str | None:
    """The address of a provider that everybody reaches at the same one."""
    return _homes(settings).get(provider)


def guard(settings: Settings) -> Guard:
    """For every line to a provider: trusts the deployment's own addresses, and no others that are not public."""
    return Guard(_homes(settings).values(), loopback=settings.loopback_allowed)


def address(settings: Settings, credential: Credential) -> str:
    found = credential.base_url or home(settings, credential.provider_id)
    if found is None:
        raise Invalid(f"{credential.provider_id} needs an address: enter the credential again, with its baseUrl.")
    return found


def is_same_place(one: str | None, other: str) -> bool:
    """Same scheme, host and port."""
    return one is not None and urlsplit(one)[:2] == urlsplit(other)[:2]


def _homes(settings: Settings) -> dict[str, str]:
    return {
        "anthropic": settings.anthropic_url,
        "openai": settings.openai_url,
        "openrouter": settings.openrouter_url,
    }
