"""Patch the router: ask of a request that names its operation only which service that is.

Unpatched MiniStack compares each request with thirty kinds of addresses (websites, load balancers, queues, domains of
buckets) before it looks for the header `X-Amz-Target`, which only the JSON of AWS services has.
"""

from typing import Any

from ministack import app

from local.emulator.patches.registry import Function, patch_function

LOOPBACK_HOST = "127.0.0.1:"
TARGET_HEADER = "x-amz-target"


def names_operation(method: str, path: str, headers: dict[str, str]) -> bool:
    """Return whether a request is a POST of JSON to this machine, with its operation in a header."""
    return (
        path == "/"
        and method == "POST"
        and TARGET_HEADER in headers
        and headers.get("host", "").startswith(LOOPBACK_HOST)
    )


@patch_function(app, "_handle_pre_body_request", "827a7ae1d526")
async def handle_request_by_head(
    original: Function, method: str, path: str, headers: dict[str, str], *further: Any
) -> Any:
    return None if names_operation(method, path, headers) else await original(method, path, headers, *further)


@patch_function(app, "_handle_post_body_shortcuts", "950ae5cb53a4")
async def handle_request_by_body(
    original: Function, method: str, path: str, headers: dict[str, str], *further: Any
) -> Any:
    return None if names_operation(method, path, headers) else await original(method, path, headers, *further)


@patch_function(app, "_handle_special_data_plane_request", "011e0dfba6d8")
async def handle_request_by_address(
    original: Function, method: str, path: str, headers: dict[str, str], *further: Any, **named: Any
) -> Any:
    plain = names_operation(method, path, headers)
    return None if plain else await original(method, path, headers, *further, **named)
