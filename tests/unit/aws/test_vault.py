"""A secret opens only for what it was sealed for, and a warm process asks KMS nothing."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from fermata.aws.desk import Desk
from fermata.aws.vault import CACHE_SECONDS, CannotOpen, Purpose, Vault
from tests.desk import REGION, TestClock, make_key

SECRET = "sk-ant-🔑"


def seal(desk: Desk) -> bytes:
    return desk.vault.seal(SECRET, purpose="provider-key", tenant="bakery", name="key-1")


def test_a_secret_comes_out_as_it_went_in_and_does_not_show_in_between(desk: Desk) -> None:
    sealed = seal(desk)
    assert SECRET.encode() not in sealed
    assert desk.vault.open(sealed, purpose="provider-key", tenant="bakery", name="key-1") == SECRET


@pytest.mark.parametrize(
    ("purpose", "tenant", "name"),
    [
        ("caller-secret", "bakery", "key-1"),
        ("provider-key", "butcher", "key-1"),
        ("provider-key", "bakery", "key-2"),
    ],
)
def test_a_secret_does_not_open_for_anything_else(desk: Desk, purpose: Purpose, tenant: str, name: str) -> None:
    sealed = seal(desk)
    desk.vault.open(sealed, purpose="provider-key", tenant="bakery", name="key-1")  # remembered for this one only
    with pytest.raises(CannotOpen):
        desk.vault.open(sealed, purpose=purpose, tenant=tenant, name=name)


def test_a_secret_sealed_under_another_key_is_lost_to_us(desk: Desk) -> None:
    other = Vault(boto3.client("kms", region_name=REGION), make_key())
    with pytest.raises(CannotOpen, match="key-1"):
        other.open(b"never sealed by anybody", purpose="provider-key", tenant="bakery", name="key-1")


def test_an_opened_secret_is_remembered_for_five_minutes(
    desk: Desk, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = seal(desk)
    asked: list[float] = []
    decrypt: Any = desk.vault._client.decrypt

    def counted(**request: Any) -> Any:
        asked.append(clock.now)
        return decrypt(**request)

    monkeypatch.setattr(desk.vault._client, "decrypt", counted)
    for wait in (0, CACHE_SECONDS - 1, 2):
        clock.go_on(wait)
        assert desk.vault.open(sealed, purpose="provider-key", tenant="bakery", name="key-1") == SECRET
    assert len(asked) == 2


def test_trouble_with_kms_is_not_taken_for_a_lost_secret(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def throttled(**_: object) -> object:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "Decrypt")

    sealed = seal(desk)
    monkeypatch.setattr(desk.vault._client, "decrypt", throttled)
    with pytest.raises(ClientError, match="Throttling"):
        desk.vault.open(sealed, purpose="provider-key", tenant="bakery", name="key-1")
