"""A conversation may go on with another provider or model at any point, in every direction.

Turns that one provider made, thoughts, parallel calls, failed results and all, are said to each other one, whose strict
server must take them; and then back.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product

import pytest
from pydantic import SecretStr

from fermata.drivers.driver import PROVIDERS, Endpoint, driver_for
from fermata.drivers.line import Line
from fermata.words.messages import Message
from fermata.words.model import Reply, Stop
from tests.strict import anthropic, chat, ollama, openai
from tests.strict.serving import StrictServer
from tests.unit.drivers.asks import ask, picture, user
from tests.unit.drivers.histories import MODELS, rounds


class Anthropic(anthropic.StrictAnthropic):
    """These histories hold thoughts of a server that is gone; what matters is that only its own come back."""

    def remember(self, stream: bytes) -> None:
        self._thoughts = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}]


class Responses(openai.StrictOpenAI):
    def check(self, headers: dict[str, str], body: dict[str, object]) -> None:
        self._sealed |= {f"sealed:{body['model']}:{number}" for number in self._numbers(body)}
        super().check(headers, body)

    def _numbers(self, body: dict[str, object]) -> Iterator[str]:
        items = body["input"] if isinstance(body["input"], list) else []
        for item in items:
            yield str(item.get("encrypted_content")).rpartition(":")[2]


class OpenRouter(Responses):
    named = True


KINDS: dict[str, tuple[type[StrictServer], bytes]] = {
    "anthropic": (Anthropic, anthropic.answer("Yes.")),
    "openai": (Responses, openai.answer("Yes.")),
    "openrouter": (OpenRouter, openai.answer("Yes.")),
    "ollama": (ollama.StrictOllama, ollama.answer("Yes.")),
    "openai-compatible": (chat.StrictChat, chat.answer("Yes.")),
}
OTHER_MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4.1",
    "openrouter": "mistralai/mistral-large",
    "ollama": "llama3.3",
    "openai-compatible": "other",
}


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, StrictServer]]:
    with ExitStack() as stack:
        yield {provider: stack.enter_context(kind.running()) for provider, (kind, _) in KINDS.items()}


def answered(provider: str, model: str, rows: list[Message], servers: dict[str, StrictServer], line: Line) -> Reply:
    server = servers[provider]
    server.refusals.clear()
    if isinstance(server, Anthropic):
        server.remember(b"")
    server.say(KINDS[provider][1])
    asked = ask(*rows, model=model, volatile="Page: Home", thinking_tokens=2000 if model in MODELS.values() else 0)
    pieces = list(driver_for(provider).stream(asked, line, Endpoint(server.url, SecretStr("sk-key"))))
    assert server.refusals == []
    last = pieces[-1]
    assert isinstance(last, Reply)
    return last


def test_every_provider_has_a_strict_server() -> None:
    assert set(KINDS) == set(PROVIDERS) == set(MODELS)


@pytest.mark.parametrize(("maker", "reader"), list(product(PROVIDERS, PROVIDERS)))
def test_what_one_provider_has_made_another_takes(
    maker: str, reader: str, servers: dict[str, StrictServer], line: Line
) -> None:
    rows = [*rounds(maker, "t1"), user("And now?", turn="t2")]
    assert answered(reader, MODELS[reader], rows, servers, line).stop is Stop.END


@pytest.mark.parametrize(("maker", "reader"), list(product(PROVIDERS, PROVIDERS)))
def test_in_the_middle_of_a_turn_too(maker: str, reader: str, servers: dict[str, StrictServer], line: Line) -> None:
    rows = list(rounds(maker, "t1"))[:-1]
    assert answered(reader, MODELS[reader], rows, servers, line).stop is Stop.END


@pytest.mark.parametrize("provider", PROVIDERS)
def test_another_model_of_the_same_provider_takes_it(
    provider: str, servers: dict[str, StrictServer], line: Line
) -> None:
    rows = [*rounds(provider, "t1"), user("And now?", turn="t2")]
    assert answered(provider, OTHER_MODELS[provider], rows, servers, line).stop is Stop.END


@pytest.mark.parametrize(("one", "other"), list(product(PROVIDERS, PROVIDERS)))
def test_there_and_back_again(one: str, other: str, servers: dict[str, StrictServer], line: Line) -> None:
    rows = [*rounds(one, "t1"), *rounds(other, "t2"), *rounds(one, "t3"), user("And now?", turn="t4")]
    assert answered(one, MODELS[one], rows, servers, line).stop is Stop.END


@pytest.mark.parametrize(("maker", "reader"), list(product(PROVIDERS, PROVIDERS)))
def test_pictures_go_along_with_and_without_words(
    maker: str, reader: str, servers: dict[str, StrictServer], line: Line
) -> None:
    rows = [
        user("Look", picture(), picture(), turn="t1"),
        *list(rounds(maker, "t1"))[1:],
        user(picture(), turn="t2"),
        *list(rounds(maker, "t2"))[1:],
        user(picture(), turn="t3"),
    ]
    assert answered(reader, MODELS[reader], rows, servers, line).stop is Stop.END
    assert json.dumps(servers[reader].bodies[-1]).count(picture().data or "") >= 4, "a picture of the user's is missing"
