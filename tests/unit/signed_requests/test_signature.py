"""Signed requests follow Standard Webhooks; stale, replayed and foreign signatures are refused."""

import json
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from fermata.signed_requests.signature import (
    SIGNATURE_HEADERS,
    SignatureRefused,
    make_signing_secret,
    sign_request,
    verify_request,
)

SECRET = make_signing_secret()
NOW = 1_800_000_000.7
BODY = json.dumps({"data": "grün"}, ensure_ascii=False).encode()


def test_the_reference_library_accepts_our_signature() -> None:
    now = datetime.now(UTC).timestamp()
    headers = sign_request([SECRET], "msg_1", now, BODY)
    assert headers.keys() == SIGNATURE_HEADERS
    assert Webhook(SECRET).verify(BODY, headers) == {"data": "grün"}


def test_a_signature_of_the_reference_library_is_accepted() -> None:
    sent_at = datetime.fromtimestamp(int(NOW), UTC)
    signature = Webhook(SECRET).sign("msg_1", sent_at, BODY.decode())
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(NOW)), "webhook-signature": signature}
    assert verify_request([SECRET], headers, NOW, BODY) == "msg_1"


def test_during_a_rotation_either_secret_verifies() -> None:
    new_secret = make_signing_secret()
    headers = sign_request([SECRET, new_secret], "msg_1", NOW, BODY)
    assert verify_request([SECRET], headers, NOW, BODY) == verify_request([new_secret], headers, NOW, BODY) == "msg_1"
    assert verify_request([SECRET, new_secret], sign_request([SECRET], "msg_2", NOW, BODY), NOW, BODY) == "msg_2"


@pytest.mark.parametrize(
    ("changes", "seconds", "reason"),
    [
        ({}, 301, "stale"),
        ({}, -302, "stale"),
        ({"webhook-id": "msg_2"}, 0, "wrong_signature"),
        ({"webhook-id": ""}, 0, "unsigned"),
        ({"webhook-timestamp": "1800000001"}, 0, "wrong_signature"),
        ({"webhook-timestamp": "soon"}, 0, "malformed_timestamp"),
        ({"webhook-timestamp": "nan"}, 0, "malformed_timestamp"),
        ({"webhook-timestamp": "²"}, 0, "malformed_timestamp"),
        ({"webhook-timestamp": "9" * 30}, 0, "malformed_timestamp"),
        ({"webhook-signature": "v1"}, 0, "wrong_signature"),
        ({"webhook-signature": "v1,!!!"}, 0, "wrong_signature"),
        ({"webhook-signature": "v2,abc v1a,abc ,"}, 0, "wrong_signature"),
        ({"webhook-signature": "v1,größer"}, 0, "wrong_signature"),
        ({"webhook-signature": "  "}, 0, "unsigned"),
    ],
)
def test_anything_else_is_refused(changes: dict[str, str], seconds: float, reason: str) -> None:
    headers = sign_request([SECRET], "msg_1", NOW, BODY) | changes
    with pytest.raises(SignatureRefused) as refused:
        verify_request([SECRET], headers, NOW + seconds, BODY)
    assert refused.value.reason == reason


def test_another_body_or_secret_is_refused() -> None:
    headers = sign_request([SECRET], "msg_1", NOW, BODY)
    for secret, body in ((SECRET, b"{}"), (make_signing_secret(), BODY), (SECRET, b"\xff")):
        with pytest.raises(SignatureRefused, match="wrong_signature"):
            verify_request([secret], headers, NOW, body)
