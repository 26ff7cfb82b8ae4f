"""Deleting a content space hides it at once, and erases its rows and files, and nothing of others (decision 0454)."""

from collections.abc import Callable

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey, list_spaces, mark_space_deleted, read_space
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, DocumentContent
from fermata.content.media.asset_store import AssetTexts, store_asset
from fermata.content.model_store import create_space, put_model
from fermata.content.publishing.delivery_token import issue_delivery_token
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.errors import Conflict, NotFound
from fermata.privacy import erase_space
from fermata.privacy.erase_space import make_space_subject
from fermata.privacy.erasure import SETTLING_SECONDS
from fermata.privacy.privacy_job import create_privacy_job, get_privacy_job
from fermata.privacy.run_jobs import run_open_jobs
from tests import images
from tests.resources import TestClock

SHOP, BLOG = SpaceKey("bakery", "shop"), SpaceKey("bakery", "shop-2")
ADA_WRITES = ContentAuthor("ada")


@pytest.fixture
def spaces(resources: Resources) -> Resources:
    """Two spaces with documents, whose content is in the table and in the bucket, an image and a token each."""
    for space in (SHOP, BLOG):
        fill_space(resources, space)
    return resources


def fill_space(resources: Resources, space: SpaceKey) -> None:
    create_space(resources, space, ContentSpace(), ADA_WRITES)
    fields = {"text": {"type": "text"}}
    put_model(resources, space, {"id": "recipe", "kind": "collection", "fields": fields}, ADA_WRITES)
    for text in ("short", "long " * 20_000):
        create_document(
            resources, space, "recipe", ADA_WRITES, DocumentContent(title="Rye", locales={"data": {"text": text}})
        )
    store_asset(WorkingDocuments(resources, space, ADA_WRITES), images.make_image(), AssetTexts("bread.jpg"))
    issue_delivery_token(resources, space, "ada", "published")


def count_stored(resources: Resources, space: SpaceKey) -> tuple[int, int]:
    """Return how many rows and files a space has."""
    rows = resources.tables.query_items(resources.settings.content_table, space.pk)
    return len(rows), len(resources.blobs.list_keys(space.folder))


def delete_space(resources: Resources) -> str:
    job = create_privacy_job(resources, "erasure", make_space_subject(SHOP))
    mark_space_deleted(resources, SHOP)
    return job.id


def test_a_deleted_space_is_found_no_more_and_keeps_its_name_until_it_is_erased(spaces: Resources) -> None:
    delete_space(spaces)
    assert [key for key, _ in list_spaces(spaces, "bakery")] == [BLOG]
    with pytest.raises(NotFound):
        read_space(spaces, SHOP)
    with pytest.raises(NotFound):
        create_document(spaces, SHOP, "recipe", ADA_WRITES, DocumentContent(title="Late"))
    with pytest.raises(Conflict):
        create_space(spaces, SHOP, ContentSpace(), ADA_WRITES)


def test_all_of_the_space_is_erased_and_nothing_of_one_with_a_similar_name(spaces: Resources, clock: TestClock) -> None:
    others = count_stored(spaces, BLOG)
    assert others == count_stored(spaces, SHOP)
    job_id = delete_space(spaces)
    run_open_jobs(spaces)
    assert (count_stored(spaces, SHOP), count_stored(spaces, BLOG)) == ((0, 0), others)
    clock.advance(SETTLING_SECONDS)
    run_open_jobs(spaces)
    job = get_privacy_job(spaces, "bakery", job_id, "erasure")
    assert (job.state, job.subject, job.counts["rows"]) == ("done", None, others[0])
    assert "erasedName" not in job.to_view()
    create_space(spaces, SHOP, ContentSpace(), ADA_WRITES)
    run_open_jobs(spaces)
    assert read_space(spaces, SHOP)


def test_what_a_late_writer_stores_is_erased_by_the_next_pass(spaces: Resources, clock: TestClock) -> None:
    delete_space(spaces)
    run_open_jobs(spaces)
    spaces.blobs.put_bytes(f"{SHOP.folder}/media/late", b"late", "image/png")
    clock.advance(SETTLING_SECONDS)
    run_open_jobs(spaces)
    assert count_stored(spaces, SHOP) == (0, 0)
    with pytest.raises(Conflict):  # something was found, so that another pass follows
        create_space(spaces, SHOP, ContentSpace(), ADA_WRITES)


def test_an_erasure_goes_on_where_its_time_has_ended(spaces: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erase_space, "ROWS_AT_ONCE", 7)
    job_id = delete_space(spaces)
    before = count_stored(spaces, SHOP)[0]
    run_open_jobs(spaces, make_time_for(1))
    assert 0 < count_stored(spaces, SHOP)[0] < before
    run_open_jobs(spaces)
    assert count_stored(spaces, SHOP) == (0, 0)
    assert get_privacy_job(spaces, "bakery", job_id, "erasure").counts["rows"] == before


def make_time_for(steps: int) -> Callable[[], bool]:
    """Return a clock whose time is over after the beginning of a job and so many steps."""
    left = [steps]

    def has_time() -> bool:
        left[0] -= 1
        return left[0] >= 0

    return has_time
