"""Check the answer of an agent whose answers have a schema, and ask once more for one that has not (decision 0364)."""

import json
from typing import Any

from fermata.domain.blocks import TextBlock, ToolCallBlock
from fermata.domain.json_shortening import shorten_text
from fermata.domain.lenient_json import UnreadableJson
from fermata.domain.messages import Message
from fermata.domain.model_io import FinishReason, ModelRequest, ModelResponse
from fermata.domain.run_settings import OutputFormat
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.protocols.tool_arguments import parse_strict_json

INVALID_OUTPUT_CODE = "invalid_output"
_INSTRUCTION = (
    "Answer with one JSON value and nothing else: no words around it, no code fence. "
    "It has to match this JSON Schema:\n"
)
_PROBLEM_CHARS = 300


@value_dataclass(frozen=True)
class StructuredAnswer:
    """The value of an answer, or what is wrong with it."""

    value: Any = None
    problem: str = ""


def build_output_instruction(output: OutputFormat) -> str:
    """Return what the model is told about the form of its answer."""
    about = f"{output.description}\n" if output.description else ""
    return about + _INSTRUCTION + json.dumps(output.json_schema, ensure_ascii=False, separators=(",", ":"))


def read_structured_answer(output: OutputFormat, text: str) -> StructuredAnswer:
    """Return the value of a text, checked against the schema."""
    from fermata.domain.json_repairs import strip_fence  # few agents have answers with a schema
    from fermata.tools.schema.validate_manifest_value import find_schema_violation

    try:
        value = parse_strict_json(strip_fence(text.strip()))
    except UnreadableJson as error:
        return StructuredAnswer(problem=shorten_text(f"it is no JSON: {error}", _PROBLEM_CHARS))
    violation = find_schema_violation(output.json_schema, value)
    if violation is not None:
        return StructuredAnswer(problem=shorten_text(str(violation), _PROBLEM_CHARS))
    return StructuredAnswer(value)


def find_output_problem(output: OutputFormat, response: ModelResponse) -> str:
    """Return what is wrong with a response that answers; nothing for one that goes on, was refused or cut off."""
    goes_on = any(isinstance(block, ToolCallBlock) for block in response.blocks)
    if goes_on or response.stop is not FinishReason.END:
        return ""
    return read_structured_answer(output, join_text(response)).problem


def build_repair_request(request: ModelRequest, response: ModelResponse, problem: str) -> ModelRequest:
    """Return the request that asks for the answer again, and shows the model what was wrong with it.

    Args:
        request: What was asked.
        response: The answer.
        problem: What is wrong with it.
    """
    turn = request.messages[-1].turn if request.messages else ""
    answer = TextBlock(text=join_text(response) or "(nothing)")
    complaint = TextBlock(text=f"Your answer does not have the required form: {problem}. Answer again.")
    added = (
        Message(position=0, role="assistant", content=(answer,), turn=turn),
        Message(position=0, role="user", content=(complaint,), turn=turn),
    )
    return request.model_copy(update={"messages": (*request.messages, *added)})


def format_answer(output: OutputFormat, response: ModelResponse) -> ModelResponse:
    """Return a valid response whose text is the JSON of its value, without what the model has written around it."""
    if find_output_problem(output, response) or response.stop is not FinishReason.END:
        return response
    if any(isinstance(block, ToolCallBlock) for block in response.blocks):
        return response
    value = read_structured_answer(output, join_text(response)).value
    text = TextBlock(text=json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    others = [block for block in response.blocks if not isinstance(block, TextBlock)]
    return response.model_copy(update={"blocks": (*others, text)})


def join_text(response: ModelResponse) -> str:
    """Return the text of a response."""
    return "".join(block.text for block in response.blocks if isinstance(block, TextBlock))
