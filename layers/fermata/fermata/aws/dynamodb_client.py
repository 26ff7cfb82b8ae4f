"""Read and write DynamoDB items as plain Python values, with conditional writes and transactions.

A failed condition raises ConditionFailed (single write) or TransactionCanceled (transaction); both carry the stored
items. Throttling and conflicts between transactions are retried; if they persist, botocore's error is raised.

Any write may arrive more than once, because botocore repeats a request whose response was lost, and its first copy may
arrive last (decision 0150).
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_errors import (
    TRANSACTION_IN_PROGRESS,
    get_dynamodb_error_code,
    is_own_copy,
    is_write_conflict,
    translate_write_error,
)
from fermata.aws.dynamodb_items_and_writes import (
    ConditionFailed,
    Item,
    ItemKey,
    Put,
    Update,
    Write,
    deserialize_item,
    serialize_item,
)
from fermata.aws.dynamodb_requests import build_partition_query, build_write_request, serialize_key

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

MAX_WRITE_ATTEMPTS = 16
MAX_PAUSE_SECONDS = 0.64
"""Attempts and pauses are so many that a hundred transactions on one item at once all succeed (decision 0289)."""
DELETE_BATCH_SIZE = 25
"""The limit of BatchWriteItem."""


class DynamoClient:
    """Items of any table whose key attributes are `pk` and `sk`."""

    def __init__(self, client: "DynamoDBClient", sleep: Callable[[float], None] = time.sleep) -> None:
        self._client, self._sleep = client, sleep

    def get_item(self, table: str, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        """Return an item, or None if there is none.

        Args:
            table: The table's name, from the settings.
            pk: The partition key.
            sk: The sort key.
            consistent: Whether writes that have succeeded are certainly seen. A read without it costs half.
        """
        response = self._client.get_item(TableName=table, Key=serialize_key(pk, sk), ConsistentRead=consistent)
        return deserialize_item(response["Item"]) if "Item" in response else None

    def get_item_by_key(self, key: ItemKey) -> Item | None:
        """Read one item consistently with a request of its own; return None if there is none.

        For several keys, `batch_get_by_keys` needs one request.
        """
        return self.get_item(*key)

    def batch_get_items(
        self, table: str, keys: Sequence[tuple[str, str]], *, consistent: bool = True
    ) -> dict[tuple[str, str], Item]:
        """Read up to 100 items of one table; return those that exist, by (pk, sk). `consistent` is as in `get_item`."""
        items = self.batch_get_by_keys([ItemKey(table, pk, sk) for pk, sk in keys], consistent=consistent)
        return {(key.pk, key.sk): item for key, item in items.items()}

    def batch_get_by_keys(self, keys: Iterable[ItemKey], *, consistent: bool = True) -> dict[ItemKey, Item]:
        """Read up to 100 items of any tables with one request; return those that exist.

        They are not read at the same instant. Keys that DynamoDB leaves unprocessed are requested again. One key alone
        is read by `get_item_by_key`.
        """
        items: dict[ItemKey, Item] = {}
        pending: Any = {}
        for table, pk, sk in dict.fromkeys(keys):
            pending.setdefault(table, {"Keys": [], "ConsistentRead": consistent})["Keys"].append(serialize_key(pk, sk))
        while pending:
            response = self._client.batch_get_item(RequestItems=pending)
            for table, raw_items in response["Responses"].items():
                for item in map(deserialize_item, raw_items):
                    items[ItemKey(table, item["pk"], item["sk"])] = item
            pending = response.get("UnprocessedKeys")
            if pending:
                self._sleep(random.uniform(0.01, 0.05))  # noqa: S311 (jitter, not a secret)
        return items

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
        attributes: Sequence[str] = (),
    ) -> list[Item]:
        """Return the items of one partition in the order of their sort keys, from all pages.

        Args:
            table: The table's name, from the settings.
            pk: The partition key.
            min_sk: The smallest sort key to return; empty for no bound.
            max_sk: The greatest sort key to return; empty for no bound.
            descending: Whether the greatest sort key comes first.
            limit: The greatest number of items; None for all.
            consistent: As in `get_item`.
            attributes: The attributes to return; empty for all. It costs as much, and is parsed faster.
        """
        request = build_partition_query(table, pk, min_sk, max_sk)
        if attributes:
            names = {f"#a{number}": name for number, name in enumerate(attributes)}
            request |= {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
        request |= {"ScanIndexForward": not descending, "ConsistentRead": consistent}
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
        """Return items of one partition of an index.

        Args:
            key: The index's hash key: (attribute, value).
            start_after: The key attributes, of the table and the index, of the item after which to start.
            max_sort: The index's sort key and its greatest value to return: (attribute, value).
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
            request["KeyConditionExpression"] += " AND #sort <= :max"
            request["ExpressionAttributeNames"]["#sort"] = max_sort[0]
            request["ExpressionAttributeValues"] |= serialize_item({":max": max_sort[1]})
        if start_after is not None:
            request["ExclusiveStartKey"] = serialize_item(start_after)
        return self._collect(request, limit)

    def iter_index_range(
        self, table: str, index: str, key: tuple[str, str], sort_attribute: str, start: str, end: str
    ) -> Iterator[Item]:
        """Iterate over the items of one partition of an index with start <= sort key < end, page by page.

        Args:
            key: The index's hash key: (attribute, value).
            sort_attribute: The index's sort key.
            start: The smallest value to return.
            end: The value before which to stop.
        """
        request: dict[str, Any] = {
            "TableName": table,
            "IndexName": index,
            "KeyConditionExpression": "#key = :key AND #sort BETWEEN :start AND :end",
            "ExpressionAttributeNames": {"#key": key[0], "#sort": sort_attribute},
            "ExpressionAttributeValues": serialize_item({":key": key[1], ":start": start, ":end": end}),
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
            response = self._client.query(**request)
            yield response["Items"]
            if not response.get("LastEvaluatedKey"):
                return
            request["ExclusiveStartKey"] = response["LastEvaluatedKey"]

    def query_sort_keys(self, table: str, pk: str, *, min_sk: str = "", max_sk: str = "") -> list[str]:
        """Return the sort keys of one partition's items with min_sk <= sk <= max_sk. An empty bound is no bound.

        The read is not consistent: it may miss the latest writes. It costs as much as reading the whole items so.
        """
        request = build_partition_query(table, pk, min_sk, max_sk) | {"ProjectionExpression": "sk"}
        return [deserialize_item(raw)["sk"] for page in self._pages(request, None) for raw in page]

    def scan_page(self, table: str, start: tuple[str, str] | None) -> tuple[list[Item], tuple[str, str] | None]:
        """Read one page of a whole table, which is for rare work on all rows only.

        Args:
            start: The keys after which to start; None for the beginning.

        Returns:
            The items, and the keys after which the next page starts; None behind the last page.
        """
        request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
        if start is not None:
            request["ExclusiveStartKey"] = serialize_key(*start)
        response = self._client.scan(**request)
        last = response.get("LastEvaluatedKey")
        key = deserialize_item(last) if last else None
        return [deserialize_item(raw) for raw in response["Items"]], (key["pk"], key["sk"]) if key else None

    def batch_delete(self, table: str, keys: Sequence[tuple[str, str]]) -> None:
        """Delete items unconditionally, 25 per request. Deletes that stay unprocessed are sent again."""
        for start in range(0, len(keys), DELETE_BATCH_SIZE):
            batch = keys[start : start + DELETE_BATCH_SIZE]
            pending: Any = {table: [{"DeleteRequest": {"Key": serialize_key(pk, sk)}} for pk, sk in batch]}
            while pending:
                pending = self._client.batch_write_item(RequestItems=pending).get("UnprocessedItems")
                if pending:
                    self._sleep(random.uniform(0.05, 0.2))  # noqa: S311 (jitter, not a secret)

    def put_newest(self, table: str, item: Item, time_attribute: str) -> None:
        """Store an item unless a newer one is stored (decision 0143).

        Args:
            table: The table's name, from the settings.
            item: The whole item, which replaces an older one.
            time_attribute: The attribute that orders the versions: an ISO instant, or a number. Equal ones replace each
                other.
        """
        condition = "attribute_not_exists(#at) OR #at <= :at"
        put = Put(table, item, condition=condition, values={":at": item[time_attribute]}, names={"#at": time_attribute})
        with suppress(ConditionFailed):
            self.write_items(put)

    def write_items(self, *writes: Write) -> None:
        """Apply all writes or none.

        A single write is sent as an ordinary request, at half the price, unless it is to be applied once; several are
        sent as one transaction.

        Raises:
            ConditionFailed: The condition of the only write did not hold.
            TransactionCanceled: A condition of one of several writes did not hold.
        """
        token = new_id()
        for attempt in range(1, MAX_WRITE_ATTEMPTS + 1):
            try:
                self._send(writes, token)
                return
            except ClientError as error:
                if is_own_copy(writes, error):
                    return
                if attempt == MAX_WRITE_ATTEMPTS or not is_write_conflict(error):
                    raise translate_write_error(error) from error
                if get_dynamodb_error_code(error) != TRANSACTION_IN_PROGRESS:
                    token = new_id()
            self._sleep(draw_pause(attempt))

    def _send(self, writes: Sequence[Write], token: str) -> None:
        """Send the writes. Of two transactions with the same token, DynamoDB applies one (for ten minutes)."""
        requests = [build_write_request(write) for write in writes]
        if len(writes) > 1 or (isinstance(writes[0], Update) and writes[0].is_applied_once):
            items: Any = [{operation: request} for operation, request in requests]
            self._client.transact_write_items(TransactItems=items, ClientRequestToken=token)
            return
        match requests[0]:
            case "Put", request:
                self._client.put_item(**request)
            case "Update", request:
                self._client.update_item(**request)
            case "Delete", request:
                self._client.delete_item(**request)
            case "ConditionCheck", _:
                raise ValueError("A check alone writes nothing.")


def draw_pause(attempt: int) -> float:
    """Return the seconds until the next attempt: by chance, so that writes that met do not meet again."""
    return random.uniform(0, min(0.01 * 2**attempt, MAX_PAUSE_SECONDS))  # noqa: S311 (jitter, not a secret)
