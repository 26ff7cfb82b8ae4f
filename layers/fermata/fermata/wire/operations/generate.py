"""Define the operation that asks a model without a conversation."""

from fermata.wire.bodies.generate_requests import GenerateBody
from fermata.wire.operations.common import API_PREFIX, CAN_CHAT
from fermata.wire.operations.operation import Operation, SuccessResponse

GENERATE = Operation(
    name="generate",
    function="credentials",
    method="POST",
    path=f"{API_PREFIX}/generate",
    capabilities=CAN_CHAT,
    summary="Ask a model for a text, an object or decisions",
    description="One request without a conversation. With `schema` the answer is an object that matches it; with "
    "`state` and `questions` it has a decision for each question, and an answer outside of a question's terms is "
    "null. Without a model, the default of the scope content answers. The request counts as a prompt, and against "
    "budgets.",
    body=GenerateBody,
    responses=(SuccessResponse("The answer.", "GenerateResponse"),),
    errors={
        400: "The body is not as described, or no model is set.",
        402: "A budget does not cover the request.",
        404: "The caller has no such credential.",
        409: "The credential's key can no longer be decrypted.",
        429: "The user or the workspace has reached a limit of prompts. The error says which.",
        422: "The model's answer does not match the schema.",
        502: "The provider refuses the request.",
        503: "The provider failed.",
    },
)
