"""A fresh checkout of the files of an agent changes nothing, although all of its files are newer."""

import pytest

from fermata.agents.definitions.definition_problems import SourceDocument
from fermata.agents.files.bundle_store import PushedFile
from fermata.turns.push_tenant_agents import AgentPush, InvalidAgents, PushedAgents, push_agents
from tests.agent_definitions import push_definitions
from tests.unit.turns.stage import ADA, Stage

CONTENT = {
    "connections": [{"id": "claude", "type": "Anthropic", "properties": {"apiKey": {"_secret": "KEY"}}}],
    "agents": [
        {
            "id": "helper",
            "type": "ClaudeAgent",
            "connectionId": "claude",
            "properties": {"model": "model-1", "fileSystem": {"basePath": "handbook"}},
        }
    ],
}


@pytest.fixture(autouse=True)
def registered_tenant(stage: Stage) -> None:
    push_definitions(stage.resources, ADA)


def push(stage: Stage, *files: PushedFile) -> PushedAgents:
    document = SourceDocument("agents.yaml", CONTENT, {})
    return push_agents(stage.resources, ADA, AgentPush((document,), {"handbook": files}))


def test_newer_times_of_the_same_files_change_no_agent(stage: Stage) -> None:
    push(stage, PushedFile("a.md", b"A", 1_000), PushedFile("b/c.md", b"C", 2_000))
    fresh = push(stage, PushedFile("b/c.md", b"C", 9_000), PushedFile("a.md", b"A", 9_000))
    assert (fresh.changes.unchanged, fresh.changes.changed) == (("helper",), ())


@pytest.mark.parametrize(
    "files",
    [
        [PushedFile("a.md", b"B", 1_000)],
        [PushedFile("a.md", b"AA", 1_000)],
        [PushedFile("b.md", b"A", 1_000)],
        [PushedFile("a.md", b"A", 1_000), PushedFile("b.md", b"", 1_000)],
    ],
)
def test_other_files_change_the_agent(files: list[PushedFile], stage: Stage) -> None:
    push(stage, PushedFile("a.md", b"A", 1_000))
    assert push(stage, *files).changes.changed == ("helper",)


def test_files_that_cannot_be_stored_are_still_named_at_their_agent(stage: Stage) -> None:
    push(stage, PushedFile("a.md", b"A"))
    with pytest.raises(InvalidAgents, match=r"\.\./a\.md"):
        push(stage, PushedFile("../a.md", b"A"))
