"""Find what a user has written to content spaces, and rename the author. The content itself is the tenant's."""

from collections.abc import Iterator

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, Item, Update, Write
from fermata.aws.resources import Resources
from fermata.content.content_space import list_spaces, spaces_partition
from fermata.content.documents.read_document import MAX_BATCH_KEYS
from fermata.content.forms.submission import SUBMISSION_PREFIX, without_visitor
from fermata.content.space_members import MEMBER_PREFIX
from fermata.privacy.data_subject import DataSubject


def iter_content_rows_by(resources: Resources, subject: DataSubject) -> Iterator[Item]:
    """Yield the rows of a tenant's spaces that a user has written: versions, change sets, spaces.

    Of a submission that the user has decided about, this is that, and nothing of what its visitor has sent.
    """
    table = resources.settings.content_table
    keys = list(_iter_keys_by(resources, subject))
    for start in range(0, len(keys), MAX_BATCH_KEYS):
        rows = resources.tables.batch_get_items(table, keys[start : start + MAX_BATCH_KEYS]).values()
        yield from (without_visitor(row) if row["sk"].startswith(SUBMISSION_PREFIX) else row for row in rows)


def _iter_keys_by(resources: Resources, subject: DataSubject) -> Iterator[tuple[str, str]]:
    """Yield the keys of the rows that a user has written. No index lists them: all rows of the spaces are looked at."""
    spaces = [space.pk for space, _ in list_spaces(resources, subject.tenant)]
    for pk in (spaces_partition(subject.tenant), *spaces):
        rows = resources.tables.query_items(resources.settings.content_table, pk, attributes=("pk", "sk", "user"))
        yield from ((row["pk"], row["sk"]) for row in rows if row.get("user") == subject.id)


def rename_content_author(resources: Resources, subject: DataSubject, erased_name: str) -> int:
    """Replace a user by a pseudonym in the rows that the user has written, and return how many there were.

    What the user may do in a space is deleted.
    """
    return sum(
        _rename_author(resources, key, subject.id, erased_name) for key in list(_iter_keys_by(resources, subject))
    )


def _rename_author(resources: Resources, key: tuple[str, str], user: str, erased_name: str) -> int:
    try:
        resources.tables.write_items(_build_renaming(resources.settings.content_table, key, user, erased_name))
    except ConditionFailed:
        return 0
    return 1


def _build_renaming(table: str, key: tuple[str, str], user: str, erased_name: str) -> Write:
    names, condition = {"#user": "user"}, "#user = :old"
    if key[1].startswith(MEMBER_PREFIX):
        return Delete(table, *key, condition, {":old": user}, names)
    values = {":new": erased_name, ":old": user}
    return Update(table, *key, "SET #user = :new", values, names=names, condition=condition)
