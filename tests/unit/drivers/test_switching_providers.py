"""A conversation may switch to another provider or model at any point, in every direction.

Each provider's strict server must accept the turns that any other one made, with their reasoning, parallel calls and
failed results; and the turns after that.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product

import pytest
from pydantic import SecretStr

from fermata.domain.messages import Message
from fermata.domain.model_io import FinishReason, ModelResponse
from fermata.drivers.registry import PROVIDER_MODULES, get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict import anthropic, openai
from tests.strict.server import StrictServer
from tests.unit.drivers.conversation_builders import image_block, model_request, user_message
from tests.unit.drivers.history_strategies import MODELS, reasoning_blocks, turn_with_rounds
from tests.unit.drivers.tested_providers import TESTED_PROVIDERS


class Anthropic(anthropic.StrictAnthropic):
    """These histories hold thinking of another server; only its own is sent back, so all of it is accepted."""

    def record_stream(self, stream: bytes) -> None:
        self._sent_thinking = [block.payload for block in reasoning_blocks("anthropic", 0)]


class Responses(openai.StrictOpenAI):
    def check_request(self, headers: dict[str, str], body: dict[str, object]) -> None:
        self._sent_encrypted |= {f"sealed:{body['model']}:{number}" for number in self._numbers(body)}
        super().check_request(headers, body)

    def _numbers(self, body: dict[str, object]) -> Iterator[str]:
        items = body["input"] if isinstance(body["input"], list) else []
        for item in items:
            yield str(item.get("encrypted_content")).rpartition(":")[2]


class OpenRouter(Responses):
    is_openrouter = True


OWN_SERVERS: dict[str, type[StrictServer]] = {"anthropic": Anthropic, "openai": Responses, "openrouter": OpenRouter}
KINDS = {
    name: (OWN_SERVERS.get(name, tested.server), tested.make_answer("Yes."))
    for name, tested in TESTED_PROVIDERS.items()
}
OTHER_MODELS = {name: tested.other_model for name, tested in TESTED_PROVIDERS.items()}


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, StrictServer]]:
    with ExitStack() as stack:
        yield {provider: stack.enter_context(kind.run()) for provider, (kind, _) in KINDS.items()}


def answered(
    provider: str, model: str, rows: list[Message], servers: dict[str, StrictServer], connection: HttpConnection
) -> ModelResponse:
    server = servers[provider]
    server.refusals.clear()
    if isinstance(server, Anthropic):
        server.record_stream(b"")
    server.script_chunks(KINDS[provider][1])
    request = model_request(
        *rows, model=model, volatile="Page: Home", thinking_tokens=2000 if model in MODELS.values() else 0
    )
    parts = list(
        get_provider(provider).stream(request, connection, AuthenticatedEndpoint(server.url, SecretStr("sk-key")))
    )
    assert server.refusals == []
    last = parts[-1]
    assert isinstance(last, ModelResponse)
    return last


def test_every_provider_has_a_strict_server() -> None:
    assert set(KINDS) == set(PROVIDER_MODULES) == set(MODELS)


@pytest.mark.parametrize(("maker", "reader"), list(product(PROVIDER_MODULES, PROVIDER_MODULES)))
def test_a_history_of_one_provider_is_accepted_by_another(
    maker: str, reader: str, servers: dict[str, StrictServer], connection: HttpConnection
) -> None:
    rows = [*turn_with_rounds(maker, "t1"), user_message("And now?", turn="t2")]
    assert answered(reader, MODELS[reader], rows, servers, connection).stop is FinishReason.END


@pytest.mark.parametrize(("maker", "reader"), list(product(PROVIDER_MODULES, PROVIDER_MODULES)))
def test_switching_in_mid_turn_is_accepted(
    maker: str, reader: str, servers: dict[str, StrictServer], connection: HttpConnection
) -> None:
    rows = list(turn_with_rounds(maker, "t1"))[:-1]
    assert answered(reader, MODELS[reader], rows, servers, connection).stop is FinishReason.END


@pytest.mark.parametrize("provider", PROVIDER_MODULES)
def test_a_history_is_accepted_by_another_model_of_the_provider(
    provider: str, servers: dict[str, StrictServer], connection: HttpConnection
) -> None:
    rows = [*turn_with_rounds(provider, "t1"), user_message("And now?", turn="t2")]
    assert answered(provider, OTHER_MODELS[provider], rows, servers, connection).stop is FinishReason.END


@pytest.mark.parametrize(("one", "other"), list(product(PROVIDER_MODULES, PROVIDER_MODULES)))
def test_switching_there_and_back_is_accepted(
    one: str, other: str, servers: dict[str, StrictServer], connection: HttpConnection
) -> None:
    rows = [
        *turn_with_rounds(one, "t1"),
        *turn_with_rounds(other, "t2"),
        *turn_with_rounds(one, "t3"),
        user_message("And now?", turn="t4"),
    ]
    assert answered(one, MODELS[one], rows, servers, connection).stop is FinishReason.END


@pytest.mark.parametrize(("maker", "reader"), list(product(PROVIDER_MODULES, PROVIDER_MODULES)))
def test_images_are_accepted_with_and_without_text(
    maker: str, reader: str, servers: dict[str, StrictServer], connection: HttpConnection
) -> None:
    rows = [
        user_message("Look", image_block(), image_block(), turn="t1"),
        *list(turn_with_rounds(maker, "t1"))[1:],
        user_message(image_block(), turn="t2"),
        *list(turn_with_rounds(maker, "t2"))[1:],
        user_message(image_block(), turn="t3"),
    ]
    assert answered(reader, MODELS[reader], rows, servers, connection).stop is FinishReason.END
    assert json.dumps(servers[reader].bodies[-1]).count(image_block().data or "") >= 4, (
        "a picture of the user's is missing"
    )
