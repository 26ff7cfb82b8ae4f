"""Write the routes of the HTTP functions in template.yaml, generated from the operations: `make template`.

Every path is written out and accepts any method, because the function itself responds to wrong methods (decision 0010).
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from fermata.wire.operations.operation import BaseOperation, FunctionName
from fermata.wire.operations.surface import OPERATIONS

TEMPLATE_PATH = Path(__file__).parents[1] / "template.yaml"
STREAMING_FUNCTIONS: tuple[FunctionName, ...] = ("stream_turns",)
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
    first_operations: dict[str, BaseOperation] = {}
    for operation in operations:
        if operation.function == function:
            first_operations.setdefault(operation.path, operation)
    for path, operation in first_operations.items():
        yield f"{operation.name[0].upper()}{operation.name[1:]}:"
        yield "  Type: Api"
        properties = ["RestApiId: !Ref Api", f'Path: "{path}"', "Method: ANY"]
        if function in STREAMING_FUNCTIONS:
            yield "  Properties:"
            yield from (f"    {line}" for line in (*properties, *_STREAMING_PROPERTIES))
        else:
            yield f"  Properties: {{{', '.join(properties)}}}"


if __name__ == "__main__":
    TEMPLATE_PATH.write_text(update_routes(TEMPLATE_PATH.read_text()))
