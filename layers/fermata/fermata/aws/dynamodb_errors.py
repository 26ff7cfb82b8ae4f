"""Interpret the errors of DynamoDB writes: what is retried, what has succeeded, and which condition failed."""

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from fermata.aws.dynamodb_items_and_writes import (
    CancellationReason,
    ConditionFailed,
    Put,
    TransactionCanceled,
    Write,
    deserialize_item,
    serialize_item,
)

TRANSACTION_IN_PROGRESS = "TransactionInProgressException"
"""An earlier request with the same token is not decided yet. Only the same token finds out what became of it."""


def get_dynamodb_error_code(error: ClientError) -> str:
    """Return the error code, or an empty text for an error without one."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _raw_reasons(error: ClientError) -> list[dict[str, Any]]:
    reasons: list[dict[str, Any]] = error.response.get("CancellationReasons", [])  # type: ignore[assignment]  # absent from the stubs' error shape
    return reasons


def is_write_conflict(error: ClientError) -> bool:
    """Return whether only other transactions or throttling prevented the write, so that a retry can succeed."""
    if get_dynamodb_error_code(error) in (TRANSACTION_IN_PROGRESS, "TransactionConflictException"):
        return True
    codes = {reason.get("Code", "None") for reason in _raw_reasons(error)}
    retryable = {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
    return bool(codes & retryable) and "ConditionalCheckFailed" not in codes


def is_own_copy(writes: Sequence[Write], error: ClientError) -> bool:
    """Return whether a single put was refused because of the item that it has stored itself."""
    match writes:
        case [Put(if_absent=True, item=item)] if get_dynamodb_error_code(error) == "ConditionalCheckFailedException":
            raw: Any = error.response.get("Item")
            return bool(raw) and deserialize_item(raw) == deserialize_item(serialize_item(item))
    return False


def translate_write_error(error: ClientError) -> Exception:
    """Return ConditionFailed or TransactionCanceled if a condition failed, else the error itself."""
    if get_dynamodb_error_code(error) == "ConditionalCheckFailedException":
        raw: Any = error.response.get("Item")
        return ConditionFailed(deserialize_item(raw) if raw else None)
    reasons = _raw_reasons(error)
    if any(reason.get("Code") == "ConditionalCheckFailed" for reason in reasons):
        return TransactionCanceled([_cancellation_reason(raw) for raw in reasons])
    return error


def _cancellation_reason(raw: dict[str, Any]) -> CancellationReason:
    item = raw.get("Item")
    return CancellationReason(raw.get("Code") == "ConditionalCheckFailed", deserialize_item(item) if item else None)
