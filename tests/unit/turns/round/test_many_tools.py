"""A turn with more than forty tools is offered those that fit its prompt, and finds the others by itself."""

from typing import Any

import pytest

from fermata.tools.tool import Tool
from fermata.tools.tool_search import find_matching_tools, list_search_words, rank_tools
from fermata.turns.offered_tools import FIND_TOOLS_NAME, MAX_UNNARROWED_TOOLS, OFFERED_TOOL_COUNT
from tests.unit.turns.scenarios import make_server_tool
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

SUBJECTS = ("invoice", "customer", "shipment", "recipe", "oven", "supplier", "holiday", "newsletter")
VERBS = ("create", "list", "archive", "export", "merge")


def make_tool(verb: str, subject: str) -> Tool:
    tool = make_server_tool(f"{verb}_{subject}", lambda: f"{verb} {subject}", idempotent=True)
    object.__setattr__(tool, "description", f"{verb.title()}s {subject}s of the bakery.")
    return tool


@pytest.fixture
def office(stage: Stage) -> Stage:
    stage.add_tools(*(make_tool(verb, subject) for subject in SUBJECTS for verb in VERBS))
    return stage


def offered_names(stage: Stage, index: int = -1) -> list[str]:
    return [tool.name for tool in stage.driver.requests[index].tools]


def test_a_short_list_of_tools_is_offered_whole(stage: Stage) -> None:
    stage.start_turn("Hello")
    stage.script_replies("Hello.")
    stage.run_workflow()
    assert len(offered_names(stage)) <= MAX_UNNARROWED_TOOLS
    assert FIND_TOOLS_NAME not in offered_names(stage)
    assert "offered_tools" not in stage.turn_row()["data"]


def test_a_long_list_is_narrowed_to_what_fits_the_prompt(office: Stage) -> None:
    office.start_turn("Archive the invoices of this supplier")
    office.script_replies("Done.")
    office.run_workflow()
    names = offered_names(office)
    assert len(names) == OFFERED_TOOL_COUNT + 1
    assert names[-1] == FIND_TOOLS_NAME
    assert {"archive_invoice", "archive_supplier", "list_invoice", "export_supplier"} <= set(names)


def test_tools_that_were_found_are_offered_from_the_next_request_on(office: Stage) -> None:
    office.start_turn("Hello")
    find = tool_call_block(FIND_TOOLS_NAME, query="merge two newsletters")
    office.script_replies(reply_with_calls(find), reply_with_calls(tool_call_block("merge_newsletter")), "Done.")
    assert office.run_workflow() == "finished"
    assert "merge_newsletter" not in offered_names(office, 0)
    later = offered_names(office, 1)
    assert later[: OFFERED_TOOL_COUNT + 1] == offered_names(office, 0)
    assert "merge_newsletter" in later
    assert office.results_sent_to_model()[-1].data == "merge newsletter"


def test_what_is_found_may_be_called_in_the_same_turn_only_if_it_is_permitted(office: Stage) -> None:
    office.start_turn("Hello")
    find = tool_call_block(FIND_TOOLS_NAME, query="delete a page or a node of the site")
    office.script_replies(reply_with_calls(find), "Done.")
    office.run_workflow()
    data: Any = office.results_sent_to_model()[0].data
    permitted = {tool.name for tool in office.driver.requests[0].tools} | {tool["name"] for tool in data["tools"]}
    assert "site_write_code_asset" not in permitted


def test_a_search_without_a_match_names_what_else_there_is_and_offers_nothing(office: Stage) -> None:
    office.start_turn("Hello")
    office.script_replies(reply_with_calls(tool_call_block(FIND_TOOLS_NAME, query="Rundbrief verschmelzen")), "Done.")
    office.run_workflow()
    data: Any = office.results_sent_to_model()[0].data
    assert data["tools"] == []
    assert "merge_newsletter" in data["otherTools"]
    assert not set(data["otherTools"]) & set(offered_names(office, 0))
    assert "ask again with words of a name" in data["note"]
    assert offered_names(office, 1) == offered_names(office, 0)


def test_a_search_names_only_tools_that_match(office: Stage) -> None:
    office.start_turn("Hello")
    office.script_replies(reply_with_calls(tool_call_block(FIND_TOOLS_NAME, query="newsletters")), "Done.")
    office.run_workflow()
    data: Any = office.results_sent_to_model()[0].data
    assert {tool["name"] for tool in data["tools"]} == {f"{verb}_newsletter" for verb in VERBS}


def test_the_offer_is_the_same_in_every_round(office: Stage) -> None:
    office.start_turn("Export the recipes")
    office.script_replies(reply_with_calls(tool_call_block("export_recipe")), "Done.")
    office.run_workflow()
    assert offered_names(office, 0) == offered_names(office, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("insertHtml", ["insert", "html"]),
        ("site_insert_html", ["site", "insert", "html"]),
        ("HTTPServer 2 categories", ["http", "server", "2", "category"]),
        ("Größe ändern, address", ["größe", "ändern", "address"]),
        ("", []),
    ],
)
def test_names_and_texts_are_split_into_words(text: str, words: list[str]) -> None:
    assert list_search_words(text) == words


def test_the_rarer_word_decides() -> None:
    tools = [make_tool(verb, subject) for subject in SUBJECTS for verb in VERBS]
    assert rank_tools(tools, "list something about holidays")[0].name == "list_holiday"
    assert rank_tools(tools, "nothing that is known")[0].name == tools[0].name
    assert find_matching_tools(tools, "nothing that is known") == []


def make_numbered_tools() -> list[Tool]:
    return [make_tool("weather", f"tool{number}") for number in range(1, 33)]


@pytest.mark.parametrize(
    "text", ["Call weather.tool27, please", "weather_tool27?", "Is `WeatherTool27` there? I need it."]
)
def test_a_tool_that_the_prompt_names_comes_first(text: str) -> None:
    assert rank_tools(make_numbered_tools(), text)[0].name == "weather_tool27"


def test_a_tool_is_found_by_a_number_of_one_digit() -> None:
    assert find_matching_tools(make_numbered_tools(), "the weather of 7")[0].name == "weather_tool7"


def test_a_tool_is_found_by_its_other_name() -> None:
    tools = make_numbered_tools()
    object.__setattr__(tools[30], "aliases", ("pim.getProduct",))
    assert rank_tools(tools, "Call pim_getProduct")[0] is tools[30]


def test_the_tool_that_ends_a_turn_is_always_offered(office: Stage) -> None:
    finish = make_server_tool("finish", lambda: "Over.", ends_turn=True)
    office.add_tools(*(make_tool(verb, subject) for subject in SUBJECTS for verb in VERBS), finish)
    office.start_turn("Archive the invoices of this supplier")
    office.script_replies("Done.")
    office.run_workflow()
    assert len(offered_names(office)) == OFFERED_TOOL_COUNT + 1
    assert "finish" in offered_names(office)
