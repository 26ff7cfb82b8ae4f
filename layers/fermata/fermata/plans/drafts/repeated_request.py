"""Recognise a request on a draft that its client repeats, and refuse another one under the same Idempotency-Key."""

import hashlib
from collections.abc import Collection

from fermata.domain.errors import Conflict

KEY_USED_FOR_DRAFT_MESSAGE = "This Idempotency-Key was used for another request. Send a new request with a new key."
_PREFIX = "key/"
_DIGEST_CHARS = 16


def make_request_effect_key(idempotency_key: str, path: str, body: bytes) -> str:
    """Return the effect key of a request that its client may repeat. It says what was asked for under the client's key.

    Args:
        idempotency_key: As the client has sent it.
        path: Of the request.
        body: Of the request.
    """
    digest = hashlib.sha256(path.encode() + b"\n" + body).hexdigest()[:_DIGEST_CHARS]
    return f"{_PREFIX}{idempotency_key}/{digest}"


def require_same_request(effects: Collection[str], effect_key: str) -> None:
    """Check that a client's key was not used for another request, which it would be answered instead of its own.

    Args:
        effects: The effect keys of the newest changes.
        effect_key: Of the change that is asked for.

    Raises:
        Conflict: The key was used for another request.
    """
    if not effect_key.startswith(_PREFIX) or effect_key in effects:
        return
    named = effect_key[:-_DIGEST_CHARS]
    if any(key.startswith(named) and len(key) == len(effect_key) for key in effects):
        raise Conflict(KEY_USED_FOR_DRAFT_MESSAGE)
