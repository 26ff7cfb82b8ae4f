"""The tools of the studio, from the call of a model to what is stored: phases, roles, branches, results."""

import json
from dataclasses import replace
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set_store import begin_change_set, list_change_sets
from fermata.content.content_space import ContentSpace, SpaceKey, read_space
from fermata.content.documents.document import ContentAuthor, ContentStatus, DocumentKey
from fermata.content.documents.read_document import (
    PROJECT_KEY,
    read_document,
    read_newest_version,
    read_write_basis,
    waits_for_review,
)
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.write_project import write_project
from fermata.content.model_store import create_space, read_model
from fermata.content.opened_space import OpenedSpace
from fermata.content.space_members import SpaceMember, put_member, remove_member
from fermata.domain.caller import Capability
from fermata.domain.errors import NotFound
from fermata.domain.tools import ToolOutput
from fermata.domain.workspace_plan import Subscription
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.calls.runner import run_tool
from fermata.tools.studio.studio_access import resolve_caller_permissions
from fermata.tools.studio.tool_rules import TOOL_RULES, ProjectPhase
from fermata.tools.studio.toolset import STUDIO_TOOLSET
from fermata.wire.auth.tenant_store import update_tenant
from tests.tenant_tokens import make_tenant
from tests.unit.content.files.project_samples import CONFIG, make_tree, text_of
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.tools.builders import make_call, make_context

__all__ = ["clock", "resources", "shared_resources"]
SPACE = SpaceKey("bakery", "studio")
AUTHOR = ContentAuthor("ada", "agent", "turn-1")
BASIC = {Capability.CHAT, Capability.WRITE}
ADMIN = frozenset({*BASIC, Capability.CONTENT})
EDITOR = frozenset({*BASIC, Capability.WRITE_CONTENT})
REVIEWER = frozenset({*BASIC, Capability.READ_CONTENT, Capability.REVIEW_CONTENT})
VIEWER = frozenset({*BASIC, Capability.READ_CONTENT})
FRESH = "a1b2c3d4e5f6"


class StudioAgent:
    """Calls tools in a project, each call under a key of its own unless it is repeated."""

    def __init__(self, resources: Resources, workflow: str = "auto-merge") -> None:
        self.resources, self.calls = resources, 0
        create_space(resources, SPACE, ContentSpace(locales=("en", "tr")), AUTHOR)
        tree = make_tree() | {".contentrain/config.json": text_of({**CONFIG, "workflow": workflow})}
        write_project(resources, SPACE, parse_project_files(tree), ContentAuthor("ada", "import"))

    def call(
        self, tool: str, /, *, rights: frozenset[str] = ADMIN, key: str = "", ui: Any = None, **arguments: Any
    ) -> ToolOutput:
        self.calls += 1
        opened = OpenedSpace(self.resources, SPACE, AUTHOR, key or f"turn-1/{self.calls}/0")
        return call_studio_tool(self.resources, opened, tool, arguments, rights, ui)

    def data(self, tool: str, /, **arguments: Any) -> Any:
        output = self.call(tool, **arguments)
        assert output.ok, output.error
        return output.data

    def read(self, entry: str = FRESH, locale: str = "en") -> dict[str, Any]:
        content = read_document(self.resources, SPACE, DocumentKey("faq", entry)).content
        assert content is not None
        return dict(content.get_locale(locale))


def call_studio_tool(
    resources: Resources,
    opened: OpenedSpace,
    name: str,
    arguments: dict[str, Any],
    rights: frozenset[str],
    ui: Any = None,
) -> ToolOutput:
    context = make_context(user=AUTHOR.user, capabilities=rights, open_content=lambda: opened, snapshot=ui)
    admitted = admit_call(STUDIO_TOOLSET, make_call(name, arguments), context)
    return run_tool(admitted, context, clock=resources.clock) if isinstance(admitted, AdmittedCall) else admitted


@pytest.fixture
def agent(resources: Resources) -> StudioAgent:
    return StudioAgent(resources)


@pytest.fixture
def reviewed(resources: Resources) -> StudioAgent:
    """An agent in a project whose changes are reviewed."""
    return StudioAgent(resources, "review")


def test_a_field_is_saved_and_the_others_stay(agent: StudioAgent) -> None:  # G128, G130
    written = agent.data("save_content", model="faq", locale="en", data={FRESH: {"answer": "Of course.", "tags": None}})
    assert (written["valid"], written["merged"], written["errors"]) == (True, True, [])
    assert written["branch"].startswith("cr/content/faq/en/")
    assert agent.read() == {"answer": "Of course.", "question": "Is it fresh?"}
    content = read_document(agent.resources, SPACE, DocumentKey("faq", FRESH)).content
    assert content is not None
    assert (content.get_status("en"), content.get_status("tr")) == (ContentStatus.PUBLISHED, ContentStatus.DRAFT)
    assert content.meta["en"]["source"] == "agent"


def test_what_is_said_in_a_further_language_begins_as_a_draft(agent: StudioAgent) -> None:
    agent.data("delete_content", model="faq", entryIds=[FRESH], locale="tr")
    for question in ("Taze mi?", "Bu taze mi?"):
        said = {FRESH: {"question": question, "answer": "Evet."}}
        assert agent.data("save_content", rights=EDITOR, model="faq", locale="tr", data=said)["merged"]
    content = read_document(agent.resources, SPACE, DocumentKey("faq", FRESH)).content
    assert content is not None
    assert (content.get_status("en"), content.get_status("tr")) == (ContentStatus.PUBLISHED, ContentStatus.DRAFT)
    agent.data("update_status", model="faq", locale="tr", entryIds=[FRESH], status="published")
    agent.data("save_content", rights=EDITOR, model="faq", locale="tr", data={FRESH: {"question": "Taze?"}})
    content = read_document(agent.resources, SPACE, DocumentKey("faq", FRESH)).content
    assert content is not None
    assert content.get_status("tr") is ContentStatus.PUBLISHED


def test_an_entry_whose_published_language_is_deleted_is_listed_as_what_is_left(agent: StudioAgent) -> None:
    agent.data("delete_content", model="faq", entryIds=[FRESH], locale="en")
    content = read_document(agent.resources, SPACE, DocumentKey("faq", FRESH)).content
    assert content is not None
    assert (set(content.locales), content.status) == ({"tr"}, ContentStatus.DRAFT)


def test_a_call_that_is_repeated_makes_one_entry(agent: StudioAgent) -> None:
    data = {"new": {"question": "Sour?", "answer": "Yes."}}
    first = agent.data("save_content", key="turn-1/9/0", model="faq", data=data)
    second = agent.data("save_content", key="turn-1/9/0", model="faq", data=data)
    assert (first["branch"], first["entryIds"]) == (second["branch"], second["entryIds"])
    assert second["merged"]
    assert len(first["entryIds"][0]) == 12
    assert read_model(agent.resources, SPACE, "faq").documents == 3


def test_content_that_breaks_a_rule_makes_no_branch(agent: StudioAgent) -> None:  # G083
    written = agent.data("save_content", model="faq", data={FRESH: {"question": ""}})
    assert (written["branch"], written["valid"], written["merged"]) == ("", False, False)
    assert [one["field"] for one in written["errors"]] == [f"{FRESH}.en.question"]
    assert list_change_sets(agent.resources, SPACE) == []


def test_two_entries_of_one_call_cannot_have_the_same_unique_value(agent: StudioAgent) -> None:
    fields = {"name": {"type": "string", "required": True, "unique": True}}
    agent.data("save_model", id="tip", name="Tips", kind="collection", domain="product", i18n=False, fields=fields)
    written = agent.data("save_content", model="tip", data={"a1": {"name": "Rye"}, "a2": {"name": "Rye"}})
    assert [(one["field"], one["kind"]) for one in written["errors"]] == [("a2.name", "unique")]
    assert all(one.status == "merged" for one in list_change_sets(agent.resources, SPACE)), "no branch is left behind"
    assert agent.data("save_content", model="tip", data={"a1": {"name": "Rye"}, "a2": {"name": "Bun"}})["merged"]


def test_changes_of_an_editor_wait_for_a_review_and_a_reviewer_merges_them(reviewed: StudioAgent) -> None:
    written = reviewed.data("save_content", rights=EDITOR, model="faq", data={FRESH: {"answer": "No."}})
    assert (written["merged"], written["workflow"], written["reviewBranch"]) == (False, "review", written["branch"])
    assert reviewed.read()["answer"] == "Yes."
    assert [one["name"] for one in reviewed.data("list_branches", rights=VIEWER)["branches"]] == [written["branch"]]
    refused = reviewed.call("merge_branch", rights=EDITOR, branch=written["branch"])
    assert refused.data["code"] == "permission_denied"
    assert reviewed.data("merge_branch", rights=REVIEWER, branch=written["branch"])["merged"]
    assert reviewed.read()["answer"] == "No."


def test_a_branch_is_merged_onto_what_others_have_changed_or_names_the_fields(reviewed: StudioAgent) -> None:
    first = reviewed.data("save_content", rights=EDITOR, model="faq", data={FRESH: {"answer": "No."}})
    second = reviewed.data("save_content", rights=EDITOR, model="faq", data={FRESH: {"answer": "Maybe."}})
    other = reviewed.data("save_content", rights=EDITOR, model="faq", data={FRESH: {"question": "Is it new?"}})
    for one in (first, other):
        assert reviewed.data("merge_branch", branch=one["branch"])["merged"]
    assert reviewed.read() == {"answer": "No.", "question": "Is it new?", "tags": ["bread"]}
    refused = reviewed.call("merge_branch", branch=second["branch"])
    assert (refused.data["code"], "a person decides" in refused.data["suggestion"]) == ("mergeConflict", True)
    assert reviewed.data("reject_branch", branch=second["branch"]) == {"rejected": True, "branch": second["branch"]}
    assert reviewed.data("list_branches")["branches"] == []


def test_the_permanent_branch_is_not_rejected(agent: StudioAgent) -> None:  # G086
    assert not agent.call("reject_branch", branch="contentrain").ok
    assert "There is no branch cr/none" in str(agent.call("reject_branch", branch="cr/none").error)


def test_too_many_branches_keep_new_ones_from_being_made(agent: StudioAgent) -> None:  # G144, G145
    for number in range(55):
        begin_change_set(agent.resources, SPACE, "x", AUTHOR, branch=f"cr/content/faq/en/{number}-ab")
    assert agent.data("branch_health") | {"lastChecked": ""} == {
        "status": "warning", "unmergedCount": 55, "lastChecked": "", "thresholds": {"warning": 50, "blocked": 80},
    }  # fmt: skip
    for number in range(25):
        begin_change_set(agent.resources, SPACE, "x", AUTHOR, branch=f"cr/content/faq/tr/{number}-ab")
    refused = agent.call("save_content", model="faq", data={FRESH: {"answer": "No."}})
    assert not refused.ok
    assert "80" in refused.data["error"]


@pytest.mark.parametrize(
    ("rights", "roles"),
    [(VIEWER, {"viewer"}), (REVIEWER, {"reviewer"}), (EDITOR, {"editor"}), (EDITOR | REVIEWER, {"editor", "reviewer"})],
)
def test_a_role_may_call_exactly_its_tools(agent: StudioAgent, rights: frozenset[str], roles: set[str]) -> None:
    """Checked when a call runs, whatever the model was offered (G047)."""
    for name, rule in TOOL_RULES.items():
        if STUDIO_TOOLSET.find_tool(name) is None:
            continue
        output = agent.call(name, rights=rights, **_make_input(name))
        is_denied = isinstance(output.data, dict) and output.data.get("code") == "permission_denied"
        assert is_denied is not bool(roles & rule.project_roles), name


def _make_input(name: str) -> dict[str, Any]:
    """Return an input that a tool takes, and that changes nothing."""
    values = {
        "model": "none", "branch": "cr/none", "data": {}, "entryIds": ["none"], "id": "none", "name": "x", "from": "en",
        "kind": "collection", "domain": "x", "stack": "other", "locales": ["en"], "domains": ["x"], "to": "tr",
        "query": "none", "assetId": "none", "status": "draft", "entryId": "none", "locale": "de-DE", "type": "full",
        "url": "http://none.example", "modelId": "none", "submissionId": "none",
    }  # fmt: skip
    tool = STUDIO_TOOLSET.find_tool(name)
    assert tool is not None
    return {member: values[member] for member in tool.input_schema.get("required", ())}


def test_nobody_without_rights_to_content_may_call_anything(agent: StudioAgent) -> None:
    assert resolve_caller_permissions(frozenset(BASIC)).tools == frozenset()
    assert not agent.call("list_models", rights=frozenset(BASIC)).ok


def test_a_project_begins_with_init_and_refuses_it_afterwards(resources: Resources) -> None:  # G100
    create_space(resources, SPACE, ContentSpace(), AUTHOR)

    def call(tool: str, **arguments: Any) -> ToolOutput:
        opened = OpenedSpace(resources, SPACE, AUTHOR, f"turn-1/{tool}/0")
        return call_studio_tool(resources, opened, tool, arguments, ADMIN)

    refused = call("save_content", model="faq", data={})
    assert refused.data["error"] == "The project has no content structure yet."
    assert refused.data["suggestion"] == "Call init_project first."
    models = [{"id": "faq", "name": "Questions", "kind": "collection", "domain": "site", "i18n": True,
               "fields": {"question": {"type": "string", "required": True}}}]  # fmt: skip
    begun = call("init_project", stack="other", locales=["tr", "en"], domains=["site"], models=models)
    assert begun.ok, begun.error
    assert begun.data["merged"]
    assert begun.data["branch"].startswith("cr/new/init/")
    saved = call("save_content", model="faq", data={"first-one": {"question": "Taze mi?"}})
    assert saved.ok, saved.error
    assert saved.data["branch"].startswith("cr/content/faq/tr/"), "the first locale is the default"
    opened = OpenedSpace(resources, SPACE, AUTHOR, "turn-2/1/0")
    again = call_studio_tool(
        resources, opened, "init_project", {"stack": "x", "locales": ["en"], "domains": ["x"]}, ADMIN
    )
    assert again.data["suggestion"] == "Use save_content or save_model to change it."


def test_a_beginning_that_is_refused_leaves_nothing_and_the_second_of_two_at_once_is_refused(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_space(resources, SPACE, ContentSpace(locales=("en", "tr")), AUTHOR)

    def begin(number: int, *models: str, locales: tuple[str, ...] = ("en", "tr")) -> ToolOutput:
        fields = {"title": {"type": "string"}}
        same = {"name": "M", "kind": "singleton", "domain": "site", "fields": fields}
        definitions = [same | {"id": model} for model in models]
        arguments = {"stack": "x", "locales": list(locales), "domains": ["site"], "models": definitions}
        opened = OpenedSpace(resources, SPACE, AUTHOR, f"turn-{number}/1/0")
        return call_studio_tool(resources, opened, "init_project", arguments, ADMIN)

    assert not begin(1, "page", locales=("de",)).ok, "a name that is taken"
    reserved = begin(1, PROJECT_KEY.model).data
    assert (reserved["valid"], reserved["errors"][0]["kind"]) == (False, "reserved_model")
    assert [one.status for one in list_change_sets(resources, SPACE) if one.status == "open"] == []
    assert begin(2, "hero").data["merged"]
    # The second call has read the phase before the first one was merged.
    monkeypatch.setattr("fermata.tools.studio.studio_handler.refuse_in_phase", lambda *_: None)
    late = begin(3, "banner", locales=("de",))
    assert "Somebody else has begun this project" in str(late.error)
    assert read_space(resources, SPACE).locales == ("en", "tr")
    assert {one.status for one in list_change_sets(resources, SPACE)} <= {"merged", "discarded"}
    # It has even begun to write before the first one was merged, and says the same.
    monkeypatch.setattr("fermata.tools.studio.project_tools.read_newest_version", lambda *_: None)
    late = begin(4, "banner")
    assert "Somebody else has begun this project" in str(late.error)
    with pytest.raises(NotFound):
        read_model(resources, SPACE, "banner")


def test_an_init_that_waits_lets_nothing_but_its_merge_happen(resources: Resources) -> None:
    create_space(resources, SPACE, ContentSpace(), AUTHOR)
    begin_change_set(resources, SPACE, "init", AUTHOR, branch="cr/new/init/1-ab", change_set_id="init")

    def call(tool: str, **arguments: Any) -> Any:
        opened = OpenedSpace(resources, SPACE, AUTHOR, f"turn-1/{tool}/0")
        return call_studio_tool(resources, opened, tool, arguments, ADMIN).data

    assert call("brain_search", query="x")["code"] == "init_pending_merge"
    init = {"stack": "x", "locales": ["en"], "domains": ["x"]}
    assert call("init_project", **init)["code"] == "init_already_pending"
    assert call("reject_branch", branch="cr/new/init/1-ab")["rejected"]
    assert call("init_project", **init)["merged"]


def test_content_is_read_in_the_language_that_is_meant(agent: StudioAgent) -> None:  # G042
    def read(**named: Any) -> Any:
        return agent.data("get_content", model="faq", **named)["data"][FRESH]["question"]

    assert read() == "Is it fresh?"
    assert read(ui={"activeLocale": "tr"}) == "Taze mi?"
    assert read(ui={"activeLocale": "tr"}, locale="en") == "Is it fresh?"
    assert not agent.call("get_content", model="faq", locale="fr").ok
    entry = agent.data("brain_query", model="note", entryId="first-bread")
    assert (entry["data"]["title"], entry["meta"]) == ("First bread", {"status": "in_review"})
    assert agent.data("get_content", model="hero")["data"]["title"] == "Bread"
    assert agent.data("get_content", model="words", locale="tr")["data"] is None
    assert not agent.call("get_content", model="studio-project").ok, "settings are no content"


def test_a_search_finds_entries_whatever_the_case(agent: StudioAgent) -> None:
    found = agent.data("brain_search", query="TWO days")
    assert (found["total"], found["results"][0]["entryId"]) == (1, "how-long")
    assert agent.data("brain_search", query="fresh", model="note")["total"] == 0
    agent.data("save_content", model="faq", data={"how-long": {"answer": "Three days."}})
    assert agent.data("brain_search", query="two days")["total"] == 0, "what was written is known at once"


def test_relations_are_followed_in_both_directions(agent: StudioAgent) -> None:
    forward = agent.data("relation_expand", model="faq", entryId="how-long")["forward"]
    assert [(one["field"], one["ref"], one["found"]) for one in forward] == [("related", FRESH, True)]
    reverse = agent.data("relation_expand", model="faq", entryId=FRESH, direction="reverse")["reverse"]
    assert [(one["model"], one["entryId"]) for one in reverse] == [("faq", "how-long")]


def test_a_language_is_copied_only_where_there_is_nothing(agent: StudioAgent) -> None:  # G131
    refused = agent.data("copy_locale", model="faq", **{"from": "en", "to": "tr"})
    assert (refused["error"], refused["branch"]) == ("target_not_empty", "")
    added = agent.data("add_locale", locale="de", copyFrom="en")
    assert added["locales"] == ["en", "tr", "de"]
    assert agent.read(locale="de")["question"] == "Is it fresh?"
    content = read_document(agent.resources, SPACE, DocumentKey("faq", FRESH)).content
    assert content is not None
    assert (content.get_status("de"), content.get_status("en")) == (ContentStatus.DRAFT, ContentStatus.PUBLISHED)
    assert not agent.call("add_locale", locale="de").ok


def test_only_owners_and_admins_publish(agent: StudioAgent) -> None:
    publish: dict[str, Any] = {"model": "faq", "entryIds": ["how-long"], "status": "published"}
    assert "Only owners and admins" in str(agent.call("update_status", rights=EDITOR, **publish).error)
    assert agent.data("update_status", **publish)["merged"]
    archived = agent.data("update_status", rights=EDITOR, **(publish | {"status": "archived"}))
    assert archived["status"] == "archived"


def test_an_entry_has_no_status_in_a_language_in_which_it_says_nothing(agent: StudioAgent) -> None:
    refused = agent.call("update_status", model="faq", locale="tr", entryIds=["how-long"], status="published")
    assert "faq/how-long says nothing in tr" in str(refused.error)


def test_an_entry_whose_published_language_says_nothing_more_is_listed_as_what_is_left(agent: StudioAgent) -> None:
    agent.data("update_status", model="words", locale="en", entryIds=["main"], status="published")
    agent.data("save_content", rights=EDITOR, model="words", locale="tr", data={"auth.failed": "Olmadı"})
    gone = dict.fromkeys(("auth.expired", "auth.failed"))
    agent.data("save_content", rights=EDITOR, model="words", locale="en", data=gone)
    content = read_document(agent.resources, SPACE, DocumentKey("words", "main")).content
    assert content is not None
    assert (content.status, content.list_spoken_locales()) == (ContentStatus.DRAFT, ["tr"])


def test_entries_keys_and_languages_are_deleted(agent: StudioAgent) -> None:
    agent.data("delete_content", model="faq", entryIds=[FRESH], locale="tr")
    assert agent.read(locale="tr") == {}
    agent.data("delete_content", model="faq", entryIds=[FRESH])
    gone = read_newest_version(agent.resources, SPACE, DocumentKey("faq", FRESH))
    assert gone is not None
    assert gone.is_deleted
    agent.data("delete_content", model="words", entryIds=["auth.failed"])
    assert agent.data("get_content", model="words")["data"] == {"auth.expired": "Expired"}
    assert not agent.call("delete_content", model="words", entryIds=["auth.failed"]).ok


def test_a_document_is_known_by_its_slug(agent: StudioAgent) -> None:
    saved = agent.data("save_content", model="note", slug="rye", data={"title": "Rye"}, body="Dark.")
    assert saved["valid"], saved["errors"]
    entry = agent.data("brain_query", model="note", entryId="rye")["data"]
    assert entry == {"slug": "rye", "title": "Rye", "body": "Dark."}
    assert not agent.call("save_content", model="note", data={"title": "Rye"}).ok


def test_models_are_saved_field_by_field_and_deleted_once_nothing_points_to_them(agent: StudioAgent) -> None:
    field = {"title": {"type": "string", "required": True}, "faq": {"type": "relation", "model": "faq"}}
    model = {"id": "tip", "name": "Tips", "kind": "collection", "domain": "product"}
    assert agent.data("save_model", **model, fields=field)["merged"]
    changed = agent.data("save_model", **model, fields={"title": None, "text": {"type": "text", "required": True}})
    assert changed["breakingChanges"] == ["title: removed", "text: required"]
    assert list(read_model(agent.resources, SPACE, "tip").model.fields) == ["faq", "text"]
    broken = agent.data("save_model", **model, fields={"x": {"type": "select"}})
    assert (broken["valid"], broken["errors"][0]["kind"], broken["branch"]) == (False, "select_options", "")
    assert agent.data("delete_model", model="faq", confirm=True) == {"deleted": False, "referencedBy": ["tip.faq"]}
    assert agent.data("delete_model", model="tip")["requiresConfirmation"]
    assert agent.data("delete_model", model="tip", confirm=True)["deleted"]
    assert agent.data("delete_model", model="faq", confirm=True)["deleted"]
    assert "faq" not in json.dumps(agent.data("list_models"))


def test_terms_are_merged_and_removed(agent: StudioAgent) -> None:
    assert agent.data("vocabulary", rights=EDITOR)["terms"]["cart"] == {"en": "Cart", "tr": "Sepet"}
    written = agent.data("vocabulary", action="update", terms={"cart": None, "oven": {"en": "Oven"}})
    assert written["terms"] == {"shop": {}, "oven": {"en": "Oven"}}
    assert agent.data("vocabulary", action="read")["terms"] == {"shop": {}, "oven": {"en": "Oven"}}
    assert not agent.data("vocabulary", action="update", terms={"a": {"fr": "x"}})["valid"]


def test_content_is_analysed(agent: StudioAgent) -> None:
    full = agent.data("brain_analyze", type="full")
    assert full["localeParity"]["counts"]["faq"] == {"en": 2, "tr": 1}
    assert full["localeParity"]["missing"] == [{"model": "faq", "entryId": "how-long", "locale": "tr"}]
    assert full["quality"]["models"]["faq"] == 95
    assert full["staleContent"]["total"] == 0
    assert {"model": "faq", "entryId": FRESH, "locale": "tr", "issue": "title_too_short"} in full["seo"]["issues"]


def test_models_are_judged(agent: StudioAgent) -> None:  # G133: at each call, so the judgement is never unavailable
    report = agent.data("validate_schema")
    assert (report["valid"], report["modelCount"]) == (True, report["validModels"])
    assert {one["kind"] for one in agent.data("validate", model="faq")["warnings"]} == {"missing_description"}


def test_every_tool_is_known_by_its_rule() -> None:
    assert {tool.name for tool in STUDIO_TOOLSET.tools} == set(TOOL_RULES)
    assert len(STUDIO_TOOLSET.tools) == 29
    assert set(ProjectPhase) == {"uninitialized", "init_pending", "active", "error"}


def test_a_role_that_is_taken_away_in_mid_turn_counts_at_the_next_call(agent: StudioAgent) -> None:
    """The rights of a turn are those of its start. Rows are read by each call."""

    def save(answer: str) -> ToolOutput:
        return agent.call("save_content", rights=EDITOR, model="faq", locale="en", data={FRESH: {"answer": answer}})

    member = SpaceMember("ada", "editor")
    put_member(agent.resources, SPACE, member)
    assert save("First.").ok
    put_member(agent.resources, SPACE, replace(member, role="viewer"))
    refused = save("Second.")
    assert (refused.ok, refused.data["code"]) == (False, "permission_denied")
    assert agent.call("get_content", rights=EDITOR, model="faq").ok
    remove_member(agent.resources, SPACE, "ada")
    assert agent.call("get_content", rights=EDITOR, model="faq").data["code"] == "permission_denied"
    assert agent.read()["answer"] == "First."


def test_a_member_of_one_language_neither_sees_nor_changes_another(agent: StudioAgent) -> None:
    put_member(agent.resources, SPACE, SpaceMember("ada", "editor", None, frozenset({"tr"})))
    assert agent.call("brain_query", rights=EDITOR, model="faq").data["code"] == "locale_not_allowed"
    assert agent.call("brain_query", rights=EDITOR, model="faq", locale="tr").ok
    data = {FRESH: {"answer": "No."}}
    assert not agent.call("save_content", rights=EDITOR, model="faq", locale="en", data=data).ok
    analysis = agent.data("brain_analyze", rights=EDITOR, type="seo_audit")
    assert {one["locale"] for one in analysis["seo"]["issues"]} <= {"tr", "data"}


def test_a_reviewer_of_one_language_decides_about_branches_of_it(reviewed: StudioAgent) -> None:
    branches = {}
    for locale in ("en", "tr"):
        data = {FRESH: {"answer": f"In {locale}."}}
        branches[locale] = reviewed.data("save_content", rights=EDITOR, model="faq", locale=locale, data=data)["branch"]
    put_member(reviewed.resources, SPACE, SpaceMember("ada", "reviewer", None, frozenset({"tr"})))
    refused = reviewed.call("merge_branch", rights=REVIEWER, branch=branches["en"])
    assert refused.data["code"] == "locale_not_allowed"
    assert reviewed.call("merge_branch", rights=REVIEWER, branch=branches["tr"]).ok


def test_in_a_plan_without_reviews_changes_are_live_and_published_at_once(reviewed: StudioAgent) -> None:
    make_tenant(reviewed.resources, "bakery")
    waiting = reviewed.data("save_content", rights=EDITOR, model="faq", data={FRESH: {"answer": "No."}})
    assert waiting["merged"] is False
    update_tenant(reviewed.resources, "bakery", subscription=Subscription(plan="free"))
    draft = {"new": {"question": "Sour?", "answer": "Yes."}}
    written = reviewed.data("save_content", rights=EDITOR, model="faq", data=draft)
    assert (written["merged"], "reviewBranch" in written) == (True, False)
    content = read_document(reviewed.resources, SPACE, DocumentKey("faq", written["entryIds"][0])).content
    assert content is not None
    assert content.get_status("en") is ContentStatus.PUBLISHED
    basis = read_write_basis(reviewed.resources, SPACE, [])
    assert not waits_for_review(reviewed.resources, SPACE, basis), "Requests over HTTP are not held up either."
