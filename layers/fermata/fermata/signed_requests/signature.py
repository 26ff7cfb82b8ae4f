"""Sign requests, and verify signed ones, as Standard Webhooks defines it (decision 0325).

The signature covers the id, the time and the body. The package `standardwebhooks` computes it. The age of a request is
checked here, on the clock of the process.
"""

import base64
import hmac
import math
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from standardwebhooks import Webhook

ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"
SIGNATURE_HEADERS = frozenset({ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER})
SIGNATURE_TOLERANCE_SECONDS = 300
"""How far the time of a signed request may be from ours."""
_SECRET_PREFIX = "whsec_"  # noqa: S105 (a prefix, not a secret)
_SECRET_BYTES = 32
_MAX_SIGNATURES = 10


class SignatureRefused(Exception):
    """A signature is missing, wrong, or too old. `reason` is a code for the security event."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def make_signing_secret() -> str:
    """Return a new secret in the form that Standard Webhooks libraries take."""
    return _SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def sign_request(signing_secrets: Iterable[str], message_id: str, now: float, body: bytes) -> dict[str, str]:
    """Return the headers of a signed request.

    Args:
        signing_secrets: One secret, or two while the receiver installs the new one; none for a receiver without one.
        message_id: The same for every repetition of the message.
        now: Epoch seconds.
        body: The body, in UTF-8.
    """
    sent_at = datetime.fromtimestamp(math.floor(now), UTC)
    text = body.decode()
    signatures = [Webhook(secret).sign(message_id, sent_at, text) for secret in signing_secrets]
    headers = {ID_HEADER: message_id, TIMESTAMP_HEADER: str(math.floor(now))}
    return headers | ({SIGNATURE_HEADER: " ".join(signatures)} if signatures else {})


def verify_request(signing_secrets: Iterable[str], headers: Mapping[str, str], now: float, body: bytes) -> str:
    """Check the signature of a request.

    Args:
        signing_secrets: The secrets that may have signed it.
        headers: Its headers, with lower-case names.
        now: Epoch seconds.
        body: The body as it arrived.

    Returns:
        The id of the message.

    Raises:
        SignatureRefused: No secret has signed this, or its time is more than SIGNATURE_TOLERANCE_SECONDS away.
    """
    message_id, timestamp = headers.get(ID_HEADER, ""), headers.get(TIMESTAMP_HEADER, "")
    signatures = headers.get(SIGNATURE_HEADER, "").split()[:_MAX_SIGNATURES]
    if not (message_id and timestamp and signatures):
        raise SignatureRefused("unsigned")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise SignatureRefused("malformed_timestamp")
    if abs(now - int(timestamp)) > SIGNATURE_TOLERANCE_SECONDS:
        raise SignatureRefused("stale")
    sent_at = datetime.fromtimestamp(int(timestamp), UTC)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise SignatureRefused("wrong_signature") from None
    expected = [Webhook(secret).sign(message_id, sent_at, text).encode() for secret in signing_secrets]
    given = [signature.encode() for signature in signatures]
    matches = [hmac.compare_digest(one, other) for one in expected for other in given]
    if not any(matches):
        raise SignatureRefused("wrong_signature")
    return message_id
