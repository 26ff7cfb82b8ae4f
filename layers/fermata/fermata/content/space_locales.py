"""Change the languages of a content space, also while others change them."""

from collections.abc import Callable, Iterable, Sequence

from fermata.aws.dynamodb_client import draw_pause
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Put, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.content.content_space import (
    LOCALE_CODE,
    MAX_LOCALES,
    SPACE_IS_LIVE,
    ContentSpace,
    SpaceKey,
    describe_missing_space,
    is_live_space,
    space_from_item,
    space_item_key,
    space_to_item,
)
from fermata.content.documents.commit_errors import ContentMoved
from fermata.domain.errors import Conflict, InvalidRequest, NotFound

_MAX_ATTEMPTS = 8


def change_space_locales(
    resources: Resources, space: SpaceKey, locales: Sequence[str], seen: Sequence[str] | None = None
) -> ContentSpace:
    """Change the languages of a space. Content in a language that is left out stays where it is.

    Args:
        resources: Of the process.
        space: The space.
        locales: All languages, the default one first.
        seen: Those that the caller has seen; None for whatever they are.

    Raises:
        NotFound: There is no such space.
        InvalidRequest: As `check_locales`.
        ContentMoved: They are others than those seen.
        Conflict: Somebody else has changed the space at the same moment.
    """

    def choose(known: tuple[str, ...]) -> Sequence[str]:
        if seen is not None and tuple(seen) != known:
            raise ContentMoved
        return locales

    changed = _write_locales(resources, space, choose, ())
    if changed is None:
        raise Conflict("Somebody else has just changed the site. Try again.")
    return changed


def add_space_locale(resources: Resources, space: SpaceKey, locale: str, beside: Sequence[Write] = ()) -> ContentSpace:
    """Add a language to those that a space has now, whoever else adds one at the same moment.

    Args:
        resources: Of the process.
        space: The space.
        locale: The language. One that is there stays, and nothing is written.
        beside: Further writes of the same transaction.

    Raises:
        NotFound: There is no such space.
        InvalidRequest: As `check_locales`.
        Conflict: Others have changed the space in every attempt.
    """
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        changed = _write_locales(resources, space, lambda known: dict.fromkeys([*known, locale]), beside)
        if changed is not None:
            return changed
        resources.clock.sleep(draw_pause(attempt))
    raise Conflict("Others change the site again and again. Try again.")


def check_locales(locales: Iterable[str]) -> tuple[str, ...]:
    """Return the languages of a space, each once.

    Raises:
        InvalidRequest: They are too many or none, or one is no code of a language.
    """
    chosen = tuple(dict.fromkeys(locales))
    if not 0 < len(chosen) <= MAX_LOCALES or not all(map(LOCALE_CODE.fullmatch, chosen)):
        raise InvalidRequest(f"Languages are 1 to {MAX_LOCALES} codes such as en or pt-BR.")
    return chosen


def _write_locales(
    resources: Resources,
    space: SpaceKey,
    choose: Callable[[tuple[str, ...]], Iterable[str]],
    beside: Sequence[Write],
) -> ContentSpace | None:
    """Give a space the languages that are chosen for those that it has; None if it changes meanwhile."""
    key = space_item_key(resources, space)
    item = resources.tables.get_item_by_key(key)
    if not is_live_space(item):
        raise NotFound(describe_missing_space(space))
    record = space_from_item(item)
    changed = ContentSpace.model_validate({**record.model_dump(), "locales": check_locales(choose(record.locales))})
    if changed == record:
        return record
    values, names = {":read": item["data"]}, {"#data": "data"}
    condition = f"#data = :read AND {SPACE_IS_LIVE}"
    changed_row = space_to_item(space, changed, item.get("gsk", ""))
    put = Put(key.table, changed_row, condition=condition, values=values, names=names)
    try:
        resources.tables.write_items(put, *beside)
    except (ConditionFailed, TransactionCanceled):
        return None
    return changed
