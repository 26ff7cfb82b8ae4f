"""A pull leaves what people change meanwhile, and ends before its request does."""

import threading
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.read_document import read_document, read_newest_version
from fermata.content.files.write_project import write_project
from fermata.content.git import sync_repository
from fermata.content.git.git_errors import GitUnavailable
from fermata.content.git.sync_repository import pull_repository
from tests.git_server import GitServer
from tests.unit.content.conftest import ADA
from tests.unit.content.files.project_samples import make_tree
from tests.unit.content.git.test_git_repository import (
    FRESH,
    SPACE,
    answer_question,
    change_answer,
    project,
    push,
    read_answer,
    server,
)

__all__ = ["project", "server"]


def test_what_somebody_changes_while_a_pull_is_written_is_not_lost(
    resources: Resources, server: GitServer, project: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(resources)
    server.commit(change_answer(make_tree(), question="Really?"))
    written: list[DocumentKey] = []

    def write_later(*arguments: Any, **options: Any) -> Any:
        if not written:
            written.append(FRESH)
            answer_question(resources, "Meanwhile.")
            content = DocumentContent(locales={"en": {"question": "New?", "answer": "Yes."}})
            create_document(resources, SPACE, "faq", ADA, content, document_id="new-one")
        return write_project(*arguments, **options)

    monkeypatch.setattr(sync_repository, "write_project", write_later)
    assert pull_repository(resources, SPACE, ADA).pulled == 1
    content = read_document(resources, SPACE, FRESH).content
    assert content is not None
    assert (content.get_locale("en")["question"], read_answer(resources)) == ("Really?", "Meanwhile.")
    assert read_newest_version(resources, SPACE, DocumentKey("faq", "new-one")) is not None


def test_a_server_that_never_answers_is_given_up(
    resources: Resources, server: GitServer, project: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_repository, "MAX_SYNC_SECONDS", 0.0)  # a second is left to each attempt
    given_up = threading.Event()
    monkeypatch.setattr(server, "answer", lambda *_arguments: given_up.wait())
    with pytest.raises(GitUnavailable, match="no whole answer within 1 s"):
        push(resources)
    given_up.set()
