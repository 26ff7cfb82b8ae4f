"""The catalogue is fetched from a real server on this machine, by one process at a time."""

import logging
from collections.abc import Iterator

import pytest

from fermata.aws.dynamodb import Put
from fermata.aws.resources import Resources
from fermata.pricing import catalogue, catalogue_refresh
from fermata.pricing.catalogue_refresh import CatalogueUnavailable, RefreshResult, refresh_catalogue
from tests.fixed_response_server import FixedResponseServer, run_fixed_response_server
from tests.resources import TestClock, resources_of_new_process
from tests.unit.pricing.recorded_cases import catalogue_body, catalogue_entry

SONNET = catalogue_entry("anthropic/claude-sonnet-4.5")
HOURS = 3600


@pytest.fixture
def openrouter() -> Iterator[FixedResponseServer]:
    with run_fixed_response_server() as server:
        server.body = catalogue_body(SONNET, catalogue_entry("google/gemini"))
        yield server


@pytest.fixture
def here(resources: Resources, openrouter: FixedResponseServer) -> Resources:
    return resources_of_new_process(resources, catalogue_url=openrouter.url)


def test_an_empty_table_is_filled(here: Resources, clock: TestClock) -> None:
    assert refresh_catalogue(here) == RefreshResult("fetched", 1)
    held = catalogue.read_stored_catalogue(here)
    assert held is not None
    assert (set(held.priced_models), held.refreshed_at) == ({"claude-sonnet-4-5"}, clock.time())


def test_one_that_cannot_be_understood_is_fetched_anew(here: Resources) -> None:
    here.tables.write_items(Put(here.settings.pricing_table, {"pk": "catalogue", "sk": "current", "refreshed": 1}))
    assert refresh_catalogue(here) == RefreshResult("fetched", 1)


def test_it_is_fetched_again_after_six_hours_and_not_before(
    here: Resources, clock: TestClock, openrouter: FixedResponseServer
) -> None:
    refresh_catalogue(here)
    clock.advance(5 * HOURS)
    assert refresh_catalogue(here) == RefreshResult("fresh", 1)
    assert openrouter.request_count == 1
    clock.advance(1 * HOURS)
    openrouter.body = catalogue_body(SONNET, catalogue_entry("openai/gpt-5"))
    assert refresh_catalogue(here) == RefreshResult("fetched", 2)


def test_an_operator_may_ask_for_it_at_any_time(here: Resources, openrouter: FixedResponseServer) -> None:
    refresh_catalogue(here)
    assert refresh_catalogue(here, force=True).outcome == "fetched"
    assert openrouter.request_count == 2


def test_who_refreshed_it_sees_the_new_one_at_once(here: Resources, openrouter: FixedResponseServer) -> None:
    refresh_catalogue(here)
    assert catalogue.get_catalogue(here) is not None
    openrouter.body = catalogue_body(catalogue_entry("openai/gpt-5"))
    refresh_catalogue(here, force=True)
    known = catalogue.get_catalogue(here)
    assert known is not None
    assert set(known.priced_models) == {"gpt-5"}


def test_only_one_process_fetches_at_a_time(
    here: Resources, clock: TestClock, openrouter: FixedResponseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, inner = catalogue_refresh._download, []

    def meanwhile(resources: Resources, url: str) -> bytes:
        inner.append(refresh_catalogue(resources_of_new_process(here)))
        return body(resources, url)

    monkeypatch.setattr(catalogue_refresh, "_download", meanwhile)
    assert refresh_catalogue(here).outcome == "fetched"
    assert inner == [RefreshResult("underway")]
    assert openrouter.request_count == 1


def test_who_died_while_fetching_stands_in_nobodys_way_for_long(here: Resources, clock: TestClock) -> None:
    catalogue_refresh._put_lease(here, expires_at=int(clock.time()) + catalogue_refresh.REFRESH_LEASE_SECONDS)
    assert refresh_catalogue(here).outcome == "underway"
    clock.advance(catalogue_refresh.REFRESH_LEASE_SECONDS)
    assert refresh_catalogue(here).outcome == "fetched"


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [(500, b"{}", "it answers 500"), (200, b"<html>", "not JSON"), (200, b'{"data":[]}', "prices no model")],
)
def test_a_failure_says_what_was_wrong_and_keeps_what_was_known(
    here: Resources, clock: TestClock, openrouter: FixedResponseServer, status: int, body: bytes, says: str
) -> None:
    refresh_catalogue(here)
    before = catalogue.read_stored_catalogue(here)
    clock.advance(7 * HOURS)
    openrouter.status, openrouter.body = status, body
    with pytest.raises(CatalogueUnavailable, match=f"http://127.0.0.1.* could not be read: .*{says}"):
        refresh_catalogue(here)
    assert catalogue.read_stored_catalogue(here) == before
    assert catalogue.get_catalogue(resources_of_new_process(here)) == before


def test_after_a_failure_the_next_one_may_try_at_once(here: Resources, openrouter: FixedResponseServer) -> None:
    openrouter.status = 503
    with pytest.raises(CatalogueUnavailable):
        refresh_catalogue(here)
    openrouter.status = 200
    assert refresh_catalogue(here).outcome == "fetched"


def test_a_redirect_is_not_followed(here: Resources, openrouter: FixedResponseServer) -> None:
    openrouter.status, openrouter.location = 302, "http://127.0.0.1:1/elsewhere"
    with pytest.raises(CatalogueUnavailable, match="it answers 302"):
        refresh_catalogue(here)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/models", "ftp://127.0.0.1/models", "http://[broken/models"])
def test_an_address_that_leads_nowhere_is_named(resources: Resources, url: str) -> None:
    with pytest.raises(CatalogueUnavailable, match="could not be read"):
        refresh_catalogue(resources_of_new_process(resources, catalogue_url=url))


def test_a_list_without_end_is_cut_off(
    here: Resources, openrouter: FixedResponseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_refresh, "MAX_FETCHED_CATALOGUE_BYTES", 10)
    with pytest.raises(CatalogueUnavailable, match="more than 10 bytes"):
        refresh_catalogue(here)


def test_a_refresh_is_one_line_in_the_log(here: Resources, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        refresh_catalogue(here)
        refresh_catalogue(here)
    assert [record.message for record in caplog.records if "pricing" in record.message] == ["pricing.refreshed"]
