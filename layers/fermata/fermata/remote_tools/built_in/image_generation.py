"""Generate an image with OpenAI or Gemini, and keep it with the conversation."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fermata.domain.image_header import read_image_header
from fermata.domain.model_io import TokenUsage
from fermata.remote_tools.built_in.built_in_call import BuiltInCall
from fermata.remote_tools.manifest_tool_executor import AttemptFailed
from fermata.remote_tools.paid_request_report import PaidRequest

OPENAI_IMAGES_URL = "https://api.openai.com/v1/images/generations"
OPENAI_IMAGE_MODEL = "gpt-image-1"
GEMINI_MODELS_URL = "https://generativelanguage.googleapis.com/v1beta/models"
GEMINI_IMAGE_MODEL = "gemini-2.5-flash-image"
MAX_IMAGE_RESPONSE_BYTES = 24 * 1024 * 1024
MAX_REPORTED_TOKENS = 10_000_000
_SIZES = {"landscape": "1536x1024", "square": "1024x1024", "portrait": "1024x1536"}
_RATIOS = {"landscape": "3:2", "square": "1:1", "portrait": "2:3"}
_QUALITIES = {"draft": "low", "final": "high"}
CHARACTERS_PER_TOKEN = 4
_OPENAI_IMAGE_TOKENS = {
    ("low", "1024x1024"): 272,
    ("low", "1536x1024"): 400,
    ("low", "1024x1536"): 408,
    ("high", "1024x1024"): 4160,
    ("high", "1536x1024"): 6208,
    ("high", "1024x1536"): 6240,
}
"""Tokens of one image by quality and size, as OpenAI documents them."""
_GEMINI_IMAGE_TOKENS = 1290
"""Of an image of about a megapixel, as Google documents it."""
_OPENAI_COUNTS = ("input_tokens", "output_tokens")
_GEMINI_COUNTS = ("promptTokenCount", "candidatesTokenCount")


def select_image_model(options: Mapping[str, str]) -> tuple[str, str]:
    """Return the provider and the model of the images of a workspace.

    Args:
        options: What the administrator has set besides the key.
    """
    if options.get("provider") == "gemini":
        return "gemini", options.get("model") or GEMINI_IMAGE_MODEL
    return "openai", options.get("model") or OPENAI_IMAGE_MODEL


def estimate_image_tokens(provider: str, arguments: Mapping[str, Any]) -> TokenUsage:
    """Return the tokens that an image takes mostly.

    Args:
        provider: `openai` or `gemini`.
        arguments: Of the call; they were validated against the tool's schema.
    """
    image = _GEMINI_IMAGE_TOKENS if provider == "gemini" else _OPENAI_IMAGE_TOKENS[_select_form(arguments)]
    return TokenUsage(prompt=len(_describe_image(arguments)) // CHARACTERS_PER_TOKEN, completion=image)


def _select_form(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the quality and the size that OpenAI is asked for."""
    size = _SIZES[arguments.get("aspectRatio") or "landscape"]
    return _QUALITIES[arguments.get("quality") or "final"], size


def generate_image(call: BuiltInCall) -> Any:
    """Generate an image and return its address and size."""
    if not str(call.arguments["prompt"]).strip():
        raise AttemptFailed("The prompt is empty: describe the image.")
    provider, model = select_image_model(call.options)
    encoded = _ask_gemini(call, model) if provider == "gemini" else _ask_openai(call, model)
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise AttemptFailed("The provider sent an image that cannot be read.") from None
    header = read_image_header(content)
    if header is None:
        raise AttemptFailed("The provider sent an image of an unknown kind.")
    url = call.store_image(content, header.mime_type)
    alt = str(call.arguments["prompt"]).strip()[:300]
    return {"imageUrl": url, "alt": alt, "width": header.width, "height": header.height}


def _describe_image(arguments: Mapping[str, Any]) -> str:
    style = str(arguments.get("style") or "").strip()
    prompt = str(arguments["prompt"]).strip()
    return f"{prompt}\n\nStyle: {style}" if style else prompt


def _read_tokens(answer: Any, member: str, prompt: str, completion: str) -> TokenUsage:
    """Return the tokens that an answer reports; none where it reports none that can be counted."""
    usage = answer.get(member) if isinstance(answer, dict) else None
    counts = [usage.get(name) if isinstance(usage, dict) else None for name in (prompt, completion)]
    known = [count if isinstance(count, int) and 0 <= count < MAX_REPORTED_TOKENS else 0 for count in counts]
    return TokenUsage(prompt=known[0], completion=known[1])


def _post(call: BuiltInCall, label: str, url: str, body: Any, headers: dict[str, str], paid: PaidRequest) -> Any:
    """Send a request. One whose answer is not known is accounted for with what an image takes mostly."""
    try:
        return call.post_json(label, url, body, headers, MAX_IMAGE_RESPONSE_BYTES)
    except AttemptFailed as failure:
        if failure.is_unanswered:
            call.report_paid_request(replace(paid, is_estimated=True))
        raise


def _ask_openai(call: BuiltInCall, model: str) -> Any:
    arguments = call.arguments
    quality, size = _select_form(arguments)
    body: dict[str, Any] = {
        "model": model,
        "prompt": _describe_image(arguments),
        "size": size,
        "quality": quality,
        "output_format": arguments.get("outputFormat") or "png",
        "n": 1,
    }
    if arguments.get("background"):
        body["background"] = arguments["background"]
    headers = {"authorization": f"Bearer {call.api_key}"}
    paid = PaidRequest("openai", model, estimate_image_tokens("openai", arguments))
    answer = _post(call, "OpenAI", OPENAI_IMAGES_URL, body, headers, paid)
    call.report_paid_request(replace(paid, tokens=_read_tokens(answer, "usage", *_OPENAI_COUNTS)))
    try:
        return answer["data"][0]["b64_json"]
    except (KeyError, IndexError, TypeError):
        raise AttemptFailed("OpenAI returned no image.") from None


def _ask_gemini(call: BuiltInCall, model: str) -> Any:
    ratio = _RATIOS[call.arguments.get("aspectRatio") or "landscape"]
    body = {
        "contents": [{"parts": [{"text": _describe_image(call.arguments)}]}],
        "generationConfig": {"responseModalities": ["IMAGE"], "imageConfig": {"aspectRatio": ratio}},
    }
    url = f"{GEMINI_MODELS_URL}/{model}:generateContent"
    headers = {"x-goog-api-key": call.api_key}
    paid = PaidRequest("gemini", model, estimate_image_tokens("gemini", call.arguments))
    answer = _post(call, "Gemini", url, body, headers, paid)
    call.report_paid_request(replace(paid, tokens=_read_tokens(answer, "usageMetadata", *_GEMINI_COUNTS)))
    try:
        parts = answer["candidates"][0]["content"]["parts"]
        return next(part["inlineData"]["data"] for part in parts if "inlineData" in part)
    except (KeyError, IndexError, TypeError, StopIteration):
        raise AttemptFailed("Gemini returned no image.") from None
