"""Turns of the studio's agent: what the model is told of the project, which tools it is offered, what its calls do."""

from dataclasses import replace
from typing import Any

import pytest

from fermata.content.change_sets.change_set_store import list_change_sets
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.document import ContentAuthor, DocumentKey
from fermata.content.documents.read_document import read_document
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.write_project import write_project
from fermata.content.model_store import create_space
from fermata.conversations import conversation_store
from fermata.turns.start.start_turn import start_turn
from tests.unit.content.files.project_samples import CONFIG, make_tree, text_of
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

STUDIO = SpaceKey("bakery", "studio")
FRESH = DocumentKey("faq", "a1b2c3d4e5f6")
OPEN = {
    "activeModelId": "faq",
    "activeLocale": "tr",
    "contextItems": [{"type": "entry", "id": FRESH.id, "modelId": "faq", "data": {"question": "x" * 500}}],
}


@pytest.fixture
def studio(stage: Stage) -> Stage:
    """A stage whose user is an editor in a project whose changes are reviewed."""
    author = ContentAuthor("ada", "import")
    create_space(stage.resources, STUDIO, ContentSpace(locales=("en", "tr")), author)
    tree = make_tree() | {".contentrain/config.json": text_of({**CONFIG, "workflow": "review"})}
    write_project(stage.resources, STUDIO, parse_project_files(tree), author)
    stage.conversation = conversation_store.create_conversation(
        stage.resources, stage.caller, "studio", None, stage.credential.id, "model-1"
    )
    give_rights(stage, "ai.content.write")
    return stage


def give_rights(stage: Stage, *rights: str) -> None:
    kept = {right for right in stage.caller.capabilities if not right.startswith("ai.content.")}
    stage.caller = stage.caller.model_copy(update={"capabilities": frozenset(kept | set(rights))})


def start(stage: Stage, text: str, snapshot: Any = None) -> None:
    prompt = replace(stage.make_prompt(text, snapshot=snapshot), scope="studio")
    stage.adopt_turn(start_turn(stage.resources, stage.caller, prompt).turn)


def read_results(stage: Stage) -> list[Any]:
    blocks = [block for message in stage.driver.requests[-1].messages for block in message.content]
    return [block.data if block.data is not None else block.error for block in blocks if block.kind == "toolResult"]


def test_an_edit_waits_in_a_branch_and_the_model_is_told_so(studio: Stage) -> None:
    start(studio, "Update the answer of this entry", OPEN)
    save = tool_call_block("save_content", model="faq", locale="en", data={FRESH.id: {"answer": "No."}})
    studio.script_replies(reply_with_calls(save), "It waits for a review.")
    assert studio.run_workflow() == "finished"
    [result] = read_results(studio)
    assert (result["merged"], result["workflow"]) == (False, "review")
    assert [one.branch for one in list_change_sets(studio.resources, STUDIO)] == [result["branch"]]
    content = read_document(studio.resources, STUDIO, FRESH).content
    assert content is not None
    assert content.get_locale("en")["answer"] == "Yes."


def test_the_model_is_told_of_the_project_in_sections(studio: Stage) -> None:
    start(studio, "Update the answer of this entry", OPEN)
    studio.script_replies("Done.")
    studio.run_workflow()
    told = studio.driver.requests[0].volatile
    titles = [line.removeprefix("## ") for line in told.splitlines() if line.startswith("## ")]
    assert titles == [
        "Context", "Inferred intent: content_operation", "Project state", "Configuration", "Content schema",
        "Relations", "Vocabulary", "Permissions", "Workflow and plan", "Content index",
    ]  # fmt: skip
    for line in (
        "Model: faq (collection)",
        "Default locale: tr",
        "Use these defaults without asking.",
        "Phase: active",
        "Workflow: review",
        "faq (open): collection, translated, domain marketing, 2 entries",
        "faq.related -> faq by id (many)",
        'cart: {"en": "Cart", "tr": "Sepet"}',
        "Role: editor",
        "Content issue: faq/how-long is not translated into tr",
        "What this user changes waits for a review. Say so when you have changed something.",
    ):
        assert line in told.splitlines()
    assert "question* string max 200" in told
    assert "x" * 300 not in told, "pinned items are cut"
    assert "save_content" in studio.driver.requests[0].system


@pytest.mark.parametrize(
    ("rights", "offered", "withheld"),
    [
        ({"ai.content.read"}, "brain_query", "save_content"),
        ({"ai.content.read", "ai.content.review"}, "merge_branch", "save_content"),
        ({"ai.content.write"}, "save_content", "merge_branch"),
        ({"ai.content.manage"}, "save_model", "init_project"),
    ],
)
def test_the_model_is_offered_what_the_user_may_do_in_this_phase(
    studio: Stage, rights: set[str], offered: str, withheld: str
) -> None:
    give_rights(studio, *rights)
    start(studio, "Hello")
    studio.script_replies("Hello.")
    studio.run_workflow()
    names = {tool.name for tool in studio.driver.requests[0].tools}
    assert offered in names
    assert withheld not in names


def test_a_turn_asks_five_times_at_most_and_ends_with_an_answer(studio: Stage) -> None:  # G097
    start(studio, "Search for bread")
    searches = [reply_with_calls(tool_call_block("brain_search", query=word)) for word in ("a", "b", "c", "d")]
    studio.script_replies(*searches, "I found it.")
    assert studio.run_workflow() == "finished"
    assert [request.call_tools for request in studio.driver.requests] == [True, True, True, True, False]


def test_in_a_new_space_the_only_write_is_to_begin(stage: Stage) -> None:
    create_space(stage.resources, STUDIO, ContentSpace(), ContentAuthor("ada"))
    stage.conversation = conversation_store.create_conversation(
        stage.resources, stage.caller, "studio", None, stage.credential.id, "model-1"
    )
    give_rights(stage, "ai.content.manage")
    start(stage, "Set the project up")
    stage.script_replies("Which languages?")
    stage.run_workflow()
    assert {tool.name for tool in stage.driver.requests[0].tools} == {"list_models", "validate", "init_project"}
    assert "Phase: uninitialized" in stage.driver.requests[0].volatile


def test_g032_the_model_is_told_of_a_tool_what_it_needs_to_call_it(studio: Stage) -> None:
    start(studio, "Hello")
    studio.script_replies("Hello.")
    studio.run_workflow()
    [told] = [tool for tool in studio.driver.requests[0].tools if tool.name == "save_content"]
    assert set(told.model_dump(exclude_none=True)) == {"name", "description", "input_schema"}
