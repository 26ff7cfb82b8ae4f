"""Remember which tokens a process has verified, so that those of one user's next requests are not decoded again."""

import hashlib
import time
from collections.abc import Mapping
from typing import Any

from fermata.domain.value_dataclass import value_dataclass

MAX_KEPT_TOKENS = 128
"""A token has at most 8 KB."""


@value_dataclass(frozen=True)
class VerifiedToken:
    """What a token says, and how it was verified."""

    issuer: str
    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    verified_with: tuple[Any, ...]
    """Everything besides the token that was part of it: the key (of a secret its hash), algorithm, issuer, audience."""
    verified_at: float


class VerifiedTokens:
    """The tokens by their hash, as long as they are valid by the wall clock, which is that of PyJWT."""

    def __init__(self) -> None:
        self._known: dict[bytes, VerifiedToken] = {}

    def find_token(self, token: str) -> VerifiedToken | None:
        """Return a token that was verified. Whether it still counts is up to what it was verified with."""
        known = self._known.get(hash_text(token))
        is_current = known is not None and known.verified_at <= time.time() < known.claims["exp"]
        return known if is_current else None

    def add_token(
        self, token: str, header: Mapping[str, Any], claims: Mapping[str, Any], verified_with: tuple[Any, ...]
    ) -> None:
        """Remember a token. One whose end is not a plain number is verified each time."""
        if not isinstance(claims["exp"], int | float):
            return
        if len(self._known) >= MAX_KEPT_TOKENS:
            self._known = {}
        self._known[hash_text(token)] = VerifiedToken(claims["iss"], header, claims, verified_with, time.time())


def hash_text(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
