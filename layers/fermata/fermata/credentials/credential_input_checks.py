"""Check what users enter for a credential: the form must be able to work, and its address must be allowed."""

from fermata.aws.settings import Settings
from fermata.credentials import base_urls
from fermata.credentials.credential import AuthMode, Credential
from fermata.domain.errors import InvalidRequest
from fermata.drivers.registry import get_provider


def check_new_credential(
    settings: Settings, provider_name: str, auth_mode: AuthMode, api_key: str | None, base_url: str | None
) -> None:
    """Check the form of a new credential (decision 0042).

    Raises:
        InvalidRequest: The provider is unknown, a part is missing or too much, or the address is not allowed.
    """
    get_provider(provider_name)
    if auth_mode == "baseUrl":
        if base_url is None:
            raise InvalidRequest("Send the server's address as 'baseUrl'.")
        base_urls.make_url_guard(settings).check_url_and_host(base_url)
        return
    if base_urls.get_default_url(settings, provider_name) is None:
        raise InvalidRequest(
            f"{provider_name} is a server of your own: send authMode 'baseUrl' and its address as 'baseUrl'."
        )
    if not api_key:
        raise InvalidRequest("Send the provider's key as 'apiKey'.")
    if base_url is not None:
        raise InvalidRequest(
            "With authMode 'apiKey' there is no 'baseUrl'; send authMode 'baseUrl' for an address of your own."
        )


def check_url_change(settings: Settings, old: Credential, api_key: str | None, base_url: str) -> None:
    """Check a new address. A stored key never follows to another host, where it could be read (decision 0042).

    Raises:
        InvalidRequest: The credential has no address, the new one is not allowed, or it needs the key again.
    """
    if old.auth_mode == "apiKey":
        raise InvalidRequest("This credential has no address of its own. Enter another one, with authMode 'baseUrl'.")
    base_urls.make_url_guard(settings).check_url_and_host(base_url)
    if old.sealed_key is not None and api_key is None and not base_urls.is_same_origin(old.base_url, base_url):
        raise InvalidRequest(
            "The new address is on another host. Send its key along as 'apiKey' (empty when it needs none)."
        )
