"""Media of a workspace are counted once an hour, in bytes times hours, and reported."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.billing.count_media_hours import MEDIA_SORT_KEY, count_media_hours
from fermata.billing.make_usage_reports import make_usage_reports
from fermata.billing.usage_report import UsageReport, build_report_key, read_workspace_reports
from fermata.content.change_sets.change_set_store import begin_change_set
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import delete_document
from fermata.content.documents.document import ContentAuthor, DocumentVersion
from fermata.content.media import media_room
from fermata.content.media.asset_files import MAX_ASSET_FILES
from fermata.content.media.asset_store import AssetTexts, fetch_asset_file, get_file_size, store_asset
from fermata.content.media.media_room import count_media_bytes, count_space_media_bytes
from fermata.content.model_store import create_space
from fermata.content.publishing.export_space import export_documents
from fermata.content.publishing.import_documents import import_content
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.errors import InvalidRequest
from fermata.domain.workspace_plan import PlanQuota, Subscription
from fermata.wire.auth.tenant_store import update_tenant
from tests.resources import TestClock
from tests.tenant_tokens import make_tenant
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]
BAKERY, ADA = "bakery", ContentAuthor("ada")
SHOP = SpaceKey(BAKERY, "shop")
PDF = b"%PDF-1.7 " + bytes(86) + b"%%EOF"
LIMITED = Subscription(plan="starter", limits={"mediaBytes": 1}, overage=True)


@pytest.fixture(autouse=True)
def _shop(resources: Resources) -> None:
    make_tenant(resources, BAKERY)
    update_tenant(resources, BAKERY, subscription=LIMITED)
    create_space(resources, SHOP, ContentSpace(locales=("en",)), ADA)


def store(resources: Resources, raw: bytes = PDF) -> DocumentVersion:
    return store_asset(WorkingDocuments(resources, SHOP, ADA), raw, AssetTexts("menu.pdf")).version


def report(resources: Resources) -> list[UsageReport]:
    count_media_hours(resources, BAKERY)
    return make_usage_reports(resources, BAKERY, read_workspace_reports(resources, BAKERY))


def test_bytes_count_for_each_hour_that_they_are_stored_and_each_hour_once(
    resources: Resources, clock: TestClock
) -> None:
    first = store(resources)
    assert [(one.meter, one.quantity) for one in report(resources)] == [("media_storage_byte_hours", 100)]
    assert report(resources) == [], "the same hour"
    clock.now += 3_600
    store(resources, PDF + b"x")
    [second] = report(resources)
    assert (second.quantity, second.total) == (201, 301)
    delete_document(resources, SHOP, first.key, ADA)
    clock.now += 3 * 3_600
    assert report(resources)[0].quantity == 3 * 101, "hours in which no run came"
    clock.now += 90 * 3_600
    assert report(resources)[0].quantity == 24 * 101, "Nobody knows what was there days ago."


@pytest.mark.parametrize(
    "fields",
    [
        {"files": [{"name": "original", "size": 10**40}, {"name": "thumbnail", "size": "many"}]},
        {"files": [{"name": "original", "size": 0}], "size": 0},
        {"files": []},
        {"files": None, "size": 1},
    ],
    ids=["huge", "nothing", "no files", "no field"],
)
def test_whatever_people_write_into_an_asset_its_size_is_that_of_what_is_stored(
    resources: Resources, fields: dict[str, Any]
) -> None:
    asset = store(resources)
    documents = WorkingDocuments(resources, SHOP, ADA)
    written = documents.update(asset.key, lambda content: content.with_fields(DEFINITION_LOCALE, fields)).version
    assert get_file_size(written, "original") == 100
    assert [one.quantity for one in report(resources)] == [100]


def test_an_asset_of_more_files_than_are_looked_for_is_refused(resources: Resources) -> None:
    asset, documents = store(resources), WorkingDocuments(resources, SHOP, ADA)
    fields = {"files": [{"name": f"size-{number}"} for number in range(MAX_ASSET_FILES + 1)]}
    with pytest.raises(InvalidRequest, match="at most 500 files"):
        documents.update(asset.key, lambda content: content.with_fields(DEFINITION_LOCALE, fields))


def test_media_that_wait_in_a_change_set_fill_the_room(resources: Resources) -> None:
    waiting = begin_change_set(resources, SHOP, "Menu", ADA).id
    store_asset(WorkingDocuments(resources, SHOP, ADA, change_set=waiting), PDF, AssetTexts("menu.pdf"))
    assert count_media_bytes(resources, BAKERY) == 100
    store(resources)
    assert count_media_bytes(resources, BAKERY) == 100, "the same file"
    assert count_space_media_bytes(resources, SHOP) == 100


def test_an_imported_asset_has_nothing_until_its_file_is_uploaded(resources: Resources) -> None:
    asset = store(resources)
    other = SpaceKey(BAKERY, "blog")
    create_space(resources, other, ContentSpace(locales=("en",)), ADA)
    [exported] = [one for one in export_documents(resources, SHOP, "asset").items if one["model"] == "asset"]
    assert import_content(resources, other, ADA, [], [exported])[0].outcome == "created"
    assert import_content(resources, other, ADA, [], [exported])[0].outcome == "unchanged"
    documents = WorkingDocuments(resources, other, ADA)
    assert get_file_size(documents.read(asset.key), "original") == 0
    stored = store_asset(documents, PDF, AssetTexts("menu.pdf"))
    assert (stored.is_new, get_file_size(stored.version, "original")) == (False, 100)
    assert fetch_asset_file(resources, other, stored.version) == ("application/pdf", PDF)


def test_a_report_of_media_says_what_exceeds_the_room_of_the_plan_in_every_hour(
    resources: Resources, clock: TestClock
) -> None:
    store(resources)
    [found] = report(resources)
    included = found.included
    assert included in {24 * days for days in (28, 29, 30, 31)}
    assert found.exceeding == max(0, 100 - included)
    while found.total + 2_400 <= included:
        clock.now += 86_400
        [found] = report(resources)
    assert found.overage is True


def test_what_exceeds_the_room_is_admitted_where_it_is_billed_and_counts(resources: Resources) -> None:
    store(resources)
    room = media_room.MediaRoom.open(resources, BAKERY)
    assert room.count_used() == 100
    assert LIMITED.get_limit(PlanQuota.MEDIA_BYTES) is None
    assert Subscription(plan="free", overage=True).get_limit(PlanQuota.MEDIA_BYTES) == 0, "The plan has none."


def test_spaces_in_which_no_asset_has_changed_are_not_counted_again(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(resources)
    count_media_hours(resources, BAKERY)
    monkeypatch.setattr("fermata.billing.count_media_hours.count_space_media_bytes", pytest.fail)
    clock.now += 3_600
    assert report(resources)[0].total == 200


def test_a_workspace_without_media_has_no_row(resources: Resources) -> None:
    count_media_hours(resources, BAKERY)
    assert resources.tables.get_item_by_key(build_report_key(resources, BAKERY, MEDIA_SORT_KEY)) is None
    assert report(resources) == []


def test_two_runs_at_once_count_an_hour_once(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    store(resources)
    real = media_room.count_space_media_bytes

    def count_while_another_run_does(of: Resources, space: SpaceKey) -> int:
        monkeypatch.setattr("fermata.billing.count_media_hours.count_space_media_bytes", real)
        count_media_hours(of, BAKERY)
        return real(of, space)

    monkeypatch.setattr("fermata.billing.count_media_hours.count_space_media_bytes", count_while_another_run_does)
    assert [one.quantity for one in report(resources)] == [100]
