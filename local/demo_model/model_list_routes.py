"""List the demo model in each provider's form."""

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from local.demo_model.embedding_route import EMBEDDING_MODEL

CATALOGUE_PATH = Path(__file__).with_name("catalogue.json")
MODEL, LABEL = "fermata-demo", "Demo model (fixed rules, not an AI)"
OPENAI_MODEL_ID = "gpt-fermata-demo"
"""A name that the driver takes for a chat model: OpenAI lists other things too."""
CREATED = "2026-01-01T00:00:00Z"


async def list_models(request: Request) -> Response:
    """List models in OpenAI's form for a bearer token, else in Anthropic's form."""
    if request.headers.get("authorization", "").startswith("Bearer "):
        names = (MODEL, OPENAI_MODEL_ID, EMBEDDING_MODEL)
        data = [{"id": name, "object": "model", "created": 1_767_225_600, "owned_by": "fermata"} for name in names]
        return JSONResponse({"object": "list", "data": data})
    if not request.headers.get("x-api-key"):
        error = {"type": "authentication_error", "message": "x-api-key header is required"}
        return JSONResponse({"type": "error", "error": error}, status_code=401)
    data = [{"type": "model", "id": MODEL, "display_name": LABEL, "created_at": CREATED}]
    return JSONResponse({"data": data, "has_more": False, "first_id": MODEL, "last_id": MODEL})


async def list_gemini_models(request: Request) -> Response:
    """List models as Google does."""
    if not request.headers.get("x-goog-api-key"):
        error = {"code": 403, "message": "Method doesn't allow unregistered callers.", "status": "PERMISSION_DENIED"}
        return JSONResponse({"error": error}, status_code=403)
    methods = ["generateContent", "countTokens"]
    model = {"name": f"models/{MODEL}", "displayName": LABEL, "inputTokenLimit": 1_048_576}
    return JSONResponse({"models": [model | {"supportedGenerationMethods": methods}]})


async def list_openrouter_models(request: Request) -> Response:
    """Serve OpenRouter's catalogue: recorded models and prices, and the demo model."""
    return Response(CATALOGUE_PATH.read_bytes(), media_type="application/json")


async def show_openrouter_key(request: Request) -> Response:
    """Describe an API key as OpenRouter does."""
    if not request.headers.get("authorization", "").startswith("Bearer "):
        return JSONResponse({"error": {"message": "No auth credentials found", "code": 401}}, status_code=401)
    return JSONResponse({"data": {"label": "demo", "usage": 0, "limit": None}})


async def list_ollama_models(request: Request) -> Response:
    model: dict[str, Any] = {"name": MODEL, "model": MODEL, "modified_at": CREATED, "size": 0, "details": {}}
    return JSONResponse({"models": [model]})


async def show_ollama_model(request: Request) -> Response:
    description = {"capabilities": ["completion", "tools", "vision"], "model_info": {"demo.context_length": 131_072}}
    return JSONResponse(description | {"details": {"family": "demo"}})
