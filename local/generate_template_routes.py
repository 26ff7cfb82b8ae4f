"""Write the routes of the HTTP functions in template.yaml, generated from the operations: `make template`.

Every path is written out and accepts any method, because the function itself responds to wrong methods (decision 0010).
Of a streamed path, only the methods of its operations are streamed: its preflights and wrong methods go to a function
whose responses are buffered (decision 0246).
"""

import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from fermata.wire.operations.cms_agent import CMS_AGENT_PATH
from fermata.wire.operations.common import API_PREFIX
from fermata.wire.operations.content import CONTENT_PATH
from fermata.wire.operations.operation import BaseOperation, FunctionName
from fermata.wire.operations.studio import CONVERSATION_API_PATH, STUDIO_PATH
from fermata.wire.operations.surface import OPERATIONS

TEMPLATE_PATH = Path(__file__).parents[1] / "template.yaml"
STREAMING_FUNCTIONS: tuple[FunctionName, ...] = ("stream_turns",)
BUFFERED_FUNCTION: FunctionName = "tool_result"
"""The function that answers the other methods of streamed paths."""
WHOLE_SUBTREES = (
    f"{CONTENT_PATH}/",
    "/delivery/",
    f"{CMS_AGENT_PATH}/sessions/",
    "/api/agents/",
    f"{STUDIO_PATH}/",
    f"{CONVERSATION_API_PATH}/",
)
"""Subtrees whose paths begin with parameters, and all belong to one function."""
PREFIX_SEGMENTS = 5
"""Slashes of a path like `/admin/api/ai/conversations/`, below which every path is written out."""
MIN_MERGED_PATHS = 2
_STREAMING_PROPERTIES = ("ResponseTransferMode: RESPONSE_STREAM", "TimeoutInMillis: 900000")
_ROUTES = re.compile(
    r"^(?P<begin> +# routes of (?P<function>\w+), written by `make template`\n).*?(?P<end>^ +# end of routes\n)",
    re.MULTILINE | re.DOTALL,
)


def update_routes(template: str, operations: Sequence[BaseOperation] = OPERATIONS) -> str:
    """Replace the routes between the markers of each function by those of its operations."""

    def replace(section: re.Match[str]) -> str:
        lines = _render_routes(section["function"], operations)
        return section["begin"] + "".join(f"        {line}\n" for line in lines) + section["end"]

    return _ROUTES.sub(replace, template)


def _render_routes(function: str, operations: Sequence[BaseOperation]) -> Iterator[str]:
    own_operations = [operation for operation in operations if operation.function == function]
    if function in STREAMING_FUNCTIONS:
        for name, (path, method) in list_streamed_routes(operations).items():
            yield from _render_streaming_route(_capitalize(name), path, method)
        return
    for name, path in merge_subtrees(own_operations, operations).items():
        yield from _render_buffered_route(_capitalize(name), path)
    if function == BUFFERED_FUNCTION:
        streamed = [operation for operation in operations if operation.function in STREAMING_FUNCTIONS]
        for name, path in merge_subtrees(streamed, operations).items():
            yield from _render_buffered_route(f"{_capitalize(name)}OtherMethods", path)


def list_streamed_routes(operations: Sequence[BaseOperation]) -> dict[str, tuple[str, str]]:
    """Return the path and the method of each route that is streamed, by its name.

    A subtree has one route for each method of its operations.
    """
    streamed = [operation for operation in operations if operation.function in STREAMING_FUNCTIONS]
    names = {path: name for name, path in merge_subtrees(streamed, operations).items()}
    routes: dict[str, tuple[str, str]] = {}
    for operation in streamed:
        path = find_route_path(operation, names)
        name = operation.name if path == operation.route_path else f"{operation.method.lower()}{names[path]}"
        routes.setdefault(name, (path, operation.method))
    return routes


def find_route_path(operation: BaseOperation, paths: Container[str]) -> str:
    """Return the path of the route that catches the requests of an operation.

    Args:
        operation: The operation.
        paths: Those of all routes of its function.
    """
    if operation.route_path in paths:
        return operation.route_path
    whole = next((tree for tree in WHOLE_SUBTREES if operation.path.startswith(tree)), "")
    return f"{whole or operation.path.rpartition('/')[0] + '/'}{{proxy+}}"


def merge_subtrees(own_operations: Sequence[BaseOperation], operations: Sequence[BaseOperation]) -> dict[str, str]:
    """Return the routes of a function: names and paths.

    Each route is a statement of the function's policy, which Lambda limits to 20 KB. So a subtree with several paths,
    all of this function, is one route with a greedy parameter; the function finds the operation (decision 0320).

    Args:
        own_operations: Those of the function.
        operations: All of them.
    """
    paths = {operation.path for operation in own_operations}
    others = {operation.path for operation in operations} - paths
    routes: dict[str, str] = {}
    for operation in _select_one_per_path(own_operations):
        whole = next((tree for tree in WHOLE_SUBTREES if operation.path.startswith(tree)), "")
        prefix = whole or f"{operation.path.rpartition('/')[0]}/"
        is_deep = bool(whole) or (prefix.count("/") > PREFIX_SEGMENTS and "{" not in operation.path)
        siblings = [path for path in paths if path.startswith(prefix)]
        is_own = not any(path.startswith(prefix) for path in others)
        if is_deep and is_own and len(siblings) >= MIN_MERGED_PATHS:
            routes.setdefault(f"{_to_route_name(prefix)}Subtree", f"{prefix}{{proxy+}}")
        else:
            routes[operation.name] = operation.route_path
    return routes


def _to_route_name(prefix: str) -> str:
    return "".join(map(_capitalize, re.findall(r"\w+", prefix.removeprefix(API_PREFIX))))


def _select_one_per_path(operations: Sequence[BaseOperation]) -> list[BaseOperation]:
    first_operations: dict[str, BaseOperation] = {}
    for operation in operations:
        first_operations.setdefault(operation.path, operation)
    return list(first_operations.values())


def _render_streaming_route(name: str, path: str, method: str) -> Iterator[str]:
    yield f"{name}:"
    yield "  Type: Api"
    yield "  Properties:"
    properties = ("RestApiId: !Ref Api", f'Path: "{path}"', f"Method: {method}")
    yield from (f"    {line}" for line in (*properties, *_STREAMING_PROPERTIES))


def _render_buffered_route(name: str, path: str) -> Iterator[str]:
    yield f"{name}:"
    yield "  Type: Api"
    yield f'  Properties: {{RestApiId: !Ref Api, Path: "{path}", Method: ANY}}'


def _capitalize(name: str) -> str:
    return name[0].upper() + name[1:]


if __name__ == "__main__":
    TEMPLATE_PATH.write_text(update_routes(TEMPLATE_PATH.read_text()))
