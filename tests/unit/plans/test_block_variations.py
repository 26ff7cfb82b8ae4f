"""Variations of a block: how many are wanted, and what of an answer can be applied."""

from typing import Any

import pytest

from fermata.plans.block_variations import (
    DEFAULT_VARIATIONS,
    MAX_VARIATIONS,
    build_variation_prompt,
    build_variation_schema,
    count_wanted_variations,
    read_variations,
)
from fermata.plans.page_model import PageBlock

PROPS = {"heading": "Welcome", "isWide": True, "columns": 2, "items": [{"q": "a"}], "note": None}
BLOCK = PageBlock(id="b", type="Hero", props=PROPS)


@pytest.mark.parametrize(
    ("message", "count"),
    [
        ("Give me 5 variations of the heading", 5),
        ("five-variations please", 5),
        ("Two alternatives, shorter", 2),
        ("99 variations", MAX_VARIATIONS),
        ("0 variations", 1),
        ("Make it shorter", DEFAULT_VARIATIONS),
        ("3 columns, please", DEFAULT_VARIATIONS),
        ("²  variations", DEFAULT_VARIATIONS),
    ],
)
def test_a_message_says_how_many_are_wanted(message: str, count: int) -> None:
    assert count_wanted_variations(message) == count


@pytest.mark.parametrize(
    ("patch", "kept"),
    [
        ({"heading": "Hello"}, {"heading": "Hello"}),
        ({"heading": "Hello", "evil": 1}, {"heading": "Hello"}),
        ({"heading": ["Hello"], "isWide": False}, {"isWide": False}),
        ({"columns": 2.5, "items": [], "note": "New"}, {"columns": 2.5, "items": [], "note": "New"}),
        ({"columns": True}, None),
        ({"heading": "Welcome"}, None),
        ({}, None),
        ("heading", None),
    ],
)
def test_a_patch_has_props_of_the_block_of_the_same_kind_that_change(patch: Any, kept: Any) -> None:
    read = read_variations(BLOCK, {"variations": [{"title": " A ", "summary": "B", "patch": patch}]}, 3)
    assert [(one.title, one.summary, one.patch) for one in read] == ([("A", "B", kept)] if kept else [])


@pytest.mark.parametrize("value", [None, [], {}, {"variations": {}}, {"variations": ["text", None, {"patch": None}]}])
def test_an_answer_of_another_form_has_no_variations(value: Any) -> None:
    assert read_variations(BLOCK, value, 3) == []


def test_equal_variations_are_one_and_no_more_are_returned_than_wanted() -> None:
    patches = [{"heading": text} for text in ("A", "A", "B", "C")]
    read = read_variations(BLOCK, {"variations": [{"patch": patch} for patch in patches]}, 2)
    assert [(one.title, one.patch["heading"]) for one in read] == [("Variation 1", "A"), ("Variation 2", "B")]


def test_the_model_reads_the_block_as_data_and_what_a_patch_may_have() -> None:
    system, prompt = build_variation_prompt(BLOCK, "Shorter", 2, {"site_purpose": "Bread"})
    assert "Write 2." in system
    assert all(word in prompt for word in ("Shorter", "Welcome", "Bread"))
    patch = build_variation_schema(BLOCK, 2)["properties"]["variations"]["items"]["properties"]["patch"]
    assert set(patch["properties"]) == set(PROPS)
