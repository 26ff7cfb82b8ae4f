"""The measurement compiles agents without mistakes, in time that grows as they do. The time itself is not tested."""

from bench.agent_compilation import compile_agents, measure_agent_compilation, write_agents


def test_the_agents_that_are_measured_have_no_mistakes() -> None:
    compiled = compile_agents(write_agents(10))
    assert compiled.problems[0].is_warning
    assert compiled.errors == ()
    assert [one.agent_id for one in compiled.definitions["agent9"].agents] == ["agent8", "agent7", "agent6", "agent5"]


def test_a_row_is_measured() -> None:
    assert measure_agent_compilation(1).key == "agents"
