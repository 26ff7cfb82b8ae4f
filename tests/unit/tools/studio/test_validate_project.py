"""`validate` judges entries as well as models, and what is written says when too many branches wait."""

from typing import Any

from fermata.content.documents.document import ContentAuthor
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.write_project import write_project
from fermata.content.model_store import put_model
from fermata.content.opened_space import OpenedSpace
from fermata.content.space_members import SpaceMember, put_member
from fermata.tools.studio.content_analysis import iter_health_issues
from fermata.tools.studio.project_permissions import resolve_member_permissions
from fermata.tools.studio.studio_access import StudioAccess
from tests.unit.content.files.project_samples import CONFIG, FAQ, make_tree, text_of
from tests.unit.tools.studio.test_studio_tools import (
    AUTHOR,
    EDITOR,
    FRESH,
    SPACE,
    VIEWER,
    StudioAgent,
    agent,
    clock,
    resources,
    shared_resources,
)

__all__ = ["agent", "clock", "resources", "shared_resources"]


def break_entries(agent: StudioAgent) -> None:
    """Let the model ask for more than its entries have."""
    fields: dict[str, Any] = {**FAQ["fields"], "source": {"type": "url", "required": True}}  # type: ignore[dict-item]
    fields["answer"] = {"type": "markdown", "max": 5}
    fields["related"] = {"type": "relations", "model": "note"}
    changed = {**FAQ, "title": "Questions", "description": "Asked.", "fields": fields}
    put_model(agent.resources, SPACE, changed, ContentAuthor("ada"))


def list_problems(found: dict[str, Any], severity: str = "errors") -> list[tuple[str, str, str]]:
    return [(one["entryId"], one["field"], one["kind"]) for one in found["content"][severity]]


def test_entries_that_their_model_no_longer_takes_are_named_with_their_fields(agent: StudioAgent) -> None:
    before = agent.data("validate")
    assert (before["valid"], before["content"]["checked"], before["content"]["totalErrors"]) == (True, 5, 0)
    break_entries(agent)
    found = agent.data("validate", model="faq")
    assert found["valid"] is False
    assert list_problems(found) == [
        (FRESH, "en.source", "required"),
        (FRESH, "tr.source", "required"),
        ("how-long", "en.answer", "range"),
        ("how-long", "en.source", "required"),
    ]
    assert list_problems(found, "warnings") == [("how-long", "en.related", "relation_target")]
    turkish = agent.data("validate", model="faq", locale="tr")
    assert (list_problems(turkish), turkish["content"]["checked"]) == ([(FRESH, "tr.source", "required")], 1)
    assert "content" not in agent.data("validate_schema"), "which is about models only"


def test_a_member_of_some_models_hears_of_these_only(agent: StudioAgent) -> None:
    break_entries(agent)
    put_member(agent.resources, SPACE, SpaceMember(user=AUTHOR.user, role="viewer", models=frozenset({"hero"})))
    found = agent.data("validate", rights=VIEWER)
    assert (found["valid"], found["content"]["checked"]) == (True, 1)
    assert not agent.call("validate", rights=VIEWER, model="faq").ok
    put_member(agent.resources, SPACE, SpaceMember(user=AUTHOR.user, role="viewer", locales=frozenset({"tr"})))
    assert {one[1][:3] for one in list_problems(agent.data("validate", rights=VIEWER))} == {"tr."}


def test_what_entries_lack_is_listed_required_values_first(agent: StudioAgent) -> None:
    break_entries(agent)
    opened = OpenedSpace(agent.resources, SPACE, AUTHOR)
    access = StudioAccess(opened, resolve_member_permissions("owner", None), {})
    issues = list(iter_health_issues(access))
    assert issues[0] == f"faq/{FRESH} (en) lacks source"
    assert issues[-1] == "faq/how-long is not translated into tr"


def test_a_project_says_itself_how_many_branches_are_many_and_too_many(agent: StudioAgent) -> None:  # G144, G145
    config = {**CONFIG, "workflow": "review", "branchWarnLimit": 2, "branchBlockLimit": 3}
    tree = make_tree() | {".contentrain/config.json": text_of(config)}
    write_project(agent.resources, SPACE, parse_project_files(tree), ContentAuthor("ada", "import"))

    def save(answer: str) -> Any:
        return agent.call("save_content", rights=EDITOR, model="faq", data={FRESH: {"answer": answer}})

    first, second = save("a").data, save("b").data
    assert ("warning" in first, "2 branches wait" in second["warning"]) == (False, True)
    assert agent.data("branch_health")["thresholds"] == {"warning": 2, "blocked": 3}
    assert save("c").ok
    refused = save("d")
    assert (refused.ok, "3 branches wait" in str(refused.error)) == (False, True)
