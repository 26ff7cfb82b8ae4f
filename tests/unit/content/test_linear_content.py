"""Content twice as large takes twice the time to check, also where its model grows too (decision 0559).

A model and its documents are written by the same people, so both may be large at once.
"""

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from fermata.content.change_sets.merge_change_set import MergeRefused
from fermata.content.change_sets.merge_contents import FieldConflict, list_conflict_views
from fermata.content.content_model import ContentModel, parse_content_model
from fermata.content.documents.document import DocumentContent, DocumentKey, DocumentVersion
from fermata.content.fields import FieldDefinition, FieldType
from fermata.content.files.canonical_json import UnreadableFile, parse_canonical_json
from fermata.content.files.parse_project import parse_project_files
from fermata.content.page_sections import remove_page_sections
from fermata.content.publishing.render_html import render_document_html
from fermata.content.search.lexical_embedding import normalize_words
from fermata.content.validation.content_problem import MAX_CONTENT_PROBLEMS, limit_problems
from fermata.content.validation.schema_health import MAX_LISTED_WARNINGS, check_schema
from fermata.content.validation.tenant_patterns import PatternBudget, PatternTooCostly, contains_match
from fermata.content.validation.validate_content import validate_content
from fermata.content.validation.validate_document import validate_document
from fermata.domain.errors import InvalidRequest, NotFound
from tests.growth.measure_growth import MAX_GROWTH, measure_growth

CHARS = 24_000
NOTICEABLE_SECONDS = 0.02


class GrowingRule(NamedTuple):
    types: tuple[FieldType, ...]
    """The types of values that read it."""
    make: Callable[[int], Any]


GROWING_RULES = {
    "options": GrowingRule((FieldType.SELECT,), lambda n: [f"o{number}" for number in range(n // 8)]),
    "model": GrowingRule((FieldType.RELATION,), lambda n: [f"o{number}" for number in range(n // 8)]),
    "accept": GrowingRule((FieldType.IMAGE,), lambda n: ",".join([".q"] * (n // 3))),
    "fields": GrowingRule(
        (FieldType.OBJECT,),
        lambda n: {f"f{number}": {"type": "number", "required": not number} for number in range(n // 60)},
    ),
    "pattern": GrowingRule((FieldType.STRING, FieldType.MARKDOWN), lambda n: f"(a|aa)+{'b?' * min(n // 100, 400)}$"),
}
"""What a field asks of its value, by the member of its definition."""
SMALL_RULES = {"type", "required", "unique", "default", "min", "max", "items", "max_size", "description"}
"""Members of which a check reads no more for many values than for one; items are a field of their own."""
ITEMS: tuple[Any, ...] = ("o1", "/a.pdf", 1, {}, {"model": "zz", "ref": "a"}, [], "")
"""Values, each of which is right for some types and wrong for others."""
MARKS = "\u0315\u0300"
VERSION = {"model": "page", "id": "a", "version": 1, "action": "create", "at": "", "created_at": ""}
EQUAL_SECTIONS = [{"id": "s1.x", "model": "hero"}]


def make_sections(count: int) -> list[dict[str, str]]:
    return [{"id": f"s{number}.x", "model": "hero"} for number in range(count)]


def prepare_validation(field_type: FieldType, rule: str, item: Any) -> Callable[[int], Callable[[], object]]:
    def prepare(size: int) -> Callable[[], object]:
        items = {"type": field_type.value, rule: GROWING_RULES[rule].make(size)}
        fields = {"a": FieldDefinition.from_wire({"type": "array", "items": items})}
        return lambda: validate_content({"a": [item] * (size // 4)}, fields)

    return prepare


@pytest.mark.parametrize("rule", GROWING_RULES)
def test_many_values_are_checked_against_many_rules_in_proportion_to_both(rule: str) -> None:
    slow = {
        f"{field_type} {item!r}": growth
        for field_type in GROWING_RULES[rule].types
        for item in ITEMS
        if (growth := measure(prepare_validation(field_type, rule, item))) > MAX_GROWTH
    }
    assert slow == {}


def test_each_rule_of_fields_is_tried_with_many_values() -> None:
    assert GROWING_RULES.keys() | SMALL_RULES == FieldDefinition.model_fields.keys()


def measure(prepare: Callable[[int], Callable[[], object]]) -> float:
    return measure_growth(prepare, CHARS, CHARS, noticeable_seconds=NOTICEABLE_SECONDS, max_seconds=10)


def test_relations_to_many_models_are_checked_in_proportion_to_both() -> None:
    def prepare(size: int) -> Callable[[], object]:
        field = FieldDefinition.from_wire({"type": "relations", "model": GROWING_RULES["model"].make(size)})
        return lambda: validate_content({"a": [1, {"model": "zz", "ref": "a"}] * (size // 8)}, {"a": field})

    assert measure(prepare) <= MAX_GROWTH


def test_sections_and_their_fields_are_worked_on_in_proportion_to_both() -> None:
    def prepare_page(size: int) -> DocumentContent:
        count = size // 8
        names = {f"f{number}": "x" for number in range(count)}
        return DocumentContent(slug="aa", locales={"data": {"sections": make_sections(count)}, "en": names})

    def prepare_rendering(size: int) -> Callable[[], object]:
        version = DocumentVersion.model_validate(VERSION | {"content": prepare_page(size)})
        return lambda: render_document_html(version, "en")

    def prepare_removal(size: int) -> Callable[[], object]:
        page = prepare_page(size)
        return lambda: remove_page_sections(page, [f"s{number}.x" for number in range(size // 8)])

    assert measure(prepare_rendering) <= MAX_GROWTH
    assert measure(prepare_removal) <= MAX_GROWTH


def test_a_member_that_is_there_twice_is_found_in_proportion_to_the_file() -> None:
    def prepare(size: int) -> Callable[[], object]:
        text = json.dumps({f"m{number}": 1 for number in range(size // 12)})[:-1] + ',"z":1,"z":1}'
        return lambda: refuse(parse_canonical_json, text)

    assert measure(prepare) <= MAX_GROWTH
    with pytest.raises(UnreadableFile, match="'z' is there twice"):
        parse_canonical_json('{"a":1,"z":1,"z":1}', "a.json")


def refuse(read: Callable[[str, str], object], text: str) -> None:
    with pytest.raises(InvalidRequest):
        read(text, "a.json")


def test_marks_of_letters_are_removed_in_proportion_to_the_text() -> None:
    assert measure(lambda size: lambda: normalize_words(MARKS * (size // 2))) <= MAX_GROWTH
    assert normalize_words("Crème\u0315\u0300 BRÛLÉE Straße ﷺ") == [
        "creme",
        "brulee",
        "strasse",
        *["صلى", "الله", "عليه", "وسلم"],
    ]


def test_a_pattern_that_takes_many_steps_for_each_letter_is_not_tried_on_long_texts() -> None:
    """It took 27 seconds for 16 KB."""
    pattern = "|".join(f"[ab]{{{1000 - number}}}x" for number in range(90))
    text = "".join(random.Random(1).choices("ab", k=16_000))
    with pytest.raises(PatternTooCostly):
        contains_match(pattern, text)
    field = FieldDefinition.from_wire({"type": "text", "pattern": pattern})
    (problem,) = validate_content({"a": text}, {"a": field})
    assert (problem.severity, problem.kind) == ("warning", "bad_pattern")
    assert "may take too long for so much text" in problem.message


def test_patterns_of_all_texts_of_a_document_share_one_budget() -> None:
    budget = PatternBudget(steps=1_000)
    assert contains_match("a", "a" * 50, budget)
    with pytest.raises(PatternTooCostly):
        contains_match("a", "a" * 500, budget)


def test_real_patterns_are_tried_on_long_texts() -> None:
    for pattern in (r"^\p{L}{1,100}$", r"^.{1,500}$", r"^[^<>]*$"):
        contains_match(pattern, "a" * 2_000)
    assert contains_match("^[^<>]*$", "a" * 1_000_000)


def test_so_many_problems_are_listed_as_somebody_reads() -> None:
    """A short list of wrong values made an answer that was larger than a function may send."""
    fields = {"a": FieldDefinition.from_wire({"type": "array", "items": "string"})}
    problems = validate_content({"a": [1] * 100_000}, fields)
    assert len(problems) == MAX_CONTENT_PROBLEMS
    assert list(limit_problems(problems * 2)) == problems


def test_an_error_behind_many_warnings_is_found() -> None:
    fields = {
        "a": FieldDefinition.from_wire({"type": "array", "items": "email"}),
        "b": FieldDefinition.from_wire({"type": "number"}),
    }
    found = validate_content({"a": ["x"] * 1_000, "b": "x"}, fields)
    assert [one.severity for one in found] == ["warning"] * MAX_CONTENT_PROBLEMS + ["error"]


def test_what_a_section_still_lacks_hides_no_error() -> None:
    required = {f"f{number:03}": {"type": "string", "required": True} for number in range(150)}
    section = ContentModel.from_wire({"id": "hero", "kind": "section", "fields": {**required, "z": {"type": "number"}}})
    page = ContentModel.from_wire({"id": "page", "kind": "page", "i18n": True})
    locales = {"data": {"sections": EQUAL_SECTIONS}, "en": {"s1.x": {"z": "none"}}}
    content = DocumentContent(slug="aa", locales=locales)
    (problem,) = validate_document(content, page, {"hero": section}, ["en"])
    assert (problem.field, problem.kind) == ("en.s1.x.z", "type")


def test_members_of_objects_are_checked_in_the_order_of_their_fields() -> None:
    members = {f"f{number}": {"type": "number", "required": number == 7} for number in range(20)}
    field = FieldDefinition.from_wire({"type": "object", "fields": members})
    problems = validate_content({"a": {"f9": "x", "f3": "x", "zz": 1}}, {"a": field})
    assert [one.field for one in problems] == ["a.f3", "a.f7", "a.f9"]


def test_names_of_fields_are_short_because_each_value_is_named_by_them() -> None:
    inner = {"type": "array", "items": {"type": "object", "fields": {"x" * 101: {"type": "string"}}}}
    with pytest.raises(InvalidRequest, match="more than 100 characters"):
        parse_content_model({"id": "a", "kind": "collection", "fields": {"a": inner}})


def test_markdown_of_one_folder_belongs_to_one_model() -> None:
    models = {
        f".contentrain/models/m{number}.json": json.dumps(
            {"id": f"m{number}", "kind": "document", "content_path": "posts"}
        )
        for number in range(2)
    }
    config = json.dumps({"locales": {"default": "en", "supported": ["en"]}})
    with pytest.raises(UnreadableFile, match=r"m1\.json cannot be read: its content_path is that of the model m0"):
        parse_project_files({".contentrain/config.json": config, **models})


def test_a_missing_section_is_not_found() -> None:
    with pytest.raises(NotFound, match=r"There is no section s2\.x"):
        remove_page_sections(DocumentContent(locales={"data": {"sections": EQUAL_SECTIONS}}), ["s1.x", "s2.x"])


def test_conflicts_of_large_documents_fit_into_a_response() -> None:
    """Each of the values may have a megabyte, and Lambda answers with six."""
    found = tuple(FieldConflict(f"en.f{number}", "a" * 100_000, "b" * 100_000, "c" * 10) for number in range(50))
    conflicts = {DocumentKey("post", f"p{number}"): found for number in range(50)}
    views = list_conflict_views(conflicts)
    assert len(json.dumps(views)) < 5_000_000
    assert [one["id"] for one in views] == [f"p{number}" for number in range(50)]
    assert views[0]["fields"][0]["ours"] == "c" * 10
    assert str(MergeRefused(conflicts)).startswith("Others have changed the same fields of post/p0, post/p1, ")
    assert "post/p9 and 40 more. Say whose values count." in str(MergeRefused(conflicts))


def test_values_of_few_conflicts_are_whole() -> None:
    conflict = FieldConflict("en.body", "a" * 100_000, None, {"b": [1]})
    (view,) = list_conflict_views({DocumentKey("post", "p"): (conflict,)})
    assert view["fields"] == [{"field": "en.body", "base": "a" * 100_000, "theirs": None, "ours": {"b": [1]}}]


def test_the_worst_of_many_warnings_about_models_are_listed() -> None:
    fields = {f"f{number}": {"type": "object", "fields": {"a": {"type": "array"}}} for number in range(190)}
    nested = {f"g{number}": {"type": "string", "accept": "x"} for number in range(1_000)}
    model = ContentModel.from_wire(
        {"id": "a", "kind": "collection", "fields": {"n": {"type": "object", "fields": nested}, **fields}}
    )
    report = check_schema({"a": model}, {"a": model})
    assert len(report["warnings"]) == MAX_LISTED_WARNINGS
    assert sum(one["severity"] == "error" for one in report["warnings"]) == 190
