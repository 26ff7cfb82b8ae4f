"""Whether a door's answer is one that the document has."""

import re
from functools import cache

from fermata.wire import openapi, surface
from fermata.wire.http import Answer, Request

STEP = re.compile(r"\\\{\w+\\\}")


@cache
def known() -> list[tuple[str, re.Pattern[str], str, frozenset[int]]]:
    """Of each operation: its method, its path, its name, and the statuses it may answer."""
    paths = openapi.document()["paths"]
    return [
        (
            operation.method,
            re.compile(STEP.sub("[^/]+", re.escape(operation.path))),
            operation.name,
            frozenset(map(int, paths[operation.path][operation.method.lower()]["responses"])),
        )
        for operation in surface.OPERATIONS
    ]


def check(request: Request, answer: Answer) -> None:
    """Preflights, unknown paths and methods are told of once, for all operations."""
    for method, path, name, statuses in known():
        if method == request.method and path.fullmatch(request.path):
            assert answer.status in statuses, f"{name} does not say that it may answer {answer.status}: {answer.body}"
