"""Where a turn's request goes, with which key, and where it may not go."""

from collections.abc import Iterator

import pytest

from fermata.aws.desk import Desk, open_desk
from fermata.credentials import keyring
from fermata.credentials.opening import endpoint
from fermata.words.caller import Caller
from fermata.words.errors import NotFound, ProviderError
from functions.round import app as round_
from tests.desk import another_process, environment
from tests.strict.listings import KEY, Listings

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())


@pytest.mark.parametrize(
    ("provider", "url"),
    [
        ("anthropic", "https://claude.example"),
        ("openai", "https://gpt.example"),
        ("openrouter", "https://router.example/api"),
    ],
)
def test_a_key_goes_to_its_own_provider_at_the_deployments_address(desk: Desk, provider: str, url: str) -> None:
    urls = {"anthropic_url": "https://claude.example", "openai_url": "https://gpt.example"}
    process = another_process(desk, openrouter_url="https://router.example/api", **urls)
    credential = keyring.create(process, ADA, provider, "apiKey", "Mine", KEY)
    found = endpoint(process, "bakery", credential.id, 1)
    assert (found.base_url, found.secret) == (url, KEY)
    assert KEY not in repr(found)


def test_an_address_of_ones_own_comes_before_the_deployments(near: Desk, server: Listings) -> None:
    credential = keyring.create(near, ADA, "anthropic", "baseUrl", "Mine", None, f"{server.url}/gateway")
    found = endpoint(near, "bakery", credential.id, 1)
    assert (found.base_url, found.secret) == (f"{server.url}/gateway", "")


def test_a_changed_address_is_used_by_the_next_turn_at_once(near: Desk, server: Listings) -> None:
    credential = keyring.create(near, ADA, "ollama", "baseUrl", "Mine", KEY, server.url)
    endpoint(near, "bakery", credential.id, 1)
    moved = keyring.change(another_process(near), ADA, credential.id, None, None, f"{server.url}/v1")
    assert endpoint(near, "bakery", credential.id, moved.version).base_url == f"{server.url}/v1"


def test_another_tenants_credential_opens_nothing(near: Desk, server: Listings) -> None:
    credential = keyring.create(near, ADA, "ollama", "baseUrl", "Mine", KEY, server.url)
    with pytest.raises(NotFound):
        endpoint(near, "florist", credential.id, 1)


class TestTheRoundsLine:
    @pytest.fixture
    def stage(self, request: pytest.FixtureRequest, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        for name, value in environment(another_process(desk, fermata_stage=request.param)).items():
            monkeypatch.setenv(name, value)
        for cached in (open_desk, round_.line):
            cached.cache_clear()
        yield
        round_.line().close()
        for cached in (open_desk, round_.line):
            cached.cache_clear()

    @pytest.mark.parametrize("stage", ["prod"], indirect=True)
    def test_it_does_not_reach_this_machine_when_deployed(self, stage: None, server: Listings) -> None:
        with (
            pytest.raises(ProviderError, match="must begin with https"),
            round_.line().post("Models", f"{server.url}/v1/x", {}, b"{}"),
        ):
            pytest.fail("it was reached")
        assert server.asked == []

    @pytest.mark.parametrize("stage", ["local"], indirect=True)
    def test_it_does_on_the_local_stage(self, stage: None, server: Listings) -> None:
        server.open_to_all = True
        with round_.line().post("Models", f"{server.url}/v1/x", {}, b"{}") as answer:
            assert (answer.status, answer.read()[:9]) == (404, b'{"error":')
        assert len(server.asked) == 1
