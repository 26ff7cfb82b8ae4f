"""Check the decision records: number, title, date, status and a line in the index that says what took their place."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
INDEX = (FOLDER / "README.md").read_text()
HEAD = re.compile(
    r"# (?P<number>\d{4}) (?P<title>\S.+)\n\n"
    r"Date: \d{4}-\d\d-\d\d\. Status: (?:accepted|superseded by (?P<successor>\d{4}))\.\n\n"
)


def read_head(record: Path) -> re.Match[str]:
    head = HEAD.match(record.read_text())
    assert head, f"{record.name} does not begin with a numbered title, a date and a status"
    return head


def test_every_record_begins_with_number_title_date_and_status() -> None:
    assert {record.name: read_head(record)["number"] for record in RECORDS} == {
        record.name: record.name[:4] for record in RECORDS
    }


def build_index_line(record: Path) -> str:
    head = read_head(record)
    successor = f" (superseded by {head['successor']})" if head["successor"] else ""
    return f"| [{head['number']}]({record.name}) | {head['title']}{successor} |"


def test_every_record_is_in_the_index_with_its_title_and_its_successor() -> None:
    assert [line for line in map(build_index_line, RECORDS) if line not in INDEX] == []


def test_the_index_lists_nothing_that_is_not_there() -> None:
    assert sorted(re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", INDEX)) == [record.name for record in RECORDS]


def test_a_superseded_record_names_an_existing_successor() -> None:
    numbers = {record.name[:4] for record in RECORDS}
    successors = {head["successor"] for head in map(read_head, RECORDS) if head["successor"]}
    assert successors <= numbers
