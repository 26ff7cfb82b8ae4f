"""Decide which AWS errors a retry can solve."""

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError

AWS_ERRORS = (BotoCoreError, ClientError)
"""Everything boto3 raises instead of a response. Other packages catch these, because only this one imports botocore."""
_TRANSIENT_CODES = {
    "InternalServerError",
    "InternalServerException",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestTimeoutException",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionCanceledException",
    "TransactionConflictException",
    "TransactionInProgressException",
}


def is_transient_error(error: BaseException) -> bool:
    """Return whether the same request may succeed later: it was throttled, met a conflict, or got no response.

    A transaction whose condition failed is not seen here: aws/dynamodb_errors.py returns TransactionCanceled for it.
    """
    if isinstance(error, ClientError):
        return error.response.get("Error", {}).get("Code") in _TRANSIENT_CODES
    return isinstance(error, BotoCoreError) and isinstance(error, ConnectionError | HTTPClientError)
