"""Define paths, capabilities, parameters and errors that several operations share."""

from typing import get_args

from fermata.domain.caller import Capability
from fermata.domain.dialect import ToolNameVariant
from fermata.wire.http.when_busy_header import WHEN_BUSY_CHOICES, WHEN_BUSY_HEADER
from fermata.wire.operations.operation import RequestParameter, SuccessResponse
from fermata.wire.renderers.ndjson import NDJSON_CONTENT_TYPE

API_PREFIX = "/admin/api/ai"
CAN_CHAT = (Capability.CHAT,)
CAN_MANAGE_PROVIDERS = (Capability.PROVIDERS,)
CAN_READ_CONTENT = (Capability.READ_CONTENT, Capability.WRITE_CONTENT, Capability.CONTENT)
CAN_WRITE_CONTENT = (Capability.WRITE_CONTENT, Capability.CONTENT)
CAN_MANAGE_CONTENT = (Capability.CONTENT,)
UPLOAD_EXPIRED = "An upload that the body refers to is more than a day old."
NO_SUCH_TOOL_NAMES = {400: "The tools have no such names."}
OK_RESPONSES = (SuccessResponse("Done.", "OkResponse"),)
STREAM_RESPONSE = SuccessResponse("The turn's events, as they happen.", "StreamLine", media_type=NDJSON_CONTENT_TYPE)


def make_integer_parameter(name: str, description: str, minimum: int, maximum: int) -> RequestParameter:
    return RequestParameter(name, description, {"type": "integer", "minimum": minimum, "maximum": maximum})


IDEMPOTENCY_KEY = RequestParameter(
    "Idempotency-Key",
    "The same key with the same body joins the turn it started; good for a day.",
    {"type": "string", "maxLength": 200},
    location="header",
)
WHEN_BUSY = RequestParameter(
    WHEN_BUSY_HEADER,
    "What becomes of a prompt while another turn of the conversation runs: it ends that turn, or is refused (409).",
    {"type": "string", "enum": list(WHEN_BUSY_CHOICES), "default": WHEN_BUSY_CHOICES[0]},
    location="header",
)
TOOL_NAMES = RequestParameter(
    "Fermata-Tool-Names",
    "The names of the tools that this client knows. Without it, the tenant's setting counts.",
    {"type": "string", "enum": list(get_args(ToolNameVariant))},
    location="header",
)
