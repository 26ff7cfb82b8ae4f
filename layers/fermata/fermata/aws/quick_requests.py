"""Build requests without what botocore finds out anew for each call: the endpoint, and the shape of each value.

Both take about half of the processor time of a small call (decision 0657), and a function has a ninth of a
processor. Hooks, signatures, retries, errors and responses are botocore's as before.
"""

import json
from typing import Any

PLAIN_OPERATIONS = frozenset(
    ("GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
)
"""Operations of DynamoDB whose parameters are the JSON of their request, but for binary values."""


def build_requests_quickly(client: Any) -> None:
    """Let a client of boto3 do so.

    A client of another release of botocore, which has other parts, stays as it is.

    Args:
        client: Of a service whose endpoint depends on the client only, as that of DynamoDB does for tables of its own
            account that are named, not told by ARN. Not of S3.
    """
    resolver, serializer = getattr(client, "_ruleset_resolver", None), getattr(client, "_serializer", None)
    if resolver is not None and not isinstance(resolver, KnownEndpoint):
        client._ruleset_resolver = KnownEndpoint(resolver)
    if serializer is not None and not isinstance(serializer, PlainSerializer):
        client._serializer = PlainSerializer(serializer)


class KnownEndpoint:
    """Resolves the endpoint at the first call, in the place of botocore's resolver."""

    def __init__(self, resolver: Any) -> None:
        self._resolver = resolver
        self._endpoint: Any = None

    def construct_endpoint(self, **call: Any) -> Any:
        """Return where requests of the client go."""
        if self._endpoint is None:
            self._endpoint = self._resolver.construct_endpoint(**call)
        return self._endpoint

    def __getattr__(self, name: str) -> Any:
        return getattr(self._resolver, name)


class PlainSerializer:
    """Writes parameters as the JSON that they are, in the place of botocore's serializer."""

    def __init__(self, serializer: Any) -> None:
        self._serializer = serializer

    def serialize_to_request(self, parameters: Any, operation_model: Any) -> Any:
        """Return the parts of a request, as botocore's serializer does."""
        if operation_model.name not in PLAIN_OPERATIONS or operation_model.service_model.service_name != "dynamodb":
            return self._serializer.serialize_to_request(parameters, operation_model)
        try:
            body = json.dumps(parameters).encode()
        except TypeError:  # binary values, which become Base64
            return self._serializer.serialize_to_request(parameters, operation_model)
        return {**self._serializer.serialize_to_request({}, operation_model), "body": body}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._serializer, name)
