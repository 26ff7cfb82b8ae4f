"""A caller who may work on some models or languages learns of no others, by whichever tool or part of the prompt."""

from typing import Any, NamedTuple

import pytest

from fermata.agents.agent_space import AgentSpace
from fermata.agents.studio.situation import describe_studio_space
from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set, list_change_sets
from fermata.content.content_space import read_space
from fermata.content.documents.document import DocumentKey
from fermata.content.media.asset_store import AssetTexts, store_asset
from fermata.content.model_store import list_content_models
from fermata.content.opened_space import OpenedSpace
from fermata.content.space_members import SpaceMember, put_member
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.caller import Caller, Capability
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.calls.runner import run_tool
from fermata.tools.studio.affected_resources import AffectedResources, collect_affected
from fermata.tools.studio.tool_rules import TOOL_RULES
from fermata.tools.studio.toolset import STUDIO_TOOLSET
from fermata.wire.auth.conversation_key_store import create_conversation_key
from tests.images import make_image
from tests.resources import TestClock
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.tools.builders import make_call, make_context
from tests.unit.tools.studio.test_studio_tools import (
    ADMIN,
    AUTHOR,
    EDITOR,
    FRESH,
    REVIEWER,
    SPACE,
    StudioAgent,
)
from tests.unit.tools.studio.test_submission_and_upload_tools import leave_submission

__all__ = ["clock", "resources", "shared_resources"]
TURKISH = frozenset({"tr"})


class AnsweredCall(NamedTuple):
    """A call with its result, as clients are told it."""

    tool_name: str
    input: Any
    result: Any
    ok: bool = False


@pytest.fixture
def agent(resources: Resources) -> StudioAgent:
    return StudioAgent(resources, "review")


def restrict(
    agent: StudioAgent, role: str = "editor", *, models: set[str] | None = None, turkish: bool = False
) -> None:
    only = None if models is None else frozenset(models)
    put_member(agent.resources, SPACE, SpaceMember("ada", role, only, TURKISH if turkish else None))


def describe(agent: StudioAgent) -> str:
    """Return what the model is told of the project for the member."""
    space = AgentSpace(
        key=SPACE,
        space=read_space(agent.resources, SPACE),
        models=tuple(list_content_models(agent.resources, SPACE)),
        resources=agent.resources,
        user="ada",
        capabilities=EDITOR,
    )
    return describe_studio_space(space)


def test_titles_of_entries_are_in_a_language_of_the_member(agent: StudioAgent) -> None:
    assert "Is it fresh?" in describe(agent)
    restrict(agent, turkish=True)
    told = describe(agent)
    assert "Taze mi?" in told
    assert "Is it fresh?" not in told


def test_the_entries_that_were_changed_last_and_the_titles_of_changes_are_told(
    agent: StudioAgent, clock: TestClock
) -> None:
    for number in range(6):
        clock.now += 60
        data = {f"{9 - number}-entry": {"question": f"Question {number}?", "answer": "Yes."}}
        agent.data("save_content", model="faq", data=data)
    begin_change_set(agent.resources, SPACE, "Winter hours", AUTHOR)
    told = describe(agent)
    assert "faq: 4-entry=Question 5?, 5-entry=Question 4?" in told
    assert "9-entry=" not in told
    assert "(Winter hours)" in told


def test_branches_and_the_last_operation_are_told_as_far_as_they_are_the_members(agent: StudioAgent) -> None:
    for model, locale, data in (("faq", "en", {FRESH: {"answer": "No."}}), ("hero", "en", {"title": "Bread"})):
        agent.data("save_content", rights=EDITOR, model=model, locale=locale, data=data)
    assert "Last operation" in describe(agent)
    restrict(agent, models={"hero"})
    [branch] = agent.data("list_branches", rights=EDITOR)["branches"]
    assert branch["name"].startswith("cr/content/hero/")
    told = describe(agent)
    assert "cr/content/faq/" not in told
    assert "Last operation" not in told
    restrict(agent, turkish=True)
    assert agent.data("list_branches", rights=EDITOR)["branches"] == []


def test_an_analysis_counts_no_language_that_the_member_may_not_see(agent: StudioAgent) -> None:
    restrict(agent, turkish=True)
    parity = agent.data("brain_analyze", rights=EDITOR, type="locale_parity")["localeParity"]
    assert {locale for counts in parity["counts"].values() for locale in counts} == {"tr"}


def test_submissions_in_other_languages_are_neither_seen_nor_decided_about(agent: StudioAgent) -> None:
    english, turkish = (leave_submission(agent.resources, locale=locale) for locale in ("en", "tr"))
    restrict(agent, "reviewer", turkish=True)
    shown = agent.data("list_submissions", rights=REVIEWER, modelId="faq")["submissions"]
    assert [one["id"] for one in shown] == [turkish]
    for tool in ("reject_submission", "approve_submission"):
        assert agent.call(tool, rights=REVIEWER, submissionId=english).data["code"] == "locale_not_allowed"
    assert agent.call("reject_submission", rights=REVIEWER, submissionId=turkish).ok


def test_a_language_that_the_page_names_is_refused_in_words_and_has_changed_nothing(agent: StudioAgent) -> None:
    restrict(agent, turkish=True)
    arguments: dict[str, Any] = {"model": "faq", "data": {FRESH: {"answer": "No."}}}
    refused = agent.call("save_content", rights=EDITOR, ui={"activeLocale": "en"}, **arguments)
    assert refused.data["error"] == "You may not read or change content in this language."
    published: dict[str, Any] = {"model": "faq", "locale": "tr", "entryIds": [FRESH], "status": "published"}
    calls = [
        AnsweredCall("save_content", arguments, refused.data),
        AnsweredCall("update_status", published, agent.call("update_status", rights=EDITOR, **published).data),
    ]
    assert collect_affected(calls) == AffectedResources()


def test_an_asset_is_deleted_only_by_who_may_change_all_that_names_it(resources: Resources) -> None:
    agent = StudioAgent(resources)
    documents = WorkingDocuments(agent.resources, SPACE, AUTHOR)
    asset = store_asset(documents, make_image(40, 30), AssetTexts("bread.png")).version.id
    agent.data("save_content", model="faq", locale="en", data={FRESH: {"answer": f"![Bread]({asset})"}})
    for only in ({"models": {"hero"}}, {"turkish": True}):
        restrict(agent, **only)
        refused = agent.call("delete_media", rights=EDITOR, assetId=asset)
        assert (refused.ok, refused.data["code"]) == (False, "model_access_denied")
        assert agent.data("get_media", rights=EDITOR, assetId=asset)["usedIn"] == []
    restrict(agent, models={"faq", "hero"})
    assert agent.data("delete_media", rights=EDITOR, assetId=asset)["usedIn"] == [f"faq/{FRESH}"]


def test_media_of_a_key_that_is_an_editors_by_now_wait_for_a_review(agent: StudioAgent) -> None:
    documents = WorkingDocuments(agent.resources, SPACE, AUTHOR)
    asset = store_asset(documents, make_image(40, 30), AssetTexts("bread.png")).version.id
    owner = Caller(tenant="bakery", user="ada", capabilities=frozenset({Capability.KEYS, Capability.CONTENT}))
    key, _ = create_conversation_key(agent.resources, owner, "Robot", ConversationKeyRules(project=SPACE.name))
    opened = OpenedSpace(agent.resources, SPACE, AUTHOR, "turn-1/1/0", conversation="c-1", is_reviewed=False)
    context = make_context(user=key.user, capabilities=ADMIN, open_content=lambda: opened)
    admitted = admit_call(STUDIO_TOOLSET, make_call("update_media", {"assetId": asset, "alt": "Rye"}), context)
    assert isinstance(admitted, AdmittedCall)
    changed = run_tool(admitted, context, clock=agent.resources.clock).data
    assert changed["workflow"] == "review"
    effect = collect_affected([AnsweredCall("update_media", {"assetId": asset}, changed, ok=True)])
    assert effect == AffectedResources(branches_changed=True, branch=changed["reviewBranch"])
    assert agent.data("get_media", assetId=asset).get("alt") != "Rye"


def test_a_branch_is_judged_by_what_it_changes_and_not_by_its_name(agent: StudioAgent) -> None:
    """Somebody else has added a change in another language to the branch."""
    saved = agent.data("save_content", rights=EDITOR, model="faq", locale="tr", data={FRESH: {"answer": "Belki."}})
    [branch] = list_change_sets(agent.resources, SPACE)
    change_in_change_set(
        agent.resources,
        SPACE,
        branch.id,
        DocumentKey("faq", FRESH),
        lambda before, _basis: (
            before.content.with_fields("en", {"answer": "No."}) if before and before.content else None
        ),
    )
    restrict(agent, "reviewer", turkish=True)
    for tool in ("merge_branch", "reject_branch"):
        assert agent.call(tool, rights=REVIEWER, branch=saved["branch"]).data["code"] == "locale_not_allowed"
    assert agent.read()["answer"] == "Yes."


def test_a_key_of_a_viewer_writes_by_no_tool_and_one_of_some_models_begins_no_project(agent: StudioAgent) -> None:
    owner = Caller(tenant="bakery", user="ada", capabilities=frozenset({Capability.KEYS, Capability.CONTENT}))

    def call_with(rules: ConversationKeyRules, tool: str) -> object:
        key, _ = create_conversation_key(agent.resources, owner, "Robot", rules)
        opened = OpenedSpace(agent.resources, SPACE, AUTHOR, f"turn-1/{tool}/0")
        # The rights of an admin, as if the turn had begun before the key got its role.
        context = make_context(user=key.user, capabilities=ADMIN, open_content=lambda: opened)
        admitted = admit_call(STUDIO_TOOLSET, make_call(tool, ARGUMENTS.get(tool, {})), context)
        assert isinstance(admitted, AdmittedCall), (tool, admitted)
        return run_tool(admitted, context, clock=agent.resources.clock).data["code"]

    viewer = ConversationKeyRules(project=SPACE.name, role="viewer")
    forbidden = [name for name, rule in TOOL_RULES.items() if "viewer" not in rule.project_roles]
    assert len(forbidden) == 16
    assert {call_with(viewer, name) for name in forbidden} == {"permission_denied"}
    assert list_change_sets(agent.resources, SPACE) == []
    some = ConversationKeyRules(project=SPACE.name, role="admin", models=("faq",))
    assert call_with(some, "init_project") == "model_access_denied"
    fields = {"note": {"type": "relation", "model": "note"}}
    agent.data("save_model", id="tip", name="Tips", kind="collection", domain="product", fields=fields)
    notes = ConversationKeyRules(project=SPACE.name, role="admin", models=("note",))
    assert call_with(notes, "delete_model") == "model_access_denied", "a model that it may not change points to it"


ARGUMENTS = {
    "save_content": {"model": "faq", "data": {FRESH: {"answer": "No."}}},
    "delete_content": {"model": "faq", "entryIds": [FRESH]},
    "save_model": {"id": "faq", "name": "Faq", "kind": "collection", "domain": "marketing", "i18n": True},
    "merge_branch": {"branch": "cr/content/faq/en/1-aa"},
    "reject_branch": {"branch": "cr/content/faq/en/1-aa"},
    "init_project": {"stack": "nuxt", "locales": ["en"], "domains": ["site"]},
    "copy_locale": {"model": "faq", "from": "en", "to": "tr"},
    "upload_media": {"url": "https://pictures.example/a.jpg"},
    "update_status": {"model": "faq", "entryIds": [FRESH], "status": "published", "locale": "en"},
    "update_media": {"assetId": "a", "alt": "x"},
    "delete_media": {"assetId": "a"},
    "vocabulary": {"action": "update", "terms": {"cart": None}},
    "add_locale": {"locale": "de"},
    "delete_model": {"model": "note", "confirm": True},
    "approve_submission": {"submissionId": "a"},
    "reject_submission": {"submissionId": "a"},
}
