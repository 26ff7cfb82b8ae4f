"""Define the response body of a request to a model without a conversation."""

from typing import Any

from fermata.wire.bodies.responses.common import CountField, ResponseModel


class GenerateUsage(ResponseModel):
    """The tokens of all requests to the model, and what they cost."""

    input_tokens: CountField
    output_tokens: CountField
    total_tokens: CountField
    cache_read_tokens: CountField
    cache_write_tokens: CountField
    cost_usd: float


class GenerateResponse(ResponseModel):
    """A text, the object of a schema, or the answer to each question by its id."""

    text: str | None = None
    object: Any = None
    decisions: dict[str, dict[str, Any]] | None = None
    finish_reason: str | None = None
    usage: GenerateUsage
