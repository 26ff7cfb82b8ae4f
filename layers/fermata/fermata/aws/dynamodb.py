"""DynamoDB in plain values: conditional writes that say what stood in their way, and transactions.

Errors
  ConditionFailed      the condition did not hold; `item` is what is stored (None when nothing is)
  TransactionRefused   at least one condition of a transaction did not hold; `reasons` in the order of the writes
Throttling, timeouts and conflicts between transactions are retried here; what outlasts that is botocore's error.
"""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Item = dict[str, Any]
MAX_WRITE_ATTEMPTS = 8
DELETE_BATCH_SIZE = 25
"""The most writes BatchWriteItem takes."""


class _Reader(TypeDeserializer):
    """Whole numbers come back as int, as they went in."""

    def _deserialize_n(self, value: str) -> int | Decimal:
        return int(value) if value.lstrip("-").isdigit() else Decimal(value)


_to_wire = TypeSerializer().serialize
_from_wire = _Reader().deserialize


def serialize_item(item: Item) -> dict[str, Any]:
    return {name: _to_wire(value) for name, value in item.items()}


def deserialize_item(raw: dict[str, Any]) -> Item:
    return {name: _from_wire(value) for name, value in raw.items()}


@dataclass(frozen=True)
class Put:
    """Stores a whole item; `absent` demands that nothing is stored under its key yet."""

    table: str
    item: Item
    if_absent: bool = False
    condition: str = ""
    values: Item = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    table: str
    pk: str
    sk: str
    expression: str
    values: Item = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    condition: str = "attribute_exists(pk)"


@dataclass(frozen=True)
class Delete:
    table: str
    pk: str
    sk: str
    condition: str = ""
    values: Item = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ConditionCheck:
    table: str
    pk: str
    sk: str
    condition: str
    values: Item = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


Write = Put | Update | Delete | ConditionCheck


class ConditionFailed(Exception):
    def __init__(self, item: Item | None) -> None:
        super().__init__("the condition did not hold")
        self.item = item


@dataclass(frozen=True)
class CancellationReason:
    condition_failed: bool
    item: Item | None


class TransactionCanceled(Exception):
    def __init__(self, reasons: Sequence[CancellationReason]) -> None:
        super().__init__(
            f"refused by writes {[index for index, reason in enumerate(reasons) if reason.condition_failed]}"
        )
        self.reasons = reasons


class DynamoTables:
    def __init__(self, client: "DynamoDBClient") -> None:
        self._client = client

    def get_item(self, table: str, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        found = self._client.get_item(
            TableName=table, Key=serialize_item({"pk": pk, "sk": sk}), ConsistentRead=consistent
        )
        return deserialize_item(found["Item"]) if "Item" in found else None

    def batch_get_items(self, table: str, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Item]:
        """Up to 100 items, consistently; what DynamoDB leaves unprocessed is asked for again."""
        found: dict[tuple[str, str], Item] = {}
        wanted: Any = {
            table: {"Keys": [serialize_item({"pk": pk, "sk": sk}) for pk, sk in keys], "ConsistentRead": True}
        }
        while wanted:
            answer = self._client.batch_get_item(RequestItems=wanted)
            for raw in answer["Responses"].get(table, []):
                item = deserialize_item(raw)
                found[item["pk"], item["sk"]] = item
            wanted = answer.get("UnprocessedKeys")
            if wanted:
                time.sleep(random.uniform(0.01, 0.05))  # noqa: S311 (jitter, not a secret)
        return found

    def query_items(
        self,
        table: str,
        pk: str,
        *,
        min_sk: str = "",
        max_sk: str = "",
        descending: bool = False,
        limit: int | None = None,
        consistent: bool = True,
    ) -> list[Item]:
        """Items of one partition with low <= sk <= high, all pages up to `limit`."""
        request: dict[str, Any] = {
            "TableName": table,
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high",
            "ExpressionAttributeValues": serialize_item(
                {":pk": pk, ":low": min_sk or " ", ":high": max_sk or "\U0010ffff"}
            ),
            "ScanIndexForward": not descending,
            "ConsistentRead": consistent,
        }
        return self._collect(request, limit)

    def query_index(
        self,
        table: str,
        index: str,
        key: tuple[str, str],
        *,
        descending: bool = False,
        limit: int | None = None,
        start_after: Item | None = None,
        max_sort: tuple[str, str] | None = None,
    ) -> list[Item]:
        """Items of one partition of an index; `key` is (attribute, value).

        `after`: the keys (the table's and the index's) of the item behind which to begin. `upto`: the index's sort
        key, and the last value of it that counts.
        """
        request: dict[str, Any] = {
            "TableName": table,
            "IndexName": index,
            "KeyConditionExpression": "#key = :key",
            "ExpressionAttributeNames": {"#key": key[0]},
            "ExpressionAttributeValues": serialize_item({":key": key[1]}),
            "ScanIndexForward": not descending,
        }
        if max_sort is not None:
            request["KeyConditionExpression"] += " AND #upto <= :upto"
            request["ExpressionAttributeNames"]["#upto"] = max_sort[0]
            request["ExpressionAttributeValues"] |= serialize_item({":upto": max_sort[1]})
        if start_after is not None:
            request["ExclusiveStartKey"] = serialize_item(start_after)
        return self._collect(request, limit)

    def iter_index_range(
        self, table: str, index: str, key: tuple[str, str], sort_attribute: str, start: str, end: str
    ) -> Iterator[Item]:
        """Items of one partition of an index whose sort key is from `first` up to, not including, `behind`."""
        request: dict[str, Any] = {
            "TableName": table,
            "IndexName": index,
            "KeyConditionExpression": "#key = :key AND #sort BETWEEN :first AND :behind",
            "ExpressionAttributeNames": {"#key": key[0], "#sort": sort_attribute},
            "ExpressionAttributeValues": serialize_item({":key": key[1], ":first": start, ":behind": end}),
        }
        for page in self._pages(request, None):
            yield from (item for raw in page if (item := deserialize_item(raw))[sort_attribute] < end)

    def _collect(self, request: dict[str, Any], limit: int | None) -> list[Item]:
        items: list[Item] = []
        for page in self._pages(request, limit):
            items.extend(deserialize_item(raw) for raw in page)
            if limit is not None and len(items) >= limit:
                return items[:limit]
        return items

    def _pages(self, request: dict[str, Any], limit: int | None) -> Iterator[list[dict[str, Any]]]:
        if limit is not None:
            request["Limit"] = limit
        while True:
            answer = self._client.query(**request)
            yield answer["Items"]
            if not answer.get("LastEvaluatedKey"):
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def query_sort_keys(self, table: str, pk: str, *, min_sk: str = "", max_sk: str = "") -> list[str]:
        """The sort keys of one partition's items with low <= sk <= high."""
        request: dict[str, Any] = {
            "TableName": table,
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high",
            "ExpressionAttributeValues": serialize_item(
                {":pk": pk, ":low": min_sk or " ", ":high": max_sk or "\U0010ffff"}
            ),
            "ProjectionExpression": "sk",
        }
        return [deserialize_item(raw)["sk"] for page in self._pages(request, None) for raw in page]

    def batch_delete(self, table: str, keys: Sequence[tuple[str, str]]) -> None:
        """Delete items without asking what they hold, 25 a request; what is left unprocessed is sent again."""
        for start in range(0, len(keys), DELETE_BATCH_SIZE):
            part = keys[start : start + DELETE_BATCH_SIZE]
            wanted: Any = {table: [{"DeleteRequest": {"Key": serialize_item({"pk": pk, "sk": sk})}} for pk, sk in part]}
            while wanted:
                wanted = self._client.batch_write_item(RequestItems=wanted).get("UnprocessedItems")
                if wanted:
                    time.sleep(random.uniform(0.05, 0.2))  # noqa: S311 (jitter, not a secret)

    def write_items(self, *writes: Write) -> None:
        """All or nothing. One write goes as an ordinary request (half the price), several as one transaction."""
        for attempt in range(1, MAX_WRITE_ATTEMPTS + 1):
            try:
                self._send(writes)
                return
            except ClientError as error:
                if attempt == MAX_WRITE_ATTEMPTS or not _only_conflicts(error):
                    raise _explained(error) from error
            time.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 (jitter, not a secret)

    def _send(self, writes: Sequence[Write]) -> None:
        requests = [_request(write) for write in writes]
        match requests:
            case [("Put", request)]:
                self._client.put_item(**request)
            case [("Update", request)]:
                self._client.update_item(**request)
            case [("Delete", request)]:
                self._client.delete_item(**request)
            case [("ConditionCheck", _)]:
                raise ValueError("A check alone writes nothing.")
            case _:
                items: Any = [{operation: request} for operation, request in requests]
                self._client.transact_write_items(TransactItems=items)


def _request(write: Write) -> tuple[str, dict[str, Any]]:
    condition, values = write.condition, write.values
    request: dict[str, Any] = {"TableName": write.table, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    if isinstance(write, Put):
        request["Item"] = serialize_item(write.item)
        if write.if_absent:
            condition = "attribute_not_exists(pk)"
    else:
        request["Key"] = serialize_item({"pk": write.pk, "sk": write.sk})
    if isinstance(write, Update):
        request["UpdateExpression"] = write.expression
    if condition:
        request["ConditionExpression"] = condition
    if values:
        request["ExpressionAttributeValues"] = serialize_item(values)
    if write.names:
        request["ExpressionAttributeNames"] = write.names
    return "ConditionCheck" if isinstance(write, ConditionCheck) else type(write).__name__, request


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _raw_reasons(error: ClientError) -> list[dict[str, Any]]:
    reasons: list[dict[str, Any]] = error.response.get("CancellationReasons", [])  # type: ignore[assignment]  # absent from the stubs' error shape
    return reasons


def _only_conflicts(error: ClientError) -> bool:
    """True when nothing but other transactions stood in the way, so that trying again is right."""
    if _code(error) in ("TransactionInProgressException", "TransactionConflictException"):
        return True
    codes = {reason.get("Code", "None") for reason in _raw_reasons(error)}
    retryable = {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
    return bool(codes & retryable) and "ConditionalCheckFailed" not in codes


def _explained(error: ClientError) -> Exception:
    if _code(error) == "ConditionalCheckFailedException":
        raw: Any = error.response.get("Item")
        return ConditionFailed(deserialize_item(raw) if raw else None)
    reasons = _raw_reasons(error)
    if any(reason.get("Code") == "ConditionalCheckFailed" for reason in reasons):
        return TransactionCanceled([_reason(raw) for raw in reasons])
    return error


def _reason(raw: dict[str, Any]) -> CancellationReason:
    item = raw.get("Item")
    return CancellationReason(raw.get("Code") == "ConditionalCheckFailed", deserialize_item(item) if item else None)
