"""A new provider is one module and one line in the registry."""

import json
import subprocess
import sys
from contextlib import closing
from decimal import Decimal

import pytest

from fermata.aws.resources import Resources
from fermata.credentials import base_urls, credential_store, model_list
from fermata.credentials.credential import Credential
from fermata.credentials.known_capabilities import KnownCapabilities, get_known_capabilities
from fermata.credentials.open_endpoint import open_endpoint
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest, ProviderError
from fermata.domain.model_io import ModelResponse, TextDelta, TokenUsage
from fermata.drivers.registry import PROVIDER_MODULES, get_model_traits, get_provider
from fermata.drivers.retry_policy import stream_with_retries
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.pricing.request_cost import get_request_cost
from tests.resources import resources_of_new_process
from tests.strict.chat import StrictChat, text_response
from tests.strict.model_lists import ACCEPTED_KEY, run_model_list_server
from tests.unit.drivers.conversation_builders import model_request, user_message
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROVIDER_MODULES, "toy", "tests.unit.drivers.toy_provider")


def resources_with_toy_at(resources: Resources, url: str) -> Resources:
    return resources_of_new_process(resources, fermata_stage="local", provider_urls=json.dumps({"toy": url}))


def enter_toy_key(resources: Resources) -> Credential:
    return credential_store.create_credential(resources, ADA, "toy", "apiKey", "Mine", ACCEPTED_KEY)


def test_it_answers_a_request_with_a_key_that_was_entered_for_it(resources: Resources) -> None:
    with StrictChat.run() as server:
        process = resources_with_toy_at(resources, server.url)
        server.rules.append(lambda body: "Unknown field: stream_options" if "stream_options" in body else None)
        server.script_chunks(text_response("Hello"))
        endpoint = open_endpoint(process, ADA.tenant, enter_toy_key(process).id, 1)
        guard = base_urls.make_url_guard(process.settings)
        request = model_request(user_message("Hi"), model="toy-1")
        failed: list[ProviderError] = []
        with closing(HttpConnection(guard=guard)) as connection:
            first, *_, last = stream_with_retries(get_provider("toy"), request, connection, endpoint, failed.append)
    assert failed == []
    assert first == TextDelta(text="Hello")
    assert isinstance(last, ModelResponse)
    assert server.headers[0]["authorization"] == f"Bearer {ACCEPTED_KEY}"
    assert server.refusals == ["Unknown field: stream_options"]


def test_it_lists_its_models(resources: Resources) -> None:
    with run_model_list_server() as server:
        process = resources_with_toy_at(resources, server.url)
        server.set_response("/v1/models", {"data": [{"id": "toy-1", "context_length": 8192}]})
        (model,) = model_list.list_credential_models(process, ADA, "toy", enter_toy_key(process).id)
    assert (model.id, model.context_window, model.pricing) == ("toy-1", 8192, None)


def test_nothing_is_known_of_its_prices_and_abilities_until_it_says_so(resources: Resources) -> None:
    cost = get_request_cost(resources, "toy", "toy-1", TokenUsage(prompt=1000, completion=10))
    assert (cost.cost, cost.is_known) == (Decimal(0), False)
    assert get_known_capabilities(resources, "toy", "toy-1") == KnownCapabilities()


def test_without_an_override_it_is_at_its_own_address(resources: Resources) -> None:
    assert base_urls.get_default_url(resources.settings, "toy") == "https://api.toy.example"


def test_a_provider_that_is_no_longer_registered_is_unknown_and_of_its_models_nothing_is_known() -> None:
    with pytest.raises(InvalidRequest, match="Unknown provider: gone"):
        get_provider("gone")
    assert get_model_traits("gone").get_capabilities("m").vision_input is False


def test_no_record_loads_what_sends_requests() -> None:
    program = "import sys, fermata.drivers.registry as r; r.list_providers(); print('httpx' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "False"
