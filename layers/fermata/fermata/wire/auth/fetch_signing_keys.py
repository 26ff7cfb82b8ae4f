"""Fetch the public keys of a tenant's tokens from its JWKS URL (RS256, ES256; decisions 0022 and 0241).

Only the URL in the tenant's record is requested, never one that a token names (`jku`, `x5u`). Redirects are not
followed, and the host must be at a public address. An unknown key id causes another request, but only every half
minute, so that forged tokens cannot flood the tenant's server. While that server is down, the last fetched key set
stays in use for up to an hour.
"""

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from jwt import PyJWK, PyJWKSet, PyJWTError

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refused_address
from fermata.domain.errors import ProviderError
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.wire.auth.jwks_cache import KEY_SET_FETCH_SECONDS, JwksCache

MAX_KEY_SET_BYTES = 256 * 1024
MAX_KEYS_TRIED = 20
"""How many keys a token may be compared with. In a larger set a token has to name its key."""
_ALGORITHMS = ("RS256", "ES256")
_KEY_TYPES = ("RSA", "EC")
_PUBLIC_MEMBERS = ("kty", "use", "key_ops", "alg", "kid", "n", "e", "crv", "x", "y")
"""The others are of private keys. To check those takes a fifth of a second for each key (decision 0241)."""
_HEADERS = {"accept": "application/json", "accept-encoding": "identity"}


class KeySetUnusable(Exception):
    """A server answered with no key set. The text is a code for the log and holds nothing of the answer."""


def get_signing_keys(resources: Resources, url: str, algorithm: str, key_id: str | None) -> Sequence[PyJWK]:
    """Return the keys that may have signed a token with this header. An algorithm that is not accepted has none.

    Raises:
        ServiceUnavailable: The tenant's server does not answer, and no key set of the last hour is cached.
    """
    if algorithm not in _ALGORITHMS:
        return ()

    def select(keys: Sequence[PyJWK]) -> Sequence[PyJWK]:
        fitting = [key for key in keys if key.algorithm_name == algorithm]
        named = fitting if key_id is None else [key for key in fitting if key.key_id == key_id]
        return named[:MAX_KEYS_TRIED]

    return _get_source(resources, url).find_keys(select)


def make_key_server_guard(resources: Resources) -> UrlGuard:
    """Make the guard of requests for keys: public addresses, and on the local stage this machine."""
    return UrlGuard(loopback=resources.settings.is_loopback_allowed, on_refusal=log_refused_address)


def _get_source(resources: Resources, url: str) -> JwksCache:
    return resources.cache.get_shared(
        ("jwks", url), lambda: JwksCache(resources.clock, lambda: _load_keys(resources, url))
    )


def _load_keys(resources: Resources, url: str) -> Sequence[PyJWK] | None:
    try:
        return _parse_keys(_fetch(resources, url))
    except ProviderError as error:
        reason = error.code
    except KeySetUnusable as error:
        reason = str(error)
    except (ValueError, PyJWTError):
        reason = "no_key_set"
    observability.log_warning("jwks_unreachable", host=urlsplit(url).hostname, reason=reason)
    return None


def _fetch(resources: Resources, url: str) -> bytes:
    # Imported here because most tenants have no JWKS, and httpx takes time to import.
    from fermata.drivers.transport.http_connection import HttpConnection

    guard = make_key_server_guard(resources)
    connection = HttpConnection(stall_seconds=KEY_SET_FETCH_SECONDS, total_seconds=KEY_SET_FETCH_SECONDS, guard=guard)
    try:
        with connection.get("key server", url, _HEADERS) as response:
            if response.status != 200:
                raise KeySetUnusable(f"status_{response.status}")
            body = response.read_body(MAX_KEY_SET_BYTES + 1)
    finally:
        connection.close()
    if len(body) > MAX_KEY_SET_BYTES:
        raise KeySetUnusable("too_large")
    return body


def _parse_keys(body: bytes) -> tuple[PyJWK, ...]:
    try:
        document = json.loads(body)
    except RecursionError as error:
        raise KeySetUnusable("no_key_set") from error
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise KeySetUnusable("no_key_set")
    keys = PyJWKSet([_keep_public_members(key) for key in listed if _is_public_key_type(key)]).keys
    return tuple(key for key in keys if key.public_key_use in (None, "sig"))


def _is_public_key_type(key: Any) -> bool:
    return isinstance(key, dict) and key.get("kty") in _KEY_TYPES


def _keep_public_members(key: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in key.items() if name in _PUBLIC_MEMBERS}
