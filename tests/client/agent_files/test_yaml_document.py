"""YAML is read with the line of each member, and nothing in it is more than data."""

import pytest

from fermata_client.agent_files.yaml_document import YamlMistake, read_yaml


def test_members_have_their_lines() -> None:
    document = read_yaml("agents:\n  - id: a\n    tools:\n      - one\n      - endpointId: two\n")
    assert document.value == {"agents": [{"id": "a", "tools": ["one", {"endpointId": "two"}]}]}
    lines = {path: document.lines[path] for path in ("agents", "agents[0].id", "agents[0].tools[1].endpointId")}
    assert lines == {"agents": 1, "agents[0].id": 2, "agents[0].tools[1].endpointId": 5}


def test_words_and_dates_stay_texts() -> None:
    text = "a: no\nb: on\nc: 2026-01-01\nd: true\ne: 1.5\nf: ~\ng: 12\nh: '7'\non: x\n"
    assert read_yaml(text).value == {
        "a": "no",
        "b": "on",
        "c": "2026-01-01",
        "d": True,
        "e": 1.5,
        "f": None,
        "g": 12,
        "h": "7",
        "on": "x",
    }
    assert read_yaml("").value is None


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is there twice"),
        ("a:\n  - [\n", 3, "no YAML"),
        ("a: 1\nb: !!python/object/apply:os.system ['x']\n", 2, "tag"),
        ("x: &x {a: 1}\ny:\n  <<: *x\n", 3, "merged"),
        ("? [a]\n: b\n", 1, "has to be a text"),
        ("a: *nobody\n", 1, "no YAML"),
        ("a: 1\n---\nb: 2\n", 2, "no YAML"),
        ("a: \x01\n", 0, "no YAML"),
    ],
)
def test_a_mistake_has_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(YamlMistake, match=message) as found:
        read_yaml(text)
    assert found.value.line == line


def test_a_small_file_does_not_become_a_huge_one() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(YamlMistake, match="more than"):
        read_yaml("\n".join(["l0: &l0 [x]", *levels]))
    with pytest.raises(YamlMistake, match="nested"):
        read_yaml("[" * 500 + "]" * 500)
