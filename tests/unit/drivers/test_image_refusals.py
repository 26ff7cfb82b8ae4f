"""Refusals of images in the words of real servers: what is unreadable is left out, and only a blind model is blind.

docs/provider-rules.md has their sources.
"""

import json

import pytest

from fermata.domain.blocks import ImageBlock
from fermata.drivers.error_mapping import error_from_response, error_from_stream
from fermata.drivers.transport.http_connection import HttpConnection
from tests.images import make_image, to_base64
from tests.strict.server import ScriptedResponse
from tests.unit.drivers.conversation_builders import user_message
from tests.unit.drivers.strict_providers import CASES_BY_PROVIDER, StartServer, build_request, collect_parts

PHOTO = ImageBlock(mime_type="image/jpeg", data=to_base64(make_image()))

UNREADABLE = [
    "messages.18.content.1.image.source.base64.data: Image does not match the provided media type image/png",
    "messages.8.content.0.tool_result.content.1.image.source.base64: The image was specified using the image/jpeg "
    "media type, but the image appears to be a image/png image",
    "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png' or 'image/webp'",
    "messages.0.content.0.image.source.base64: invalid base64 data",
    "Could not process image",
    "Unable to decode the image",
    "messages.0.content.1.image.source: cannot read image data",
    "invalid image input",
    "The model returned the following errors: messages.1.content.1.image.source.base64.data: Could not process image",
    "You uploaded an unsupported image. Please make sure your image is valid.",
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg'].",
    "The image data you provided does not represent a valid image. Please check your input and try again with one of "
    "the supported image formats: ['image/png', 'image/jpeg']",
    "Invalid 'input[0].content[1].image_url'. Expected a base64-encoded data URL, but got unsupported MIME type "
    "'image/svg+xml'.",
    "Invalid image data.",
    "Provided image is not valid.",
    "Unable to process input image. Please retry or report it",
    "Unsupported MIME type: image/svg+xml",
    "This model does not support the image format svg",
    "Failed to load image or audio file",
    "failed to process inputs: image: unknown format",
    "cannot identify image file <_io.BytesIO object at 0x7f>",
    "Image, 0, could not be loaded as a base64 encoded string",
    "The image length and width do not meet the model restrictions. [height:5 or width:5 must be larger than 10]",
    "Image too small. Both dimensions must be at least 4 pixels",
    "The image format is illegal and cannot be opened",
    "messages.2.content.1: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
    "Image size exceeds the maximum of 4194304 bytes",
    "image_url: could not be downloaded",
]
BLIND = [
    "this model does not support image input (ref: b8bd630e)",
    'Model "gemma4" does not support images',
    "Model does not support images. Please use a model that does.",
    "Image input is not supported by this model",
    "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    "Image input is not enabled for this model",
    "No endpoints found that support image input",
    "Invalid content type. image_url is only supported by certain models.",
    "Invalid value: 'image_url'. Supported values are: 'text'.",
    "Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected "
    "`text` at line 1 column 300",
    "At most 0 image(s) may be provided in one request.",
    "model does not support multimodal input",
    "Multimodal data provided, but model does not support multimodal requests.",
    "The model is not a multimodal model",
    "this model is missing data required for image input",
    "messages[1].content must be a string",
    "messages.1.content: Input should be a valid string",
]
TOO_MANY = [
    "messages: too many images in the request",
    "At most 20 images may be provided in one request",
    "At most 1 image(s) may be provided in one request.",
    "messages: too many images: 101 > 100",
    "Too many images in request. Max is 20.",
    "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
]
NOT_ABOUT_IMAGES = [
    "The model `gemini-2.5-flash-image` does not exist",
    "model qwen/image-edit is not found",
    "Invalid schema for function 'insert_image': array schema missing items.",
    "Unknown parameter: 'prompt'.",
]


def refuse(words: str, status: int = 400) -> bytes:
    return json.dumps({"error": {"message": words, "type": "invalid_request_error", "code": status}}).encode()


@pytest.mark.parametrize("words", UNREADABLE)
def test_an_image_that_is_not_readable_says_nothing_of_the_model(words: str) -> None:
    error = error_from_response("Peer", 400, {}, refuse(words), "")
    assert (error.code, error.says_no_images, error.retryable) == ("provider_images", False, False)


@pytest.mark.parametrize("words", BLIND)
def test_a_model_without_vision_is_recognised(words: str) -> None:
    error = error_from_response("Peer", 400, {}, refuse(words), "")
    assert (error.code, error.says_no_images, error.retryable) == ("provider_images", True, False)


@pytest.mark.parametrize("status", [404, 415, 422, 500])
def test_images_may_be_refused_with_any_status_of_a_refusal(status: int) -> None:
    error = error_from_response("Peer", status, {}, refuse(BLIND[0], status), "")
    assert (error.code, error.says_no_images, error.retryable) == ("provider_images", True, False)


@pytest.mark.parametrize("words", TOO_MANY)
def test_too_many_images_are_an_overflow(words: str) -> None:
    assert error_from_response("Peer", 400, {}, refuse(words), "").code == "provider_overflow"


@pytest.mark.parametrize("words", NOT_ABOUT_IMAGES)
def test_names_with_the_word_are_not_about_images(words: str) -> None:
    assert error_from_response("Peer", 400, {}, refuse(words), "").code == "provider_request"


@pytest.mark.parametrize(("words", "says_no_images"), [(UNREADABLE[4], False), (BLIND[0], True)])
def test_a_refusal_of_an_image_may_come_as_an_event_of_the_stream(words: str, says_no_images: bool) -> None:
    error = error_from_stream("Peer", {"message": words, "code": 400}, "")
    assert (error.code, error.says_no_images) == ("provider_images", says_no_images)
    error = error_from_stream("Peer", {"message": words}, "")
    assert (error.code, error.says_no_images) == ("provider_images", says_no_images)


def test_the_history_is_not_flattened_for_an_image(running: StartServer, connection: HttpConnection) -> None:
    peer = CASES_BY_PROVIDER["openai-compatible"]
    server = running(peer)
    server.script_response(ScriptedResponse([refuse(UNREADABLE[0])], status=400))
    with pytest.raises(Exception, match="does not match") as caught:
        collect_parts(peer, build_request(peer, user_message("Look", PHOTO)), connection, server)
    assert getattr(caught.value, "code", "") == "provider_images"
    assert len(server.bodies) == 1


def test_a_request_without_images_is_never_refused_for_one(running: StartServer, connection: HttpConnection) -> None:
    peer = CASES_BY_PROVIDER["openai-compatible"]
    server = running(peer)
    server.script_response(ScriptedResponse([refuse("messages[1].content must be a string")], status=400))
    with pytest.raises(Exception, match="must be a string") as caught:
        collect_parts(peer, build_request(peer, user_message("Look")), connection, server)
    assert getattr(caught.value, "code", "") == "provider_request"
