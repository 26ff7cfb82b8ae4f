"""The catalogue is fetched over a real socket, by one process at a time."""

import contextlib
import logging
from collections.abc import Iterator

import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.pricing import catalogue, catalogue_refresh
from fermata.pricing.catalogue_refresh import CatalogueUnavailable, RefreshResult, refresh_catalogue
from local import seed
from tests.fixed_response_server import FixedResponseServer, run_fixed_response_server
from tests.late_writes import repeat_single_writes
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
def local_resources(resources: Resources, openrouter: FixedResponseServer) -> Resources:
    return resources_of_new_process(resources, catalogue_url=openrouter.url)


def test_an_empty_table_is_filled(local_resources: Resources, clock: TestClock) -> None:
    assert refresh_catalogue(local_resources) == RefreshResult("fetched", 1)
    stored = catalogue.read_stored_catalogue(local_resources)
    assert stored is not None
    assert (set(stored.priced_models), stored.refreshed_at) == ({"claude-sonnet-4-5"}, clock.time())


def test_an_unreadable_catalogue_is_fetched_again(local_resources: Resources) -> None:
    local_resources.tables.write_items(
        Put(local_resources.settings.pricing_table, {"pk": "catalogue", "sk": "current", "refreshed": 1})
    )
    assert refresh_catalogue(local_resources) == RefreshResult("fetched", 1)


def test_it_is_fetched_again_after_six_hours_and_not_before(
    local_resources: Resources, clock: TestClock, openrouter: FixedResponseServer
) -> None:
    refresh_catalogue(local_resources)
    clock.advance(5 * HOURS)
    assert refresh_catalogue(local_resources) == RefreshResult("fresh", 1)
    assert openrouter.request_count == 1
    clock.advance(1 * HOURS)
    openrouter.body = catalogue_body(SONNET, catalogue_entry("openai/gpt-5"))
    assert refresh_catalogue(local_resources) == RefreshResult("fetched", 2)


def test_an_operator_may_ask_for_it_at_any_time(local_resources: Resources, openrouter: FixedResponseServer) -> None:
    refresh_catalogue(local_resources)
    assert refresh_catalogue(local_resources, force=True).outcome == "fetched"
    assert openrouter.request_count == 2


def test_the_refreshing_process_sees_the_new_catalogue_at_once(
    local_resources: Resources, openrouter: FixedResponseServer
) -> None:
    refresh_catalogue(local_resources)
    assert catalogue.get_catalogue(local_resources) is not None
    openrouter.body = catalogue_body(catalogue_entry("openai/gpt-5"))
    refresh_catalogue(local_resources, force=True)
    prices = catalogue.get_catalogue(local_resources)
    assert prices is not None
    assert set(prices.priced_models) == {"gpt-5"}


def test_only_one_process_fetches_at_a_time(
    local_resources: Resources, clock: TestClock, openrouter: FixedResponseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, inner = catalogue_refresh._download, []

    def meanwhile(resources: Resources, url: str) -> bytes:
        inner.append(refresh_catalogue(resources_of_new_process(local_resources)))
        return body(resources, url)

    monkeypatch.setattr(catalogue_refresh, "_download", meanwhile)
    assert refresh_catalogue(local_resources).outcome == "fetched"
    assert inner == [RefreshResult("underway")]
    assert openrouter.request_count == 1


def test_the_lease_of_a_dead_process_expires(local_resources: Resources, clock: TestClock) -> None:
    with catalogue_refresh._hold_lease(local_resources):
        assert refresh_catalogue(local_resources).outcome == "underway"
        clock.advance(catalogue_refresh.REFRESH_LEASE_SECONDS)
        assert refresh_catalogue(local_resources).outcome == "fetched"


def test_a_process_whose_lease_expired_does_not_release_the_lease_of_the_next_one(
    local_resources: Resources, clock: TestClock
) -> None:
    with contextlib.ExitStack() as next_process:
        with catalogue_refresh._hold_lease(local_resources):
            clock.advance(catalogue_refresh.REFRESH_LEASE_SECONDS)
            next_process.enter_context(catalogue_refresh._hold_lease(local_resources))
        assert refresh_catalogue(local_resources).outcome == "underway"
    assert refresh_catalogue(local_resources).outcome == "fetched"


def test_a_lease_whose_write_is_repeated_because_its_response_is_lost_is_taken_and_released(
    local_resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeat_single_writes(local_resources, monkeypatch)
    assert refresh_catalogue(local_resources).outcome == "fetched"
    assert refresh_catalogue(local_resources, force=True).outcome == "fetched"


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [(500, b"{}", "it answers 500"), (200, b"<html>", "not JSON"), (200, b'{"data":[]}', "prices no model")],
)
def test_a_failure_has_a_reason_and_keeps_the_stored_catalogue(
    local_resources: Resources, clock: TestClock, openrouter: FixedResponseServer, status: int, body: bytes, says: str
) -> None:
    refresh_catalogue(local_resources)
    before = catalogue.read_stored_catalogue(local_resources)
    clock.advance(7 * HOURS)
    openrouter.status, openrouter.body = status, body
    with pytest.raises(CatalogueUnavailable, match=f"http://127.0.0.1.* could not be read: .*{says}"):
        refresh_catalogue(local_resources)
    assert catalogue.read_stored_catalogue(local_resources) == before
    assert catalogue.get_catalogue(resources_of_new_process(local_resources)) == before


def test_a_failure_releases_the_lease(local_resources: Resources, openrouter: FixedResponseServer) -> None:
    openrouter.status = 503
    with pytest.raises(CatalogueUnavailable):
        refresh_catalogue(local_resources)
    openrouter.status = 200
    assert refresh_catalogue(local_resources).outcome == "fetched"


def test_a_redirect_is_not_followed(local_resources: Resources, openrouter: FixedResponseServer) -> None:
    openrouter.status, openrouter.location = 302, "http://127.0.0.1:1/elsewhere"
    with pytest.raises(CatalogueUnavailable, match="it answers 302"):
        refresh_catalogue(local_resources)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/models", "ftp://127.0.0.1/models", "http://127.0.0.1:99999/models"]
)
def test_an_unreachable_address_is_named(resources: Resources, url: str) -> None:
    with pytest.raises(CatalogueUnavailable, match="could not be read"):
        refresh_catalogue(resources_of_new_process(resources, catalogue_url=url))


def test_a_list_without_end_is_refused(
    local_resources: Resources, openrouter: FixedResponseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_refresh, "MAX_FETCHED_CATALOGUE_BYTES", 10)
    with pytest.raises(CatalogueUnavailable, match="more than 10 bytes"):
        refresh_catalogue(local_resources)


def test_a_refresh_logs_one_event(local_resources: Resources, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        refresh_catalogue(local_resources)
        refresh_catalogue(local_resources)
    assert [record.message for record in caplog.records if "pricing" in record.message] == ["pricing.refreshed"]


def test_the_age_of_the_catalogue_is_a_metric_of_the_function_and_no_line_on_a_terminal(
    local_resources: Resources, capsys: pytest.CaptureFixture[str]
) -> None:
    refresh_catalogue(local_resources)
    capsys.readouterr()
    refresh_catalogue(local_resources)
    assert "CatalogueAgeHours" in capsys.readouterr().out
    seed._seed_prices(local_resources)
    assert capsys.readouterr().out == ""
