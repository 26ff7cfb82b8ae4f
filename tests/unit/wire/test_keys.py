"""Tokens signed with RS256 or ES256, their public keys served by a real server on this machine."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from fermata.aws.desk import Desk
from fermata.wire.callers import identify
from fermata.words.errors import Unauthorized, Unavailable
from tests.callers import Signer, make_tenant
from tests.desk import TestClock, another_process
from tests.serving import OneAnswer, serving

RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def server() -> Iterator[OneAnswer]:
    with serving() as server:
        yield server


def publish(server: OneAnswer, *keys: dict[str, Any]) -> None:
    server.body = json.dumps({"keys": keys}).encode()


@pytest.fixture
def local(desk: Desk) -> Desk:
    return another_process(desk, fermata_stage="local")


@pytest.fixture
def bakery(local: Desk, server: OneAnswer) -> Signer:
    made = make_tenant(local, jwks_url=server.url)
    publish(server, public(RSA, "r1"), public(EC, "e1"))
    return Signer(made.tenant, made.issuer, made.audience, RSA, "RS256", "r1")


def signed_with(signer: Signer, key: Any, algorithm: str, kid: str | None) -> dict[str, str]:
    return Signer(signer.tenant, signer.issuer, signer.audience, key, algorithm, kid).bearer()


def public(key: Any, kid: str, **members: Any) -> dict[str, Any]:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"} | members


@pytest.mark.parametrize(("key", "algorithm", "kid"), [(RSA, "RS256", "r1"), (EC, "ES256", "e1"), (EC, "ES256", None)])
def test_a_token_signed_with_a_published_key_is_taken(
    local: Desk, bakery: Signer, key: Any, algorithm: str, kid: str | None
) -> None:
    assert identify(local, signed_with(bakery, key, algorithm, kid), "GET").user == "ada"


def test_the_keys_are_asked_for_once_in_five_minutes(
    local: Desk, bakery: Signer, server: OneAnswer, clock: TestClock
) -> None:
    for _ in range(3):
        identify(local, bakery.bearer(), "GET")
    assert server.asked == 1
    clock.go_on(301)
    identify(local, bakery.bearer(), "GET")
    assert server.asked == 2


def test_a_new_key_is_found_by_its_id_without_waiting(
    local: Desk, bakery: Signer, server: OneAnswer, clock: TestClock
) -> None:
    identify(local, bakery.bearer(), "GET")
    newer = rsa.generate_private_key(65537, 2048)
    publish(server, public(RSA, "r1"), public(newer, "r2"))
    clock.go_on(31)
    assert identify(local, signed_with(bakery, newer, "RS256", "r2"), "GET").user == "ada"


def test_forged_key_ids_cannot_make_us_hammer_the_server(local: Desk, bakery: Signer, server: OneAnswer) -> None:
    for number in range(5):
        with pytest.raises(Unauthorized):
            identify(local, signed_with(bakery, RSA, "RS256", f"made-up-{number}"), "GET")
    assert server.asked == 1


def test_a_key_nobody_published_is_refused(local: Desk, bakery: Signer) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    with pytest.raises(Unauthorized):
        identify(local, signed_with(bakery, stranger, "RS256", "r1"), "GET")


@pytest.mark.parametrize("algorithm", ["RS512", "PS256"])
def test_other_algorithms_with_a_published_key_are_refused(local: Desk, bakery: Signer, algorithm: str) -> None:
    with pytest.raises(Unauthorized):
        identify(local, signed_with(bakery, RSA, algorithm, "r1"), "GET")


def test_the_public_key_is_no_hmac_secret(local: Desk, bakery: Signer) -> None:
    """The classic confusion: HS256 with the published key as its secret."""
    pem = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [{"alg": "HS256", "typ": "JWT", "kid": "r1"}, bakery.claims()]
    head = ".".join(encoded(json.dumps(part).encode()) for part in parts)
    signature = jwt.api_jws.PyJWS().get_algorithm_by_name("HS256").sign(head.encode(), pem)
    with pytest.raises(Unauthorized):
        identify(local, {"authorization": f"Bearer {head}.{encoded(signature)}"}, "GET")


def test_a_symmetric_key_in_the_set_is_ignored(local: Desk, bakery: Signer, server: OneAnswer) -> None:
    secret = b"0123456789abcdef0123456789abcdef"
    publish(server, public(RSA, "r1"), {"kty": "oct", "kid": "h1", "k": encoded(secret)})
    with pytest.raises(Unauthorized):
        identify(local, signed_with(bakery, secret, "HS256", "h1"), "GET")


def test_a_key_for_encryption_signs_nothing(local: Desk, bakery: Signer, server: OneAnswer) -> None:
    publish(server, public(RSA, "r1", use="enc"), public(EC, "e1"))
    with pytest.raises(Unauthorized):
        identify(local, bakery.bearer(), "GET")


def test_an_rsa_key_that_is_too_short_is_refused(local: Desk, bakery: Signer, server: OneAnswer) -> None:
    short = rsa.generate_private_key(65537, 1024)
    publish(server, public(short, "r1"))
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        headers = signed_with(bakery, short, "RS256", "r1")
    with pytest.raises(Unauthorized):
        identify(local, headers, "GET")


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"[]", b"{}", b'{"keys":[]}', b'{"keys":5}', b"{" + b" " * 300_000 + b"}"]
)
def test_a_key_server_that_makes_no_sense_is_unavailable(
    local: Desk, bakery: Signer, server: OneAnswer, body: bytes
) -> None:
    server.body = body
    with pytest.raises(Unavailable, match="does not answer") as refused:
        identify(local, bakery.bearer(), "GET")
    assert refused.value.retry_after == 5


def test_no_redirect_is_followed(local: Desk, bakery: Signer, server: OneAnswer) -> None:
    server.status, server.location = 302, f"{server.url}/elsewhere"
    with pytest.raises(Unavailable):
        identify(local, bakery.bearer(), "GET")
    assert server.asked == 1


def test_while_the_server_is_down_the_last_good_keys_count_for_an_hour(
    local: Desk, bakery: Signer, server: OneAnswer, clock: TestClock
) -> None:
    identify(local, bakery.bearer(), "GET")
    server.status = 500
    clock.go_on(1800)
    assert identify(local, bakery.bearer(), "GET").user == "ada"
    clock.go_on(1801)
    with pytest.raises(Unavailable):
        identify(local, bakery.bearer(), "GET")


def test_the_url_in_a_token_is_never_asked(local: Desk, bakery: Signer, server: OneAnswer) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    with serving() as evil:
        publish(evil, public(stranger, "r1"))
        headers = {"kid": "r1", "jku": evil.url, "jwk": public(stranger, "r1")}
        token = jwt.encode(bakery.claims(), stranger, "RS256", headers=headers)
        with pytest.raises(Unauthorized):
            identify(local, {"authorization": f"Bearer {token}"}, "GET")
    assert evil.asked == 0


def test_off_the_local_stage_keys_come_over_https_only(
    local: Desk, desk: Desk, bakery: Signer, server: OneAnswer
) -> None:
    with pytest.raises(Unavailable):
        identify(desk, bakery.bearer(), "GET")
    assert server.asked == 0


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
