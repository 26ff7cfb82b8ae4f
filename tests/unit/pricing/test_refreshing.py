"""The catalogue is fetched from a real server on this machine, by one process at a time."""

import logging
from collections.abc import Iterator

import pytest

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.pricing import catalogue, refreshing
from fermata.pricing.refreshing import CatalogueUnavailable, Refreshed, refresh
from tests.desk import TestClock, another_process
from tests.serving import OneAnswer, serving
from tests.unit.pricing.recorded import listing, model

SONNET = model("anthropic/claude-sonnet-4.5")
HOURS = 3600


@pytest.fixture
def openrouter() -> Iterator[OneAnswer]:
    with serving() as server:
        server.body = listing(SONNET, model("google/gemini"))
        yield server


@pytest.fixture
def here(desk: Desk, openrouter: OneAnswer) -> Desk:
    return another_process(desk, catalogue_url=openrouter.url)


def test_an_empty_table_is_filled(here: Desk, clock: TestClock) -> None:
    assert refresh(here) == Refreshed("fetched", 1)
    held = catalogue.stored(here)
    assert held is not None
    assert (set(held.offers), held.refreshed) == ({"claude-sonnet-4-5"}, clock.time())


def test_one_that_cannot_be_understood_is_fetched_anew(here: Desk) -> None:
    here.tables.write(Put(here.settings.pricing_table, {"pk": "catalogue", "sk": "current", "refreshed": 1}))
    assert refresh(here) == Refreshed("fetched", 1)


def test_it_is_fetched_again_after_six_hours_and_not_before(
    here: Desk, clock: TestClock, openrouter: OneAnswer
) -> None:
    refresh(here)
    clock.go_on(5 * HOURS)
    assert refresh(here) == Refreshed("fresh", 1)
    assert openrouter.asked == 1
    clock.go_on(1 * HOURS)
    openrouter.body = listing(SONNET, model("openai/gpt-5"))
    assert refresh(here) == Refreshed("fetched", 2)


def test_an_operator_may_ask_for_it_at_any_time(here: Desk, openrouter: OneAnswer) -> None:
    refresh(here)
    assert refresh(here, force=True).how == "fetched"
    assert openrouter.asked == 2


def test_who_refreshed_it_sees_the_new_one_at_once(here: Desk, openrouter: OneAnswer) -> None:
    refresh(here)
    assert catalogue.known(here) is not None
    openrouter.body = listing(model("openai/gpt-5"))
    refresh(here, force=True)
    known = catalogue.known(here)
    assert known is not None
    assert set(known.offers) == {"gpt-5"}


def test_only_one_process_fetches_at_a_time(
    here: Desk, clock: TestClock, openrouter: OneAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, inner = refreshing._body, []

    def meanwhile(desk: Desk, url: str) -> bytes:
        inner.append(refresh(another_process(here)))
        return body(desk, url)

    monkeypatch.setattr(refreshing, "_body", meanwhile)
    assert refresh(here).how == "fetched"
    assert inner == [Refreshed("underway")]
    assert openrouter.asked == 1


def test_who_died_while_fetching_stands_in_nobodys_way_for_long(here: Desk, clock: TestClock) -> None:
    refreshing._put_lease(here, until=int(clock.time()) + refreshing.LEASE_SECONDS)
    assert refresh(here).how == "underway"
    clock.go_on(refreshing.LEASE_SECONDS)
    assert refresh(here).how == "fetched"


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [(500, b"{}", "it answers 500"), (200, b"<html>", "not JSON"), (200, b'{"data":[]}', "prices no model")],
)
def test_a_failure_says_what_was_wrong_and_keeps_what_was_known(
    here: Desk, clock: TestClock, openrouter: OneAnswer, status: int, body: bytes, says: str
) -> None:
    refresh(here)
    before = catalogue.stored(here)
    clock.go_on(7 * HOURS)
    openrouter.status, openrouter.body = status, body
    with pytest.raises(CatalogueUnavailable, match=f"http://127.0.0.1.* could not be read: .*{says}"):
        refresh(here)
    assert catalogue.stored(here) == before
    assert catalogue.known(another_process(here)) == before


def test_after_a_failure_the_next_one_may_try_at_once(here: Desk, openrouter: OneAnswer) -> None:
    openrouter.status = 503
    with pytest.raises(CatalogueUnavailable):
        refresh(here)
    openrouter.status = 200
    assert refresh(here).how == "fetched"


def test_a_redirect_is_not_followed(here: Desk, openrouter: OneAnswer) -> None:
    openrouter.status, openrouter.location = 302, "http://127.0.0.1:1/elsewhere"
    with pytest.raises(CatalogueUnavailable, match="it answers 302"):
        refresh(here)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/models", "ftp://127.0.0.1/models", "http://[broken/models"])
def test_an_address_that_leads_nowhere_is_named(desk: Desk, url: str) -> None:
    with pytest.raises(CatalogueUnavailable, match="could not be read"):
        refresh(another_process(desk, catalogue_url=url))


def test_a_list_without_end_is_cut_off(here: Desk, openrouter: OneAnswer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refreshing, "MOST_BYTES", 10)
    with pytest.raises(CatalogueUnavailable, match="more than 10 bytes"):
        refresh(here)


def test_a_refresh_is_one_line_in_the_log(here: Desk, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        refresh(here)
        refresh(here)
    assert [record.message for record in caplog.records if "pricing" in record.message] == ["pricing.refreshed"]
