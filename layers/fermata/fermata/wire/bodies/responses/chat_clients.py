"""Define the responses to chat clients that are JSON."""

from typing import Literal

from fermata.wire.bodies.responses.common import ResponseModel


class StoppedChatResponse(ResponseModel):
    """How the answer of a chat ended; `idle` if none was running."""

    status: Literal["done", "error", "cancelled", "idle"]
    bridge_id: str | None = None
