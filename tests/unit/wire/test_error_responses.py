import logging
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from pydantic import BaseModel, ValidationError

from fermata.domain.errors import (
    ApiError,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    ProviderError,
    ServiceUnavailable,
    Unauthorized,
)
from fermata.wire.http.error_responses import response_from_error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidRequest("a"), 400),
        (Unauthorized("a"), 401),
        (Forbidden("a"), 403),
        (NotFound("a"), 404),
        (Conflict("a"), 409),
        (PayloadTooLarge("a"), 413),
        (ServiceUnavailable("a"), 503),
    ],
)
def test_an_api_error_becomes_its_status_and_text(error: ApiError, status: int) -> None:
    response = response_from_error(error, "r")
    assert (response.status, response.body) == (status, {"error": "a"})


class Busy(ApiError):
    status = 429


@pytest.mark.parametrize("error", [Conflict("a", retry_after=2), Busy("a"), ServiceUnavailable("a")])
def test_an_error_that_may_be_retried_has_retry_after(error: ApiError) -> None:
    assert int(response_from_error(error, "r").headers["Retry-After"]) >= 1


def test_an_errors_own_retry_after_takes_precedence() -> None:
    assert response_from_error(ServiceUnavailable("a", retry_after=30), "r").headers["Retry-After"] == "30"
    assert response_from_error(ServiceUnavailable("a", retry_after=0), "r").headers["Retry-After"] == "1"


@pytest.mark.parametrize("error", [InvalidRequest("a"), Conflict("a")])
def test_an_error_that_waiting_does_not_help_against_has_no_retry_after(error: ApiError) -> None:
    assert "Retry-After" not in response_from_error(error, "r").headers


def test_a_401_names_the_authentication_scheme() -> None:
    assert response_from_error(Unauthorized("Unauthorized"), "r").headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "ProvisionedThroughputExceededException", "InternalServerError"]
)
def test_a_throttled_aws_service_is_a_503(code: str) -> None:
    response = response_from_error(ClientError({"Error": {"Code": code, "Message": "secret detail"}}, "PutItem"), "r")
    assert response.status == 503
    assert response.headers["Retry-After"] == "1"
    assert "secret detail" not in response.body["error"]


def test_an_aws_time_out_is_a_503() -> None:
    assert response_from_error(ReadTimeoutError(endpoint_url="https://dynamodb"), "r").status == 503


class Row(BaseModel):
    sealed: int


def make_validation_error() -> ValidationError:
    with pytest.raises(ValidationError) as broken:
        Row.model_validate({"sealed": "sk-secret"})
    return broken.value


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("sk-secret"),
        KeyError("sk-secret"),
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": "sk-secret"}}, "GetItem"),
        ProviderError("provider_error", "sk-secret", retryable=False),
        make_validation_error(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_unexpected_error_is_a_500_with_the_request_id_only(error: Exception) -> None:
    response = response_from_error(error, "request-17")
    assert response.status == 500
    assert response.body == {"error": "The service failed. Report this request id: request-17"}


def test_an_unexpected_error_is_logged_with_its_traceback(log_records: list[logging.LogRecord]) -> None:
    try:
        raise RuntimeError("the real reason")
    except RuntimeError as error:
        response_from_error(error, "request-17")
    assert [line.getMessage() for line in log_records] == ["request_failed"]
    assert "the real reason" in str(log_records[0].exc_info)


class RecordingHandler(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def log_records() -> Iterator[list[logging.LogRecord]]:
    handler = RecordingHandler()
    logging.getLogger("fermata").addHandler(handler)
    yield handler.records
    logging.getLogger("fermata").removeHandler(handler)
