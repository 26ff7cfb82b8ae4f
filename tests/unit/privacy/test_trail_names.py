"""An erasure removes people from the trail of decisions, and the chain still holds."""

import json

from fermata.aws.resources import Resources
from fermata.privacy.trail_names import erase_trail_names, iter_trail_entries_of
from fermata.turns.approvals.decision_trail import TrailHead, build_trail_writes, iter_trail, verify_trail

PEOPLE = (
    {"turn": "of-ada", "approval": "A-turn-of-ada-0000001.1.0.n"},
    {"turn": "of-ben", "approval": "A-turn-of-ben-0000001.1.0.n"},
)


def write_trail(resources: Resources) -> None:
    entries = (
        (PEOPLE[0], {"askedFor": "ada", "decidedBy": "grace", "reason": "About Ada."}),
        (PEOPLE[1], {"askedFor": "ben", "decidedBy": "ada", "reason": "About Ben."}),
    )
    resources.tables.write_items(*build_trail_writes(resources, "bakery", TrailHead(), entries))


def read_values(resources: Resources) -> list[dict[str, str]]:
    trail = iter_trail(resources, "bakery")
    return [{name: kept["value"] for name, kept in item["personal"].items()} for item in trail]


def test_a_user_is_removed_as_asker_and_as_approver(resources: Resources) -> None:
    write_trail(resources)
    assert erase_trail_names(resources, "bakery", "ada", {"of-ada"}) == 2
    assert read_values(resources) == [{"decidedBy": "grace"}, {"askedFor": "ben", "reason": "About Ben."}]
    assert verify_trail(resources, "bakery").problem == ""
    assert erase_trail_names(resources, "bakery", "ada", {"of-ada"}) == 0


def test_with_a_conversation_goes_what_was_said_about_its_turns(resources: Resources) -> None:
    write_trail(resources)
    assert erase_trail_names(resources, "bakery", "", {"of-ben"}) == 1
    assert read_values(resources)[1] == {"decidedBy": "ada"}


def test_an_export_shows_a_user_only_what_is_about_the_user(resources: Resources) -> None:
    write_trail(resources)
    text = json.dumps(list(iter_trail_entries_of(resources, "bakery", "ada")), default=str)
    assert '"ada"' in text
    for other in ("grace", "ben", "About"):
        assert f'"value": "{other}' not in text
