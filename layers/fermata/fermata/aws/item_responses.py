"""Read the responses of DynamoDB that consist of items as the JSON that they are (decision 0674).

botocore looks at each value of each item for ten members that it may have: ten microseconds for each, which is most of
what reading many items costs. What it makes of them is the same JSON, but for binary values.
"""

import json
from typing import Any

_OPERATIONS = ("GetItem", "BatchGetItem", "Query", "Scan")
_BINARY_MARKS = (b'"B"', b'"BS"')
"""What the JSON of binary values has, which botocore decodes. A text that is called so is left to it, too."""
_OK = 200


def read_items_as_json(client: Any) -> None:
    """Let a client of DynamoDB read the items of its responses so. Doing so again changes nothing.

    Args:
        client: The client of boto3.
    """
    for operation in _OPERATIONS:
        client.meta.events.register(
            f"before-parse.dynamodb.{operation}", _take_items, unique_id=f"items-as-json-{operation}"
        )


def _take_items(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Answer botocore's event: what the second dictionary has is returned as it is. All else is left to botocore."""
    body = response_dict["body"]
    if response_dict["status_code"] != _OK or any(mark in body for mark in _BINARY_MARKS):
        return
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):
        return
    if isinstance(members, dict):
        customized_response_dict.update(members)
        response_dict["body"] = b"{}"
