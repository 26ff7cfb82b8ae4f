"""Write an agent's options of its provider into a request (decision 0346).

Options are written as the AI SDK's users know them. Those of thinking, effort and safety are translated; the others
are sent as they are, under the name that they have.
"""

from collections.abc import Callable, Mapping
from typing import Any

from fermata.domain.model_io import ModelRequest

JsonBody = dict[str, Any]
OptionsEncoder = Callable[[JsonBody, ModelRequest], JsonBody]
"""Returns the body of a request with the options of its agent."""
_MODELS_OF_SERVICE = ("models", "fallbackModels")
"""Options of a gateway that the service carries out itself (decision 0386)."""


def get_options(request: ModelRequest, key: str) -> JsonBody:
    """Return the options of one provider; empty if there are none."""
    options = request.provider_options.get(key)
    return {name: value for name, value in options.items() if value is not None} if isinstance(options, dict) else {}


def encode_no_options(body: JsonBody, _request: ModelRequest) -> JsonBody:
    return body


def apply_thinking_budget(request: ModelRequest) -> ModelRequest:
    """Return the request with the tokens of thinking that its options name, in place of the deployment's."""
    if not request.provider_options:
        return request
    budget = _find_budget(request)
    return request if budget is None else request.model_copy(update={"thinking_tokens": budget})


def _find_budget(request: ModelRequest) -> int | None:
    thinking = get_options(request, "anthropic").get("thinking")
    if isinstance(thinking, Mapping) and thinking.get("type") == "disabled":
        return 0
    config = get_options(request, "google").get("thinkingConfig")
    named = (
        thinking.get("budgetTokens", thinking.get("budget_tokens")) if isinstance(thinking, Mapping) else None,
        config.get("thinkingBudget") if isinstance(config, Mapping) else None,
    )
    return next((max(0, budget) for budget in named if type(budget) is int), None)


def encode_anthropic_options(body: JsonBody, request: ModelRequest) -> JsonBody:
    """Add `thinking`, unless its budget says it already, and `effort`."""
    options = get_options(request, "anthropic")
    thinking, effort = options.pop("thinking", None), options.pop("effort", None)
    if isinstance(thinking, Mapping) and thinking.get("type") == "disabled" and "thinking" in body:
        body = {name: value for name, value in body.items() if name != "thinking"}
    if effort is not None:
        body = body | {"output_config": body.get("output_config", {}) | {"effort": effort}}
    return body | options


def encode_responses_options(body: JsonBody, request: ModelRequest) -> JsonBody:
    """Add effort and summary of reasoning, for OpenAI's Responses API and OpenRouter's."""
    options = get_options(request, "openai")
    named = {"effort": options.pop("reasoningEffort", None), "summary": options.pop("reasoningSummary", None)}
    reasoning = {name: value for name, value in named.items() if value is not None}
    if reasoning:
        body = body | {"reasoning": body.get("reasoning", {}) | reasoning}
    return body | options


def encode_openrouter_options(body: JsonBody, request: ModelRequest) -> JsonBody:
    """Add what OpenRouter has in common with OpenAI, and its own options."""
    return encode_responses_options(body, request) | get_options(request, "openrouter")


def encode_chat_options(body: JsonBody, request: ModelRequest) -> JsonBody:
    """Add effort, and for a gateway its own options and those of the providers behind it."""
    options = get_options(request, "openai")
    effort = options.pop("reasoningEffort", None)
    options.pop("reasoningSummary", None)  # this protocol has none
    if effort is not None:
        options["reasoning_effort"] = effort
    gateway = {name: value for name, value in get_options(request, "gateway").items() if name not in _MODELS_OF_SERVICE}
    behind = {key: get_options(request, key) for key in request.provider_options if key not in ("openai", "gateway")}
    routed = {key: value for key, value in ({"gateway": gateway} | behind).items() if value}
    return body | options | ({"providerOptions": routed} if routed else {})


def encode_ollama_options(body: JsonBody, request: ModelRequest) -> JsonBody:
    """Add Ollama's own members; its `options` join those of the request."""
    options = get_options(request, "ollama")
    inner = options.pop("options", None)
    if isinstance(inner, Mapping):
        body = body | {"options": body.get("options", {}) | inner}
    return body | options


def encode_gemini_options(body: JsonBody, request: ModelRequest) -> JsonBody:
    """Add `thinkingConfig`, in which budget and level exclude each other, and `safetySettings`."""
    options = get_options(request, "google")
    thinking = options.pop("thinkingConfig", None)
    if isinstance(thinking, Mapping):
        config = body.get("generationConfig", {})
        known = {
            name: value
            for name, value in config.get("thinkingConfig", {}).items()
            if name == "includeThoughts" or not {"thinkingBudget", "thinkingLevel"} & thinking.keys()
        }
        body = body | {"generationConfig": config | {"thinkingConfig": known | dict(thinking)}}
    return body | options
