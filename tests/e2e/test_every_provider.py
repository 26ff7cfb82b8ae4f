"""Run the same turn with each provider's driver, and one conversation with all of them."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.e2e.chat_session import INSERT_CALL, ChatSession, open_http
from tests.e2e.demo_model_client import text_step, tool_call_step

PROVIDERS = ("anthropic", "openai", "openrouter", "gemini", "ollama", "openai-compatible")
ASKS_WITH = {"openai": "input", "openrouter": "input", "gemini": "contents"}
"""The member that holds the conversation; `messages` for all others."""
THINKS_BY_ITSELF = {"anthropic": "claude-opus-5", "openai": "gpt-5-demo"}
"""Names that these two drivers take for models that think without being told to."""
SEALED = "c2VhbGVkO"
"""How `sealed:` begins in base64."""
_numbers = count(1)


def credential(session: ChatSession, provider: str) -> str:
    """Create a credential for a provider, by its usual URL or as a `baseUrl`; both lead to the demo model."""
    url = session.cloud.model.url if session.cloud.model else ""
    own = {"authMode": "baseUrl", "baseUrl": url} if provider in ("ollama", "openai-compatible") else {}
    new = {"providerId": provider, "authMode": "apiKey", "displayLabel": f"{provider} {next(_numbers)}"}
    with open_http(session.cloud, session.token) as bare:
        made = bare.post("/credentials", json=new | {"apiKey": f"demo-{provider}"} | own)
    assert made.status_code == 201, made.text
    return str(made.json()["credential"]["id"])


def use(session: ChatSession, provider: str, model: str = "fermata-demo") -> None:
    with open_http(session.cloud, session.token) as bare:
        body = {"credentialId": credential(session, provider), "modelId": model}
        changed = bare.put(f"/conversations/{session.conversation}", json=body)
    assert changed.status_code == 200, changed.text


def turn(session: ChatSession) -> dict[str, Any]:
    """Run one turn with a browser tool and return its usage."""
    reader = session.start_turn(tool_call_step(INSERT_CALL, text="One moment."), text_step("Done."))
    session.answer_request(reader.wait_for_event("toolRequest"))
    reader.wait_for_end()
    assert reader.event_types[-1] == "done", reader.events[-1]
    assert "".join(event["text"] for event in reader.events_of_type("text")) == "One moment.Done."
    return reader.events_of_type("usage")[-1]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_turn_with_a_browser_tool_is_the_same_on_every_provider(provider: str, session: ChatSession) -> None:
    use(session, provider)
    usage = turn(session)
    first, second = session.model_requests()
    member = ASKS_WITH.get(provider, "messages")
    assert len(second["body"][member]) > len(first["body"][member])
    assert usage["completionTokens"] > 0
    assert (usage["costUsd"] > 0) is (provider != "ollama")


def test_a_conversation_continues_with_another_provider(new_session: Callable[..., ChatSession]) -> None:
    session = new_session()
    for provider in (*PROVIDERS, *reversed(PROVIDERS)):
        use(session, provider)
        turn(session)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_thinking_is_streamed_and_sent_back_unchanged(provider: str, session: ChatSession) -> None:
    """The demo model signs or encrypts thinking, and rejects anything else."""
    use(session, provider, THINKS_BY_ITSELF.get(provider, "fermata-demo"))
    reader = session.start_turn(tool_call_step(INSERT_CALL, thinking="Where would it go? 🥨"), text_step("Done."))
    session.answer_request(reader.wait_for_event("toolRequest"))
    reader.wait_for_end()
    assert reader.event_types[-1] == "done", reader.events[-1]
    assert "".join(event["text"] for event in reader.events_of_type("reasoning")) == "Where would it go? 🥨"
    second = json.dumps(session.model_requests()[1]["body"], ensure_ascii=False)
    assert any(mark in second for mark in ("Where would it go? 🥨", "sealed:", SEALED))
