"""The public keys a tenant's tokens are signed with, from its JWKS URL (RS256, ES256).

Only the URL in the tenant's record is ever asked, never one a token names (`jku`, `x5u`); no redirect is followed.
A set counts for five minutes. A key id that is not in it asks again, but not twice within half a minute, so that
forged tokens cannot make us hammer the tenant's server. While that server is down, the last good set counts for
up to an hour.
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

_ALGORITHMS = ("RS256", "ES256")
KEY_SET_TTL_SECONDS = 300
MIN_KEY_SET_REFETCH_SECONDS = 30
MAX_KEY_SET_STALE_SECONDS = 3600
_TIMEOUT_SECONDS = 3
MAX_KEY_SET_BYTES = 256 * 1024


@dataclass(frozen=True)
class KeySet:
    keys: tuple[PyJWK, ...]
    fetched_at: float


def get_signing_keys(resources: Resources, url: str, algorithm: str, key_id: str | None) -> Sequence[PyJWK]:
    """The keys a token with this header may be signed with; none when the header asks for what we do not take."""
    if algorithm not in _ALGORITHMS:
        return ()
    known = _key_set(resources, url)
    found = _matching(known, algorithm, key_id)
    if not found and resources.clock.monotonic() - known.fetched_at >= MIN_KEY_SET_REFETCH_SECONDS:
        resources.cache.invalidate(("jwks", url))
        found = _matching(_key_set(resources, url), algorithm, key_id)
    return found


def _matching(known: KeySet, algorithm: str, kid: str | None) -> Sequence[PyJWK]:
    fitting = [key for key in known.keys if key.algorithm_name == algorithm]
    return fitting if kid is None else [key for key in fitting if key.key_id == kid]


def _key_set(resources: Resources, url: str) -> KeySet:
    return resources.cache.get_or_load(("jwks", url), KEY_SET_TTL_SECONDS, lambda: _asked(resources, url))


def _asked(resources: Resources, url: str) -> KeySet:
    now = resources.clock.monotonic()
    try:
        known = KeySet(_parsed(_fetched(url, local=resources.settings.fermata_stage == "local")), now)
    except (OSError, ValueError, PyJWTError) as error:
        observability.log_warning("jwks_unreachable", url=url, reason=str(error))
        return replace(_last_good(resources, url, error), fetched_at=now)
    resources.cache.invalidate(("last jwks", url))
    return resources.cache.get_or_load(("last jwks", url), MAX_KEY_SET_STALE_SECONDS, lambda: known)


def _last_good(resources: Resources, url: str, error: Exception) -> KeySet:
    def none() -> KeySet:
        refusal = "The server that publishes this tenant's keys does not answer. Try again in a moment."
        raise ServiceUnavailable(refusal, retry_after=5) from error

    return resources.cache.get_or_load(("last jwks", url), 0, none)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        raise urllib.error.URLError(f"it redirects to {newurl}; give that address instead")


def _fetched(url: str, *, local: bool) -> bytes:
    if not url.startswith(("https://", "http://") if local else "https://"):
        raise ValueError("keys are only taken from an https address")
    asked = urllib.request.Request(url, headers={"accept": "application/json"})  # noqa: S310 (scheme checked above)
    with urllib.request.build_opener(_NoRedirect).open(asked, timeout=_TIMEOUT_SECONDS) as answer:
        body: bytes = answer.read(MAX_KEY_SET_BYTES + 1)
    if len(body) > MAX_KEY_SET_BYTES:
        raise ValueError(f"more than {MAX_KEY_SET_BYTES} bytes of keys")
    return body


def _parsed(body: bytes) -> tuple[PyJWK, ...]:
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("the key set is not a JSON object")
    keys = PyJWKSet.from_dict(document).keys
    return tuple(key for key in keys if key.public_key_use in (None, "sig"))
