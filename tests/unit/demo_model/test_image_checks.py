"""The strict Messages API refuses images by their sides, as the real one does."""

import json
from typing import Any

import pytest

from local.demo_model.request_checks.anthropic_messages import check_request
from local.demo_model.request_checks.errors import RequestRejected
from tests.images import make_gif_header, make_image, make_jpeg_header, make_png_header, to_base64

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}


def check_images(*images: bytes) -> None:
    content: list[dict[str, Any]] = [{"type": "text", "text": "Look"}]
    for image in images:
        kind = "gif" if image.startswith(b"GIF") else "png" if image.startswith(b"\x89PNG") else "jpeg"
        source = {"type": "base64", "media_type": f"image/{kind}", "data": to_base64(image)}
        content.append({"type": "image", "source": source})
    body = {"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": [{"role": "user", "content": content}]}
    check_request(HEADERS, json.loads(json.dumps(body)))


@pytest.mark.parametrize("make_header", [make_png_header, make_jpeg_header, make_gif_header])
def test_a_side_has_at_most_8000_pixels_and_at_most_2000_among_many_images(make_header: Any) -> None:
    check_images(make_header(8_000, 10))
    check_images(*[make_header(10, 8_000)] * 20)
    check_images(*[make_header(2_000, 10)] * 21)
    with pytest.raises(RequestRejected, match="exceed max allowed size: 8000 pixels"):
        check_images(make_header(10, 8_001))
    with pytest.raises(RequestRejected, match="for many-image requests: 2000 pixels"):
        check_images(*[make_header(10, 10)] * 20, make_header(2_001, 10))


def test_the_sides_of_a_real_photo_are_read() -> None:
    with pytest.raises(RequestRejected, match="2000 pixels"):
        check_images(*[make_image(2_100, 20)] * 21)
