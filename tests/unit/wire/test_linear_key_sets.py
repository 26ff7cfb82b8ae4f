"""A key set twice as large takes twice the time, and the largest less than a second, whatever its keys hold."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt import PyJWTError
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from fermata.wire.auth.fetch_signing_keys import MAX_KEY_SET_BYTES, KeySetUnusable, _parse_keys
from tests.growth.growing_values import Growing, find_slow_values, iter_growing_bodies, iter_growing_values

SIZE = MAX_KEY_SET_BYTES // 8
"""Lists grow to eight times this size."""
NOTICEABLE_SECONDS = 0.05
RSA_KEY = RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 2048), as_dict=True)
EC_KEY = ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()), as_dict=True)
WITHOUT_PRIMES = {name: RSA_KEY[name] for name in ("kty", "n", "e", "d")}
TEXTS = ("A", "A-", "=", "\u00e9", " ")


def prepare(text: str) -> Callable[[], object]:
    body = text.encode("utf-8", "surrogatepass")

    def work() -> None:
        with suppress(KeySetUnusable, ValueError, PyJWTError):
            _parse_keys(body)

    return work


def iter_growing_key_sets(key: dict[str, Any]) -> list[Growing]:
    values = iter_growing_values({"keys": [key]}, TEXTS)
    return [Growing(one.name, lambda size, make=one.make: json.dumps(make(size))) for one in values]


def test_key_sets_take_time_in_proportion_to_their_size() -> None:
    for key in (RSA_KEY, WITHOUT_PRIMES, EC_KEY):
        assert find_slow_values(iter(iter_growing_key_sets(key)), prepare, SIZE, NOTICEABLE_SECONDS) == []
    assert find_slow_values(iter_growing_bodies(), prepare, SIZE, NOTICEABLE_SECONDS) == []
