"""Check requests as Google's generateContent does: it refuses unknown members, empty parts, and calls without results.

docs/provider-rules.md has the source of each rule.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from local.demo_model.request_checks.errors import RequestRejected, require
from local.demo_model.request_checks.tool_schemas import check_schema

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_BODY = {
    "model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings",
    "cachedContent",
}  # fmt: skip
_GENERATION = {
    "maxOutputTokens", "temperature", "topP", "topK", "candidateCount", "stopSequences", "seed", "presencePenalty",
    "frequencyPenalty", "responseMimeType", "responseJsonSchema", "responseSchema", "thinkingConfig",
}  # fmt: skip
_DATA = ("text", "inlineData", "functionCall", "functionResponse")
_PART = {*_DATA, "thought", "thoughtSignature"}
_MIME_TYPES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
_OLDER_MODEL = re.compile(r"gemini-(?:1|2)\.|gemma")
_LEVELS = ("minimal", "low", "medium", "high")
UNEQUAL_MESSAGE = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)

Item = dict[str, Any]


def check_request(headers: Mapping[str, str], body: Any, model: str = "") -> None:
    """Raise RequestRejected for the first violation.

    Args:
        headers: Of the request, names in lower case.
        body: The parsed body. It may hold the model of the path as `model`.
        model: The model, if the body does not hold it.
    """
    if not headers.get("x-goog-api-key") and not headers.get("authorization"):
        message = "Method doesn't allow unregistered callers. Please use API Key or other form of API consumer identity"
        raise RequestRejected(message, kind="PERMISSION_DENIED", status=403)
    require(isinstance(body, dict), "Invalid JSON payload received.")
    _check_members(body, _BODY, "")
    contents = body.get("contents")
    require(bool(contents), "* GenerateContentRequest.contents: contents is not specified")
    for place, content in enumerate(contents):
        _check_content(content, f"contents[{place}]")
    if system := body.get("systemInstruction"):
        _check_parts(system.get("parts"), "system_instruction")
    _check_turns(contents)
    _check_generation(body.get("generationConfig") or {})
    _check_tools(body)
    if not _OLDER_MODEL.match(body.get("model") or model):
        _check_signatures(contents)


def _check_members(value: Item, known: set[str], place: str) -> None:
    for name in value:
        at = f" at '{place}'" if place else ""
        require(name in known, f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.')


def _check_content(content: Any, place: str) -> None:
    _check_members(content, {"role", "parts"}, place)
    require(content.get("role") in ("user", "model"), "Please use a valid role: user, model.")
    _check_parts(content.get("parts"), place)


def _check_parts(parts: Any, place: str) -> None:
    require(
        isinstance(parts, list) and bool(parts),
        f"* GenerateContentRequest.{place}.parts: contents.parts must not be empty.",
    )
    for number, part in enumerate(parts):
        _check_part(part, f"{place}.parts[{number}]")


def _check_part(part: Item, place: str) -> None:
    _check_members(part, _PART, place)
    data = [name for name in _DATA if name in part]
    has_data = len(data) == 1 and (part[data[0]] != "" or bool(part.get("thoughtSignature")))
    require(has_data, f"* {place}.data: required oneof field 'data' must have one initialized field")
    if "thoughtSignature" in part:
        require(_is_base64(part["thoughtSignature"], b"-_"), f"Invalid value at '{place}.thought_signature'")
    match data[0]:
        case "text":
            require(isinstance(part["text"], str), f"Invalid value at '{place}' (text)")
        case "inlineData":
            _check_image(part["inlineData"])
        case "functionCall":
            _check_call(part["functionCall"], place)
        case "functionResponse":
            _check_result(part["functionResponse"], place)


def _check_image(image: Item) -> None:
    require(image.get("mimeType") in _MIME_TYPES, f"Unsupported MIME type: {image.get('mimeType')}")
    require(_is_base64(image.get("data")), "Base64 decoding failed")
    require(bool(image["data"]), "Provided image is not valid.")


def _check_call(call: Item, place: str) -> None:
    _check_members(call, {"id", "name", "args"}, f"{place}.function_call")
    _check_name(call.get("name"), f"{place}.function_call.name")
    require(isinstance(call.get("args", {}), dict), f"Invalid value at '{place}.function_call.args'")


def _check_result(result: Item, place: str) -> None:
    _check_members(result, {"id", "name", "response", "parts"}, f"{place}.function_response")
    _check_name(result.get("name"), f"{place}.function_response.name")
    response = result.get("response")
    require(isinstance(response, dict), f"Invalid value at '{place}.function_response.response'")
    assert isinstance(response, dict)
    require(not _holds_reference(response), f"{place}.function_response.response: $ref does not name a part")
    for part in result.get("parts", ()):
        _check_image(part["inlineData"])


def _check_name(name: Any, place: str) -> None:
    is_legal = isinstance(name, str) and _NAME.fullmatch(name) is not None
    require(is_legal, f"Invalid function name at '{place}'. Must start with a letter or an underscore.")


def _check_turns(contents: list[Item]) -> None:
    require(contents[0]["role"] == "user", "Please ensure that multiturn requests begin with a user turn.")
    for before, content in zip([None, *contents], [*contents, None], strict=True):
        calls = _list_data(before, "functionCall")
        results = _list_data(content, "functionResponse")
        require(not results or bool(calls), "Please ensure that function response turn comes immediately after a "
                "function call turn.")  # fmt: skip
        require(content is not None or not calls, UNEQUAL_MESSAGE)
        require(len(results) == len(calls), UNEQUAL_MESSAGE)
        names = [(call.get("id"), call["name"]) for call in calls]
        require(
            sorted(map(repr, names)) == sorted(repr((result.get("id"), result["name"])) for result in results),
            "Function response does not name a function call of the turn before it.",
        )
        if _list_data(content, "functionCall"):
            is_after_user = before is not None and before["role"] == "user"
            require(is_after_user, "Please ensure that function call turn comes immediately after a user turn or "
                    "after a function response turn.")  # fmt: skip
    require(
        contents[-1]["role"] == "user",
        "Please ensure that multiturn requests end with a user role or a function response.",
    )


def _list_data(content: Item | None, name: str) -> list[Item]:
    return [part[name] for part in content["parts"] if name in part] if content else []


def _check_generation(config: Item) -> None:
    _check_members(config, _GENERATION, "generation_config")
    limit = config.get("maxOutputTokens", 1)
    require(type(limit) is int and limit >= 1, "Invalid value at 'generation_config.max_output_tokens'")
    thinking = config.get("thinkingConfig") or {}
    _check_members(
        thinking, {"includeThoughts", "thinkingBudget", "thinkingLevel"}, "generation_config.thinking_config"
    )
    both = "thinkingBudget" in thinking and "thinkingLevel" in thinking
    require(not both, "You can only set only one of thinking budget and thinking level.")
    require(thinking.get("thinkingLevel", "low") in _LEVELS, "Invalid value at 'thinking_config.thinking_level'")
    require(type(thinking.get("thinkingBudget", 0)) is int, "Invalid value at 'thinking_config.thinking_budget'")


def _check_tools(body: Item) -> None:
    declared = [tool for group in body.get("tools") or () for tool in group.get("functionDeclarations", ())]
    names = [tool.get("name") for tool in declared]
    for name in names:
        _check_name(name, "tools[0].function_declarations.name")
        require(names.count(name) == 1, f"Duplicate function declaration found: {name}")
    for tool in declared:
        _check_members(tool, {"name", "description", "parameters", "parametersJsonSchema"}, "tools")
        both = "parameters" in tool and "parametersJsonSchema" in tool
        require(not both, "Only one of parameters and parameters_json_schema may be set.")
        check_schema(tool["name"], tool.get("parametersJsonSchema") or tool.get("parameters") or {})
    choice = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    require(choice.get("mode", "AUTO") in ("AUTO", "ANY", "NONE", "VALIDATED"), "Invalid value at 'tool_config.mode'")


def _check_signatures(contents: list[Item]) -> None:
    """Require a signature at the first call of each step since the last prompt, as models since Gemini 3 do."""
    prompts = [place for place, content in enumerate(contents) if _is_prompt(content)]
    for content in contents[prompts[-1] if prompts else 0 :]:
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            name = calls[0]["functionCall"]["name"]
            raise RequestRejected(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                f"work correctly. Additional data, function call `default_api:{name}`, position 1."
            )


def _is_prompt(content: Item) -> bool:
    return content["role"] == "user" and not _list_data(content, "functionResponse")


def _holds_reference(value: Any) -> bool:
    if isinstance(value, dict):
        return "$ref" in value or any(map(_holds_reference, value.values()))
    return isinstance(value, list) and any(map(_holds_reference, value))


def _is_base64(text: Any, others: bytes | None = None) -> bool:
    try:
        return isinstance(text, str) and base64.b64decode(text, others, validate=True) is not None
    except (binascii.Error, ValueError):
        return False
