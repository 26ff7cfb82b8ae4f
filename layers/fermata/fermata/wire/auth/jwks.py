"""Fetch and cache the public keys of a tenant's tokens from its JWKS URL (RS256, ES256; decision 0022).

Only the URL in the tenant's record is requested, never one that a token names (`jku`, `x5u`). Redirects are not
followed. An unknown key id causes another request, but only every half minute, so that forged tokens cannot flood the
tenant's server. While that server is down, the last fetched key set stays in use for up to an hour.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jwt import PyJWK, PyJWKSet, PyJWTError

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.errors import ServiceUnavailable

KEY_SET_TTL_SECONDS = 300
MIN_KEY_SET_REFETCH_SECONDS = 30
MAX_KEY_SET_STALE_SECONDS = 3600
MAX_KEY_SET_BYTES = 256 * 1024
_ALGORITHMS = ("RS256", "ES256")
_TIMEOUT_SECONDS = 3


@dataclass(frozen=True)
class KeySet:
    """The keys of one JWKS. `fetched_at` is the monotonic time of the last request for them."""

    keys: tuple[PyJWK, ...]
    fetched_at: float


def get_signing_keys(resources: Resources, url: str, algorithm: str, key_id: str | None) -> Sequence[PyJWK]:
    """Return the keys that may have signed a token with this header. An algorithm that is not accepted has none.

    Raises:
        ServiceUnavailable: The tenant's server does not answer, and no key set of the last hour is cached.
    """
    if algorithm not in _ALGORITHMS:
        return ()
    key_set = _get_key_set(resources, url)
    keys = _select_keys(key_set, algorithm, key_id)
    if not keys and resources.clock.monotonic() - key_set.fetched_at >= MIN_KEY_SET_REFETCH_SECONDS:
        resources.cache.invalidate(("jwks", url))
        keys = _select_keys(_get_key_set(resources, url), algorithm, key_id)
    return keys


def _select_keys(key_set: KeySet, algorithm: str, key_id: str | None) -> Sequence[PyJWK]:
    keys = [key for key in key_set.keys if key.algorithm_name == algorithm]
    return keys if key_id is None else [key for key in keys if key.key_id == key_id]


def _get_key_set(resources: Resources, url: str) -> KeySet:
    return resources.cache.get_or_load(("jwks", url), KEY_SET_TTL_SECONDS, lambda: _load_key_set(resources, url))


def _load_key_set(resources: Resources, url: str) -> KeySet:
    now = resources.clock.monotonic()
    try:
        body = _fetch(url, allow_http=resources.settings.fermata_stage == "local")
        key_set = KeySet(_parse_keys(body), now)
    except (OSError, ValueError, PyJWTError) as error:
        observability.log_warning("jwks_unreachable", url=url, reason=str(error))
        return replace(_get_last_key_set(resources, url, error), fetched_at=now)
    resources.cache.invalidate(("last jwks", url))
    return resources.cache.get_or_load(("last jwks", url), MAX_KEY_SET_STALE_SECONDS, lambda: key_set)


def _get_last_key_set(resources: Resources, url: str, error: Exception) -> KeySet:
    def refuse() -> KeySet:
        refusal = "The server that publishes this tenant's keys does not answer. Try again in a moment."
        raise ServiceUnavailable(refusal, retry_after=5) from error

    return resources.cache.get_or_load(("last jwks", url), 0, refuse)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        raise urllib.error.URLError(f"it redirects to {newurl}; give that address instead")


def _fetch(url: str, *, allow_http: bool) -> bytes:
    if not url.startswith(("https://", "http://") if allow_http else "https://"):
        raise ValueError("keys are only taken from an https address")
    request = urllib.request.Request(url, headers={"accept": "application/json"})  # noqa: S310 (scheme checked above)
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=_TIMEOUT_SECONDS) as response:
        body: bytes = response.read(MAX_KEY_SET_BYTES + 1)
    if len(body) > MAX_KEY_SET_BYTES:
        raise ValueError(f"more than {MAX_KEY_SET_BYTES} bytes of keys")
    return body


def _parse_keys(body: bytes) -> tuple[PyJWK, ...]:
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("the key set is not a JSON object")
    keys = PyJWKSet.from_dict(document).keys
    return tuple(key for key in keys if key.public_key_use in (None, "sig"))
