"""Map a model request to a generateContent body that the API accepts (decision 0345).

A model's content is followed by one with as many results as it has calls. A signature goes back in the part it came
with; the accumulator stores it as reasoning before that part.
"""

import re
from typing import Any, TypeGuard

from fermata.domain.model_io import ModelRequest
from fermata.domain.tools import ToolSpec
from fermata.drivers.adjustments import (
    ADD_PLACEHOLDER_SIGNATURES,
    MERGE_SYSTEM_INTO_PROMPT,
    NO_ADJUSTMENTS,
    OMIT_THINKING_BLOCKS,
    AppliedAdjustments,
)
from fermata.drivers.protocols.call_id_mapping import choose_call_id_formatter, plain_id_formatter
from fermata.drivers.protocols.gemini_generate.model_traits import (
    build_thinking_config,
    get_gemini_allowance,
    reads_result_images,
    requires_signatures,
)
from fermata.drivers.protocols.gemini_generate.schema_subset import reduce_schema
from fermata.drivers.protocols.message_groups import CallResult, MessageGroup, StatelessItems, build_conversation
from fermata.drivers.protocols.shared_encoding import (
    build_tool_schema,
    encode_result,
    get_call_arguments,
    get_image_base64,
)

# Names of adjustments:
OMIT_CALL_IDS = "omit call ids"
REDUCE_SCHEMAS = "reduce schemas"
"""For a server that reads only the older form of schemas, which has few of JSON Schema's words."""
OMIT_THINKING_CONFIG = "omit thinking config"
OMIT_OUTPUT_LIMIT = "omit output limit"
IMAGES_BESIDE_RESULTS = "images beside results"
"""For a model that takes no image within a result, although its name does not say so."""

PLACEHOLDER_SIGNATURE = "skip_thought_signature_validator"
"""What Google documents for calls that come from another model."""
_BASE64_QUANTUM = 4
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_format_call_id = plain_id_formatter(64)
_format_tool_name = plain_id_formatter(64)

_JsonObject = dict[str, Any]


def build_request_body(
    request: ModelRequest, provider: str, applied: AppliedAdjustments = NO_ADJUSTMENTS
) -> _JsonObject:
    """Build the JSON body. The model's name is part of the path.

    Args:
        provider: Reasoning blocks of other providers are left out.
        applied: Decides about the forms that servers disagree on.
    """
    builder = _ContentBuilder(request.model, applied)
    contents: list[_JsonObject] = build_conversation(
        request,
        provider,
        choose_call_id_formatter(applied, _format_call_id),
        lambda: StatelessItems(builder.build_contents),
        key=applied,
    )
    body: _JsonObject = {}
    if request.system.strip() and MERGE_SYSTEM_INTO_PROMPT in applied:
        first, *others = contents
        contents = [{**first, "parts": [{"text": request.system}, *first["parts"]]}, *others]
    elif request.system.strip():
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_build_declaration(spec, applied) for spec in request.tools]}]
    if request.tools and not request.call_tools:
        body["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
    elif request.forced_tool:
        names = {} if request.forced_tool == "*" else {"allowedFunctionNames": [request.forced_tool]}
        body["toolConfig"] = {"functionCallingConfig": {"mode": "ANY", **names}}
    return body | {"generationConfig": _build_generation_config(request, applied), "contents": contents}


def _build_generation_config(request: ModelRequest, applied: AppliedAdjustments) -> _JsonObject:
    config: _JsonObject = {}
    if OMIT_OUTPUT_LIMIT not in applied:
        allowance = get_gemini_allowance(request.model, request.thinking_tokens)
        config["maxOutputTokens"] = request.max_tokens + allowance
    thinking = build_thinking_config(request.model, request.thinking_tokens)
    if thinking and OMIT_THINKING_CONFIG not in applied:
        config["thinkingConfig"] = thinking
    if request.output is not None and not request.tools:  # the API takes no schema beside tools
        config |= {"responseMimeType": "application/json", "responseJsonSchema": request.output.json_schema}
    return config


def _build_declaration(spec: ToolSpec, applied: AppliedAdjustments) -> _JsonObject:
    description = {"description": spec.description} if spec.description else {}
    declaration = {"name": spec.name, **description}
    if REDUCE_SCHEMAS not in applied:
        return declaration | {"parametersJsonSchema": build_tool_schema(spec)}
    # The older form refuses an object without members.
    return declaration | (
        {"parameters": reduce_schema(spec.input_schema)} if spec.input_schema.get("properties") else {}
    )


class _ContentBuilder:
    """Builds the contents of a group of messages."""

    def __init__(self, model: str, applied: AppliedAdjustments) -> None:
        self._with_ids = OMIT_CALL_IDS not in applied
        self._with_signatures = OMIT_THINKING_BLOCKS not in applied
        self._needs_signatures = requires_signatures(model) or ADD_PLACEHOLDER_SIGNATURES in applied
        self._has_images_in_results = reads_result_images(model) and IMAGES_BESIDE_RESULTS not in applied

    def build_contents(self, group: MessageGroup) -> list[_JsonObject]:
        if group.role == "user":
            return [{"role": "user", "parts": _build_user_parts(group)}]
        contents = [{"role": "model", "parts": self._build_model_parts(group)}]
        if group.results:
            contents.append({"role": "user", "parts": self._build_result_parts(group)})
        return contents

    def _build_model_parts(self, group: MessageGroup) -> list[_JsonObject]:
        parts: list[_JsonObject] = []
        signature: _JsonObject = {}
        has_signed_call = False
        for block in group.blocks:
            match block.kind:
                case "reasoning":
                    signature = self._get_signature(block.payload)
                    if signature and (thought := block.payload.get("thought")):
                        parts.append({"text": str(thought), "thought": True} | signature)
                        signature = {}
                case "text":
                    parts.append({"text": block.text} | signature)
                    signature = {}
                case "toolCall":
                    if not signature and not has_signed_call and self._needs_signatures:
                        signature = {"thoughtSignature": PLACEHOLDER_SIGNATURE}
                    has_signed_call = True
                    call = {"name": _format_tool_name(block.tool_name, 1), "args": get_call_arguments(block)}
                    parts.append({"functionCall": self._build_id(block.tool_call_id) | call} | signature)
                    signature = {}
        return parts

    def _get_signature(self, payload: _JsonObject) -> _JsonObject:
        signature = payload.get("thoughtSignature")
        return {"thoughtSignature": signature} if self._with_signatures and _is_base64(signature) else {}

    def _build_id(self, call_id: str) -> _JsonObject:
        return {"id": call_id} if self._with_ids else {}

    def _build_result_parts(self, group: MessageGroup) -> list[_JsonObject]:
        """Build one part for each result, behind them the images that cannot be within."""
        names = {call.tool_call_id: call.tool_name for call in group.calls}
        parts: list[_JsonObject] = []
        images: list[_JsonObject] = []
        for result in group.results:
            response = self._build_response(result, names.get(result.call_id, result.tool_name))
            pictures = [_build_image(image.mime_type, get_image_base64(image)) for image in result.block.images or ()]
            if pictures and self._has_images_in_results:
                response["parts"] = pictures
            else:
                images += pictures
            parts.append({"functionResponse": response})
        return [*parts, *images]

    def _build_response(self, result: CallResult, tool_name: str) -> _JsonObject:
        """Build a result. Its text is one string: within an object, the API reads `$ref` as a reference of its own."""
        member = "output" if result.block.ok else "error"
        response = {member: encode_result(result.block)}
        return self._build_id(result.call_id) | {"name": _format_tool_name(tool_name, 1), "response": response}


def _build_user_parts(group: MessageGroup) -> list[_JsonObject]:
    texts = [{"text": text} for text in group.texts]
    images = [_build_image(image.mime_type, get_image_base64(image)) for image in group.images]
    volatile = [{"text": group.volatile_context}] if group.volatile_context else []
    return [*texts, *images, *volatile]


def _build_image(mime_type: str, data: str) -> _JsonObject:
    return {"inlineData": {"mimeType": mime_type, "data": data}}


def _is_base64(signature: object) -> TypeGuard[str]:
    """Return whether the API can read a signature. It refuses the whole request otherwise, and each one after it."""
    if not isinstance(signature, str) or len(signature) % _BASE64_QUANTUM:
        return False
    return _BASE64.fullmatch(signature) is not None
