"""Parsing, storing and caching of the price catalogue."""

import json
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.pricing import catalogue
from fermata.pricing.catalogue import InvalidCatalogue, PricedModel, parse_catalogue, price_per_million_tokens
from fermata.pricing.token_cost import Price
from tests.resources import TestClock, resources_of_new_process
from tests.unit.pricing.recorded_cases import case_name, catalogue_body, catalogue_entry, read_cases

SONNET = catalogue_entry("anthropic/claude-sonnet-4.5")


def calls(resources: Resources) -> list[str]:
    made: list[str] = []
    resources.tables._client.meta.events.register("before-call", lambda model, **_: made.append(model.name))
    return made


def prompt_price(resources: Resources, model: str) -> Decimal | None:
    prices = catalogue.get_catalogue(resources)
    offer = prices.find_priced_model(model) if prices else None
    return offer.price.input_per_mtok if offer else None


class TestReading:
    @pytest.mark.parametrize("case", read_cases("cataloguePerMTok"), ids=case_name)
    def test_a_price_per_token_becomes_one_per_million_as_in_the_original(self, case: Any) -> None:
        expected = case["expected"]
        assert price_per_million_tokens(case["input"]) == (None if expected is None else Decimal(expected))

    @pytest.mark.parametrize("wrong", ["-1", -1, "NaN", "Infinity", "free", None, True, [], {}, "1e30", "2", "0.1" * 9])
    def test_invalid_prices_are_none(self, wrong: Any) -> None:
        assert price_per_million_tokens(wrong) is None

    @pytest.mark.parametrize("wrong", ["9e999999", "1e-999999", "1e-19"])
    def test_absurd_prices_are_none(self, wrong: str) -> None:
        assert price_per_million_tokens(wrong) is None

    def test_prices_are_exact_to_the_last_digit(self) -> None:
        assert str(price_per_million_tokens("0.00000333333333")) == "3.33333333"
        assert str(price_per_million_tokens("0.00001")) == "10"
        assert str(price_per_million_tokens(0.0000008)) == "0.8"

    def test_a_priced_model_has_four_rates_a_window_and_capabilities(self) -> None:
        entry = catalogue_entry(
            "anthropic/claude-sonnet-4.5",
            pricing={"input_cache_read": "0.0000003", "input_cache_write": "0.00000375"},
            architecture={"input_modalities": ["text", "image"]},
            supported_parameters=["max_tokens", "tools"],
        )
        rates = {
            "input_per_mtok": 3,
            "output_per_mtok": 15,
            "cache_read_per_mtok": "0.3",
            "cache_write_per_mtok": "3.75",
        }
        offer = PricedModel(
            price=Price.model_validate(rates), context_window=200_000, can_read_images=True, can_call_tools=True
        )
        assert parse_catalogue(catalogue_body(entry), 7).priced_models == {"claude-sonnet-4-5": offer}

    @pytest.mark.parametrize("window", [0, -1, 1.5, "200000", True, 10**30])
    def test_an_invalid_window_is_left_out(self, window: Any) -> None:
        (offer,) = parse_catalogue(catalogue_body(SONNET | {"context_length": window}), 7).priced_models.values()
        assert offer.context_window is None

    def test_what_the_list_does_not_say_is_unknown(self) -> None:
        bare = {"id": "openai/gpt-5", "pricing": {"prompt": "0", "completion": 0}, "context_length": None}
        (offer,) = parse_catalogue(catalogue_body(bare), 7).priced_models.values()
        assert (offer.context_window, offer.can_read_images, offer.can_call_tools) == (None, None, None)
        assert offer.price.cache_read_per_mtok is None

    @pytest.mark.parametrize(
        "left_out",
        [
            catalogue_entry("google/gemini-3.1-pro"),
            catalogue_entry("openai/no-price", "-1", "-1"),
            catalogue_entry("openai/one-price", completion=""),
            catalogue_entry("openai/absurd", "9e999999"),
            catalogue_entry("openai/\ud800"),
            catalogue_entry("openai/a\nb"),
            {"id": "openai/nothing"},
            {"id": 7},
            "openai/text",
            None,
        ],
    )
    def test_other_makers_and_models_without_both_prices_are_left_out(self, left_out: Any) -> None:
        assert set(parse_catalogue(catalogue_body(left_out, SONNET), 7).priced_models) == {"claude-sonnet-4-5"}

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            (b"<html>", "not JSON"),
            (b"[]", "no list"),
            (b'{"data":{}}', "no list"),
            (b'{"data":[]}', "prices no model"),
            (b"[" * 100_000, "not JSON"),
            (b'{"data":[{"id":"openai/x","context_length":1e9999999999999999999}]}', "not JSON"),
            (catalogue_body(catalogue_entry("google/gemini")), "prices no model of anthropic or openai"),
        ],
    )
    def test_an_invalid_catalogue_is_refused(self, body: bytes, says: str) -> None:
        with pytest.raises(InvalidCatalogue, match=says):
            parse_catalogue(body, 7)


class TestTheRouter:
    """Models under their exact OpenRouter ids; for other providers the makers' names count."""

    GEMINI = catalogue_entry(
        "google/gemini-3.1-pro", "0.00000125", "0.00001", architecture={"input_modalities": ["text"]}
    )

    def test_every_openrouter_model_is_found_by_its_exact_id_for_openrouter_only(self) -> None:
        prices = parse_catalogue(catalogue_body(SONNET, self.GEMINI), 7)
        model = prices.find_model("openrouter", "google/gemini-3.1-pro")
        assert model is not None
        assert model.price is not None
        assert (model.price.input_per_mtok, model.can_read_images) == (Decimal("1.25"), False)
        for provider, other in (
            ("openrouter", "gemini-3.1-pro"),
            ("openrouter", "google/gemini-3-1-pro"),
            ("openai-compatible", "google/gemini-3.1-pro"),
            ("openai", "google/gemini-3.1-pro"),
        ):
            assert prices.find_model(provider, other) is None

    @pytest.mark.parametrize("name", ["gemini-3.1-pro", "models/gemini-3.1-pro", "gemini-3.1-pro-001"])
    def test_a_model_of_google_is_found_by_googles_own_name(self, name: str) -> None:
        prices = parse_catalogue(catalogue_body(SONNET, self.GEMINI), 7)
        assert prices.find_model("gemini", name) == prices.find_model("openrouter", "google/gemini-3.1-pro")
        assert prices.find_model("gemini", "gemini-3") is None

    def test_the_exact_id_comes_before_the_normalized_name(self) -> None:
        prices = parse_catalogue(
            catalogue_body(SONNET, catalogue_entry("anthropic/claude-sonnet-4.5:beta", "0.000004"), self.GEMINI), 7
        )
        names = ("anthropic/claude-sonnet-4.5:beta", "anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4-5")
        models = [prices.find_model("openrouter", name) for name in names]
        assert [model.price.input_per_mtok for model in models if model and model.price] == [4, 3, 3]

    def test_a_model_without_a_fixed_price_has_window_and_capabilities(self) -> None:
        prices = parse_catalogue(
            catalogue_body(SONNET, catalogue_entry("openrouter/auto", "-1", "-1", supported_parameters=["tools"])), 7
        )
        model = prices.find_model("openrouter", "openrouter/auto")
        assert model is not None
        assert (model.price, model.context_window, model.can_call_tools) == (None, 200_000, True)

    def test_a_thousand_models_fit_into_the_item_and_come_back_as_they_were(self, resources: Resources) -> None:
        makers = ("anthropic", "openai", *(f"maker-{number}" for number in range(18)))
        models = [
            catalogue_entry(
                f"{makers[number % 20]}/model-{number}-preview-2026-0{number % 9 + 1}-11:extended",
                f"0.000{number:04d}7",
                f"0.00{number:04d}31",
                pricing={"input_cache_read": f"0.0000{number:04d}9", "input_cache_write": f"0.000{number:04d}83"},
                architecture={"input_modalities": ["text", "image"]},
                supported_parameters=["tools"],
                context_length=100_000 + number,
            )
            for number in range(1_000)
        ]
        made = parse_catalogue(catalogue_body(*models), 7)
        catalogue.store_catalogue(resources, made)
        item = resources.tables.get_item(resources.settings.pricing_table, *catalogue.CATALOGUE_KEY)
        assert item is not None
        assert len(item["offers"]) + len(bytes(item["routed"])) < 100_000
        assert catalogue.read_stored_catalogue(resources_of_new_process(resources)) == made
        assert len(made.openrouter_models) == 1_000

    def test_an_item_without_openrouters_models_is_readable(self, resources: Resources) -> None:
        catalogue.store_catalogue(resources, parse_catalogue(catalogue_body(SONNET, self.GEMINI), 7))
        item = resources.tables.get_item(resources.settings.pricing_table, *catalogue.CATALOGUE_KEY)
        assert item is not None
        del item["routed"]
        resources.tables.write_items(Put(resources.settings.pricing_table, item))
        assert prompt_price(resources_of_new_process(resources), "claude-sonnet-4-5") == 3


class TestNames:
    def offered(self, *models: dict[str, Any]) -> catalogue.PriceCatalogue:
        return parse_catalogue(catalogue_body(*models), 7)

    def test_a_release_with_its_own_price_keeps_it(self) -> None:
        prices = self.offered(
            catalogue_entry("openai/gpt-4o", "0.0000025"),
            catalogue_entry("openai/gpt-4o-2024-05-13", "0.000005"),
        )
        names = ["gpt-4o", "gpt-4o-2024-05-13", "openai/gpt-4o-2024-08-06"]
        assert [offer.price.input_per_mtok for name in names if (offer := prices.find_priced_model(name))] == [
            Decimal("2.5"),
            Decimal(5),
            Decimal("2.5"),
        ]

    def test_the_order_of_the_list_does_not_matter_for_that(self) -> None:
        prices = self.offered(
            catalogue_entry("openai/gpt-4o-2024-05-13", "0.000005"), catalogue_entry("openai/gpt-4o", "0.0000025")
        )
        assert prices.priced_models["gpt-4o"].price.input_per_mtok == Decimal("2.5")

    def test_the_first_of_several_dated_releases_counts_for_the_undated_name(self) -> None:
        prices = self.offered(
            catalogue_entry("openai/o9-2027-02-01", "0.000002"), catalogue_entry("openai/o9-2027-01-01", "0.000001")
        )
        assert prices.priced_models["o9"].price.input_per_mtok == 2

    def test_a_variant_is_another_model(self) -> None:
        prices = self.offered(catalogue_entry("openai/gpt-5"))
        assert prices.find_priced_model("gpt-5:free") is None


class TestKeeping:
    def test_it_comes_back_as_it_was_stored(self, resources: Resources) -> None:
        made = parse_catalogue(catalogue_body(SONNET, catalogue_entry("openai/gpt-5", 0.00000125)), 7)
        catalogue.store_catalogue(resources, made)
        assert catalogue.read_stored_catalogue(resources_of_new_process(resources)) == made

    def test_a_new_one_replaces_the_old_one_wholly(self, resources: Resources) -> None:
        catalogue.store_catalogue(
            resources, parse_catalogue(catalogue_body(SONNET, catalogue_entry("openai/gpt-5")), 7)
        )
        catalogue.store_catalogue(resources, parse_catalogue(catalogue_body(catalogue_entry("openai/gpt-6")), 8))
        assert prompt_price(resources, "gpt-6") == 3
        assert prompt_price(resources, "gpt-5") is None

    def test_a_process_reads_it_once_in_six_hours(self, resources: Resources, clock: TestClock) -> None:
        catalogue.store_catalogue(resources, parse_catalogue(catalogue_body(SONNET), 7))
        other = resources_of_new_process(resources)
        made = calls(other)
        for _ in range(3):
            assert prompt_price(other, "claude-sonnet-4-5") == 3
            assert prompt_price(other, "unheard-of") is None
        assert made == ["GetItem"]
        catalogue.store_catalogue(
            resources, parse_catalogue(catalogue_body(catalogue_entry("anthropic/claude-sonnet-4.5", "0.000004")), 8)
        )
        clock.advance(6 * 3600 - 1)
        assert prompt_price(other, "claude-sonnet-4-5") == 3
        clock.advance(2)
        assert prompt_price(other, "claude-sonnet-4-5") == 4

    def test_a_missing_catalogue_is_looked_for_once_a_minute(self, resources: Resources, clock: TestClock) -> None:
        other = resources_of_new_process(resources)
        made = calls(other)
        for _ in range(3):
            assert prompt_price(other, "claude-sonnet-4-5") is None
        assert made == ["GetItem"]
        catalogue.store_catalogue(resources, parse_catalogue(catalogue_body(SONNET), 7))
        clock.advance(61)
        assert prompt_price(other, "claude-sonnet-4-5") == 3

    def test_a_catalogue_that_does_not_fit_is_refused_and_the_old_one_stays(self, resources: Resources) -> None:
        catalogue.store_catalogue(resources, parse_catalogue(catalogue_body(SONNET), 7))
        crowd = parse_catalogue(
            catalogue_body(*[catalogue_entry(f"openai/gpt-{number}-with-a-name") for number in range(4_000)]), 8
        )
        with pytest.raises(InvalidCatalogue, match="more than one item holds"):
            catalogue.store_catalogue(resources, crowd)
        assert catalogue.read_stored_catalogue(resources) == parse_catalogue(catalogue_body(SONNET), 7)

    @pytest.mark.parametrize(
        "broken",
        [
            {"offers": "{"},
            {"offers": '{"gpt-5":{}}'},
            {"refreshed": "today"},
            {"offers": 7},
            {"routed": b"x"},
            {"routed": 7},
        ],
    )
    def test_an_unreadable_catalogue_counts_as_none(self, resources: Resources, broken: dict[str, Any]) -> None:
        catalogue.store_catalogue(resources, parse_catalogue(catalogue_body(SONNET), 7))
        item = resources.tables.get_item(resources.settings.pricing_table, *catalogue.CATALOGUE_KEY)
        assert item is not None
        resources.tables.write_items(Put(resources.settings.pricing_table, item | broken))
        assert prompt_price(resources_of_new_process(resources), "claude-sonnet-4-5") is None

    def test_a_later_version_may_add_members(self, resources: Resources) -> None:
        catalogue.store_catalogue(resources, parse_catalogue(catalogue_body(SONNET), 7))
        item = resources.tables.get_item(resources.settings.pricing_table, *catalogue.CATALOGUE_KEY)
        assert item is not None
        offers = json.loads(item["offers"])
        offers["claude-sonnet-4-5"]["colour"] = "blue"
        resources.tables.write_items(
            Put(resources.settings.pricing_table, item | {"offers": json.dumps(offers), "new": 1})
        )
        assert prompt_price(resources_of_new_process(resources), "claude-sonnet-4-5") == 3
