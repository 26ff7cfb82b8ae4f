"""Build the events that API Gateway's REST proxy sends to a Lambda handler."""

import json
from collections.abc import Mapping
from typing import Any


def make_proxy_event(
    method: str, path: str, headers: Mapping[str, str] | None = None, body: Any = None
) -> dict[str, Any]:
    sent_headers = {"Content-Type": "application/json", **(headers or {})}
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": sent_headers,
        "multiValueHeaders": {name: [value] for name, value in sent_headers.items()},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": {"proxy": path.removeprefix("/")},
        "stageVariables": None,
        "requestContext": {"requestId": "platform-request", "stage": "dev", "httpMethod": method},
        "body": body if isinstance(body, str | None) else json.dumps(body),
        "isBase64Encoded": False,
    }
