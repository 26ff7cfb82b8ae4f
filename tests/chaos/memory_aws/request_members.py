"""Read what a request says about its expressions and its response."""

from typing import Any

from tests.chaos.memory_aws.attribute_values import Item
from tests.chaos.memory_aws.expressions import Scope


def build_scope(request: dict[str, Any], item: Item) -> Scope:
    return Scope(request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {}), item)


def returns_old(request: dict[str, Any]) -> bool:
    return request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"


def build_cancellation_reason(is_held: bool, request: dict[str, Any], old: Item | None) -> dict[str, Any]:
    if is_held:
        return {"Code": "None"}
    shown = {"Item": old} if old is not None and returns_old(request) else {}
    return {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed", **shown}


def project_item(item: Item, request: dict[str, Any]) -> Item:
    if "ProjectionExpression" not in request:
        return item
    names = [name.strip() for name in request["ProjectionExpression"].split(",")]
    names = [request.get("ExpressionAttributeNames", {}).get(name, name) for name in names]
    return {name: item[name] for name in names if name in item}
