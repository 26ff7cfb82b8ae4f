"""The tools of the studio for submissions of forms, and the one that fetches an image."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.documents.document import ContentAuthor, ContentStatus, DocumentKey
from fermata.content.documents.read_document import read_document
from fermata.content.forms.submission import Submission, SubmissionSender, build_submission_puts, make_submission_id
from fermata.content.forms.submission_store import read_submission
from fermata.content.media.asset_store import fetch_asset_file, read_asset
from fermata.content.model_store import put_model, read_model
from fermata.content.space_members import SpaceMember, put_member
from fermata.drivers.transport.file_download import DownloadedFile, FileDownloadCode, FileDownloadError
from tests import images
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.tools.studio.test_studio_tools import AUTHOR, EDITOR, REVIEWER, SPACE, VIEWER, StudioAgent

__all__ = ["clock", "resources", "shared_resources"]
DATA = {"question": "Is it sour?", "answer": "A little."}
PICTURE = "https://pictures.example/a/Loaf%20of%20bread.jpg?size=1"


def leave_submission(resources: Resources, data: dict[str, Any] = DATA, locale: str = "tr") -> str:
    submission = Submission(
        id=make_submission_id(resources.clock.time()),
        model="faq",
        data=data,
        locale=locale,
        sender=SubmissionSender(address="198.51.100.7"),
        created_at=resources.clock.now_iso(),
    )
    resources.tables.write_items(*build_submission_puts(resources.settings.content_table, SPACE, submission))
    return submission.id


@pytest.fixture
def agent(resources: Resources) -> StudioAgent:
    return StudioAgent(resources)


def test_a_submission_becomes_a_draft_in_the_language_of_its_visitor(agent: StudioAgent) -> None:
    submission = leave_submission(agent.resources)
    assert agent.data("list_submissions", modelId="faq")["total"] == 1
    approved = agent.data("approve_submission", submissionId=submission)
    assert (approved["valid"], approved["merged"]) == (True, True)
    assert approved["submission"]["status"] == "approved"
    content = read_document(agent.resources, SPACE, DocumentKey("faq", approved["entryId"])).content
    assert content is not None
    assert (content.locales, content.get_status("tr")) == ({"tr": DATA}, ContentStatus.DRAFT)
    again = agent.data("approve_submission", submissionId=submission)
    assert again["entryId"] == approved["entryId"]
    assert agent.data("list_submissions", modelId="faq")["submissions"] == []


def test_a_submission_that_breaks_a_rule_stays_pending(agent: StudioAgent) -> None:
    submission = leave_submission(agent.resources, {"answer": "Without a question."})
    refused = agent.data("approve_submission", submissionId=submission)
    assert (refused["valid"], refused["branch"], "entryId" in refused) == (False, "", False)
    assert read_submission(agent.resources, SPACE, submission).status == "pending"


def test_an_approval_that_is_repeated_after_its_merge_marks_the_submission(
    agent: StudioAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = leave_submission(agent.resources)
    module = "fermata.tools.studio.submission_tools.decide_submission"

    def die(*_: Any, **_named: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(module, die)
        with pytest.raises(KeyboardInterrupt):
            agent.call("approve_submission", key="turn-1/7/0", submissionId=submission)
    approved = agent.data("approve_submission", key="turn-1/7/0", submissionId=submission)
    assert (approved["merged"], read_submission(agent.resources, SPACE, submission).status) == (True, "approved")
    assert read_model(agent.resources, SPACE, "faq").documents == 3


def test_in_a_project_with_reviews_the_entry_of_a_reviewer_waits_in_a_branch(resources: Resources) -> None:
    agent = StudioAgent(resources, "review")
    submission = leave_submission(resources)
    approved = agent.data("approve_submission", rights=REVIEWER, submissionId=submission)
    assert (approved["merged"], approved["workflow"]) == (False, "review")
    merged = agent.data("merge_branch", rights=REVIEWER, branch=approved["reviewBranch"])
    assert merged["merged"]
    assert read_document(resources, SPACE, DocumentKey("faq", approved["entryId"])).content is not None


def test_a_rejected_submission_is_rejected_and_an_approved_one_is_not(agent: StudioAgent) -> None:
    submission, other = leave_submission(agent.resources), leave_submission(agent.resources)
    rejected = agent.data("reject_submission", rights=REVIEWER, submissionId=submission)
    assert rejected["submission"]["status"] == "rejected"
    agent.data("approve_submission", submissionId=other)
    refused = agent.call("reject_submission", submissionId=other)
    assert (refused.ok, "became the entry" in str(refused.error)) == (False, True)


@pytest.mark.parametrize("rights", [VIEWER, EDITOR])
def test_who_may_not_moderate_sees_nothing_that_a_visitor_has_sent(agent: StudioAgent, rights: Any) -> None:
    submission = leave_submission(agent.resources)
    listed = agent.data("list_submissions", rights=rights, modelId="faq")
    assert listed["submissions"][0]["fields"] == ["answer", "question"]
    assert not any(word in str(listed) for word in ("sour", "198.51.100.7"))
    assert "shown to reviewers and admins only" in listed["message"]
    for tool in ("approve_submission", "reject_submission"):
        assert agent.call(tool, rights=rights, submissionId=submission).data["code"] == "permission_denied"


def test_a_reviewer_of_other_models_finds_no_submission(agent: StudioAgent) -> None:
    submission = leave_submission(agent.resources)
    put_member(agent.resources, SPACE, SpaceMember(AUTHOR.user, "reviewer", models=frozenset({"posts"})))
    assert not agent.call("list_submissions", rights=REVIEWER, modelId="faq").ok
    for tool in ("approve_submission", "reject_submission"):
        assert agent.call(tool, rights=REVIEWER, submissionId=submission).error == "There is no such submission."


@pytest.fixture
def picture(monkeypatch: pytest.MonkeyPatch) -> bytes:
    raw = images.make_image(41)
    monkeypatch.setattr("fermata.content.media.fetch_image.download_file", lambda *_: DownloadedFile(raw, "image/jpeg"))
    return raw


@pytest.mark.usefixtures("picture")
def test_an_image_is_fetched_and_stored_with_the_sizes_of_its_preset(agent: StudioAgent) -> None:
    stored = agent.data("upload_media", rights=EDITOR, url=PICTURE, alt="A loaf", tags=["bread"], variants="avatar")
    assert (stored["filename"], stored["isNew"]) == ("Loaf of bread.jpg", True)
    assert {"original", "avatar-256", "avatar-96", "avatar-48"} <= stored["variants"].keys()
    asset = read_asset(agent.resources, SPACE, stored["id"])
    for name, variant in stored["variants"].items():
        media_type, data = fetch_asset_file(agent.resources, SPACE, asset, name)
        assert (media_type, len(data)) == (f"image/{variant['format']}", variant["size"])
    found = agent.data("get_media", assetId=stored["id"])
    assert {name: found[name] for name in ("tags", "source", "format", "usedIn")} == {
        "tags": ["bread"], "source": "url", "format": "jpeg", "usedIn": [],
    }  # fmt: skip
    assert len(found["blurhash"]) == 28
    for long in ({"alt": "x" * 501}, {"tags": ["x"] * 51}, {"tags": ["x" * 61]}):
        assert "at most 500 characters" in str(agent.call("update_media", assetId=stored["id"], **long).error)


@pytest.mark.usefixtures("picture")
def test_the_same_image_again_is_the_same_asset_with_more_sizes(agent: StudioAgent) -> None:
    first = agent.data("upload_media", url=PICTURE)
    second = agent.data("upload_media", url=PICTURE, variants="logo")
    assert (second["id"], second["isNew"]) == (first["id"], False)
    assert second["variants"].keys() - first["variants"].keys() == {"logo", "logo-small"}
    third = agent.data("upload_media", url=PICTURE, variants="logo")
    assert third["variants"] == second["variants"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (FileDownloadCode.NOT_PUBLIC, "Use a public https address."),
        (FileDownloadCode.TOO_LARGE, "Use a smaller file."),
        (FileDownloadCode.TIMEOUT, "Check the address, or try again."),
    ],
)
def test_a_file_that_is_not_fetched_says_why(
    agent: StudioAgent, monkeypatch: pytest.MonkeyPatch, code: FileDownloadCode, words: str
) -> None:
    def refuse(*_: Any) -> DownloadedFile:
        raise FileDownloadError(code, "pictures.example", "was not fetched")

    monkeypatch.setattr("fermata.content.media.fetch_image.download_file", refuse)
    refused = agent.call("upload_media", url=PICTURE)
    assert (refused.ok, words in str(refused.error)) == (False, True)


def test_a_file_that_is_no_image_is_refused(agent: StudioAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    page = DownloadedFile(b"<!doctype html><svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml")
    monkeypatch.setattr("fermata.content.media.fetch_image.download_file", lambda *_: page)
    assert not agent.call("upload_media", url=PICTURE).ok
    assert agent.data("search_media") == []


def test_addresses_within_the_network_are_refused_without_a_request(agent: StudioAgent) -> None:
    for url in ("http://93.184.216.34/a.jpg", "https://169.254.169.254/latest", "https://[::1/x"):
        refused = agent.call("upload_media", url=url)
        assert not refused.ok, url


def test_long_words_about_an_image_are_refused(agent: StudioAgent) -> None:
    for words in ({"alt": "x" * 501}, {"tags": ["x"] * 51}, {"tags": ["x" * 61]}):
        assert not agent.call("upload_media", url=PICTURE, **words).ok


def test_submissions_go_with_a_model_that_the_studio_deletes(agent: StudioAgent) -> None:
    model = {"id": "guests", "kind": "collection", "fields": {"name": {"type": "string"}}}
    put_model(agent.resources, SPACE, model, ContentAuthor("ada"))
    submission = Submission(id=make_submission_id(0), model="guests", data={"name": "Eve"}, created_at="")
    agent.resources.tables.write_items(
        *build_submission_puts(agent.resources.settings.content_table, SPACE, submission)
    )
    agent.data("save_content", model="guests", data={"new": {"name": "Ada"}})
    assert agent.data("delete_model", model="guests", confirm=True)["deleted"]
    rows = agent.resources.tables.query_sort_keys(agent.resources.settings.content_table, SPACE.pk, min_sk="f#")
    assert not [row for row in rows if row.startswith(("f#", "q#"))]
