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

from fermata.aws.resources import Resources
from fermata.domain.errors import ServiceUnavailable, Unauthorized
from fermata.wire.auth.authentication import authenticate
from tests.fixed_response_server import FixedResponseServer, run_fixed_response_server
from tests.resources import TestClock, resources_of_new_process
from tests.tenant_tokens import TokenSigner, make_tenant

RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def server() -> Iterator[FixedResponseServer]:
    with run_fixed_response_server() as server:
        yield server


def publish(server: FixedResponseServer, *keys: dict[str, Any]) -> None:
    server.body = json.dumps({"keys": keys}).encode()


@pytest.fixture
def local(resources: Resources) -> Resources:
    return resources_of_new_process(resources, fermata_stage="local")


@pytest.fixture
def bakery(local: Resources, server: FixedResponseServer) -> TokenSigner:
    made = make_tenant(local, jwks_url=server.url)
    publish(server, public(RSA, "r1"), public(EC, "e1"))
    return TokenSigner(made.tenant, made.issuer, made.audience, RSA, "RS256", "r1")


def signed_with(signer: TokenSigner, key: Any, algorithm: str, kid: str | None) -> dict[str, str]:
    return TokenSigner(signer.tenant, signer.issuer, signer.audience, key, algorithm, kid).bearer_headers()


def public(key: Any, kid: str, **members: Any) -> dict[str, Any]:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"} | members


@pytest.mark.parametrize(("key", "algorithm", "kid"), [(RSA, "RS256", "r1"), (EC, "ES256", "e1"), (EC, "ES256", None)])
def test_a_token_signed_with_a_published_key_is_taken(
    local: Resources, bakery: TokenSigner, key: Any, algorithm: str, kid: str | None
) -> None:
    assert authenticate(local, signed_with(bakery, key, algorithm, kid), "GET").user == "ada"


def test_the_keys_are_asked_for_once_in_five_minutes(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer, clock: TestClock
) -> None:
    for _ in range(3):
        authenticate(local, bakery.bearer_headers(), "GET")
    assert server.request_count == 1
    clock.advance(301)
    authenticate(local, bakery.bearer_headers(), "GET")
    assert server.request_count == 2


def test_a_new_key_is_found_by_its_id_without_waiting(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer, clock: TestClock
) -> None:
    authenticate(local, bakery.bearer_headers(), "GET")
    newer = rsa.generate_private_key(65537, 2048)
    publish(server, public(RSA, "r1"), public(newer, "r2"))
    clock.advance(31)
    assert authenticate(local, signed_with(bakery, newer, "RS256", "r2"), "GET").user == "ada"


def test_forged_key_ids_cannot_make_us_hammer_the_server(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer
) -> None:
    for number in range(5):
        with pytest.raises(Unauthorized):
            authenticate(local, signed_with(bakery, RSA, "RS256", f"made-up-{number}"), "GET")
    assert server.request_count == 1


def test_a_key_nobody_published_is_refused(local: Resources, bakery: TokenSigner) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    with pytest.raises(Unauthorized):
        authenticate(local, signed_with(bakery, stranger, "RS256", "r1"), "GET")


@pytest.mark.parametrize("algorithm", ["RS512", "PS256"])
def test_other_algorithms_with_a_published_key_are_refused(
    local: Resources, bakery: TokenSigner, algorithm: str
) -> None:
    with pytest.raises(Unauthorized):
        authenticate(local, signed_with(bakery, RSA, algorithm, "r1"), "GET")


def test_the_public_key_is_no_hmac_secret(local: Resources, bakery: TokenSigner) -> None:
    """The classic confusion: HS256 with the published key as its secret."""
    pem = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [{"alg": "HS256", "typ": "JWT", "kid": "r1"}, bakery.make_claims()]
    head = ".".join(encoded(json.dumps(part).encode()) for part in parts)
    signature = jwt.api_jws.PyJWS().get_algorithm_by_name("HS256").sign(head.encode(), pem)
    with pytest.raises(Unauthorized):
        authenticate(local, {"authorization": f"Bearer {head}.{encoded(signature)}"}, "GET")


def test_a_symmetric_key_in_the_set_is_ignored(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer
) -> None:
    secret = b"0123456789abcdef0123456789abcdef"
    publish(server, public(RSA, "r1"), {"kty": "oct", "kid": "h1", "k": encoded(secret)})
    with pytest.raises(Unauthorized):
        authenticate(local, signed_with(bakery, secret, "HS256", "h1"), "GET")


def test_a_key_for_encryption_signs_nothing(local: Resources, bakery: TokenSigner, server: FixedResponseServer) -> None:
    publish(server, public(RSA, "r1", use="enc"), public(EC, "e1"))
    with pytest.raises(Unauthorized):
        authenticate(local, bakery.bearer_headers(), "GET")


def test_an_rsa_key_that_is_too_short_is_refused(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer
) -> None:
    short = rsa.generate_private_key(65537, 1024)
    publish(server, public(short, "r1"))
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        headers = signed_with(bakery, short, "RS256", "r1")
    with pytest.raises(Unauthorized):
        authenticate(local, headers, "GET")


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"[]", b"{}", b'{"keys":[]}', b'{"keys":5}', b"{" + b" " * 300_000 + b"}"]
)
def test_a_key_server_that_makes_no_sense_is_unavailable(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer, body: bytes
) -> None:
    server.body = body
    with pytest.raises(ServiceUnavailable, match="does not answer") as refused:
        authenticate(local, bakery.bearer_headers(), "GET")
    assert refused.value.retry_after == 5


def test_no_redirect_is_followed(local: Resources, bakery: TokenSigner, server: FixedResponseServer) -> None:
    server.status, server.location = 302, f"{server.url}/elsewhere"
    with pytest.raises(ServiceUnavailable):
        authenticate(local, bakery.bearer_headers(), "GET")
    assert server.request_count == 1


def test_while_the_server_is_down_the_last_good_keys_count_for_an_hour(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer, clock: TestClock
) -> None:
    authenticate(local, bakery.bearer_headers(), "GET")
    server.status = 500
    clock.advance(1800)
    assert authenticate(local, bakery.bearer_headers(), "GET").user == "ada"
    clock.advance(1801)
    with pytest.raises(ServiceUnavailable):
        authenticate(local, bakery.bearer_headers(), "GET")


def test_the_url_in_a_token_is_never_asked(local: Resources, bakery: TokenSigner, server: FixedResponseServer) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    with run_fixed_response_server() as evil:
        publish(evil, public(stranger, "r1"))
        headers = {"kid": "r1", "jku": evil.url, "jwk": public(stranger, "r1")}
        token = jwt.encode(bakery.make_claims(), stranger, "RS256", headers=headers)
        with pytest.raises(Unauthorized):
            authenticate(local, {"authorization": f"Bearer {token}"}, "GET")
    assert evil.request_count == 0


def test_off_the_local_stage_keys_come_over_https_only(
    local: Resources, resources: Resources, bakery: TokenSigner, server: FixedResponseServer
) -> None:
    with pytest.raises(ServiceUnavailable):
        authenticate(resources, bakery.bearer_headers(), "GET")
    assert server.request_count == 0


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
