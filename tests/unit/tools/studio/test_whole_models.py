"""A project that is begun, and a model that is deleted with its content: others see all of it at one moment."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content import space_locales
from fermata.content.change_sets.change_set_store import list_change_sets
from fermata.content.content_space import ContentSpace
from fermata.content.documents import document_commit, staged_commit
from fermata.content.documents.settle_commit import LEASE_SECONDS
from fermata.content.files.read_project import read_whole_space
from fermata.content.model_store import create_space
from fermata.content.opened_space import OpenedSpace
from fermata.domain.tools import ToolOutput
from tests.resources import TestClock
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.tools.studio.test_studio_tools import ADMIN, AUTHOR, FRESH, SPACE, StudioAgent, call_studio_tool

__all__ = ["clock", "resources", "shared_resources"]
FAQ = {"id": "faq", "name": "Questions", "kind": "collection", "domain": "site",
       "fields": {"question": {"type": "string"}}}  # fmt: skip
INIT = {"stack": "other", "locales": ["tr", "en"], "domains": ["site"], "models": [FAQ, {**FAQ, "id": "tip"}]}


class ProcessDied(BaseException):
    """Nothing of the process runs any more."""


@pytest.fixture
def agent(resources: Resources) -> StudioAgent:
    return StudioAgent(resources)


def see(resources: Resources) -> tuple[set[str], int, bool]:
    """Return the models that are the project's own, how many documents there are, and whether it is active."""
    whole = read_whole_space(resources, SPACE)
    models = {state.model.id for state in whole.models.values() if not state.model.built_in}
    return models, len(whole.versions), bool(whole.settings)


def die_at_each_write(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch, call: Callable[[], ToolOutput]
) -> list[tuple[set[str], int, bool]]:
    """Make a call again and again, one write longer each time, until it comes to its end. Return what others saw."""
    write, seen = resources.tables.write_items, []
    for deadline in count():
        left = deadline

        def write_or_die(*writes: Any) -> None:
            nonlocal left
            if left == 0:
                raise ProcessDied
            left -= 1
            write(*writes)

        with monkeypatch.context() as dying:
            dying.setattr(resources.tables, "write_items", write_or_die)
            try:
                output = call()
            except ProcessDied:
                output = None
        clock.advance(LEASE_SECONDS + 1)
        seen.append(see(resources))
        if output is not None:
            assert output.ok, output.error
            return seen
    raise AssertionError


def test_a_project_is_begun_at_one_moment_wherever_the_process_dies(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_space(resources, SPACE, ContentSpace(), AUTHOR)
    before = see(resources)
    opened = OpenedSpace(resources, SPACE, AUTHOR, "turn-1/1/0")
    seen = die_at_each_write(
        resources, clock, monkeypatch, lambda: call_studio_tool(resources, opened, "init_project", INIT, ADMIN)
    )
    assert len(seen) > 5
    after = ({"faq", "tip", "studio-project"}, before[1] + 1, True)
    assert seen[-1] == after
    assert all(one in (before, after) for one in seen), seen


def test_a_model_with_many_entries_is_deleted_at_one_moment_wherever_the_process_dies(
    agent: StudioAgent, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged_commit, "CHUNK_WRITES", 30)
    monkeypatch.setattr(document_commit, "MAX_WRITES", 30)
    for part in range(2):
        entries = {f"entry-{part}-{number}": {"question": f"Q{number}?", "answer": "Yes."} for number in range(20)}
        assert agent.data("save_content", model="faq", data=entries)["merged"]
    before = see(agent.resources)
    assert before[1] > 40

    def delete() -> ToolOutput:
        return agent.call("delete_model", key="turn-9/1/0", model="faq", confirm=True)

    seen = die_at_each_write(agent.resources, clock, monkeypatch, delete)
    after = see(agent.resources)
    assert "faq" in before[0] - after[0]
    assert len(seen) > 5
    assert all(one in (before, after) for one in seen), seen
    assert delete().data["deleted"], "the same call again is told the same"


def test_an_entry_that_somebody_adds_meanwhile_keeps_its_model(
    agent: StudioAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, added = agent.resources.tables.write_items, list[Any]()

    def write_after_another(*writes: Any) -> None:
        if not added and len(writes) > 4:
            added.append(True)
            monkeypatch.setattr(agent.resources.tables, "write_items", write)
            another = {"another": {"question": "And this?", "answer": "Too."}}
            assert agent.data("save_content", model="faq", locale="en", data=another)["merged"]
        write(*writes)

    monkeypatch.setattr(agent.resources.tables, "write_items", write_after_another)
    output = agent.call("delete_model", model="faq", confirm=True)
    assert added
    assert not output.ok
    assert agent.read(FRESH)["question"]
    assert "in use" in str(output.error)
    assert agent.read("another")["answer"] == "Too."


def test_a_model_waits_with_its_entries_for_the_review_of_an_editor(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = StudioAgent(resources, "review")
    monkeypatch.setattr("fermata.tools.studio.project_tools.merges_at_once", lambda *_args, **_named: False)
    monkeypatch.setattr("fermata.tools.studio.branch_writes.merges_at_once", lambda *_args, **_named: False)
    before = see(resources)
    waiting = agent.data("delete_model", model="faq", confirm=True)
    assert (waiting["deleted"], waiting["merged"], see(resources)) == (False, False, before)
    assert agent.data("merge_branch", branch=waiting["reviewBranch"])["merged"]
    assert "faq" not in see(resources)[0]


def die(*_: object, **__: object) -> None:
    raise ProcessDied


def test_two_languages_that_are_added_at_once_are_both_there(
    agent: StudioAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = space_locales.space_from_item

    def add_another(item: Any) -> ContentSpace:
        monkeypatch.setattr(space_locales, "space_from_item", read)
        agent.data("add_locale", locale="fr")
        return read(item)

    monkeypatch.setattr(space_locales, "space_from_item", add_another)
    added = agent.data("add_locale", locale="de")
    assert added["locales"] == ["en", "tr", "fr", "de"]


def test_a_language_whose_call_died_before_its_content_was_copied_gets_it_from_the_repetition(
    agent: StudioAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("fermata.tools.studio.project_tools.write_documents", die)
        with pytest.raises(ProcessDied):
            agent.call("add_locale", key="turn-1/7/0", locale="de", copyFrom="en")
    for _ in range(2):
        assert agent.data("add_locale", key="turn-1/7/0", locale="de", copyFrom="en")["merged"]
    assert agent.read(locale="de")["question"] == "Is it fresh?"
    assert "has the locale de already" in str(agent.call("add_locale", locale="de").error)


def test_an_init_that_is_refused_leaves_no_branch_and_can_be_called_again(resources: Resources) -> None:
    create_space(resources, SPACE, ContentSpace(locales=("en",)), AUTHOR)
    lost = {**FAQ, "fields": {"about": {"type": "relation", "model": "nowhere"}}}
    wrong: list[dict[str, Any]] = [
        {"locales": ["English"]},
        {"locales": [f"a{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(51)]},
        {"models": [lost]},
        {"models": [FAQ, FAQ]},
        {"models": [{**FAQ, "id": "No id"}]},
        {"models": [{**FAQ, "fields": {"question": {"type": "poem"}}}]},
    ]
    for number, members in enumerate(wrong):
        opened = OpenedSpace(resources, SPACE, AUTHOR, f"turn-1/{number}/0")
        refused = call_studio_tool(resources, opened, "init_project", INIT | members, ADMIN)
        said = (refused.ok, refused.error, refused.data)
        assert not refused.ok or refused.data["valid"] is False, said
        assert list_change_sets(resources, SPACE) == [], said
    opened = OpenedSpace(resources, SPACE, AUTHOR, "turn-1/9/0")
    assert call_studio_tool(resources, opened, "init_project", INIT, ADMIN).data["merged"]
