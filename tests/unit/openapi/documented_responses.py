"""Check that a function's response is one that the OpenAPI document has."""

import re
from functools import cache

from fermata.wire.http.messages import HttpRequest, Response
from fermata.wire.openapi import document
from fermata.wire.operations import surface

PATH_PARAMETER = re.compile(r"\\\{\w+\\\}")


@cache
def list_documented_operations() -> list[tuple[str, re.Pattern[str], str, frozenset[int]]]:
    """Return the method, path, name and response statuses of every operation."""
    paths = document.get_openapi_document()["paths"]
    return [
        (
            operation.method,
            re.compile(PATH_PARAMETER.sub(".+" if operation.has_subtree else "[^/]+", re.escape(operation.path))),
            operation.name,
            frozenset(map(int, paths[operation.path][operation.method.lower()]["responses"])),
        )
        for operation in surface.OPERATIONS
    ]


def check_documented(request: HttpRequest, response: Response) -> None:
    """Check a response. Preflights, unknown paths and methods are described once, for all operations."""
    for method, path, name, statuses in list_documented_operations():
        if method == request.method and path.fullmatch(request.path):
            assert response.status in statuses, (
                f"{name} does not say that it may answer {response.status}: {response.body}"
            )
