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

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.words.errors import Unavailable

ALGORITHMS = ("RS256", "ES256")
FRESH = 300
PATIENCE = 30
LAST_GOOD = 3600
TIMEOUT = 3
MOST_BYTES = 256 * 1024


@dataclass(frozen=True)
class KeySet:
    keys: tuple[PyJWK, ...]
    asked: float


def signing_keys(desk: Desk, url: str, algorithm: str, kid: str | None) -> Sequence[PyJWK]:
    """The keys a token with this header may be signed with; none when the header asks for what we do not take."""
    if algorithm not in ALGORITHMS:
        return ()
    known = _key_set(desk, url)
    found = _matching(known, algorithm, kid)
    if not found and desk.clock.monotonic() - known.asked >= PATIENCE:
        desk.memory.forget(("jwks", url))
        found = _matching(_key_set(desk, url), algorithm, kid)
    return found


def _matching(known: KeySet, algorithm: str, kid: str | None) -> Sequence[PyJWK]:
    fitting = [key for key in known.keys if key.algorithm_name == algorithm]
    return fitting if kid is None else [key for key in fitting if key.key_id == kid]


def _key_set(desk: Desk, url: str) -> KeySet:
    return desk.memory.recall(("jwks", url), FRESH, lambda: _asked(desk, url))


def _asked(desk: Desk, url: str) -> KeySet:
    now = desk.clock.monotonic()
    try:
        known = KeySet(_parsed(_fetched(url, local=desk.settings.fermata_stage == "local")), now)
    except (OSError, ValueError, PyJWTError) as error:
        signals.warn("jwks_unreachable", url=url, reason=str(error))
        return replace(_last_good(desk, url, error), asked=now)
    desk.memory.forget(("last jwks", url))
    return desk.memory.recall(("last jwks", url), LAST_GOOD, lambda: known)


def _last_good(desk: Desk, url: str, error: Exception) -> KeySet:
    def none() -> KeySet:
        refusal = "The server that publishes this tenant's keys does not answer. Try again in a moment."
        raise Unavailable(refusal, retry_after=5) from error

    return desk.memory.recall(("last jwks", url), 0, none)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        raise urllib.error.URLError(f"it redirects to {newurl}; give that address instead")


def _fetched(url: str, *, local: bool) -> bytes:
    if not url.startswith(("https://", "http://") if local else "https://"):
        raise ValueError("keys are only taken from an https address")
    asked = urllib.request.Request(url, headers={"accept": "application/json"})  # noqa: S310 (scheme checked above)
    with urllib.request.build_opener(_NoRedirect).open(asked, timeout=TIMEOUT) as answer:
        body: bytes = answer.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES} bytes of keys")
    return body


def _parsed(body: bytes) -> tuple[PyJWK, ...]:
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("the key set is not a JSON object")
    keys = PyJWKSet.from_dict(document).keys
    return tuple(key for key in keys if key.public_key_use in (None, "sig"))
