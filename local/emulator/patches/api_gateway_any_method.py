"""Patch API Gateway: import routes for any method, which unpatched MiniStack drops."""

from ministack.services import apigateway_v1

from local.emulator.patches.registry import patch_line

ANY_METHOD_KEY = "x-amazon-apigateway-any-method"


def openapi_method(key: str) -> str:
    """Get the method that a member of an OpenAPI path item describes."""
    return "any" if key == ANY_METHOD_KEY else key


patch_line(
    apigateway_v1,
    "_import_path_item",
    "563432744443",
    "        if method.lower() in _OPENAPI_HTTP_METHODS:",
    "        method = _method_name(method)\n        if method.lower() in {*_OPENAPI_HTTP_METHODS, 'any'}:",
    _method_name=openapi_method,
)
