"""The same turn with each provider's driver, and a conversation that changes its provider at every prompt."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.e2e.conversation_driver import INSERT_CALL, ConversationDriver, open_http
from tests.e2e.demo_model_client import text_step, tool_call_step

PROVIDERS = ("anthropic", "openai", "openrouter", "ollama", "openai-compatible")
ASKS_WITH = {"openai": "input", "openrouter": "input"}
"""The member that holds the conversation; `messages` for all others."""
THINKS_BY_ITSELF = {"anthropic": "claude-opus-5", "openai": "gpt-5-demo"}
"""Names that these two drivers take for models that think without being told to."""
_numbers = count(1)


def credential(talk: ConversationDriver, provider: str) -> str:
    """A key for a provider's usual address, which is the demo model's here, or that address as one of one's own."""
    url = talk.cloud.model.url if talk.cloud.model else ""
    own = {"authMode": "baseUrl", "baseUrl": url} if provider in ("ollama", "openai-compatible") else {}
    new = {"providerId": provider, "authMode": "apiKey", "displayLabel": f"{provider} {next(_numbers)}"}
    with open_http(talk.cloud, talk.token) as bare:
        made = bare.post("/credentials", json=new | {"apiKey": f"demo-{provider}"} | own)
    assert made.status_code == 201, made.text
    return str(made.json()["credential"]["id"])


def use(talk: ConversationDriver, provider: str, model: str = "fermata-demo") -> None:
    with open_http(talk.cloud, talk.token) as bare:
        body = {"credentialId": credential(talk, provider), "modelId": model}
        changed = bare.put(f"/conversations/{talk.conversation}", json=body)
    assert changed.status_code == 200, changed.text


def turn(talk: ConversationDriver) -> dict[str, Any]:
    """One turn with a browser tool; its usage."""
    reader = talk.start_turn(tool_call_step(INSERT_CALL, text="One moment."), text_step("Done."))
    talk.answer_request(reader.wait_for_event("toolRequest"))
    reader.wait_for_end()
    assert reader.event_types[-1] == "done", reader.events[-1]
    assert "".join(event["text"] for event in reader.events_of_type("text")) == "One moment.Done."
    return reader.events_of_type("usage")[-1]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_turn_with_a_browser_tool_is_the_same_on_every_provider(provider: str, talk: ConversationDriver) -> None:
    use(talk, provider)
    usage = turn(talk)
    first, second = talk.model_requests()
    member = ASKS_WITH.get(provider, "messages")
    assert len(second["body"][member]) > len(first["body"][member])
    assert usage["completionTokens"] > 0
    assert (usage["costUsd"] > 0) is (provider != "ollama")


def test_a_conversation_goes_on_whoever_answers_it_next(new_talk: Callable[..., ConversationDriver]) -> None:
    talk = new_talk()
    for provider in (*PROVIDERS, *reversed(PROVIDERS)):
        use(talk, provider)
        turn(talk)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_a_model_thought_is_shown_and_given_back_as_it_was(provider: str, talk: ConversationDriver) -> None:
    """The demo model has signed or sealed it, and refuses any other."""
    use(talk, provider, THINKS_BY_ITSELF.get(provider, "fermata-demo"))
    reader = talk.start_turn(tool_call_step(INSERT_CALL, thinking="Where would it go? 🥨"), text_step("Done."))
    talk.answer_request(reader.wait_for_event("toolRequest"))
    reader.wait_for_end()
    assert reader.event_types[-1] == "done", reader.events[-1]
    assert "".join(event["text"] for event in reader.events_of_type("reasoning")) == "Where would it go? 🥨"
    second = json.dumps(talk.model_requests()[1]["body"], ensure_ascii=False)
    assert any(mark in second for mark in ("Where would it go? 🥨", "sealed:"))
