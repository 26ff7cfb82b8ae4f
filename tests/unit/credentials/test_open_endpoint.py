"""The URL and key of a turn's request, and the addresses it may not reach."""

import json
from collections.abc import Iterator

import pytest

from fermata.aws.resources import Resources, get_resources
from fermata.aws.settings import SettingsError
from fermata.credentials import base_urls, credential_store
from fermata.credentials.open_endpoint import open_endpoint
from fermata.domain.caller import Caller
from fermata.domain.errors import NotFound, ProviderError
from functions.round import app as round_
from tests.resources import environment_from_resources, resources_of_new_process
from tests.strict.model_lists import ACCEPTED_KEY, ModelListServer

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())


@pytest.mark.parametrize(
    ("provider", "url"),
    [
        ("anthropic", "https://claude.example"),
        ("openai", "https://gpt.example"),
        ("openrouter", "https://router.example/api"),
    ],
)
def test_a_key_goes_to_its_own_provider_at_the_deployments_address(
    resources: Resources, provider: str, url: str
) -> None:
    urls = {
        "anthropic": "https://claude.example",
        "openai": "https://gpt.example",
        "openrouter": "https://router.example/api",
    }
    process = resources_of_new_process(resources, provider_urls=json.dumps(urls))
    credential = credential_store.create_credential(process, ADA, provider, "apiKey", "Mine", ACCEPTED_KEY)
    endpoint = open_endpoint(process, "bakery", credential.id, 1)
    assert (endpoint.base_url, endpoint.plain_key) == (url, ACCEPTED_KEY)
    assert ACCEPTED_KEY not in repr(endpoint)


def test_an_address_for_no_provider_is_refused_with_the_names_of_the_providers(resources: Resources) -> None:
    urls = {"antropic": "https://claude.example", "openai": "https://gpt.example"}
    process = resources_of_new_process(resources, provider_urls=json.dumps(urls))
    with pytest.raises(SettingsError, match=r"names 'antropic'\. The providers are .*anthropic, .*openai"):
        base_urls.make_url_guard(process.settings)


def test_a_credentials_own_address_comes_before_the_deployments(
    local_resources: Resources, server: ModelListServer
) -> None:
    credential = credential_store.create_credential(
        local_resources, ADA, "anthropic", "baseUrl", "Mine", None, f"{server.url}/gateway"
    )
    endpoint = open_endpoint(local_resources, "bakery", credential.id, 1)
    assert (endpoint.base_url, endpoint.plain_key) == (f"{server.url}/gateway", "")


def test_a_changed_address_is_used_by_the_next_turn_at_once(
    local_resources: Resources, server: ModelListServer
) -> None:
    credential = credential_store.create_credential(
        local_resources, ADA, "ollama", "baseUrl", "Mine", ACCEPTED_KEY, server.url
    )
    open_endpoint(local_resources, "bakery", credential.id, 1)
    moved = credential_store.update_credential(
        resources_of_new_process(local_resources), ADA, credential.id, None, None, f"{server.url}/v1"
    )
    assert open_endpoint(local_resources, "bakery", credential.id, moved.version).base_url == f"{server.url}/v1"


def test_another_tenants_credential_opens_nothing(local_resources: Resources, server: ModelListServer) -> None:
    credential = credential_store.create_credential(
        local_resources, ADA, "ollama", "baseUrl", "Mine", ACCEPTED_KEY, server.url
    )
    with pytest.raises(NotFound):
        open_endpoint(local_resources, "florist", credential.id, 1)


class TestTheRoundsLine:
    @pytest.fixture
    def stage(
        self, request: pytest.FixtureRequest, resources: Resources, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[None]:
        for name, value in environment_from_resources(
            resources_of_new_process(resources, fermata_stage=request.param)
        ).items():
            monkeypatch.setenv(name, value)
        for cached in (get_resources, round_.get_provider_connection):
            cached.cache_clear()
        yield
        round_.get_provider_connection().close()
        for cached in (get_resources, round_.get_provider_connection):
            cached.cache_clear()

    @pytest.mark.parametrize("stage", ["prod"], indirect=True)
    def test_the_round_does_not_reach_loopback_when_deployed(self, stage: None, server: ModelListServer) -> None:
        with (
            pytest.raises(ProviderError, match="must begin with https"),
            round_.get_provider_connection().post("Models", f"{server.url}/v1/x", {}, b"{}"),
        ):
            pytest.fail("it was reached")
        assert server.requests == []

    @pytest.mark.parametrize("stage", ["local"], indirect=True)
    def test_the_round_reaches_loopback_on_the_local_stage(self, stage: None, server: ModelListServer) -> None:
        server.accepts_any_key = True
        with round_.get_provider_connection().post("Models", f"{server.url}/v1/x", {}, b"{}") as answer:
            assert (answer.status, answer.read_body()[:9]) == (404, b'{"error":')
        assert len(server.requests) == 1
