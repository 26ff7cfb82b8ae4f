"""Read, clear and restore the rows of all tables, without a call that could be counted, disturbed or delayed.

They are moto's, or in the quick suite those of `tests/dynamodb_in_memory.py`.
"""

import base64
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType

from tests.chaos.memory_aws.dynamodb import MemoryDynamoDB
from tests.resources import REGION

memory: MemoryDynamoDB | None = None
"""Where the rows are while requests are answered from memory."""

Attributes = dict[str, Any]
"""An item as DynamoDB sends it: `{"pk": {"S": "text"}}`."""
SavedRows = dict[str, tuple[dict[Any, dict[Any, Any]], ...]]


def clear_tables() -> None:
    restore_rows({})


def read_partition(table: str, pk: str) -> list[Attributes]:
    if memory is not None:
        return [_decode(item) for item in memory.tables[table].partitions.get(pk, {}).values()]
    return [_get_attributes(item) for item in _moto_tables()[table].items.get(DynamoType({"S": pk}), {}).values()]


def read_table(table: str) -> list[Attributes]:
    if memory is not None:
        return [_decode(item) for item in memory.tables[table].items.values()]
    return [_get_attributes(item) for rows in _moto_tables()[table].items.values() for item in rows.values()]


def save_rows() -> SavedRows:
    """Return all rows. Items are shared: whoever changes one replaces it (`tests/lean_moto.py`)."""
    if memory is not None:
        return {name: (_copy(table.partitions), _copy(table.index_partitions)) for name, table in memory.tables.items()}
    return {name: (_copy(table.items),) for name, table in _moto_tables().items()}


def restore_rows(saved: SavedRows) -> None:
    """Give every table the rows that it had, or none."""
    if memory is not None:
        memory.forget_writes()
        for name, table in memory.tables.items():
            partitions, index_partitions = saved.get(name, ({}, {}))
            table.partitions, table.index_partitions = _copy(partitions), _copy(index_partitions)
        return
    for name, table in _moto_tables().items():
        table.items.clear()
        table.items.update(_copy(*saved.get(name, ({},))))


def _decode(item: Attributes) -> Attributes:
    """Return an item as boto3 reads it: requests are kept as they were sent, in which bytes are base64."""
    return {
        name: {"B": base64.b64decode(value["B"])} if isinstance(value.get("B"), str) else value
        for name, value in item.items()
    }


def _copy(partitions: dict[Any, dict[Any, Any]]) -> dict[Any, dict[Any, Any]]:
    return {key: dict(rows) for key, rows in partitions.items()}


def _moto_tables() -> dict[str, Any]:
    return dict(dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables)


def _get_attributes(item: Any) -> Attributes:
    attributes: Attributes = item.to_json()["Attributes"]
    return attributes
