"""Open secrets only in the context they were sealed in, and cache them in the process."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from fermata.aws.resources import Resources
from fermata.aws.vault import SECRET_CACHE_SECONDS, SecretPurpose, SecretUndecryptable, Vault
from tests.resources import REGION, TestClock, create_kms_key

SECRET = "sk-ant-🔑"


def seal_provider_key(resources: Resources) -> bytes:
    return resources.vault.seal_secret(SECRET, purpose="provider-key", tenant="bakery", name="key-1")


def test_a_secret_comes_out_as_it_went_in_and_does_not_show_in_between(resources: Resources) -> None:
    sealed = seal_provider_key(resources)
    assert SECRET.encode() not in sealed
    assert resources.vault.open_secret(sealed, purpose="provider-key", tenant="bakery", name="key-1") == SECRET


@pytest.mark.parametrize(
    ("purpose", "tenant", "name"),
    [
        ("caller-secret", "bakery", "key-1"),
        ("provider-key", "butcher", "key-1"),
        ("provider-key", "bakery", "key-2"),
    ],
)
def test_a_secret_does_not_open_in_another_context(
    resources: Resources, purpose: SecretPurpose, tenant: str, name: str
) -> None:
    sealed = seal_provider_key(resources)
    resources.vault.open_secret(
        sealed, purpose="provider-key", tenant="bakery", name="key-1"
    )  # cached for this context only
    with pytest.raises(SecretUndecryptable):
        resources.vault.open_secret(sealed, purpose=purpose, tenant=tenant, name=name)


def test_a_secret_sealed_with_another_key_is_undecryptable(resources: Resources) -> None:
    other = Vault(boto3.client("kms", region_name=REGION), create_kms_key())
    with pytest.raises(SecretUndecryptable, match="key-1"):
        other.open_secret(b"never sealed", purpose="provider-key", tenant="bakery", name="key-1")


def test_an_opened_secret_is_cached_for_five_minutes(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = seal_provider_key(resources)
    calls: list[float] = []
    decrypt: Any = resources.vault._client.decrypt

    def counted(**request: Any) -> Any:
        calls.append(clock.now)
        return decrypt(**request)

    monkeypatch.setattr(resources.vault._client, "decrypt", counted)
    for wait in (0, SECRET_CACHE_SECONDS - 1, 2):
        clock.advance(wait)
        assert resources.vault.open_secret(sealed, purpose="provider-key", tenant="bakery", name="key-1") == SECRET
    assert len(calls) == 2


def test_a_transient_kms_error_is_not_taken_for_a_lost_secret(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    def throttled(**_: object) -> object:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "Decrypt")

    sealed = seal_provider_key(resources)
    monkeypatch.setattr(resources.vault._client, "decrypt", throttled)
    with pytest.raises(ClientError, match="Throttling"):
        resources.vault.open_secret(sealed, purpose="provider-key", tenant="bakery", name="key-1")
