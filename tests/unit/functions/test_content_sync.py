"""A client keeps a copy of a project: it is sent all of it once, and then what has changed, as far as it may see it."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.client_protocols import content_sync
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set
from fermata.content.change_sets.merge_change_set import merge_change_set
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import create_document, delete_document, update_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.read_document import WriteBasis
from fermata.content.files import sweep_copies
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.part_tree import tree_folder
from fermata.content.files.project_files import FileTree
from fermata.content.files.write_project import write_project
from fermata.content.model_store import create_space, delete_model, put_model
from fermata.content.space_members import SpaceMember, put_member
from functions.credentials import app
from tests.proxy_events import make_proxy_event
from tests.resources import TestClock
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.content.files.project_samples import CONFIG, make_tree, text_of

SPACE = SpaceKey("bakery", "studio")
ADA = ContentAuthor("ada")
FRESH, LONG, NOTE, HERO = (
    DocumentKey("faq", "a1b2c3d4e5f6"),
    DocumentKey("faq", "how-long"),
    DocumentKey("note", "first-bread"),
    DocumentKey("hero", "main"),
)
Json = dict[str, Any]
ALWAYS = {"treeSha", "unchanged", "full", "models", "content"}


def import_files(resources: Resources, tree: FileTree) -> None:
    write_project(resources, SPACE, parse_project_files(tree), ADA)


def answer_with(resources: Resources, key: DocumentKey, locale: str, text: str) -> None:
    update_document(resources, SPACE, key, ADA, lambda content: content.with_fields(locale, {"answer": text}))


def set_version(before: DocumentVersion | None, _basis: WriteBasis) -> DocumentContent:
    assert before is not None
    assert before.content is not None
    return before.content.with_fields("en", {"version": 2})


@dataclass
class Copy:
    """What a client keeps of a project, by what the documentation says."""

    signer: TokenSigner
    user: str = "ada"
    right: str = "ai.content.manage"
    tree: str = ""
    sections: Json = field(default_factory=dict)
    models: Json = field(default_factory=dict)
    content: dict[str, Json] = field(default_factory=dict)
    parts: list[Json] = field(default_factory=list)
    """Of the last sync."""

    def ask(self, path: str = "studio/main", **query: str) -> tuple[int, Json]:
        headers = self.signer.bearer_headers(user=self.user, capabilities=[self.right])
        event = make_proxy_event("GET", f"/admin/api/ai/content-sync/{path}", headers)
        event["queryStringParameters"] = query or None
        response = app.handler(event, None)
        return response["statusCode"], json.loads(response["body"])

    def expect(self, **query: str) -> Json:
        status, answer = self.ask(**query)
        assert status == 200, answer
        return answer

    def sync(self) -> Json:
        """Ask for what has changed, and return the first part of it."""
        return self.take(self.expect(**({"treeSha": self.tree} if self.tree else {})))

    def take(self, first: Json) -> Json:
        """Take a part with those that follow it."""
        self.parts = [first]
        while cursor := self.parts[-1].get("nextCursor"):
            self.parts.append(self.expect(cursor=cursor))
        if self.parts[0]["full"]:
            self.sections, self.models, self.content = {}, {}, {}
        for part in self.parts:
            self._apply(part)
        [self.tree] = {part["treeSha"] for part in self.parts}
        return self.parts[0]

    def _apply(self, part: Json) -> None:
        self.sections |= {name: part[name] for name in part.keys() - ALWAYS - {"deleted", "nextCursor"}}
        self.models |= part["models"]
        for place, sent in part["content"].items():
            if sent["kind"] in ("singleton", "dictionary"):
                self.content[place] = sent
                continue
            kept = self.content.setdefault(place, {"kind": sent["kind"], "data": {}, "meta": {}})
            assert kept["kind"] == sent["kind"]
            kept["data"] |= sent["data"]
            kept["meta"] |= sent["meta"]
        deleted = part.get("deleted", {"models": [], "entries": {}})
        for model in deleted["models"]:
            self.models.pop(model, None)
        for place, entries in deleted["entries"].items():
            for entry in entries:
                self._delete(place, entry)

    def _delete(self, place: str, entry: str) -> None:
        kept = self.content.get(place)
        if kept is None:
            return
        is_one = kept["kind"] in ("singleton", "dictionary")
        for members in (kept["data"], kept["meta"]):
            members.pop(entry, None)
        if entry == "main" if is_one else not kept["data"]:
            del self.content[place]

    def sent_entries(self) -> dict[str, list[str]]:
        """Return which entries the last sync has brought, by model and language."""
        found: dict[str, list[str]] = {}
        for part in self.parts:
            for place, sent in part["content"].items():
                is_one = sent["kind"] in ("singleton", "dictionary")
                found.setdefault(place, []).extend(["main"] if is_one else sent["data"])
        return found

    def deleted_entries(self) -> Json:
        found: Json = {}
        for part in self.parts:
            for place, entries in part.get("deleted", {}).get("entries", {}).items():
                found.setdefault(place, []).extend(entries)
        return found

    def is_like_a_new_one(self) -> bool:
        """Return whether the copy is what somebody has who is sent all of it now."""
        new = Copy(self.signer, self.user, self.right)
        assert new.sync()["full"]
        assert (new.sections, new.models, new.content) == (self.sections, self.models, self.content)
        return new.tree == self.tree


@pytest.fixture
def signer(resources: Resources, deployed: None) -> TokenSigner:
    """A tenant with the sample project."""
    create_space(resources, SPACE, ContentSpace(locales=("en", "tr")), ADA)
    import_files(resources, make_tree())
    return make_tenant(resources, "bakery")


@pytest.fixture
def copy(signer: TokenSigner) -> Copy:
    """A copy of all of it."""
    copy = Copy(signer)
    assert copy.sync()["full"]
    return copy


def test_the_first_answer_has_the_project_and_the_next_one_says_that_nothing_has_changed(copy: Copy) -> None:
    assert copy.models.keys() == {"faq", "hero", "note", "words"}
    assert copy.content["faq:en"]["data"]["how-long"]["answer"] == "Two days."
    assert copy.content["faq:tr"]["meta"][FRESH.id].items() >= {"status": "draft", "version": "2"}.items()
    assert copy.content["note:en"]["data"].keys() == {"first-bread"}
    assert copy.content["hero:data"]["data"]["title"] == "Bread"
    assert copy.content["words:en"]["data"] == {"auth.expired": "Expired", "auth.failed": "Failed"}
    assert copy.sections["config"] == CONFIG
    assert copy.sections["contentContext"]["stats"] == {"models": 4}
    assert copy.sections["vocabulary"] == {"version": 1, "terms": {"cart": {"en": "Cart", "tr": "Sepet"}, "shop": {}}}
    assert copy.sections["contentSummary"]["faq"] == {
        "kind": "collection",
        "entries": 2,
        "locales": {"en": 2, "tr": 1},
    }
    assert copy.sections["schemaHealth"]["modelCount"] == 4
    assert copy.sync() == {"treeSha": copy.tree, "unchanged": True, "full": False, "models": {}, "content": {}}


def test_a_hash_that_is_not_known_is_answered_with_all(copy: Copy) -> None:
    for known in ("", "0" * 64, "no hash", "../x", "é" * 64, "0" * 40):
        answer = copy.expect(treeSha=known)
        assert (answer["full"], answer["unchanged"], answer["treeSha"]) == (True, False, copy.tree), known
        assert answer["content"] == copy.content


def test_what_was_changed_created_and_deleted_is_sent_and_nothing_else(resources: Resources, copy: Copy) -> None:
    answer_with(resources, FRESH, "en", "Of course.")
    assert not copy.sync()["full"]
    assert copy.sent_entries() == {"faq:en": [FRESH.id]}
    assert "models" not in copy.parts[0].get("deleted", {})
    assert copy.parts[0].keys() == ALWAYS
    assert copy.is_like_a_new_one()
    fields = {"en": {"question": "New?", "answer": "Yes."}, "tr": {"question": "Yeni mi?", "answer": "Evet."}}
    create_document(resources, SPACE, "faq", ADA, DocumentContent(locales=fields), document_id="new")
    delete_document(resources, SPACE, LONG, ADA)
    delete_document(resources, SPACE, HERO, ADA)
    copy.sync()
    assert copy.sent_entries() == {"faq:en": ["new"], "faq:tr": ["new"]}
    assert copy.deleted_entries() == {"faq:en": ["how-long"], "hero:data": ["main"]}
    assert copy.parts[0].keys() == ALWAYS | {"contentSummary", "deleted"}
    assert copy.is_like_a_new_one()


def test_models_that_change_begin_and_go_are_sent(resources: Resources, copy: Copy) -> None:
    put_model(resources, SPACE, {**copy.models["hero"], "description": "On top"}, ADA)
    put_model(resources, SPACE, {"id": "oven", "kind": "collection"}, ADA)
    copy.sync()
    assert copy.parts[0]["models"].keys() == {"hero", "oven"}
    assert (copy.sent_entries(), copy.is_like_a_new_one()) == ({}, True)
    delete_model(resources, SPACE, "oven", ADA)
    copy.sync()
    assert copy.parts[0]["deleted"] == {"models": ["oven"], "entries": {}}
    assert copy.is_like_a_new_one()


def test_a_merge_and_files_with_another_language_are_sent(resources: Resources, copy: Copy) -> None:
    change_set = begin_change_set(resources, SPACE, "Spring", ADA).id
    for key in (FRESH, NOTE):
        change_in_change_set(resources, SPACE, change_set, key, set_version)
    assert copy.sync()["unchanged"], "what waits is not live"
    merge_change_set(resources, SPACE, change_set, ADA)
    copy.sync()
    assert copy.sent_entries() == {"faq:en": [FRESH.id], "note:en": ["first-bread"]}
    config = {**CONFIG, "locales": {"default": "en", "supported": ["en", "tr", "de"]}}
    words = {".contentrain/content/product/words/de.json": text_of({"auth.expired": "Abgelaufen"})}
    import_files(resources, make_tree() | {".contentrain/config.json": text_of(config)} | words)
    copy.sync()
    assert copy.sections["config"]["locales"]["supported"] == ["en", "tr", "de"]
    assert copy.content["words:de"]["data"] == {"auth.expired": "Abgelaufen"}
    assert copy.is_like_a_new_one()


def test_a_large_project_comes_in_parts_and_what_changes_meanwhile_with_the_next_sync(
    resources: Resources, signer: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_sync, "MAX_SYNC_PART_BYTES", 700)
    first = Copy(signer)
    begun = first.expect()
    answer_with(resources, FRESH, "en", "Of course.")
    delete_document(resources, SPACE, LONG, ADA)
    first.sync()
    assert len(first.parts) > 4
    assert first.is_like_a_new_one()
    slow = Copy(signer)
    slow.take(begun)
    assert all(part["full"] for part in slow.parts)
    slow.sync()
    assert slow.sent_entries() == {"faq:en": [FRESH.id]}
    assert slow.deleted_entries() == {"faq:en": ["how-long"]}
    assert slow.is_like_a_new_one()
    import_files(resources, make_tree() | {".contentrain/vocabulary.json": text_of({"terms": {}, "version": 1})})
    delete_document(resources, SPACE, NOTE, ADA)
    first.sync()
    assert (len(first.parts) > 1, any(part["full"] for part in first.parts)) == (True, False)
    assert first.is_like_a_new_one()


def test_who_may_see_a_part_is_sent_that_part_and_learns_nothing_of_changes_to_others(
    resources: Resources, copy: Copy
) -> None:
    put_member(resources, SPACE, SpaceMember("bob", "viewer", frozenset({"faq"}), frozenset({"en"})))
    bob = Copy(copy.signer, "bob", "ai.content.read")
    assert bob.sync()["full"]
    assert (set(bob.models), set(bob.content)) == ({"faq"}, {"faq:en"})
    assert bob.sections["contentContext"] is None
    assert bob.sections["vocabulary"]["terms"] == {"cart": {"en": "Cart"}, "shop": {}}
    assert bob.sections["contentSummary"].keys() == {"faq"}
    answer_with(resources, FRESH, "tr", "Elbette.")
    delete_document(resources, SPACE, HERO, ADA)
    assert bob.sync()["unchanged"]
    answer = bob.expect(treeSha=copy.tree)
    assert (answer["full"], "deleted" in answer) == (True, False), "a hash of somebody else is not compared with"
    answer_with(resources, FRESH, "en", "Of course.")
    bob.sync()
    assert bob.sent_entries() == {"faq:en": [FRESH.id]}
    put_member(resources, SPACE, SpaceMember("bob", "viewer", models=frozenset({"note"})))
    assert bob.sync()["full"], "what may be seen is another part now"
    assert bob.content.keys() == {"note:en", "note:tr"}


def test_a_hash_that_was_not_used_for_a_day_is_forgotten(
    resources: Resources, copy: Copy, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_sync, "MAX_SYNC_PART_BYTES", 1)
    answer_with(resources, FRESH, "en", "Of course.")
    delete_document(resources, SPACE, LONG, ADA)
    begun = copy.expect(treeSha=copy.tree)
    assert not begun["full"]
    monkeypatch.setattr(sweep_copies, "KEEP_COPY_SECONDS", -(10**10))  # objects are as old as the clock of the bucket
    assert sweep_copies.sweep_copies(resources, SPACE) == len({copy.tree, begun["treeSha"]})
    assert resources.blobs.list_keys(tree_folder(SPACE)) == []
    status, answer = copy.ask(cursor=begun["nextCursor"])
    assert (status, "Begin again" in answer["error"]) == (410, True)
    assert copy.sync()["full"]
    assert copy.is_like_a_new_one()


def test_others_are_refused(resources: Resources, copy: Copy) -> None:
    for cursor in ("x", "a/b/c/d/e", f"{copy.tree}//ghost//", f"{copy.tree}//content/faq:en", "/" * 900):
        status, answer = copy.ask(cursor=cursor)
        assert (status, "'nextCursor'" in answer["error"]) == (400, True), cursor
    assert [copy.ask(path)[0] for path in ("ghost/main", "studio/ghost", "-/main")] == [404, 404, 400]
    assert Copy(copy.signer, "eve", "ai.chat").ask()[0] == 403
    put_member(resources, SPACE, SpaceMember("bob", "viewer"))
    assert [Copy(copy.signer, user, "ai.content.read").ask()[0] for user in ("bob", "eve")] == [200, 403]
    assert Copy(make_tenant(resources, "mill")).ask()[0] == 404
