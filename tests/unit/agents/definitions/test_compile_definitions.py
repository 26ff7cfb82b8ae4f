"""Files that define agents are compiled as by a compiler: every mistake at once, with its file, line and path."""

from typing import Any

import pytest

from fermata.agents.definitions.compile_definitions import CompiledFiles, compile_definitions
from fermata.agents.definitions.definition_names import PLATFORM_TOOL_NAMES
from fermata.agents.definitions.definition_problems import SourceDocument
from fermata.domain.agent_ids import make_agent_scope

CLAUDE = {"id": "claude", "type": "Anthropic", "properties": {"apiKey": {"_secret": "KEY"}}}
SCHEMA = {"type": "object", "properties": {}}


def make_agent(agent_id: str = "agent1", **members: Any) -> dict[str, Any]:
    properties = {"model": "m"} | members.pop("properties", {})
    return {"id": agent_id, "type": "ClaudeAgent", "connectionId": "claude", "properties": properties} | members


def make_endpoint(endpoint_id: str, **members: Any) -> dict[str, Any]:
    described = {"description": "Does it.", "payloadSchema": SCHEMA, "url": "https://tools.example/x"}
    return {"id": endpoint_id} | described | members


def compile_file(*agents: Any, endpoints: tuple[Any, ...] = (), **members: Any) -> CompiledFiles:
    value = {
        "agents": list(agents),
        "connections": [CLAUDE],
        "endpoints": [make_endpoint(one) if isinstance(one, str) else one for one in endpoints],
    } | members
    return compile_definitions([SourceDocument("agents.yaml", value)])


def list_errors(compiled: CompiledFiles) -> list[str]:
    return [f"{one.path}: {one.message}" for one in compiled.errors]


def the_error(compiled: CompiledFiles) -> str:
    errors = list_errors(compiled)
    assert len(errors) == 1, errors
    return errors[0]


def test_buildagents_01_a_file_without_agents_is_accepted() -> None:
    for value in (None, {}, {"agents": None}):
        compiled = compile_definitions([SourceDocument("a.yaml", value)])
        assert (compiled.definitions, compiled.problems) == ({}, ())


def test_buildagents_03_agents_must_be_a_list() -> None:
    assert the_error(compile_file(agents={"a": 1})) == "agents: agents must be a list."


def test_buildagents_04_a_bare_tool_is_its_endpoint() -> None:
    agent = compile_file(make_agent(tools=["tool1"]), endpoints=("tool1",)).definitions["agent1"]
    assert [(tool.endpoint_id, tool.name) for tool in agent.tools] == [("tool1", "tool1")]
    assert make_agent_scope(agent.id) == "agent:agent1"
    assert list(agent.endpoints) == ["tool1"]


def test_buildagents_05_an_id_is_used_once_over_all_files() -> None:
    assert 'Duplicate agentId "agent1"' in the_error(compile_file(make_agent(), make_agent()))
    files = [SourceDocument(name, {"agents": [make_agent()], "connections": []}) for name in ("a.yaml", "b.yaml")]
    files[0].value["connections"] = [CLAUDE]
    compiled = compile_definitions(files)
    assert [(one.file, one.path) for one in compiled.errors] == [("b.yaml", "agents[0].id")]


def test_a_key_in_a_file_is_a_mistake_that_says_where_keys_belong_and_does_not_repeat_it() -> None:
    written = CLAUDE | {"properties": {"apiKey": "sk-ant-plain"}}
    error = the_error(compile_file(make_agent(), connections=[written]))
    assert error.startswith("connections[0].properties.apiKey: A key does not belong into a file")
    assert "sk-ant" not in error


@pytest.mark.parametrize("connections", [[CLAUDE], [], None])
def test_buildagents_07_a_connection_that_does_not_exist_is_named(connections: Any) -> None:
    error = the_error(compile_file(make_agent(connectionId="nonExistent"), connections=connections))
    assert "agent1" in error
    assert "nonExistent" in error
    assert "does not exist" in error


@pytest.mark.parametrize("properties", [{}, None, {"model": ""}, {"model": None}])
def test_buildagents_08_a_model_is_required(properties: Any) -> None:
    agent = make_agent() | {"properties": properties}
    assert "\"model\" is not defined at 'agent1'" in the_error(compile_file(agent))


def test_buildagents_08_an_operator_counts_as_a_model() -> None:
    agent = compile_file(make_agent(properties={"model": {"_payload": "urlQuery.model"}})).definitions["agent1"]
    assert agent.dynamic_properties == ("model",)


def test_buildagents_09_a_tool_needs_an_endpoint_that_exists() -> None:
    error = the_error(compile_file(make_agent(tools=["serch"]), endpoints=("search",)))
    assert error.startswith("agents[0].tools[0]: ")
    assert "'agent1' names the endpoint 'serch', which does not exist. Do you mean 'search'?" in error


@pytest.mark.parametrize("member", ["description", "payloadSchema"])
def test_buildagents_10_the_endpoint_of_a_tool_is_described(member: str) -> None:
    endpoint = make_endpoint("search")
    del endpoint[member]
    error = the_error(compile_file(make_agent(tools=["search"]), endpoints=(endpoint,)))
    assert f"without '{member}'" in error


def test_buildagents_12_a_hook_needs_an_endpoint_and_no_schema() -> None:
    hooks = {"onToolCallFinish": ["save-data"]}
    endpoint = {"id": "save-data", "url": "https://tools.example/save"}
    compiled = compile_file(make_agent(hooks=hooks), endpoints=(endpoint,))
    assert compiled.definitions["agent1"].hooks == hooks
    assert "'save-data', which does not exist" in the_error(compile_file(make_agent(hooks=hooks)))
    assert "onToolcall" in the_error(compile_file(make_agent(hooks={"onToolcall": []})))


def test_buildagents_15_an_mcp_source_is_reached_by_url_or_command() -> None:
    assert "source at index 0 of the agent 'agent1' is missing url" in the_error(compile_file(make_agent(mcp=[{}])))
    stdio = make_agent(mcp=[{"url": "https://mcp.example"}, {"transport": "stdio"}])
    assert "index 1 of the agent 'agent1' is missing command" in the_error(compile_file(stdio))
    assert "does not exist" in the_error(compile_file(make_agent(mcp=["nowhere"])))


def test_an_mcp_source_has_the_members_of_its_connection() -> None:
    server = {"id": "docs", "type": "Mcp", "properties": {"url": "https://mcp.example", "headers": {"x": "y"}}}
    agent = make_agent(mcp=[{"connectionId": "docs", "confirm": True}])
    (source,) = compile_file(agent, connections=[CLAUDE, server]).definitions["agent1"].mcp
    assert (source.url, source.headers, source.confirm) == ("https://mcp.example", {"x": "y"}, True)


def test_buildagents_17_the_name_of_a_tool_has_no_slashes() -> None:
    tools: list[Any] = [{"endpointId": "reporting/query-data"}, {"endpointId": "reporting/query-data", "name": "ask"}]
    agent = compile_file(make_agent(tools=tools), endpoints=("reporting/query-data",)).definitions["agent1"]
    assert [tool.name for tool in agent.tools] == ["reporting__query-data", "ask"]


@pytest.mark.parametrize("name", ["a b", "", "ä", "x" * 65, "a\n", "toString", "__proto__", *PLATFORM_TOOL_NAMES])
def test_buildagents_18_a_name_that_a_tool_may_not_have_is_refused(name: str) -> None:
    assert repr(name) in the_error(
        compile_file(make_agent(tools=[{"endpointId": "x", "name": name}]), endpoints=("x",))
    )
    others = (make_agent("a"), make_agent("b", agents=[{"agentId": "a", "name": name}]))
    assert repr(name) in the_error(compile_file(*others))


def test_buildagents_20_two_tools_have_two_names() -> None:
    agent = make_agent(tools=["a", {"endpointId": "b", "name": "a"}])
    assert "duplicate" in the_error(compile_file(agent, endpoints=("a", "b")))


def test_buildagents_21_a_sub_agent_and_a_tool_have_two_names() -> None:
    compiled = compile_file(make_agent(tools=["x"], agents=["x"]), make_agent("x"), endpoints=("x",))
    assert "conflicts with an endpoint tool of the same name" in the_error(compiled)


def test_buildagents_22_a_sub_agent_has_to_exist() -> None:
    assert "'ghost', which does not exist" in the_error(compile_file(make_agent(agents=["ghost"])))


def test_buildagents_23_a_sub_agent_with_tools_to_confirm_is_a_warning() -> None:
    child = make_agent("child", tools=[{"endpointId": "t", "confirm": True}])
    compiled = compile_file(make_agent(agents=["child"]), child, endpoints=("t",))
    (warning,) = compiled.problems
    assert warning.is_warning
    assert "approval" in warning.message
    assert set(compiled.definitions) == {"agent1", "child"}


def test_buildagents_24_the_folder_of_files_has_to_exist() -> None:
    missing = compile_file(make_agent(properties={"fileSystem": {"basePath": "./nope"}}))
    assert "'./nope' of the agent 'agent1' does not exist" in the_error(missing)
    operator = compile_file(make_agent(properties={"fileSystem": {"basePath": {"_payload": "urlQuery.folder"}}}))
    assert "write out its basePath, no operator" in the_error(operator)
    number = compile_file(make_agent(properties={"fileSystem": {"basePath": 7}}))
    assert the_error(number).startswith("agents[0].properties.fileSystem.basePath: Input should be a valid string")


def test_cycles_02_an_agent_does_not_ask_itself() -> None:
    assert "'a' asks itself" in the_error(compile_file(make_agent("a", agents=["a"])))


def test_a_cycle_over_several_agents_is_one_error() -> None:
    agents = [make_agent(one, agents=[other]) for one, other in ("ab", "bc", "ca")]
    assert "lead back" in the_error(compile_file(*agents))


def test_cycles_03_two_ways_to_one_agent_are_no_cycle() -> None:
    agents = [make_agent("a", agents=["b", "c"]), make_agent("b", agents=["d"]), make_agent("c", agents=["d"])]
    compiled = compile_file(*agents, make_agent("d"))
    assert compiled.problems == ()
    versions = {one.agent_id: one.version for one in compiled.definitions["b"].agents}
    assert versions == {"d": compiled.definitions["d"].version}


def test_cycles_04_more_than_five_levels_are_a_warning() -> None:
    chain = [make_agent(f"a{n}", agents=[f"a{n + 1}"] if n < 6 else []) for n in range(7)]
    (warning,) = compile_file(*chain).problems
    assert (warning.is_warning, warning.path) == (True, "agents[0].agents")
    assert compile_file(*chain[1:]).problems == ()


def test_a_change_of_a_sub_agent_is_another_version_of_its_parent() -> None:
    def version_of_parent(text: str) -> str:
        child = make_agent("child", properties={"instructions": text})
        return compile_file(make_agent(agents=["child"]), child).definitions["agent1"].version

    assert version_of_parent("one") == version_of_parent("one")
    assert version_of_parent("one") != version_of_parent("two")


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        ("text", "agents[0]"),
        ({}, "agents[0]"),
        (make_agent() | {"id": 7}, "agents[0].id"),
        (make_agent("site"), "agents[0].id"),
        (make_agent("constructor"), "agents[0].id"),
        (make_agent("a/b"), "agents[0].id"),
        (make_agent(type="Agent"), "agents[0].type"),
        (make_agent(type="OpenAIAgent"), "agents[0].connectionId"),
        (make_agent(properties={"temperature": 3}), "agents[0].properties.temperature"),
        (make_agent(properties={"topP": -1}), "agents[0].properties.topP"),
        (make_agent(properties={"maxSteps": 0}), "agents[0].properties.maxSteps"),
        (make_agent(properties={"stopOnToolCall": []}), "agents[0].properties.stopOnToolCall"),
        (make_agent(properties={"toolChoice": "must"}), "agents[0].properties.toolChoice"),
        (make_agent(properties={"timeout": {"ms": 1}}), "agents[0].properties.timeout.ms"),
        (make_agent(properties={"prepareStep": [{"steps": [0]}]}), "agents[0].properties.prepareStep[0].steps[0]"),
        (make_agent(properties={"reasoningEffort": "low"}), "agents[0].properties.reasoningEffort"),
        (make_agent(properties={"effort": "huge"}), "agents[0].properties.effort"),
        (make_agent(properties={"instructions": {"_payload": 1}}), "agents[0].properties.instructions"),
        (make_agent(properties={"instructions": {"_if": True}}), "agents[0].properties.instructions"),
        (make_agent(properties={"instructions": {"_secret": "KEY"}}), "agents[0].properties.instructions"),
        (make_agent(properties={"wrong": {"_user": "id"}}), "agents[0].properties.wrong"),
        (make_agent(properties={"hooks": {}}), "agents[0].properties.hooks"),
        (make_agent(tools=[{"endpointId": "t", "display": {"type": "Table"}}]), "agents[0].tools[0].display"),
        (make_agent(extra=1), "agents[0].extra"),
    ],
)
def test_a_mistake_is_reported_where_it_is(agent: Any, path: str) -> None:
    assert {error.split(": ")[0] for error in list_errors(compile_file(agent, endpoints=("t",)))} == {path}


def test_all_mistakes_are_found_at_once() -> None:
    compiled = compile_file(
        make_agent("a", properties={"temperature": 9, "topK": 0}, tools=["x"]),
        make_agent("b", connectionId="none", mcp=[{}]),
        make_agent("c", agents=["nobody"]),
        make_agent("good"),
        tool=[],
    )
    assert len(compiled.errors) == 7
    assert set(compiled.definitions) == {"good"}


def test_lines_are_those_of_the_nearest_member_that_is_known() -> None:
    lines = {"": 1, "agents[0]": 4, "agents[0].tools[0]": 9}
    value = {"agents": [make_agent(tools=["x"], mcp=[{}])], "connections": [CLAUDE]}
    problems = compile_definitions([SourceDocument("a.yaml", value, lines)]).errors
    assert sorted((one.line, one.path) for one in problems) == [(4, "agents[0].mcp[0]"), (9, "agents[0].tools[0]")]


def test_the_properties_of_a_type_become_options_of_its_provider() -> None:
    properties = {
        "thinking": {"type": "enabled"},
        "effort": "high",
        "providerOptions": {"anthropic": {"effort": "low", "x": 1}, "openai": {"y": 2}},
    }
    agent = compile_file(make_agent(properties=properties)).definitions["agent1"]
    options = agent.parse_properties().settings.provider_options
    assert options == {
        "anthropic": {"effort": "high", "x": 1, "thinking": {"type": "enabled"}},
        "openai": {"y": 2},
    }
    assert "effort" not in agent.properties


def test_fallback_models_of_a_gateway_are_its_models() -> None:
    gateway = {"id": "gate", "type": "AIGateway", "properties": {"apiKey": {"_secret": "KEY"}}}
    agent = make_agent(
        type="AIGatewayAgent", connectionId="gate", properties={"model": "a/b", "fallbackModels": ["c/d"]}
    )
    compiled = compile_file(agent, connections=[gateway]).definitions["agent1"]
    assert compiled.parse_properties().settings.provider_options == {"gateway": {"models": ["c/d"]}}


def test_calllimits_the_agent_counts_before_its_connection() -> None:
    limited = CLAUDE | {"properties": {"apiKey": {"_secret": "KEY"}, "maxOutputTokens": 10, "timeout": 20}}

    def read_limits(connection: dict[str, Any], **properties: Any) -> tuple[Any, Any]:
        agent = compile_file(make_agent(properties=properties), connections=[connection]).definitions["agent1"]
        settings = agent.parse_properties().settings
        return settings.max_output_tokens, settings.timeout and settings.timeout.total_ms

    assert read_limits(limited) == (10, 20)
    assert read_limits(limited, maxOutputTokens=5, timeout={"totalMs": 7}) == (5, 7)
    assert read_limits(CLAUDE) == (None, None)


def test_steps_and_retries_have_defaults() -> None:
    settings = compile_file(make_agent()).definitions["agent1"].parse_properties().settings
    assert (settings.max_steps, settings.max_retries) == (10, 2)


@pytest.mark.parametrize(
    ("properties", "path"),
    [
        ({"apiKey": "sk-ant-plain"}, "connections[0].properties.apiKey"),
        ({"apiKey": {"_user": "id"}}, "connections[0].properties.apiKey"),
        ({}, "connections[0].properties"),
        ({"apiKey": {"_secret": "K"}, "baseURL": "ftp://x"}, "connections[0].properties.baseURL"),
        ({"credential": "c", "apiKey": {"_secret": "K"}}, "connections[0].properties.credential"),
        ({"apiKey": {"_secret": "K"}, "maxOutputTokens": 0}, "connections[0].properties.maxOutputTokens"),
        ({"apiKey": {"_secret": "K"}, "timeout": 0}, "connections[0].properties.timeout"),
    ],
)
def test_a_connection_has_its_key_from_elsewhere(properties: dict[str, Any], path: str) -> None:
    connection = {"id": "claude", "type": "Anthropic", "properties": properties}
    compiled = compile_file(make_agent(), connections=[connection])
    # The agent that uses the broken connection is not reported besides.
    assert {error.split(": ")[0] for error in list_errors(compiled)} == {path}
    assert "sk-ant-plain" not in str(list_errors(compiled))


def test_agents_are_public_unless_a_rule_says_otherwise() -> None:
    agents = [make_agent(one) for one in ("open", "closed", "staff")]

    def list_access(rules: dict[str, Any]) -> dict[str, Any]:
        compiled = compile_file(*agents, auth={"agents": rules})
        assert compiled.errors == (), compiled.errors
        return {one.id: (one.access.is_public, one.access.roles) for one in compiled.definitions.values()}

    everyone, nobody = (True, ()), (False, ())
    assert list_access({}) == dict.fromkeys(("open", "closed", "staff"), everyone)
    assert list_access({"protected": True}) == dict.fromkeys(("open", "closed", "staff"), nobody)
    assert list_access({"protected": ["closed"], "roles": {"editor": ["staff"]}}) == {
        "open": everyone,
        "closed": nobody,
        "staff": (False, ("editor",)),
    }
    assert list_access({"public": ["open"]})["closed"] == nobody
    assert "does not exist" in the_error(compile_file(make_agent(), auth={"agents": {"roles": {"r": ["none"]}}}))


def test_a_member_without_a_value_counts_as_left_out() -> None:
    agent = make_agent(tools=None, mcp=None, hooks=None, title=None)
    assert compile_file(agent).problems == ()
    assert the_error(compile_file(make_agent() | {"connectionId": None})) == "agents[0]: 'connectionId' is missing."
