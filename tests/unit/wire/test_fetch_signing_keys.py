"""Tokens signed with RS256 or ES256, with their public keys on a real local server."""

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
from fermata.domain.errors import InvalidRequest, ServiceUnavailable, Unauthorized
from fermata.wire.auth import authentication
from fermata.wire.auth.authentication import authenticate
from fermata.wire.auth.fetch_signing_keys import MAX_KEYS_TRIED
from tests.fixed_response_server import FixedResponseServer, run_fixed_response_server
from tests.resources import TestClock, resources_of_new_process
from tests.tenant_tokens import TokenSigner, make_tenant

RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
UNPUBLISHED_EC = ec.generate_private_key(ec.SECP256R1())


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
    publish(server, to_jwk(RSA, "r1"), to_jwk(EC, "e1"))
    return TokenSigner(made.tenant, made.issuer, made.audience, RSA, "RS256", "r1")


def sign_with(signer: TokenSigner, key: Any, algorithm: str, kid: str | None) -> dict[str, str]:
    return TokenSigner(signer.tenant, signer.issuer, signer.audience, key, algorithm, kid).bearer_headers()


def to_jwk(key: Any, kid: str, **members: Any) -> dict[str, Any]:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"} | members


@pytest.mark.parametrize(("key", "algorithm", "kid"), [(RSA, "RS256", "r1"), (EC, "ES256", "e1"), (EC, "ES256", None)])
def test_a_token_signed_with_a_published_key_is_accepted(
    local: Resources, bakery: TokenSigner, key: Any, algorithm: str, kid: str | None
) -> None:
    assert authenticate(local, sign_with(bakery, key, algorithm, kid), "GET").user == "ada"


def test_the_keys_are_fetched_once_in_five_minutes(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer, clock: TestClock
) -> None:
    for _ in range(3):
        authenticate(local, bakery.bearer_headers(), "GET")
    assert server.request_count == 1
    clock.advance(301)
    authenticate(local, bakery.bearer_headers(), "GET")
    assert server.request_count == 2


def test_an_unknown_key_id_fetches_the_keys_again(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer, clock: TestClock
) -> None:
    authenticate(local, bakery.bearer_headers(), "GET")
    newer = rsa.generate_private_key(65537, 2048)
    publish(server, to_jwk(RSA, "r1"), to_jwk(newer, "r2"))
    clock.advance(31)
    assert authenticate(local, sign_with(bakery, newer, "RS256", "r2"), "GET").user == "ada"


def test_forged_key_ids_do_not_flood_the_server(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer
) -> None:
    for number in range(5):
        with pytest.raises(Unauthorized):
            authenticate(local, sign_with(bakery, RSA, "RS256", f"made-up-{number}"), "GET")
    assert server.request_count == 1


def test_an_unpublished_key_is_refused(local: Resources, bakery: TokenSigner) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    with pytest.raises(Unauthorized):
        authenticate(local, sign_with(bakery, stranger, "RS256", "r1"), "GET")


@pytest.mark.parametrize("algorithm", ["RS512", "PS256"])
def test_other_algorithms_with_a_published_key_are_refused(
    local: Resources, bakery: TokenSigner, algorithm: str
) -> None:
    with pytest.raises(Unauthorized):
        authenticate(local, sign_with(bakery, RSA, algorithm, "r1"), "GET")


def test_a_public_key_is_not_used_as_hmac_secret(local: Resources, bakery: TokenSigner) -> None:
    """Algorithm confusion: HS256 with the published key as its secret."""
    pem = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [{"alg": "HS256", "typ": "JWT", "kid": "r1"}, bakery.make_claims()]
    head = ".".join(to_base64url(json.dumps(part).encode()) for part in parts)
    signature = jwt.api_jws.PyJWS().get_algorithm_by_name("HS256").sign(head.encode(), pem)
    with pytest.raises(Unauthorized):
        authenticate(local, {"authorization": f"Bearer {head}.{to_base64url(signature)}"}, "GET")


def test_a_symmetric_key_in_the_set_is_ignored(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer
) -> None:
    secret = b"0123456789abcdef0123456789abcdef"
    publish(server, to_jwk(RSA, "r1"), {"kty": "oct", "kid": "h1", "k": to_base64url(secret)})
    with pytest.raises(Unauthorized):
        authenticate(local, sign_with(bakery, secret, "HS256", "h1"), "GET")


def test_a_key_for_encryption_is_ignored(local: Resources, bakery: TokenSigner, server: FixedResponseServer) -> None:
    publish(server, to_jwk(RSA, "r1", use="enc"), to_jwk(EC, "e1"))
    with pytest.raises(Unauthorized):
        authenticate(local, bakery.bearer_headers(), "GET")


def test_private_members_of_published_keys_are_not_read(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library finds the prime factors of each key that has `d` alone: a minute for a set of 200 KB."""
    private = RSAAlgorithm.to_jwk(RSA, as_dict=True)
    publish(server, *[to_jwk(RSA, "r1", d=private["d"])] * 300)

    def recover(n: int, e: int, d: int) -> tuple[int, int]:
        raise AssertionError("a private key was computed")

    monkeypatch.setattr("jwt.algorithms.rsa_recover_prime_factors", recover)
    assert authenticate(local, bakery.bearer_headers(), "GET").user == "ada"


def test_an_rsa_key_that_is_too_short_is_refused(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer
) -> None:
    short = rsa.generate_private_key(65537, 1024)
    publish(server, to_jwk(short, "r1"))
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        headers = sign_with(bakery, short, "RS256", "r1")
    with pytest.raises(Unauthorized):
        authenticate(local, headers, "GET")


@pytest.mark.parametrize(
    "body",
    [b"", b"nonsense", b"[]", b"{}", b'{"keys":[]}', b'{"keys":5}', b"[" * 200_000, b"{" + b" " * 300_000 + b"}"],
)
def test_an_invalid_response_of_the_key_server_is_a_503(
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


def test_while_the_server_is_down_the_last_keys_are_used_for_an_hour(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer, clock: TestClock
) -> None:
    authenticate(local, bakery.bearer_headers(), "GET")
    server.status = 500
    clock.advance(1800)
    assert authenticate(local, bakery.bearer_headers(), "GET").user == "ada"
    clock.advance(1801)
    with pytest.raises(ServiceUnavailable):
        authenticate(local, bakery.bearer_headers(), "GET")


def test_the_url_in_a_token_is_never_requested(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer
) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    with run_fixed_response_server() as evil:
        publish(evil, to_jwk(stranger, "r1"))
        headers = {"kid": "r1", "jku": evil.url, "jwk": to_jwk(stranger, "r1")}
        token = jwt.encode(bakery.make_claims(), stranger, "RS256", headers=headers)
        with pytest.raises(Unauthorized):
            authenticate(local, {"authorization": f"Bearer {token}"}, "GET")
    assert evil.request_count == 0


def test_keys_are_fetched_over_https_except_on_the_local_stage(
    local: Resources, resources: Resources, bakery: TokenSigner, server: FixedResponseServer
) -> None:
    with pytest.raises(ServiceUnavailable):
        authenticate(resources, bakery.bearer_headers(), "GET")
    assert server.request_count == 0


@pytest.mark.parametrize("url", ["https://127.0.0.1/keys", "https://[::1]/keys", "https://10.0.0.1/keys"])
def test_keys_are_not_fetched_from_an_address_that_is_not_public(
    resources: Resources, caplog: pytest.LogCaptureFixture, url: str
) -> None:
    made = make_tenant(resources, jwks_url=url)
    with pytest.raises(ServiceUnavailable):
        authenticate(resources, sign_with(made, RSA, "RS256", "r1"), "GET")
    assert [record.message for record in caplog.records] == ["security.address_refused", "jwks_unreachable"]


@pytest.mark.parametrize("url", ["https://keys.example:8443/keys", "https://keys.example:22/keys"])
def test_a_tenant_with_keys_at_another_port_is_not_registered(resources: Resources, url: str) -> None:
    with pytest.raises(InvalidRequest, match="port 443"):
        make_tenant(resources, jwks_url=url)


def test_the_log_does_not_repeat_what_a_key_server_says(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.status, server.body = 500, b"sk-secret of the server"
    with pytest.raises(ServiceUnavailable):
        authenticate(local, bakery.bearer_headers(), "GET")
    [line] = [vars(record) for record in caplog.records]
    assert (line["event"], line["host"], line["reason"]) == ("jwks_unreachable", "127.0.0.1", "status_500")


def to_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_of_a_thousand_keys_a_token_names_one_and_few_are_tried_for_one_that_names_none(
    local: Resources, bakery: TokenSigner, server: FixedResponseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comparison takes a tenth of a millisecond, and anybody can send a token that fits none."""
    others = [ec.generate_private_key(ec.SECP256R1()) for _ in range(25)]
    padding = [to_jwk(others[number % 25], f"k{number}") for number in range(999)]
    publish(server, *padding, to_jwk(EC, "the last"))
    assert authenticate(local, sign_with(bakery, EC, "ES256", "the last"), "GET").user == "ada"
    tried: list[Any] = []
    original = authentication._decode
    monkeypatch.setattr(authentication, "_decode", lambda *args: tried.append(args) or original(*args))
    for kid in (None, "k1", "k999"):
        with pytest.raises(Unauthorized):
            authenticate(local, sign_with(bakery, UNPUBLISHED_EC, "ES256", kid), "GET")
    assert len(tried) == MAX_KEYS_TRIED + 1
