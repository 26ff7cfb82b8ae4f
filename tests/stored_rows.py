"""Read, clear and restore the rows of all tables, without a call that could be counted, disturbed or delayed.

They are those of `tests/dynamodb_in_memory.py`.
"""

import base64
from typing import Any

from tests.chaos.memory_aws.dynamodb import MemoryDynamoDB

memory = MemoryDynamoDB([])
"""Where the rows are. Replaced while requests are answered from memory."""

Attributes = dict[str, Any]
"""An item as DynamoDB sends it: `{"pk": {"S": "text"}}`."""
SavedRows = dict[str, tuple[dict[Any, dict[Any, Any]], ...]]


def clear_tables() -> None:
    restore_rows({})


def read_partition(table: str, pk: str) -> list[Attributes]:
    return [_decode(item) for item in memory.tables[table].partitions.get(pk, {}).values()]


def read_table(table: str) -> list[Attributes]:
    return [_decode(item) for item in memory.tables[table].items.values()]


def save_rows() -> SavedRows:
    """Return all rows. Items are shared: whoever changes one replaces it."""
    return {name: (_copy(table.partitions), _copy(table.index_partitions)) for name, table in memory.tables.items()}


def restore_rows(saved: SavedRows) -> None:
    """Give every table the rows that it had, or none."""
    memory.forget_writes()
    for name, table in memory.tables.items():
        partitions, index_partitions = saved.get(name, ({}, {}))
        table.partitions, table.index_partitions = _copy(partitions), _copy(index_partitions)


def _decode(item: Attributes) -> Attributes:
    """Return an item as boto3 reads it: requests are kept as they were sent, in which bytes are base64."""
    return {
        name: {"B": base64.b64decode(value["B"])} if isinstance(value.get("B"), str) else value
        for name, value in item.items()
    }


def _copy(partitions: dict[Any, dict[Any, Any]]) -> dict[Any, dict[Any, Any]]:
    return {key: dict(rows) for key, rows in partitions.items()}
