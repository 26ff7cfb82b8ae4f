"""A request twice as large takes twice the time, whichever of its parts grows (decision 0234).

Every operation with a body is tried, in process, with all that follows: a prompt runs its turn.
"""

import io
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fermata.wire.operations import surface
from fermata.wire.operations.operation import BaseOperation
from tests.growth.growing_values import Growing, find_slow_values, iter_growing_bodies, iter_growing_values
from tests.json_schema_samples import make_sample
from tests.quick_suite_samples import sample_for_quick_suite
from tests.unit.openapi.service import GATEWAY, Service
from tests.unit.openapi.test_responses import BODIES

BODY_CHARS = 60_000
NOTICEABLE_SECONDS = 0.075
"""What a request of this size may take, whatever its work. Twice the size may take four times as long."""
PARTS = 5
"""Of the bodies that an operation is tried with, in turn."""
WITH_BODIES = [operation for operation in surface.OPERATIONS if operation.body]


def iter_growing_requests(operation: BaseOperation, ids: dict[str, str]) -> Iterator[Growing]:
    assert operation.body
    schema = operation.body.model_json_schema(by_alias=True)
    body = BODIES.get(operation.name) or make_sample(schema, schema.get("$defs", {}))
    sample = {name: value if value != "" else ids.get(name, "") for name, value in body.items()}
    for growing in iter_growing_values(sample):
        yield Growing(growing.name, lambda size, make=growing.make: json.dumps(make(size)))
    yield from iter_growing_bodies()


@pytest.mark.parametrize("part", sample_for_quick_suite(range(PARTS), every=PARTS))
@pytest.mark.parametrize(
    "operation", sample_for_quick_suite(WITH_BODIES, every=2), ids=lambda operation: operation.name
)
def test_a_request_takes_time_in_proportion_to_its_body(service: Service, operation: BaseOperation, part: int) -> None:
    ids = service.real_ids(operation)
    path = operation.path
    for name, value in ({"scope": "site", "dialect": "site"} | ids).items():
        path = path.replace(f"{{{name}}}", value)
    headers = service.headers(operation)

    def prepare(body: str) -> Callable[[], object]:
        return lambda: send(operation.method, path, headers, body.encode("utf-8", "surrogatepass"))

    values = itertools.islice(iter_growing_requests(operation, ids), part, None, PARTS)
    assert find_slow_values(values, prepare, BODY_CHARS, NOTICEABLE_SECONDS) == []


def send(method: str, path: str, headers: dict[str, str], body: bytes) -> Any:
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "HTTP_AUTHORIZATION": headers["Authorization"],
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    return GATEWAY(environ, lambda status, headers: None)
