"""Answer the requests of boto3's DynamoDB clients from memory, in place of moto (decision 0292).

    with pytest.MonkeyPatch.context() as patch, mock_aws():
        make_moto_lean(patch)
        answer_dynamodb_from_memory(patch)

Requests are made, checked, sent, repeated and parsed by the real boto3. The tables are those of the simulation, whose
answers `tests/chaos/test_memory_dynamodb.py` compares with moto's.
"""

import json
import threading
from typing import Any

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from moto.core.botocore_stubber import BotocoreStubber

from tests.chaos.memory_aws.dynamodb import MemoryDynamoDB
from tests.chaos.memory_aws.tables import MemoryTable

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


def answer_dynamodb_from_memory(patch: pytest.MonkeyPatch) -> None:
    """Answer reads and writes of items from tables in memory, which moto's CreateTable creates as well."""
    memory, lock, process = MemoryDynamoDB([]), threading.RLock(), BotocoreStubber.process_request

    def answer_or_process(stubber: Any, request: Any) -> Any:
        if not request.url.startswith("https://dynamodb."):
            return process(stubber, request)
        operation = _header(request, TARGET).partition(".")[2]
        if operation in OPERATIONS:
            with lock:
                return _answer(memory, operation, json.loads(request.body))
        response = process(stubber, request)
        if operation == "CreateTable" and response[0] == 200:
            table = _make_table(json.loads(request.body))
            memory.tables[table.name] = table
        return response

    patch.setattr(BotocoreStubber, "process_request", answer_or_process)
    patch.setattr("tests.stored_rows.memory", memory)


def _header(request: Any, name: str) -> str:
    value = request.headers[name]
    return value.decode() if isinstance(value, bytes) else str(value)


def _answer(memory: MemoryDynamoDB, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, str], str]:
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
