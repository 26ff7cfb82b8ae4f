"""Agents of a tenant name toolsets of built-in agents; the compiler knows them and their tools."""

import pytest

from fermata.agents.definitions.agent_definition import ToolsetReference
from fermata.agents.definitions.connection_types import CONNECTION_TYPES
from fermata.agents.registry import get_editor_toolset
from fermata.domain.agent_ids import SCOPES
from fermata.drivers.audio_transcription import can_transcribe
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.tool_names import get_prefixed_name
from tests.unit.agents.definitions.test_compile_definitions import compile_file, make_agent, the_error


def test_a_toolset_is_named_whole_or_with_some_of_its_tools() -> None:
    some = {"toolset": "site", "tools": ["insertHtml", "list_tokens"], "confirm": True}
    agent = compile_file(make_agent(toolsets=["cms", some])).definitions["agent1"]
    assert agent.toolsets == (
        ToolsetReference(toolset="cms"),
        ToolsetReference(toolset="site", tools=("insertHtml", "list_tokens"), confirm=True),
    )


def test_an_agent_without_toolsets_keeps_the_version_that_it_had() -> None:
    plain = compile_file(make_agent()).definitions["agent1"]
    assert "toolsets" not in plain.to_wire()
    assert compile_file(make_agent(toolsets=[])).definitions["agent1"].version == plain.version
    assert compile_file(make_agent(toolsets=["cms"])).definitions["agent1"].version != plain.version


@pytest.mark.parametrize(
    ("toolsets", "message"),
    [
        (["sites"], "which does not exist. There are site, content, plugin, cms, studio. Do you mean 'site'?"),
        (["data"], "names the toolset 'data', which does not exist."),
        (["planner"], "works only with the built-in agent of that name"),
        (["site", {"toolset": "site"}], "names the toolset 'site' twice"),
        ([{"toolset": "site", "tools": ["insertHTML"]}], "has no tool 'insertHTML'. Do you mean 'insertHtml'?"),
        (["site", "content"], "The toolsets 'site' and 'content' both have the tool 'list_documents'."),
    ],
)
def test_a_toolset_that_cannot_be_had_is_named(toolsets: list[object], message: str) -> None:
    error = the_error(compile_file(make_agent(toolsets=toolsets)))
    assert error.startswith(f"agents[0].toolsets[{len(toolsets) - 1}]: ")
    assert message in error


@pytest.mark.parametrize("name", ["insertHtml", get_prefixed_name(SITE_TOOLSET.tools[-1])])
def test_no_other_tool_or_sub_agent_has_a_name_of_a_tool_of_the_toolset(name: str) -> None:
    tool = make_agent(toolsets=["site"], tools=[{"endpointId": "e", "name": name}])
    assert f"{name!r} is a duplicate: a tool of the toolset 'site' has it" in the_error(
        compile_file(tool, endpoints=("e",))
    )
    asking = make_agent(toolsets=["site"], agents=[{"agentId": "other", "name": name}])
    assert "a tool of the toolset 'site' has it" in the_error(compile_file(asking, make_agent("other")))


def test_a_sub_agent_whose_tools_wait_for_a_person_is_a_warning() -> None:
    child = make_agent("child", toolsets=[{"toolset": "site", "tools": ["insertHtml"], "confirm": True}])
    [warning] = compile_file(make_agent(agents=["child"]), child).problems
    assert warning.is_warning
    assert "(insertHtml)" in warning.message


def test_answers_of_editors_are_read_by_the_same_tools_for_every_agent_that_has_them() -> None:
    shared = get_editor_toolset("agent:anyone")
    for scope in SCOPES:
        for tool in get_editor_toolset(scope).tools:
            if tool.execution.value == "browser":
                same = shared.find_tool(tool.name)
                assert same is not None
                assert (same.toolset, same.result_policy) == (tool.toolset, tool.result_policy)


def test_a_connection_for_recordings_is_one_that_hears() -> None:
    transcription = {"connectionId": "claude", "model": "whisper-1"}
    [problem] = compile_file(make_agent(properties={"transcription": transcription})).problems
    assert not problem.is_warning
    assert "'claude' has no models for recordings" in problem.message


def test_connections_hear_if_their_provider_does() -> None:
    models = {name: kind for name, kind in CONNECTION_TYPES.items() if kind.provider}
    assert {name for name, kind in models.items() if kind.hears} == {
        name for name, kind in models.items() if can_transcribe(kind.provider)
    }
