"""Let the demo model work on the sample project of the studio, with the real tools."""

import json
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set, list_change_sets
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey
from fermata.content.documents.read_document import read_document
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.project_files import format_project_files
from fermata.content.files.read_project import make_project, read_whole_space
from fermata.content.files.write_project import write_project
from fermata.content.model_store import create_space, read_model
from fermata.content.opened_space import OpenedSpace
from fermata.domain.json_shortening import shorten_data
from fermata.tools.studio.toolset import MAX_STUDIO_RESULT_CHARS
from fermata_client.commands.workspace.project_archive import read_project_archive
from local.demo_model.rules.next_answer import decide_answer
from local.demo_model.rules.studio_project import STUDIO_TOOLS
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.tools.studio.test_studio_tools import ADMIN, EDITOR, call_studio_tool

__all__ = ["clock", "resources", "shared_resources"]
EXAMPLE = Path(__file__).parents[3] / "examples" / "studio"
SPACE = SpaceKey("bakery", "village")
AUTHOR = ContentAuthor("ada", "agent", "turn-1")
MAX_ROUNDS = 5
OFFERED = [{"name": name, "input_schema": {}} for name in STUDIO_TOOLS]


class StudioTurns:
    """Asks the demo model, and carries out what it calls as a turn does, with results cut as turns cut them."""

    def __init__(self, resources: Resources) -> None:
        self.resources, self.calls = resources, 0

    def ask(self, prompt: str, rights: frozenset[str] = ADMIN, context: str = "") -> tuple[list[str], str]:
        """Run a turn, and return which tools were called and what was said last."""
        texts = [f"<context>\n{context}\n</context>", prompt] if context else [prompt]
        blocks = [{"type": "text", "text": text} for text in texts]
        messages: list[dict[str, Any]] = [{"role": "user", "content": blocks}]
        called: list[str] = []
        for _ in range(MAX_ROUNDS):
            answer = decide_answer({"messages": messages, "tools": OFFERED})
            if not answer.tool_calls:
                return called, answer.text
            answered = answer.content_blocks()
            results = [self._run(block, rights) for block in answered if block["type"] == "tool_use"]
            messages += [{"role": "assistant", "content": answered}, {"role": "user", "content": results}]
            called += [call.name for call in answer.tool_calls]
        raise AssertionError(f"It calls on and on: {called}")

    def _run(self, block: dict[str, Any], rights: frozenset[str]) -> dict[str, Any]:
        self.calls += 1
        opened = OpenedSpace(self.resources, SPACE, AUTHOR, f"turn-1/{self.calls}/0")
        output = call_studio_tool(self.resources, opened, block["name"], block["input"], rights, None)
        text = json.dumps(shorten_data(output.data, MAX_STUDIO_RESULT_CHARS)) if output.ok else str(output.error)
        return {"type": "tool_result", "tool_use_id": block["id"], "content": text, "is_error": not output.ok}

    def read(self, model: str, document: str) -> dict[str, Any]:
        content = read_document(self.resources, SPACE, DocumentKey(model, document)).content
        assert content is not None
        return content.locales


@pytest.fixture
def turns(resources: Resources) -> StudioTurns:
    create_space(resources, SPACE, ContentSpace(locales=("en", "de")), AUTHOR)
    write_project(resources, SPACE, parse_project_files(read_project_archive(EXAMPLE)), ContentAuthor("ada", "import"))
    return StudioTurns(resources)


def test_the_sample_project_is_written_as_its_files_are(turns: StudioTurns) -> None:
    files = {path: text for path, text in read_project_archive(EXAMPLE).items() if path.startswith(".contentrain/")}
    assert format_project_files(make_project(read_whole_space(turns.resources, SPACE))) == files


def test_a_field_is_added_to_the_named_model(turns: StudioTurns) -> None:
    for prompt, model, field, kind in (
        ("Add a date field “updated” to stories", "story", "updated", "date"),
        ("Add a field called allergens to breads.", "bread", "allergens", "string"),
        ("please add a text field “Short intro” to the model story", "story", "short_intro", "text"),
    ):
        before = set(read_model(turns.resources, SPACE, model).model.fields)
        called, said = turns.ask(prompt)
        after = read_model(turns.resources, SPACE, model).model
        assert (called, after.fields[field].type.value) == (["list_models", "save_model"], kind)
        assert (set(after.fields), "It is live." in said) == (before | {field}, True)


def test_the_projects_own_models_are_listed_although_it_has_images(turns: StudioTurns) -> None:
    fields = {"filename": "rye.jpg", "mediaType": "image/jpeg", "sha256": "a" * 64}
    content = DocumentContent(title="rye.jpg").with_fields("data", fields)
    create_document(turns.resources, SPACE, "asset", AUTHOR, content)
    opened = OpenedSpace(turns.resources, SPACE, AUTHOR, "turn-1/models/0")
    models = call_studio_tool(turns.resources, opened, "list_models", {}, ADMIN, None).data["models"]
    assert [model["id"] for model in models] == ["baker", "bread", "labels", "shop", "story", "asset"]
    assert models[1]["fields"]["price"] == {"type": "decimal", "min": 0}
    assert turns.ask("Add a date field “updated” to stories")[0] == ["list_models", "save_model"]


def test_an_entry_is_translated_as_far_as_the_vocabulary_goes(turns: StudioTurns) -> None:
    called, said = turns.ask("Translate “Rye bread” to German")
    german = turns.read("bread", "rye-bread")["de"]
    assert german["name"] == "[de] Roggen Brot"
    assert german["description"] == "[de] All Roggen, with Sauerteig from our own Ofen."
    assert (german["price"], german["flour"], german["baker"]) == (5.4, "rye", "tom")
    assert (called[-1], "not an AI" in said) == ("save_content", True)


def test_the_entry_that_is_open_is_meant_where_none_is_named(turns: StudioTurns) -> None:
    opened = "## Context\nModel: bread (collection)\nLocale: de\nEntry: rye-bread\n\nLanguages: en, de; the first is"
    called, said = turns.ask("Translate this to German", context=opened)
    assert turns.read("bread", "rye-bread")["de"]["name"] == "[de] Roggen Brot"
    assert (called, "“rye-bread” has a text in de" in said) == (["brain_query", "vocabulary", "save_content"], True)


def test_a_text_in_markdown_is_translated_under_its_slug(turns: StudioTurns) -> None:
    turns.ask("Translate “A night shift” into German")
    german = turns.read("story", "night-shift")["de"]
    assert (german["slug"], german["date"], german["author"]) == ("night-shift", "2026-05-18", "tom")
    assert german["body"].startswith("[de] At two the Sauerteig is fed.")


def test_what_an_editor_writes_waits_and_is_merged_by_an_admin(turns: StudioTurns) -> None:
    _, said = turns.ask("Change the price of “Spelt roll” to “1.2”", EDITOR)
    assert "It waits for a review in cr/content/bread/en/" in said
    assert turns.read("bread", "spelt-roll")["en"]["price"] == 0.9
    called, said = turns.ask("Merge what waits")
    assert (called, "is merged" in said) == (["list_branches", "merge_branch"], True)
    assert turns.read("bread", "spelt-roll")["en"]["price"] == 1.2


def test_a_change_set_that_was_begun_by_hand_is_merged_by_the_name_that_is_listed(turns: StudioTurns) -> None:
    begun = begin_change_set(turns.resources, SPACE, "Winter hours", AUTHOR)
    key = DocumentKey("shop", "main")
    change_in_change_set(turns.resources, SPACE, begun.id, key, lambda before, _: before.content if before else None)
    assert f"There is 1 branch: “Winter hours” (cr/{begun.id})." in turns.ask("What waits to be merged?")[1]
    assert f"cr/{begun.id} is merged" in turns.ask("Merge “Winter hours”")[1]
    assert [one.status for one in list_change_sets(turns.resources, SPACE)] == ["merged"]


def test_what_cannot_be_done_is_said(turns: StudioTurns) -> None:
    expected = {
        "Sing a song": "I can list what there is",
        "Which models are there?": "There are 5 models",
        "Merge what waits": "Nothing waits",
        "Translate “Pumpernickel” to German": "no entry with “Pumpernickel”",
        "Translate it": "Which entry, and to which language?",
        "Add a field “x” to cars": "There is no model “cars”",
        "Translate “Rye bread” to French": "That did not work. save_content:",
    }
    assert [prompt for prompt, said in expected.items() if said not in turns.ask(prompt)[1]] == []
