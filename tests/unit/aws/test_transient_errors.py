"""Which failures pass by themselves, and which are ours to look at."""

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
def test_what_passes_is_right_to_try_again(error: Exception) -> None:
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
def test_what_does_not_pass_is_not(error: Exception) -> None:
    assert not is_transient_error(error)
