"""Answer a request of the API to a model without a conversation."""

from contextlib import closing
from typing import Any

from fermata.aws.resources import Resources
from fermata.credentials import base_urls
from fermata.domain.caller import Caller
from fermata.domain.one_shot_generation import GenerateRequest
from fermata.turns.generate.ask_model import generate_answer
from fermata.turns.generate.decide import decide_questions

MAX_GENERATE_SECONDS = 25.0
"""Less than the API waits for a function."""


def answer_generate_request(resources: Resources, caller: Caller, asked: GenerateRequest) -> dict[str, Any]:
    """Return the answer as the API has it.

    Args:
        resources: Of the process.
        caller: Who asks.
        asked: The request.

    Raises:
        ApiError: As `generate_answer` and `decide_questions`.
    """
    from fermata.drivers.transport.http_connection import HttpConnection  # functions that send nothing load no httpx

    connection = HttpConnection(
        stall_seconds=MAX_GENERATE_SECONDS,
        total_seconds=MAX_GENERATE_SECONDS,
        guard=base_urls.make_url_guard(resources.settings),
    )
    with closing(connection), connection.call_scope():
        if asked.questions:
            decided = decide_questions(resources, caller, asked, connection)
            usage = decided.pop("usage")
            return {"decisions": decided, "usage": usage}
        answer = generate_answer(resources, caller, asked, connection)
    found = {"text": answer.text} if asked.output is None else {"object": answer.value}
    return {**found, "finishReason": answer.finish_reason, "usage": answer.usage}
