"""The examples of docs/extending.md keep the rules that the suite has for what they add; the glossary stays short."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
EXTENDING = (DOCS / "extending.md").read_text()
GLOSSARY = re.compile(r"^## Glossary\n(?P<text>.*?)^## ", re.MULTILINE | re.DOTALL)
TERM = re.compile(r"^\| (?!term |---)", re.MULTILINE)
MAX_TERMS = 20
DESCRIPTION = re.compile(r'description="(?P<text>[^"]+)"')
RESPONSE = re.compile(r"SuccessResponse\((?P<arguments>[^()]*)\)")


def test_the_description_of_an_example_tool_is_as_long_as_one_must_be() -> None:
    described = [match["text"] for match in DESCRIPTION.finditer(EXTENDING)]
    assert len(described) > 1
    assert [text for text in described if not 40 < len(text) < 450 or not text.endswith(".")] == []


def test_an_example_route_names_its_response_and_does_not_import_it() -> None:
    responses = [match["arguments"] for match in RESPONSE.finditer(EXTENDING)]
    assert responses
    assert [arguments for arguments in responses if not re.fullmatch(r'"[^"]+", "\w+"', arguments)] == []


def test_the_glossary_has_at_most_twenty_terms() -> None:
    glossary = GLOSSARY.search((DOCS / "architecture.md").read_text())
    assert glossary
    assert 10 < len(TERM.findall(glossary["text"])) <= MAX_TERMS
