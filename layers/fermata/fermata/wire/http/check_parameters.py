"""Check the parameters of the query and the headers of a request as the OpenAPI document describes them."""

from collections.abc import Iterable, Mapping
from typing import Any

from fermata.domain.errors import InvalidRequest
from fermata.wire.http.messages import HttpRequest
from fermata.wire.operations.operation import RequestParameter

_MAX_DIGITS = 10


def check_parameters(request: HttpRequest, parameters: Iterable[RequestParameter]) -> None:
    """Check the range of numbers and the length of texts. What an empty or unknown value means, the handler says.

    Raises:
        InvalidRequest: One is not as it is documented.
    """
    for parameter in parameters:
        if parameter.location == "path":
            continue
        if parameter.location == "header":
            _check_length(parameter.name, request.headers.get(parameter.name.lower(), ""), parameter.schema)
        elif value := request.query.get(parameter.name):
            _check_query_value(parameter.name, value, parameter.schema)


def _check_query_value(name: str, value: str, schema: Mapping[str, Any]) -> None:
    if schema.get("type") == "integer":
        _check_integer(name, value, schema)
    else:
        _check_length(name, value, schema)


def _check_length(name: str, value: str, schema: Mapping[str, Any]) -> None:
    if len(value) > schema.get("maxLength", len(value)):
        raise InvalidRequest(f"'{name}' may have at most {schema['maxLength']} characters.")


def _check_integer(name: str, value: str, schema: Mapping[str, Any]) -> None:
    maximum, minimum = schema.get("maximum", 10**9), schema.get("minimum", 0)
    is_number = value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS
    if not is_number or int(value) > maximum:
        raise InvalidRequest(f"'{name}' must be a whole number up to {maximum}.")
    if int(value) < minimum:
        raise InvalidRequest(f"'{name}' must be a whole number from {minimum} to {maximum}.")
