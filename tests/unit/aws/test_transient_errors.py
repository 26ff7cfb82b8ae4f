"""Decide which errors a retry can solve."""

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from fermata.aws.transient_errors import is_transient_error


def client_error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "PutItem")


@pytest.mark.parametrize(
    "error",
    [
        client_error("ThrottlingException"),
        client_error("ProvisionedThroughputExceededException"),
        client_error("InternalServerError"),
        client_error("TransactionCanceledException"),
        client_error("TransactionConflictException"),
        client_error("SlowDown"),
        ConnectTimeoutError(endpoint_url="x"),
        ReadTimeoutError(endpoint_url="x"),
    ],
)
def test_a_transient_error_can_be_retried(error: Exception) -> None:
    assert is_transient_error(error)


@pytest.mark.parametrize(
    "error",
    [
        client_error("AccessDeniedException"),
        client_error("ValidationException"),
        client_error("ResourceNotFoundException"),
        ParamValidationError(report="wrong"),
        NoCredentialsError(),
        ValueError("a bug"),
    ],
)
def test_any_other_error_cannot(error: Exception) -> None:
    assert not is_transient_error(error)
