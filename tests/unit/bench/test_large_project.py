"""The project that is measured is one that can be read, checked and written again. Times are not tested."""

from bench.cms_turn import list_tool_steps
from bench.large_project import measure_project_files, write_project_files
from fermata.agents.registry import get_toolset


def test_the_files_that_are_measured_are_read_and_written_again_and_have_no_problems() -> None:
    rows = {row.key: row for row in measure_project_files(6)}
    assert rows["project.files"].result.startswith("identical")
    assert rows["project.validation"].title == "validation of 6 entries"


def test_the_entries_that_are_measured_are_all_different_in_each_language() -> None:
    files = write_project_files(3)
    assert len(files) == 6
    assert len(set(files.values())) == 5  # the records of both languages are alike


def test_the_tools_of_the_turn_that_is_measured_are_five_of_the_agent() -> None:
    names = [call["name"] for step in list_tool_steps("rye") for call in step["toolCalls"]]
    offered = {tool.name for tool in get_toolset("cms").tools}
    assert len(set(names) & offered) == 5
