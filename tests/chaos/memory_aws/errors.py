"""AWS errors as botocore raises them."""

from typing import Any

from botocore.exceptions import ClientError


def aws_error(code: str, operation: str, message: str = "", status: int = 400, **members: Any) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": message or code},
        "ResponseMetadata": {"HTTPStatusCode": status},
        **members,
    }
    return ClientError(response, operation)


def validation_error(operation: str, message: str) -> ClientError:
    return aws_error("ValidationException", operation, message)
