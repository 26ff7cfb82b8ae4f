"""Answer the requests of boto3's DynamoDB clients from memory, in place of moto (decision 0292).

    with pytest.MonkeyPatch.context() as patch, mock_aws():
        make_moto_lean(patch)
        answer_dynamodb_from_memory(patch)

Requests are made, checked, sent, repeated and parsed by the real boto3. The tables are those of the simulation, whose
answers `tests/chaos/test_memory_dynamodb.py` compares with moto's. In `make test`, moto gets the first request of each
shape, too (decision 0294): it refuses what the memory would take, as a reserved word or a name that no expression uses.
"""

import copy
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from moto.core.botocore_stubber import BotocoreStubber

from tests.chaos.memory_aws.dynamodb import MemoryDynamoDB
from tests.chaos.memory_aws.tables import MemoryTable
from tests.quick_suite_samples import is_quick_suite

TARGET = "X-Amz-Target"
ERROR_TYPE_PREFIX = "com.amazonaws.dynamodb.v20120810#"
OPERATIONS = {
    "BatchGetItem",
    "BatchWriteItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "Scan",
    "TransactWriteItems",
    "UpdateItem",
}
"""All others are those of moto, which creates tables, too."""
Response = tuple[int, dict[str, str], str]
DEPENDS_ON_ITEM = ("does not exist in the item", "is invalid for update", "refers to an attribute that does not exist")
"""What moto says of a request that other items would have suited: its tables lack what the memory has."""
_taken: set[Any] = set()
"""Shapes of requests that moto has found valid."""


def answer_dynamodb_from_memory(patch: pytest.MonkeyPatch) -> None:
    """Answer reads and writes of items from tables in memory, which moto's CreateTable creates as well."""
    memory, lock, process = MemoryDynamoDB([]), threading.RLock(), BotocoreStubber.process_request
    asks_moto = not is_quick_suite()  # it takes an eighth of the quick suite's time

    def answer_or_process(stubber: Any, request: Any) -> Any:
        if not request.url.startswith("https://dynamodb."):
            return process(stubber, request)
        operation = _header(request, TARGET).partition(".")[2]
        if operation in OPERATIONS:
            with lock:
                body = json.loads(request.body)
                refusal = _find_refusal(process, stubber, request, operation, body) if asks_moto else None
                return refusal or _answer(memory, operation, body)
        response = process(stubber, request)
        if operation == "CreateTable" and response[0] == 200:
            table = _make_table(json.loads(request.body))
            memory.tables[table.name] = table
        return response

    patch.setattr(BotocoreStubber, "process_request", answer_or_process)
    patch.setattr("tests.stored_rows.memory", memory)


def _find_refusal(
    process: Callable[..., Any], stubber: Any, request: Any, operation: str, body: dict[str, Any]
) -> Response | None:
    """Return what moto answers if it finds a request or one of its writes invalid, whatever the items are."""
    for shape, part in _divide(operation, body):
        if shape in _taken:
            continue
        sent = copy.copy(request)
        sent.body = json.dumps(part).encode()
        status, headers, text = process(stubber, sent)
        if status == 400 and "Validation" in text and not any(one in text for one in DEPENDS_ON_ITEM):
            return status, headers, text
        _taken.add(shape)
    return None


def _divide(operation: str, body: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield each write of a transaction as a request of its own, and any other request as it is, with their shapes."""
    if operation != "TransactWriteItems":
        yield (operation, _get_shape(body)), body
        return
    for item in body["TransactItems"]:
        ((kind, write),) = item.items()
        yield (operation, kind, _get_shape(write)), {"TransactItems": [item]}


def _get_shape(request: dict[str, Any]) -> Any:
    """Return all that does not differ between requests of one kind: not the items, keys and values."""
    texts = tuple(value for name, value in request.items() if name.endswith(("Expression", "Name")))
    names = tuple(request.get("ExpressionAttributeNames", {}).items())
    kinds = tuple((name, *value) for name, value in request.get("ExpressionAttributeValues", {}).items())
    return tuple(request), texts, names, kinds


def _header(request: Any, name: str) -> str:
    value = request.headers[name]
    return value.decode() if isinstance(value, bytes) else str(value)


def _answer(memory: MemoryDynamoDB, operation: str, request: dict[str, Any]) -> Response:
    """Return status, headers and body of a response."""
    try:
        answer = getattr(memory, xform_name(operation))(**request)
    except ClientError as error:
        told: dict[str, Any] = dict(error.response)
        status, cause = told.pop("ResponseMetadata")["HTTPStatusCode"], told.pop("Error")
        body = {"__type": ERROR_TYPE_PREFIX + cause["Code"], "message": cause["Message"], **told}
        return status, {}, json.dumps(body)
    return 200, {}, json.dumps(answer)


def _make_table(definition: dict[str, Any]) -> MemoryTable:
    indexes = definition.get("GlobalSecondaryIndexes", [])
    return MemoryTable(
        definition["TableName"],
        {index["IndexName"]: _get_key_names(index["KeySchema"]) for index in indexes},
        frozenset(index["IndexName"] for index in indexes if index["Projection"]["ProjectionType"] == "KEYS_ONLY"),
    )


def _get_key_names(schema: list[dict[str, str]]) -> tuple[str, str]:
    names = {key["KeyType"]: key["AttributeName"] for key in schema}
    return names["HASH"], names["RANGE"]
