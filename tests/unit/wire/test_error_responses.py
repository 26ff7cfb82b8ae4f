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
def test_a_refusal_goes_out_as_it_is(error: ApiError, status: int) -> None:
    answer = response_from_error(error, "r")
    assert (answer.status, answer.body) == (status, {"error": "a"})


class Busy(ApiError):
    status = 429


@pytest.mark.parametrize("error", [Conflict("a"), Busy("a"), ServiceUnavailable("a")])
def test_whoever_may_try_again_is_told_when(error: ApiError) -> None:
    assert int(response_from_error(error, "r").headers["Retry-After"]) >= 1


def test_a_refusals_own_time_to_wait_counts() -> None:
    assert response_from_error(ServiceUnavailable("a", retry_after=30), "r").headers["Retry-After"] == "30"
    assert response_from_error(ServiceUnavailable("a", retry_after=0), "r").headers["Retry-After"] == "1"
    assert "Retry-After" not in response_from_error(InvalidRequest("a"), "r").headers


def test_an_unauthorized_caller_is_told_how_to_authenticate() -> None:
    assert response_from_error(Unauthorized("Unauthorized"), "r").headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "ProvisionedThroughputExceededException", "InternalServerError"]
)
def test_an_aws_part_that_is_overrun_means_busy(code: str) -> None:
    answer = response_from_error(ClientError({"Error": {"Code": code, "Message": "secret detail"}}, "PutItem"), "r")
    assert answer.status == 503
    assert answer.headers["Retry-After"] == "1"
    assert "secret detail" not in answer.body["error"]


def test_an_aws_part_that_does_not_answer_means_busy() -> None:
    assert response_from_error(ReadTimeoutError(endpoint_url="https://dynamodb"), "r").status == 503


class Row(BaseModel):
    sealed: int


def broken_row() -> ValidationError:
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
        broken_row(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_our_own_bug_is_a_500_that_tells_nothing_but_how_to_ask(error: Exception) -> None:
    answer = response_from_error(error, "request-17")
    assert answer.status == 500
    assert answer.body == {"error": "Something went wrong on our side. Tell us this request id: request-17"}


def test_our_own_bug_is_logged_whole(lines_logged: list[logging.LogRecord]) -> None:
    try:
        raise RuntimeError("the real reason")
    except RuntimeError as error:
        response_from_error(error, "request-17")
    assert [line.getMessage() for line in lines_logged] == ["request_failed"]
    assert "the real reason" in str(lines_logged[0].exc_info)


class Keeping(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record)


@pytest.fixture
def lines_logged() -> Iterator[list[logging.LogRecord]]:
    handler = Keeping()
    logging.getLogger("fermata").addHandler(handler)
    yield handler.kept
    logging.getLogger("fermata").removeHandler(handler)
