"""DynamoDB in memory: the calls of a boto3 client that the product makes, with conditions, limits and stream records.

Every call is atomic: nothing switches inside of it. Faults, latencies and switches are around it
(`simulated_boto3_client.py`). Items are never changed in place, so they are handed out and kept without copies.
"""

import itertools
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from botocore.exceptions import ClientError

from tests.chaos.memory_aws.attribute_values import InvalidExpression, Item, comparable, resolve_name
from tests.chaos.memory_aws.errors import aws_error, validation_error
from tests.chaos.memory_aws.expressions import compile_condition, compile_update, find_equality
from tests.chaos.memory_aws.request_members import build_cancellation_reason, build_scope, project_item, returns_old
from tests.chaos.memory_aws.tables import Key, MemoryTable, StreamRecord, item_bytes, key_of

MAX_ITEM_BYTES = 400 * 1024
MAX_PAGE_BYTES = 1024 * 1024
MAX_TRANSACTION_ITEMS = 100
MAX_BATCH_KEYS = 100
MAX_BATCH_WRITES = 25
TOKEN_SECONDS = 600.0
"""How long a transaction's token makes a copy of it harmless."""

Steps = list[tuple[str, dict[str, Any]]]
"""The writes of one request: Put, Update, Delete or ConditionCheck, and its parameters."""


class MemoryDynamoDB:
    """The tables of one account. Method names and arguments are boto3's."""

    def __init__(self, tables: list[MemoryTable], now: Callable[[], float] = lambda: 0.0) -> None:
        self.tables = {table.name: table for table in tables}
        self._now = now
        self._sequence = itertools.count(1)
        self._tokens: dict[str, tuple[float, list[dict[str, Any]]]] = {}
        """When each transaction was applied, and its items, by its token."""
        self.applied: list[Steps] = []
        """The writes of each request that was applied, in their order."""

    # reads

    def get_item(self, *, TableName: str, Key: Item, **_: Any) -> dict[str, Any]:
        item = self._table(TableName, "GetItem").find(key_of(Key))
        return {} if item is None else {"Item": item}

    def batch_get_item(self, *, RequestItems: dict[str, Any], **_: Any) -> dict[str, Any]:
        count = sum(len(request["Keys"]) for request in RequestItems.values())
        if not 0 < count <= MAX_BATCH_KEYS:
            raise validation_error("BatchGetItem", f"{count} keys, at most {MAX_BATCH_KEYS} are taken")
        responses = {}
        for name, request in RequestItems.items():
            table, keys = self._table(name, "BatchGetItem"), [key_of(key) for key in request["Keys"]]
            if len(set(keys)) != len(keys):
                raise validation_error("BatchGetItem", "Provided list of item keys contains duplicates")
            responses[name] = [item for key in keys if (item := table.find(key)) is not None]
        return {"Responses": responses, "UnprocessedKeys": {}}

    def query(self, **request: Any) -> dict[str, Any]:
        table = self._table(request["TableName"], "Query")
        matches = list(self._matching(table, request))
        page, size = [], 0
        limit = request.get("Limit")
        for item in matches:
            read = self._read_from_index(table, request, item)
            if len(page) == limit or (page and size + item_bytes(read) > MAX_PAGE_BYTES):
                break
            page.append(read)
            size += item_bytes(read)
        answer: dict[str, Any] = {"Items": [project_item(item, request) for item in page], "Count": len(page)}
        if len(page) < len(matches) or len(page) == limit:
            answer["LastEvaluatedKey"] = self._position(table, request, page[-1])
        return answer

    def scan(self, **request: Any) -> dict[str, Any]:
        """Return a page of a whole table. `Limit` counts the items that are read, kept by a filter or not."""
        table, start = self._table(request["TableName"], "Scan"), request.get("ExclusiveStartKey")
        rest = [item for key, item in table.items.items() if start is None or key > key_of(start)]
        page, size = [], 0
        for item in rest[: request.get("Limit")]:
            size += item_bytes(item)
            if page and size > MAX_PAGE_BYTES:
                break
            page.append(item)
        kept = [
            item
            for item in page
            if "FilterExpression" not in request or self._evaluate(request["FilterExpression"], request, item)
        ]
        answer = {"Items": [project_item(item, request) for item in kept], "Count": len(kept)}
        return answer | ({"LastEvaluatedKey": self._position(table, {}, page[-1])} if len(page) < len(rest) else {})

    def _matching(self, table: MemoryTable, request: dict[str, Any]) -> Iterator[Item]:
        partition, sort = table.indexes[request["IndexName"]] if "IndexName" in request else ("pk", "sk")
        found = [
            item
            for item in self._candidates(table, request)
            if partition in item and sort in item and self._evaluate(request["KeyConditionExpression"], request, item)
        ]
        forward = request.get("ScanIndexForward", True)

        def order(item: Item) -> tuple[Any, ...]:
            return (comparable(item[sort]), *key_of(item))

        placed = sorted(((order(item), item) for item in found), key=itemgetter(0), reverse=not forward)
        start = order(request["ExclusiveStartKey"]) if request.get("ExclusiveStartKey") else None
        for place, item in placed:
            if start is None or (place > start if forward else place < start):
                yield item

    @staticmethod
    def _candidates(table: MemoryTable, request: dict[str, Any]) -> Iterator[Item]:
        """Yield the items of the partition of a table or an index that a key condition names, or maybe old ones."""
        if "AsOf" in request:
            return iter(table.items_at(request["AsOf"]))
        name, value = find_equality(request["KeyConditionExpression"])
        if "IndexName" in request:
            partition = request["IndexName"], request["ExpressionAttributeValues"][value]["S"]
            return iter(table.index_partitions.get(partition, {}).values())
        assert resolve_name(request.get("ExpressionAttributeNames", {}), name) == "pk", name
        return iter(table.partitions.get(request["ExpressionAttributeValues"][value]["S"], {}).values())

    def _read_from_index(self, table: MemoryTable, request: dict[str, Any], item: Item) -> Item:
        is_keys_only = request.get("IndexName") in table.keys_only_indexes
        return self._position(table, request, item) if is_keys_only else item

    @staticmethod
    def _position(table: MemoryTable, request: dict[str, Any], item: Item) -> Item:
        names = {"pk", "sk", *(table.indexes[request["IndexName"]] if "IndexName" in request else ())}
        return {name: item[name] for name in names}

    # writes

    def put_item(self, **request: Any) -> dict[str, Any]:
        return self._single("PutItem", "Put", request)

    def update_item(self, **request: Any) -> dict[str, Any]:
        return self._single("UpdateItem", "Update", request)

    def delete_item(self, **request: Any) -> dict[str, Any]:
        return self._single("DeleteItem", "Delete", request)

    def _single(self, operation: str, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        table, key, old = self._target(operation, kind, request)
        if not self._condition_holds(request, old):
            shown = {"Item": old} if old is not None and returns_old(request) else {}
            raise aws_error("ConditionalCheckFailedException", operation, **shown)
        self._store(table, key, self._changed(operation, kind, request, old))
        self.applied.append([(kind, request)])
        return {}

    def transact_write_items(
        self, *, TransactItems: list[dict[str, Any]], ClientRequestToken: str = "", **_: Any
    ) -> dict[str, Any]:
        """Apply all writes or none. A copy with the same token changes nothing for ten minutes."""
        applied_at, applied = self._tokens.get(ClientRequestToken, (-TOKEN_SECONDS, []))
        if ClientRequestToken and self._now() - applied_at < TOKEN_SECONDS:
            if applied != TransactItems:
                raise aws_error("IdempotentParameterMismatchException", "TransactWriteItems")
            return {}
        self._transact(TransactItems)
        self._tokens[ClientRequestToken] = (self._now(), TransactItems)
        return {}

    def _transact(self, TransactItems: list[dict[str, Any]]) -> None:
        if not 0 < len(TransactItems) <= MAX_TRANSACTION_ITEMS:
            raise validation_error("TransactWriteItems", f"{len(TransactItems)} items, 1 to 100 are taken")
        steps = [next(iter(item.items())) for item in TransactItems]
        targets = [self._target("TransactWriteItems", kind, request) for kind, request in steps]
        places = [(table.name, key) for table, key, _ in targets]
        if len(set(places)) != len(places):
            raise validation_error(
                "TransactWriteItems", "Transaction request cannot include multiple operations on one item"
            )
        held = [self._condition_holds(request, old) for (_, request), (_, _, old) in zip(steps, targets, strict=True)]
        if not all(held):
            raise _transaction_canceled(
                [
                    build_cancellation_reason(is_held, request, old)
                    for is_held, (_, request), (_, _, old) in zip(held, steps, targets, strict=True)
                ]
            )
        changes = [
            (table, key, self._changed("TransactWriteItems", kind, request, old))
            for (kind, request), (table, key, old) in zip(steps, targets, strict=True)
            if kind != "ConditionCheck"
        ]
        for table, key, new in changes:
            self._store(table, key, new)
        self.applied.append(steps)

    def forget_writes(self) -> None:
        """Forget which requests were applied, and all changes of items; the items stay."""
        self._tokens.clear()
        self.applied.clear()
        for table in self.tables.values():
            table.stream.clear()
            table.history.clear()

    def preview(self, steps: Steps) -> list[tuple[str, Key, Item | None, Item | None]]:
        """Return table, key, old and new item of each change that a request would make now; nothing if refused."""
        targets = [self._target("preview", kind, request) for kind, request in steps]
        if not all(
            self._condition_holds(request, old) for (_, request), (_, _, old) in zip(steps, targets, strict=True)
        ):
            return []
        previews = [
            (table.name, key, old, self._changed("preview", kind, request, old))
            for (kind, request), (table, key, old) in zip(steps, targets, strict=True)
            if kind != "ConditionCheck"
        ]
        return [change for change in previews if change[2] != change[3]]

    def batch_write_item(self, *, RequestItems: dict[str, Any], **_: Any) -> dict[str, Any]:
        requests = [(name, request) for name, many in RequestItems.items() for request in many]
        if not 0 < len(requests) <= MAX_BATCH_WRITES:
            raise validation_error("BatchWriteItem", f"{len(requests)} writes, 1 to {MAX_BATCH_WRITES} are taken")
        for name, request in requests:
            table = self._table(name, "BatchWriteItem")
            if "DeleteRequest" in request:
                self._store(table, key_of(request["DeleteRequest"]["Key"]), None)
                self.applied.append([("Delete", {"TableName": name, **request["DeleteRequest"]})])
            else:
                item = request["PutRequest"]["Item"]
                self._store(table, key_of(item), item)
        return {"UnprocessedItems": {}}

    def _target(self, operation: str, kind: str, request: dict[str, Any]) -> tuple[MemoryTable, Key, Item | None]:
        table = self._table(request["TableName"], operation)
        key = key_of(request["Item"] if kind == "Put" else request["Key"])
        if not all(key):
            raise validation_error(operation, "An AttributeValue may not contain an empty string for a key")
        return table, key, table.find(key)

    def _changed(self, operation: str, kind: str, request: dict[str, Any], old: Item | None) -> Item | None:
        if kind == "Delete":
            return None
        if kind == "Put":
            new: Item = request["Item"]
        else:
            new = self._update(request, old if old is not None else request["Key"], operation)
        if item_bytes(new) > MAX_ITEM_BYTES:
            raise validation_error(operation, "Item size has exceeded the maximum allowed size")
        return new

    def _store(self, table: MemoryTable, key: Key, new: Item | None) -> None:
        old = table.find(key)
        table.replace(key, new)
        if old == new:
            return
        table.history.append((self._now(), key, old))
        event = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
        keys: Item = {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
        table.stream.append(StreamRecord(next(self._sequence), event, keys, old, new, self._now()))

    def expire(self, table_name: str, now: float, chooses: Callable[[], bool] = lambda: True) -> int:
        """Delete rows whose TTL is over, as DynamoDB does some time after it: now those that `chooses` picks."""
        table = self.tables[table_name]
        name = table.ttl_attribute
        over = [key for key, item in table.items.items() if name in item and float(item[name].get("N", "inf")) < now]
        chosen = [key for key in over if chooses()]
        for key in chosen:
            self._store(table, key, None)
        return len(chosen)

    # expressions

    def _condition_holds(self, request: dict[str, Any], old: Item | None) -> bool:
        return "ConditionExpression" not in request or self._evaluate(
            request["ConditionExpression"], request, old or {}
        )

    def _evaluate(self, text: str, request: dict[str, Any], item: Item) -> bool:
        try:
            return compile_condition(text)(build_scope(request, item))
        except InvalidExpression as error:
            raise validation_error("condition", f"{error} in {text!r}") from error

    def _update(self, request: dict[str, Any], item: Item, operation: str) -> Item:
        text = request["UpdateExpression"]
        try:
            return compile_update(text)(build_scope(request, item))
        except InvalidExpression as error:
            raise validation_error(operation, f"{error} in {text!r}") from error

    def _table(self, name: str, operation: str) -> MemoryTable:
        if name not in self.tables:
            raise aws_error("ResourceNotFoundException", operation, f"Requested resource not found: {name}")
        return self.tables[name]


def _transaction_canceled(reasons: list[dict[str, Any]]) -> ClientError:
    codes = ", ".join(reason["Code"] for reason in reasons)
    message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    return aws_error("TransactionCanceledException", "TransactWriteItems", message, CancellationReasons=reasons)
