"""A project is read from files and written as files, byte by byte the same."""

import json
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey, forget_deleted_space, mark_space_deleted
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, ContentStatus, DocumentContent, DocumentKey
from fermata.content.documents.read_document import read_document
from fermata.content.files.canonical_json import UnreadableFile, format_canonical_json, parse_canonical_json
from fermata.content.files.front_matter import format_document_file, parse_document_file
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.project_files import format_project_files
from fermata.content.files.read_project import make_project, read_cached_space, read_whole_space
from fermata.content.files.write_project import delete_model_with_documents, write_project
from fermata.content.model_store import create_space, put_model
from fermata.content.validation.validate_document import ContentRefused
from fermata.domain.errors import Conflict, InvalidRequest
from tests.resources import TestClock
from tests.unit.content.conftest import RECIPE, SPACE
from tests.unit.content.files.project_samples import make_random_tree, make_tree, text_of

LARGE_FILE = "version https://git-lfs.github.com/spec/v1\n"
IMPORTER = ContentAuthor("ada", "import")


def export(resources: Resources) -> dict[str, str]:
    return format_project_files(make_project(read_whole_space(resources, SPACE)))


def test_a_project_goes_through_a_space_without_a_changed_byte(resources: Resources, space: SpaceKey) -> None:
    tree = make_tree()
    project = parse_project_files(tree)
    assert project.ignored == ()
    assert format_project_files(project) == tree
    write_project(resources, space, project, IMPORTER)
    assert export(resources) == tree
    again = write_project(resources, space, project, IMPORTER)
    assert (again.written, again.deleted, again.models) == (0, 0, 0)


@pytest.mark.parametrize("seed", range(40))
def test_projects_made_by_chance_are_written_as_they_were_read(seed: int) -> None:
    tree = make_random_tree(seed)
    project = parse_project_files(tree)
    assert project.ignored == ()
    assert format_project_files(project) == tree


@pytest.mark.parametrize("seed", [1, 2])
def test_projects_made_by_chance_go_through_a_space(resources: Resources, space: SpaceKey, seed: int) -> None:
    tree = make_random_tree(seed)
    write_project(resources, space, parse_project_files(tree), IMPORTER)
    assert export(resources) == tree


def test_a_project_of_more_documents_than_a_transaction_holds_goes_through_a_space(
    resources: Resources, space: SpaceKey
) -> None:
    tree = make_tree()
    entries = {f"e{number:03}": {"answer": "Yes.", "question": f"Question {number}?"} for number in range(130)}
    tree[".contentrain/content/marketing/faq/en.json"] = text_of(entries)
    del tree[".contentrain/content/marketing/faq/tr.json"]
    del tree[".contentrain/meta/faq/tr.json"]
    tree[".contentrain/meta/faq/en.json"] = text_of({"e001": {"status": "published"}})
    write_project(resources, space, parse_project_files(tree), IMPORTER)
    assert export(resources) == tree


def test_a_project_of_more_models_than_a_commit_can_check_goes_through_a_space(
    resources: Resources, space: SpaceKey
) -> None:
    tree = make_tree()
    faq = json.loads(tree[".contentrain/models/faq.json"])
    for number in range(100):
        model = faq | {"id": f"faq-{number}", "name": f"Questions {number}"}
        tree[f".contentrain/models/faq-{number}.json"] = text_of(model)
        entries = {"one": {"answer": "Yes.", "question": "Is it?"}}
        tree[f".contentrain/content/marketing/faq-{number}/en.json"] = text_of(entries)
    write_project(resources, space, parse_project_files(tree), IMPORTER)
    assert export(resources) == tree


def test_a_status_is_that_of_each_language(resources: Resources, space: SpaceKey) -> None:
    write_project(resources, space, parse_project_files(make_tree()), IMPORTER)
    content = read_document(resources, space, DocumentKey("faq", "a1b2c3d4e5f6")).content
    assert content is not None
    assert (content.title, content.status) == ("Is it fresh?", ContentStatus.PUBLISHED)
    assert (content.get_status("en"), content.get_status("tr")) == (ContentStatus.PUBLISHED, ContentStatus.DRAFT)


def test_what_is_gone_from_the_files_is_deleted(resources: Resources, space: SpaceKey) -> None:
    tree = make_tree()
    write_project(resources, space, parse_project_files(tree), IMPORTER)
    fewer = {path: text for path, text in tree.items() if "note" not in path and "vocabulary" not in path}
    summary = write_project(resources, space, parse_project_files(fewer), IMPORTER)
    assert (summary.deleted, summary.models) == (2, 1)
    assert export(resources) == fewer
    write_project(resources, space, parse_project_files(tree), IMPORTER)
    assert export(resources) == tree, "a document that was deleted goes on from the mark of that"


def test_nothing_is_written_of_a_project_with_one_wrong_document(resources: Resources, space: SpaceKey) -> None:
    tree = make_tree()
    before = export(resources)
    tree[".contentrain/content/marketing/faq/tr.json"] = text_of({"a1b2c3d4e5f6": {"answer": "Evet."}})
    with pytest.raises(ContentRefused, match=r"faq/a1b2c3d4e5f6: question is required\."):
        write_project(resources, space, parse_project_files(tree), IMPORTER)
    assert export(resources) == before


def test_a_model_whose_documents_do_not_allow_its_change_is_a_conflict(resources: Resources, space: SpaceKey) -> None:
    tree = make_tree()
    write_project(resources, space, parse_project_files(tree), IMPORTER)
    model = json.loads(tree[".contentrain/models/hero.json"])
    tree[".contentrain/models/hero.json"] = text_of(model | {"i18n": True})
    tree[".contentrain/content/marketing/hero/data.json"] = text_of({"title": "Bread"})
    with pytest.raises(Conflict, match="whether it is translated"):
        write_project(resources, space, parse_project_files(tree), IMPORTER)


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        (".contentrain/config.json", None, "it is missing"),
        (".contentrain/config.json", "[]", "has to hold an object"),
        (".contentrain/config.json", '{"locales":{"default":"fr","supported":["en"]}}', "'locales' has to have"),
        (".contentrain/config.json", '{"locales":{"default":"E","supported":["E"]}}', "lists up to 50 codes"),
        (".contentrain/content/marketing/faq/en.json", '{"x":1}', "the entry x has to be an object"),
        (".contentrain/content/marketing/faq/en.json", '{"x":{},"x":{}}', "'x' is there twice"),
        (".contentrain/content/marketing/faq/en.json", '{"a b":{}}', "'a b' is no id of a document"),
        (".contentrain/content/marketing/faq/en.json", "{", "no JSON"),
        (".contentrain/content/marketing/faq/en.json", '{"x":NaN}', "NaN is no number"),
        (".contentrain/content/marketing/faq/en.json", '{"x":' * 90 + "1" + "}" * 90, "nested too deeply"),
        (".contentrain/content/marketing/faq/en.json", '{"x":{"a":-1e400}}', "-1e400 is too large a number"),
        (".contentrain/content/marketing/faq/en.json", '{"x":{"a":"\\ud800"}}', "half of a character"),
        (".contentrain/content/marketing/faq/en.json", f"{LARGE_FILE}oid sha256:1\n", "Git LFS"),
        (".contentrain/content/product/note/x-y/en.md", f"{LARGE_FILE}oid sha256:1\n", "Git LFS"),
        (".contentrain/meta/faq/en.json", '{"how-long":{"status":"new"}}', "'new' is no status"),
        (".contentrain/models/faq.json", '{"id":"faq","kind":"list"}', "The model is not valid"),
        (".contentrain/models/other.json", '{"id":"faq","kind":"collection"}', "belongs into faq.json"),
        (".contentrain/vocabulary.json", '{"terms":{"a":"b"},"version":1}', "the term a has to have a text"),
        (".contentrain/content/product/note/x-y/en.md", "---\na: 1\n", "do not end with it"),
        (".contentrain/content/product/note/x-y/en.md", "---\na: 1\na: 2\n---\n", "the field a is there twice"),
        (".contentrain/content/product/note/x-y/en.md", "---\na: &x 1\nb: *x\n---\n", "aliases"),
        (".contentrain/content/product/note/x-y/en.md", "---\n[1]: 2\n---\n", "not understood"),
        (".contentrain/content/product/note/x-y/en.md", "---\nbody: 1\n---\n\ntext\n", "a text and a field body"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_problem(path: str, text: str | None, problem: str) -> None:
    tree = make_tree()
    if text is None:
        del tree[path]
    else:
        tree[path] = text
    with pytest.raises(UnreadableFile) as refused:
        parse_project_files(tree)
    assert problem in refused.value.message
    assert refused.value.details["path"] == path


@pytest.mark.parametrize("strategy", ["file", "suffix", "directory", "none"])
def test_what_is_not_translated_is_in_one_file_whatever_names_the_locales(strategy: str) -> None:
    tree = make_tree()
    model = json.loads(tree[".contentrain/models/hero.json"])
    tree[".contentrain/models/hero.json"] = text_of(model | {"locale_strategy": strategy})
    project = parse_project_files(tree)
    assert project.ignored == ()
    assert format_project_files(project) == tree
    assert ".contentrain/content/marketing/hero/data.json" in tree


@pytest.mark.parametrize(
    "folder", ["../x", "/etc", ".git/hooks", ".GitHub", "a//b", "node_modules/x", "a/../b", "a\\b", 1]
)
def test_a_model_keeps_no_content_where_none_may_be(folder: Any) -> None:
    tree = make_tree()
    model = json.loads(tree[".contentrain/models/hero.json"])
    tree[".contentrain/models/hero.json"] = text_of(model | {"content_path": folder})
    with pytest.raises(InvalidRequest, match="cannot keep its content"):
        parse_project_files(tree)


def test_files_that_nothing_is_made_of_are_named() -> None:
    tree = make_tree()
    tree[".contentrain/content/marketing/faq/de.json"] = "{}"
    tree[".contentrain/client/index.mjs"] = "generated"
    tree["README.md"] = "Not part of it"
    tree[".contentrain/meta/faq/tr.json"] = text_of({"gone": {"status": "draft"}})
    project = parse_project_files(tree)
    assert sorted(project.ignored) == [
        ".contentrain/content/marketing/faq/de.json",
        ".contentrain/meta/faq/tr.json#gone",
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1"), (1e-7, "1e-7"), (1e-5, "0.00001"), (1e21, "1e+21"), (123e18, "123000000000000000000"), (0.1, "0.1")],
)
def test_numbers_have_the_texts_that_javascript_gives_them(number: float, text: str) -> None:
    assert format_canonical_json(number) == f"{text}\n"
    assert parse_canonical_json(text, "x") == parse_canonical_json(f"\ufeff{text}", "x") == number


def test_names_are_sorted_as_javascript_does_and_nulls_left_out() -> None:
    value: dict[str, Any] = {"\uffff": 1, "😀": 2, "b": None, "a": [None, {}]}
    assert format_canonical_json(value) == '{\n  "a": [\n    null,\n    {}\n  ],\n  "😀": 2,\n  "\uffff": 1\n}\n'


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff---\ntitle: A\n---\n\nText\n",
        "---\r\ntitle: A\r\n---\r\n\r\nText\r\n",
        "---\ntitle: 'A'\n---\nText\n",
        '---\n"title": A\n---\n\nText',
    ],
)
def test_documents_of_other_writers_say_the_same(text: str) -> None:
    assert parse_document_file(text, "x") == {"title": "A", "body": "Text"}
    assert format_document_file({"title": "A", "body": "Text"}) == "---\ntitle: A\n---\n\nText\n"


def test_a_text_without_fields_is_a_document() -> None:
    assert parse_document_file("Only text\n", "x") == {"body": "Only text"}
    assert parse_document_file("---\ntitle: A\n---", "x") == {"title": "A"}


def test_a_site_that_was_erased_and_made_anew_is_read_anew_by_a_process_that_knew_it(
    resources: Resources, clock: TestClock
) -> None:
    tree = make_tree()
    [path] = [path for path, text in tree.items() if '"Yes."' in text]
    other = Resources(resources.settings, clock)
    for answer in ("Yes.", "No longer."):
        create_space(resources, SPACE, ContentSpace(locales=("en", "tr")), IMPORTER)
        changed = tree | {path: tree[path].replace('"Yes."', f'"{answer}"')}
        write_project(resources, SPACE, parse_project_files(changed), IMPORTER)
        assert answer in repr(read_cached_space(other, SPACE).versions)
        mark_space_deleted(resources, SPACE)
        table = resources.settings.content_table
        rows = resources.tables.query_items(table, SPACE.pk)
        resources.tables.batch_delete(table, [(row["pk"], row["sk"]) for row in rows])
        forget_deleted_space(resources, SPACE)
        clock.now += 60


def test_a_model_that_was_deleted_and_made_anew_is_read_anew(resources: Resources, space: SpaceKey) -> None:
    other = Resources(resources.settings, resources.clock)
    key = DocumentKey("bun", "rye")
    for title in ("Rye", "Wheat", "Spelt"):
        put_model(resources, space, {**RECIPE, "id": "bun"}, IMPORTER)
        content = DocumentContent(locales={"data": {"title": title}})
        create_document(resources, space, "bun", IMPORTER, content, document_id="rye")
        assert title in repr(read_cached_space(other, space).versions)
        delete_model_with_documents(resources, space, "bun", IMPORTER)
        assert key not in read_cached_space(other, space).versions
