"""The files of a workspace are collected: what they include, and the folders that agents read."""

from pathlib import Path

from fermata_client.agent_files.agent_files import AgentFiles, read_agent_files

AGENT = """agents:
  - id: a
    properties:
      instructions: {_ref: prompts/a.md}
      fileSystem: {basePath: ./book}
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def list_mistakes(files: AgentFiles) -> list[tuple[str, int, str]]:
    return [(one.file, one.line, one.message) for one in files.mistakes]


def test_instructions_are_included_and_folders_sent_along(tmp_path: Path) -> None:
    write(tmp_path, {"agents.yaml": AGENT, "prompts/a.md": "Be kind.\n", "book/x/one.txt": "1", "book/.hidden": "2"})
    write(tmp_path, {"book/.git/config": "not sent"})
    files = read_agent_files(tmp_path)
    assert files.mistakes == []
    assert files.documents["agents.yaml"].value["agents"][0]["properties"]["instructions"] == "Be kind.\n"
    body = files.to_body()
    assert [one["path"] for one in body["folders"]["./book"]] == [".hidden", "x/one.txt"]
    assert body["files"][0]["lines"]["agents[0].id"] == 2


def test_files_in_a_folder_belong_together_and_included_ones_are_no_files_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "agents: [{_ref: part.yaml}]", "part.yaml": "id: x", "b.yml": "connections: []"})
    files = read_agent_files(tmp_path)
    assert {name: one.value for name, one in files.documents.items()} == {
        "a.yaml": {"agents": [{"id": "x"}]},
        "b.yml": {"connections": []},
    }


def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    root = tmp_path / "agents"
    write(tmp_path, {"secret.md": "secret", "agents/link/keep": ""})
    (root / "out.md").symlink_to(tmp_path / "secret.md")
    for name in ("../secret.md", "out.md", str(tmp_path / "secret.md"), "missing.md"):
        write(root, {"agents.yaml": f"agents:\n  - {{_ref: '{name}'}}\n"})
        [(file, line, message)] = list_mistakes(read_agent_files(root))
        assert (file, line) == ("agents.yaml", 2)
        assert "does not exist in the folder" in message


def test_every_file_that_cannot_be_included_is_named_with_its_line(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"a.yaml": "agents:\n  - {_ref: x.md}\n  - {_ref: [7]}\n  - {_ref: p.json}\n", "p.json": '{"_ref": "y"}'},
    )
    found = list_mistakes(read_agent_files(tmp_path))
    assert [(line, message.split(",")[0]) for _, line, message in found] == [
        (2, "_ref names the file 'x.md'"),
        (3, "_ref names the file [7]"),
        (4, "_ref names the file 'y'"),
    ]


def test_files_that_include_each_other_are_one_mistake_also_where_they_do_it_often(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "agents: [{_ref: a.yaml}, {_ref: a.yaml}]"})
    [(_, _, message)] = list_mistakes(read_agent_files(tmp_path))
    assert "include each other" in message
    repeated = {f"{number}.json": f'[{", ".join([f"""{{"_ref": "{number + 1}.json"}}"""] * 9)}]' for number in range(8)}
    write(tmp_path, {"a.yaml": "agents: {_ref: 0.json}", **repeated, "8.json": "{}"})
    [(_, _, message)] = list_mistakes(read_agent_files(tmp_path))
    assert message == "The file includes more than 1,000 others."


def test_a_link_in_a_folder_of_files_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, {"agents.yaml": AGENT, "prompts/a.md": "x", "book/one.txt": "1"})
    (tmp_path / "book" / "passwd").symlink_to("/etc/passwd")
    [(file, line, message)] = list_mistakes(read_agent_files(tmp_path))
    assert (file, line) == ("agents.yaml", 5)
    assert message.startswith("passwd is a link")


def test_a_file_that_is_no_yaml_hides_none_of_the_others(tmp_path: Path) -> None:
    write(tmp_path, {"bad.yaml": "a: [", "good.yaml": "agents: []"})
    files = read_agent_files(tmp_path)
    assert list(files.documents) == ["good.yaml"]
    assert [one.file for one in files.mistakes] == ["bad.yaml"]


def test_a_base_path_that_is_no_text_is_left_to_the_compiler(tmp_path: Path) -> None:
    agent = "agents: [{id: a, properties: {fileSystem: {basePath: {_payload: urlQuery.folder}}}}]"
    write(tmp_path, {"a.yaml": agent})
    files = read_agent_files(tmp_path)
    assert (files.mistakes, files.folders) == ([], {})
