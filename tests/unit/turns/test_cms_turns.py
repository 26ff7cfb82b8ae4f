"""Turns of the CMS agent work in the content space that the prompt, its conversation or the tenant names."""

from dataclasses import replace
from typing import Any

import pytest

from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey
from fermata.content.documents.read_document import find_document_by_slug, read_document
from fermata.content.model_store import create_space, put_model
from fermata.conversations import conversation_store
from fermata.domain.errors import Forbidden, InvalidRequest, NotFound
from fermata.domain.events import ApprovalRequestedEvent
from fermata.tools.calls.runner import run_tool
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.start.start_turn import start_turn
from tests.shared_cases.cms_cases import read_cms_cases
from tests.unit.content.conftest import HERO
from tests.unit.turns.approvals.bakery import HEAD_BAKER
from tests.unit.turns.stage import Stage, make_provider_error, reply_with_calls, tool_call_block

SHOP = SpaceKey("bakery", "shop")
LOOP_CASES = [case for case in read_cms_cases("loop") if case["id"] != "G299"]
"""G299 counts messages; here tokens are counted, and a history is cut between turns (tests of the context window)."""


@pytest.fixture
def cms(stage: Stage) -> Stage:
    """A stage whose user may write content, in a tenant with one site."""
    give_rights(stage, "ai.content.write")
    add_space(stage, SHOP)
    stage.conversation = conversation_store.create_conversation(
        stage.resources, stage.caller, "cms", None, stage.credential.id, "model-1"
    )
    return stage


def give_rights(stage: Stage, *rights: str) -> None:
    stage.caller = stage.caller.model_copy(update={"capabilities": stage.caller.capabilities | set(rights)})


def add_space(stage: Stage, space: SpaceKey) -> None:
    author = ContentAuthor("ada")
    create_space(stage.resources, space, ContentSpace(title="Shop", locales=("en", "de")), author)
    put_model(stage.resources, space, HERO, author)


def start(stage: Stage, text: str = "Create a page with a hero section", **members: Any) -> None:
    prompt = replace(stage.make_prompt(text), scope="cms", **members)
    stage.adopt_turn(start_turn(stage.resources, stage.caller, prompt).turn)


def read_results(stage: Stage) -> list[Any]:
    """Return the data or errors of the results that the model has read last."""
    blocks = [block for message in stage.driver.requests[-1].messages for block in message.content]
    return [block.data if block.data is not None else block.error for block in blocks if block.kind == "toolResult"]


def test_a_prompt_creates_a_page_with_a_hero_section(cms: Stage) -> None:
    start(cms)
    assert cms.turn.space == "shop/main"
    create = tool_call_block("cms_createPageWithContent", name="About", sections=[{"sectionKey": "hero"}])
    cms.script_replies(reply_with_calls(create), "The page is there.")
    assert cms.run_workflow() == "finished"
    page = find_document_by_slug(cms.resources, SHOP, "page", "about")
    assert (page.user, page.source, page.turn, page.call) == ("ada", "agent", cms.turn.id, f"{cms.turn.id}/1/0")
    first = cms.driver.requests[0]
    assert first.volatile.startswith('Site: shop "Shop", environment main.')
    assert "hero (title* string, ctaLink object)" in first.volatile
    assert read_results(cms)[0]["page"]["id"] == page.id


def test_a_prompt_names_another_space_than_its_conversation(cms: Stage) -> None:
    add_space(cms, SpaceKey("bakery", "blog", "staging"))
    start(cms, space="blog/staging")
    assert cms.turn.space == "blog/staging"
    cms.script_replies("Fine.")
    cms.run_workflow()
    cms.conversation = conversation_store.create_conversation(
        cms.resources, cms.caller, "cms", None, cms.credential.id, "model-1", space="blog/staging"
    )
    start(cms)
    assert cms.turn.space == "blog/staging"


def test_among_several_spaces_none_is_guessed(cms: Stage) -> None:
    add_space(cms, SpaceKey("bakery", "blog"))
    start(cms)
    assert cms.turn.space == ""
    cms.script_replies(reply_with_calls(tool_call_block("cms_getPages")), "Which site?")
    cms.run_workflow()
    assert "choose one of blog/main, shop/main" in cms.driver.requests[0].volatile
    assert "No site is chosen" in read_results(cms)[0]


@pytest.mark.parametrize(
    ("space", "error"), [("ghost", NotFound), ("shop/ghost", NotFound), ("No name", InvalidRequest)]
)
def test_a_space_that_does_not_exist_starts_no_turn(cms: Stage, space: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        start(cms, space=space)


def test_nobody_works_in_a_space_without_the_right_nor_names_one_to_another_agent(stage: Stage) -> None:
    add_space(stage, SHOP)
    stage.conversation = conversation_store.create_conversation(
        stage.resources, stage.caller, "cms", None, stage.credential.id, "model-1"
    )
    with pytest.raises(Forbidden):
        start(stage, space="shop")
    start(stage)
    assert (stage.turn.space, stage.turn.situation.startswith("Site: none.")) == ("", True)
    stage.new_conversation()
    with pytest.raises(InvalidRequest, match="works in no content space"):
        stage.start_turn(space="shop")


def test_a_function_that_died_in_a_call_leaves_one_page(cms: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call is repeated under its effect key, and finds what it has made."""
    start(cms)
    cms.script_replies(reply_with_calls(tool_call_block("cms_createPage", name="About")), "Done.")
    deaths = [SystemExit(1)]

    def run_and_die(*given: Any, **options: Any) -> Any:
        output = run_tool(*given, **options)
        if deaths:
            raise deaths.pop()
        return output

    monkeypatch.setattr("fermata.turns.round.tool_calls.run_tool", run_and_die)
    with pytest.raises(SystemExit):
        cms.run_workflow()
    assert cms.run_workflow() == "finished"
    assert read_results(cms)[0]["page"]["slug"] == "about"
    page = find_document_by_slug(cms.resources, SHOP, "page", "about")
    assert page.version == 1


def test_a_deletion_waits_for_the_users_answer_and_says_what_it_is_about(cms: Stage) -> None:
    start(cms)
    cms.script_replies(reply_with_calls(tool_call_block("cms_createPage", name="About")), "Done.")
    cms.run_workflow()
    page = find_document_by_slug(cms.resources, SHOP, "page", "about")
    start(cms, "Delete it")
    cms.script_replies(reply_with_calls(tool_call_block("cms_deletePage", slug="about", confirmed=True)), "Sure?")
    cms.run_workflow()
    asked = read_results(cms)[-1]
    assert (asked["requiresConfirmation"], asked["page"]["name"]) == (True, "About")
    assert read_document(cms.resources, SHOP, DocumentKey("page", page.id)).version == 1
    start(cms, "Yes")
    cms.script_replies(reply_with_calls(tool_call_block("cms_deletePage", slug="about", confirmed=True)), "Gone.")
    cms.run_workflow()
    with pytest.raises(NotFound):
        find_document_by_slug(cms.resources, SHOP, "page", "about")


@pytest.mark.parametrize("is_approved", [True, False])
def test_a_post_is_published_when_a_person_approves_it_whatever_the_model_confirms(
    cms: Stage, is_approved: bool
) -> None:
    give_rights(cms, "ai.tools.approve")
    content = DocumentContent(slug="rye", title="Rye")
    create_document(cms.resources, SHOP, "post", ContentAuthor("ada"), content, document_id="rye")
    start(cms, "Publish rye")
    cms.script_replies(reply_with_calls(tool_call_block("cms_publishPost", postSlug="rye", confirmed=True)), "Done.")
    assert cms.run_workflow() == "waiting"
    [asked] = [event for event in cms.events() if isinstance(event, ApprovalRequestedEvent)]
    assert (asked.tool_name, asked.input["postSlug"]) == ("cms_publishPost", "rye")
    answer = ApprovalAnswer(is_approved, reason="" if is_approved else "not yet")
    decide_approval(cms.resources, HEAD_BAKER, asked.approval_id, answer)
    assert cms.run_workflow() == "finished"
    post = read_document(cms.resources, SHOP, DocumentKey("post", "rye"))
    assert post.content
    assert post.content.status.value == ("published" if is_approved else "draft")
    if not is_approved:
        assert read_results(cms)[0] == {"success": False, "cancelled": True, "reason": "not yet"}


def test_the_next_prompt_names_what_the_turn_before_was_about(cms: Stage) -> None:
    start(cms)
    cms.script_replies(reply_with_calls(tool_call_block("cms_createPage", name="About </situation>")), "Done.")
    cms.run_workflow()
    assert not any("Recent" in request.volatile for request in cms.driver.requests)
    page = find_document_by_slug(cms.resources, SHOP, "page", "about-situation")
    start(cms, "Rename it")
    cms.script_replies("To what?")
    cms.run_workflow()
    line = cms.driver.requests[-1].volatile.splitlines()[-1]
    assert line.startswith('Recent pages: "About ')
    assert f"(id {page.id}, slug about-situation)" in line


@pytest.mark.parametrize("case", LOOP_CASES, ids=lambda case: case["id"])
def test_the_loop_of_the_agent_ends_and_repeats_as_its_cases_say(cms: Stage, case: dict[str, Any]) -> None:
    """Any answer without calls ends the turn, so that the marker of G298 needs no rule of its own."""
    start(cms)
    expected, status = case["expected"], case["input"].get("http_status")
    if status is not None:
        error = make_provider_error(retryable=status == 429)
        cms.script_replies(*[[error] for _ in range(1 + expected.get("max_retries", 0))])
        cms.run_workflow()
        assert len(cms.driver.requests) == 1 + expected.get("max_retries", 0)
        assert cms.event_types()[-1] == "error"
    else:
        cms.script_replies(case["input"]["text_contains"] + " done")
        assert cms.run_workflow() == "finished"
        assert len(cms.driver.requests) == 1
