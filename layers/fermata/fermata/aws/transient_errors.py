"""Which failures of AWS pass by themselves."""

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError

AWS_ERRORS = (BotoCoreError, ClientError)
"""For `except` in the other rooms: whatever AWS, or the way to it, may come up with instead of an answer."""
TRANSIENT_ERROR_CODES = {
    "InternalServerError",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionCanceledException",
    "TransactionConflictException",
    "TransactionInProgressException",
}


def is_transient_error(error: BaseException) -> bool:
    """True when the same request is right to try again: throttled, overrun by others, or no answer in time.

    A transaction refused by its conditions never comes here; the tables turn that into an error of their own.
    """
    if isinstance(error, ClientError):
        return error.response.get("Error", {}).get("Code") in TRANSIENT_ERROR_CODES
    return isinstance(error, BotoCoreError) and isinstance(error, ConnectionError | HTTPClientError)
