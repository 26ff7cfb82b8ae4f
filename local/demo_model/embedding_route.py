"""Answer requests for embeddings as OpenAI does, with vectors of the static model (decision 0568)."""

import base64
import struct
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool

from local.demo_model.request_checks.errors import RequestRejected, require
from local.demo_model.static_embeddings import DIMENSIONS, EmbeddedText, embed_texts_statically

EMBEDDING_MODEL = "fermata-demo-embedding"
MAX_TEXTS = 2048
MAX_TEXT_CHARS = 32_768
MAX_REQUEST_CHARS = 1_000_000
"""Of all texts together: about three seconds of one processor."""
_MEMBERS = {"model", "input", "encoding_format", "dimensions", "user"}


class EmbeddingRequest(NamedTuple):
    """Texts, and whether their vectors are sent as numbers or, as OpenAI's own client asks, as bytes in Base64."""

    texts: list[str]
    in_base64: bool


async def answer_embeddings(body: Any) -> dict[str, Any]:
    """Return the body of the response.

    Args:
        body: That of the request, parsed.

    Raises:
        RequestRejected: OpenAI would refuse it, or it asks for more than this model does.
    """
    request = _check_embedding_request(body)
    embedded = await run_in_threadpool(embed_texts_statically, request.texts)
    tokens = sum(one.tokens for one in embedded)
    data = [
        {"object": "embedding", "index": place, "embedding": _encode(one, request.in_base64)}
        for place, one in enumerate(embedded)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": EMBEDDING_MODEL, "usage": usage}


def _check_embedding_request(body: Any) -> EmbeddingRequest:
    require(isinstance(body, dict), "We could not parse the JSON body of your request.")
    for name in sorted(body.keys() - _MEMBERS):
        raise RequestRejected(f"Unrecognized request argument supplied: {name}")
    model = body.get("model")
    require(isinstance(model, str) and bool(model), "you must provide a model parameter")
    if model != EMBEDDING_MODEL:
        raise RequestRejected(
            f"The model `{model[:100]}` does not exist. The demo model's embeddings are those of `{EMBEDDING_MODEL}`.",
            status=404,
        )
    asked = body.get("dimensions")
    require(asked in (None, DIMENSIONS), f"'dimensions' of this model is {DIMENSIONS}.")
    encoding = body.get("encoding_format", "float")
    require(encoding in ("float", "base64"), "'encoding_format' must be 'float' or 'base64'.")
    return EmbeddingRequest(_read_texts(body.get("input")), encoding == "base64")


def _read_texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    is_list = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    require(is_list, "'input' must be a text or a list of texts. Tokens are not read here.")
    require(0 < len(texts) <= MAX_TEXTS, f"'input' must have 1 to {MAX_TEXTS} texts.")
    require(all(texts), "'input' cannot be an empty string.")
    require(max(map(len, texts)) <= MAX_TEXT_CHARS, f"A text of 'input' has at most {MAX_TEXT_CHARS} characters.")
    require(sum(map(len, texts)) <= MAX_REQUEST_CHARS, f"'input' has at most {MAX_REQUEST_CHARS} characters.")
    return [text.encode("utf-8", "replace").decode() for text in texts]  # a lone surrogate is no text


def _encode(embedded: EmbeddedText, in_base64: bool) -> list[float] | str:
    if not in_base64:
        return embedded.vector
    return base64.b64encode(struct.pack(f"<{DIMENSIONS}f", *embedded.vector)).decode()
