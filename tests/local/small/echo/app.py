"""Answer with the request, for the tests of the front door."""

import json
import os
import time
from pathlib import Path
from typing import Any


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    what = event["pathParameters"]["id"]
    if what == "fail":
        raise ValueError("asked for")
    while what == "wait" and not Path(event["queryStringParameters"]["gate"]).exists():
        time.sleep(0.01)
    headers = {"x-own": "1", "x-request-id": "from-the-function"} if what == "headers" else {}
    many = {"Set-Cookie": ["a=1", "b=2; HttpOnly"]} if what == "headers" else {}
    body = {key: event[key] for key in ("httpMethod", "path", "body", "isBase64Encoded", "pathParameters")}
    body |= {"headers": event["headers"], "query": event["multiValueQueryStringParameters"]}
    body["colour"] = os.environ["COLOUR"]
    return {"statusCode": 418, "headers": headers, "multiValueHeaders": many, "body": json.dumps(body)}
