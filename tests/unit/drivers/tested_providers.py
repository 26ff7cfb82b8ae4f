"""Hold what the tests know of each provider: its strict server, its models, and where its requests state the limit."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from local.demo_model.request_checks import (
    anthropic_messages,
    chat_completions,
    gemini_generate,
    ollama_chat,
    openai_responses,
)
from tests.strict import anthropic, chat, gemini, ollama, openai
from tests.strict.server import StrictServer


@dataclass(frozen=True)
class TestedProvider:
    """One provider.

    Attributes:
        server: The strict server of its protocol.
        make_answer: Makes the stream of an answer from its text.
        check_request: Refuses headers and body of a request as the real server does.
        limit_path: The members that lead to the output limit of a request.
        reasoning_model: A model that reasons.
        other_model: Another model.
    """

    __test__ = False

    server: type[StrictServer]
    make_answer: Callable[[str], bytes]
    check_request: Callable[[dict[str, str], Any], None]
    limit_path: tuple[str, ...]
    reasoning_model: str
    other_model: str


TESTED_PROVIDERS = {
    "anthropic": TestedProvider(
        anthropic.StrictAnthropic,
        anthropic.text_response,
        anthropic_messages.check_request,
        ("max_tokens",),
        "claude-opus-4-8",
        "claude-sonnet-4-5",
    ),
    "openai": TestedProvider(
        openai.StrictOpenAI,
        openai.text_response,
        openai_responses.check_request,
        ("max_output_tokens",),
        "gpt-5.2",
        "gpt-4.1",
    ),
    "openrouter": TestedProvider(
        openai.StrictOpenRouter,
        openai.text_response,
        partial(openai_responses.check_request, is_openrouter=True),
        ("max_output_tokens",),
        "openai/gpt-5.2",
        "mistralai/mistral-large",
    ),
    "gemini": TestedProvider(
        gemini.StrictGemini,
        gemini.text_response,
        partial(gemini_generate.check_request, model="model"),
        ("generationConfig", "maxOutputTokens"),
        "gemini-3-pro",
        "gemini-2.5-flash",
    ),
    "ollama": TestedProvider(
        ollama.StrictOllama,
        ollama.text_response,
        ollama_chat.check_request,
        ("options", "num_predict"),
        "qwen3",
        "llama3.3",
    ),
    "openai-compatible": TestedProvider(
        chat.StrictChat,
        chat.text_response,
        chat_completions.check_request,
        ("max_tokens",),
        "deepseek-v4",
        "other",
    ),
}
