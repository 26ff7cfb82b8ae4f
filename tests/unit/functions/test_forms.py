"""Forms over HTTP: what visitors send, what is refused, and what moderators see and decide."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from fermata.aws.resources import Resources
from fermata.content.forms import form_definition
from fermata.domain.workspace_plan import Subscription
from fermata.wire.auth.tenant_store import update_tenant
from functions.api import app
from tests.proxy_events import make_proxy_event
from tests.resources import TestClock
from tests.stored_rows import read_table
from tests.tenant_tokens import make_tenant
from tests.unit.functions.test_content import MANAGER, Answer, ContentClient

FIELDS = {
    "name": {"type": "string", "required": True, "max": 60},
    "email": {"type": "email"},
    "message": {"type": "text"},
    "age": {"type": "integer"},
    "news": {"type": "boolean"},
    "topics": {"type": "array", "items": "string"},
    "site": {"type": "url"},
    "internal": {"type": "string"},
    "photo": {"type": "image"},
}
EXPOSED = ["name", "email", "message", "age", "news", "topics", "site"]
FORM: dict[str, Any] = {"enabled": True, "exposedFields": EXPOSED, "honeypot": True, "successMessage": "Thanks!"}
SENT = {"name": "Eve", "email": "eve@visitor.example", "message": "Hello"}
SUBMISSIONS = "shop/main/submissions"
PATH = "/delivery/forms/bakery/shop/main/contact"


class FormSite:
    """A site with a form: what visitors and moderators send."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.signer = make_tenant(resources, "bakery")
        self.manager = ContentClient(self.signer, MANAGER)
        self.manager.send("POST", "spaces", {"site": "shop", "locales": ["en", "de"]})
        self.set_form()

    def set_form(self, **changes: Any) -> Answer:
        body = {"kind": "collection", "i18n": True, "fields": FIELDS, "form": FORM | changes}
        return self.manager.send("PUT", "shop/main/models/contact", body)

    def submit(
        self, data: Any = SENT, *, path: str = PATH, source: str = "198.51.100.7", raw: str = "", **headers: str
    ) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        path, _, query = path.partition("?")
        event = make_proxy_event("POST", path, sent, None if raw else {"data": data})
        event["body"] = raw or event["body"]
        event["queryStringParameters"] = dict(parse_qsl(query))
        event["requestContext"]["identity"] = {"sourceIp": source}
        answer = app.handler(event, None)
        return Answer(answer["statusCode"], json.loads(answer["body"]), "")

    def choose_plan(self, plan: Subscription, clock: TestClock) -> None:
        """Give the workspace a plan, which processes know after a minute."""
        update_tenant(self.resources, "bakery", subscription=plan)
        clock.now += 61

    def list(self, status: str = "pending", client: ContentClient | None = None) -> Any:
        answer = (client or self.manager).send("GET", f"{SUBMISSIONS}?model=contact&status={status}")
        assert answer.status == 200, answer.body
        return answer.body["submissions"]

    def decide(self, submission_id: str, status: str) -> Answer:
        return self.manager.send("PATCH", f"{SUBMISSIONS}/{submission_id}", {"status": status})


@pytest.fixture
def site(resources: Resources, deployed: None) -> FormSite:
    return FormSite(resources)


def test_what_a_visitor_sends_waits_for_a_moderator(site: FormSite) -> None:
    assert site.submit(user_agent="Browser", referer="https://bakery.example/contact") == (
        201,
        {"ok": True, "message": "Thanks!"},
        "",
    )
    [found] = site.list()
    assert (found["status"], found["data"], found["locale"]) == ("pending", SENT, "en")
    sender = {"address": "198.51.100.7", "agent": "Browser", "referrer": "https://bakery.example/contact"}
    assert found["sender"] == sender
    assert site.manager.send("GET", f"{SUBMISSIONS}/{found['id']}").body["submission"] == found


def test_a_model_says_where_its_form_is(site: FormSite) -> None:
    shown = site.manager.send("GET", "shop/main/models").body["models"]
    assert [(model["id"], model["formPath"]) for model in shown if "formPath" in model] == [("contact", PATH)]


def test_a_page_of_any_origin_reads_what_became_of_a_form_that_it_has_sent(site: FormSite) -> None:
    for body, status in (("name=Eve", 201), ("age=old", 400)):
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://elsewhere.example"}
        event = make_proxy_event("POST", PATH, headers, None) | {"body": body}
        answer = app.handler(event, None)
        assert (answer["statusCode"], answer["headers"]["Access-Control-Allow-Origin"]) == (status, "*")
        assert "Access-Control-Allow-Credentials" not in answer["headers"]


def test_an_html_form_without_a_script_is_read_by_the_types_of_its_fields(site: FormSite) -> None:
    form = [("name", "Eve"), ("age", "42"), ("news", "on"), ("topics", "bread"), ("topics", "cake"), ("message", "")]
    sent = site.submit(
        raw=urlencode(form), Content_Type="application/x-www-form-urlencoded; charset=utf-8", path=f"{PATH}?locale=de"
    )
    assert sent.status == 201
    [found] = site.list()
    assert found["data"] == {"name": "Eve", "age": 42, "news": True, "topics": ["bread", "cake"]}
    assert found["locale"] == "de"


@pytest.mark.parametrize(
    ("data", "field", "words"),
    [
        ({}, "name", "name is required"),
        ({"name": "Eve", "age": "old"}, "age", "a number"),
        ({"name": "Eve", "email": "nobody"}, "email", "email"),
        ({"name": "Eve", "site": "javascript:alert(1)"}, "site", "an address that runs a script"),
        ({"name": "Eve", "site": "/relative"}, "site", "begins with https://"),
        ({"name": "Eve", "internal": "x"}, "internal", "The form has no field internal"),
        ({"name": "Eve", "message": "x" * 10_001}, "message", "at most 10,000"),
        ({"name": "Eve", "topics": [["deep"]]}, "topics", "nested"),
        ({"name": "Eve", "topics": ["x"] * 101}, "topics", "more than 100"),
        ({"name": "E" * 61}, "name", "at most 60"),
        ({"name": {"a": 1}}, "name", "nested"),
    ],
)
def test_a_field_that_is_wrong_is_named(site: FormSite, data: Any, field: str, words: str) -> None:
    refused = site.submit(data)
    assert refused.status == 400
    assert [one["field"] for one in refused.body["problems"]] == [field]
    assert words in refused.body["error"]
    assert site.list() == []


def test_bodies_that_are_no_form_are_refused(site: FormSite) -> None:
    form = "application/x-www-form-urlencoded"
    assert site.submit(raw="{").status == 400
    assert site.submit(raw="[1]").status == 400
    assert site.submit(raw="&".join(f"a{n}=1" for n in range(300)), Content_Type=form).status == 400
    assert site.submit(raw="name=%ff", Content_Type=form).status == 400
    assert site.submit({"name": "x" * 70_000}).status == 413
    assert site.submit(path=f"{PATH}?locale=fr").status == 400
    assert site.submit(idempotency_key="k" * 201).status == 400


def test_html_of_a_visitor_is_kept_as_text(site: FormSite) -> None:
    script = "<script>alert(1)</script>"
    site.submit({"name": script})
    assert site.list()[0]["data"]["name"] == script


@pytest.mark.parametrize(
    "path", [PATH.replace("bakery", "other"), PATH.replace("shop", "none"), PATH.replace("contact", "page")]
)
def test_a_form_that_is_none_looks_like_one_that_does_not_exist(site: FormSite, path: str) -> None:
    assert (site.submit(path=path).status, site.submit(path=path).body["error"]) == (404, "There is no such form.")


@pytest.mark.parametrize("change", [{"enabled": False}, {"public": False}])
def test_a_form_that_is_closed_takes_nothing(site: FormSite, change: dict[str, Any]) -> None:
    assert site.set_form(**change).status == 200
    assert site.submit().status == 404


def test_a_program_that_fills_in_the_honeypot_is_told_the_same_and_nothing_is_stored(site: FormSite) -> None:
    assert site.submit({**SENT, "website": "https://spam.example"}) == site.submit({**SENT, "website": ""})
    assert len(site.list()) == 1


def test_the_same_form_with_the_same_key_is_stored_once(site: FormSite) -> None:
    for _ in range(2):
        assert site.submit(idempotency_key="k").status == 201
    assert len(site.list()) == 1
    site.submit({**SENT, "message": "Another"}, idempotency_key="k")
    site.submit(idempotency_key="k", source="203.0.113.9")
    assert len(site.list()) == 3


def test_an_address_sends_ten_in_a_minute(site: FormSite, clock: TestClock) -> None:
    assert [site.submit(source="2001:db8::1").status for _ in range(10)] == [201] * 10
    refused = site.submit(source="2001:db8::ffff")
    assert (refused.status, "Try again in" in refused.body["error"]) == (429, True)
    assert site.submit(source="2001:db8:1::1").status == 201, "Another network is another visitor."
    clock.now += 60
    assert site.submit(source="2001:db8::1").status == 201


def test_a_month_of_the_form_is_used_up(site: FormSite) -> None:
    site.set_form(limits={"perMonth": 2})
    assert [site.submit().status for _ in range(3)] == [201, 201, 429]
    refused = site.submit()
    assert refused.body["error"].startswith("This form takes no more submissions this month.")
    assert len(site.list()) == 2


def test_a_locked_workspace_takes_none_and_visitors_read_nothing_of_its_plan(site: FormSite, clock: TestClock) -> None:
    site.choose_plan(Subscription(plan="pro", state="cancelled"), clock)
    refused = site.submit()
    assert (refused.status, "plan" in refused.body["error"]) == (402, False)
    assert site.list() == []


def test_a_plan_has_so_many_forms(site: FormSite, clock: TestClock) -> None:
    site.choose_plan(Subscription(plan="starter"), clock)
    assert site.set_form(successMessage="Changed").status == 200
    body = {"kind": "collection", "fields": FIELDS, "form": FORM}
    refused = site.manager.send("PUT", "shop/main/models/second", body)
    assert (refused.status, refused.body["code"]) == (402, "planUpgradeRequired")
    assert "The plan starter has room for 1 forms, and this would be 2." in refused.body["error"]


def test_an_approved_submission_becomes_a_draft_in_the_language_of_its_visitor(site: FormSite) -> None:
    site.submit(path=f"{PATH}?locale=de")
    [found] = site.list()
    approved = site.decide(found["id"], "approved")
    assert approved.status == 200, approved.body
    entry = approved.body["submission"]["entryId"]
    assert site.decide(found["id"], "approved").body["submission"]["entryId"] == entry
    document = site.manager.send("GET", f"shop/main/documents/contact/{entry}").body["document"]
    assert (document["status"], document["locales"]) == ("draft", {"de": SENT})
    assert document["meta"] == {"de": {"source": "human"}}, "An erasure finds no name of a moderator in content."
    assert [one["id"] for one in site.list("approved")] == [found["id"]]
    assert site.list() == []
    late = site.decide(found["id"], "rejected")
    assert (late.status, entry in late.body["error"]) == (409, True)


def test_a_submission_that_breaks_a_new_rule_stays_pending(site: FormSite) -> None:
    site.submit()
    fields = FIELDS | {"name": {"type": "string", "max": 2}}
    site.manager.send("PUT", "shop/main/models/contact", {"kind": "collection", "i18n": True, "fields": fields})
    [found] = site.list()
    refused = site.decide(found["id"], "approved")
    assert (refused.status, refused.body["code"]) == (400, "contentInvalid")
    assert [one["id"] for one in site.list()] == [found["id"]]


def test_a_form_stays_when_its_model_is_put_without_one_and_goes_with_null(site: FormSite) -> None:
    model = {"kind": "collection", "i18n": True, "fields": FIELDS}
    kept = site.manager.send("PUT", "shop/main/models/contact", model)
    assert kept.body["model"]["form"]["exposedFields"] == EXPOSED
    assert "form" not in site.manager.send("PUT", "shop/main/models/contact", {**model, "form": None}).body["model"]
    assert site.submit().status == 404


def test_a_submission_is_approved_by_itself_where_form_and_plan_say_so(site: FormSite, clock: TestClock) -> None:
    site.set_form(autoApprove=True)
    site.submit()
    [found] = site.list("approved")
    document = site.manager.send("GET", f"shop/main/documents/contact/{found['entryId']}").body["document"]
    assert document["status"] == "draft"
    site.choose_plan(Subscription(plan="free", limits={"formSubmissions": 5}), clock)
    site.submit()
    assert len(site.list("approved")) == len(site.list("pending")) == 1


def test_a_submission_that_cannot_be_an_entry_waits_and_its_words_are_in_no_log(
    site: FormSite, caplog: pytest.LogCaptureFixture
) -> None:
    fields = FIELDS | {"email": {"type": "email", "unique": True}}
    model = {"kind": "collection", "i18n": True, "fields": fields, "form": FORM | {"autoApprove": True}}
    assert site.manager.send("PUT", "shop/main/models/contact", model).status == 200
    for _ in range(2):
        assert site.submit().status == 201
    assert len(site.list("approved")) == len(site.list("pending")) == 1
    [refused] = [record for record in caplog.records if record.message == "form.not_approved"]
    assert SENT["email"] not in str(vars(refused))


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"exposedFields": ["nothing"]}, "no field nothing"),
        ({"exposedFields": ["photo"]}, "type image, which visitors cannot fill in"),
        ({"exposedFields": []}, "at least one field"),
        ({"honeypot": "name"}, "one of the exposed fields"),
        ({"captcha": "turnstile"}, "form.captcha"),
        ({"limits": {"perMinute": 11}}, "limits.perMinute"),
        ({"color": "red"}, "form.color"),
    ],
)
def test_a_form_that_cannot_be_is_refused(site: FormSite, form: dict[str, Any], words: str) -> None:
    refused = site.set_form(**form)
    assert (refused.status, words in refused.body["error"]) == (400, True), refused.body


def test_only_moderators_see_what_visitors_say_of_themselves(site: FormSite) -> None:
    site.submit()
    shown_to_manager = site.list()[0]
    for rights in (["ai.content.read"], ["ai.content.write"]):
        client = ContentClient(site.signer, rights)
        [seen] = site.list(client=client)
        assert seen["fields"] == ["email", "message", "name"]
        one = client.send("GET", f"{SUBMISSIONS}/{seen['id']}").body["submission"]
        assert not {"data", "sender", "decidedBy"} & (seen.keys() | one.keys())
        assert client.send("PATCH", f"{SUBMISSIONS}/{seen['id']}", {"status": "spam"}).status == 403
        assert client.send("DELETE", f"{SUBMISSIONS}/{seen['id']}").status == 403
        assert client.send("POST", SUBMISSIONS, {"ids": [seen["id"]], "action": "delete"}).status == 403
    reviewer = ContentClient(site.signer, ["ai.content.read", "ai.content.review"])
    assert site.list(client=reviewer) == [shown_to_manager]
    site.manager.send("PUT", "shop/main/members/ada", {"role": "viewer"})
    assert "data" not in site.list(client=reviewer)[0]
    assert reviewer.send("PATCH", f"{SUBMISSIONS}/{seen['id']}", {"status": "spam"}).status == 403
    site.manager.send("PUT", "shop/main/members/ada", {"role": "reviewer"})
    assert reviewer.send("PATCH", f"{SUBMISSIONS}/{seen['id']}", {"status": "spam"}).status == 200


def test_another_workspace_sees_no_submission(site: FormSite) -> None:
    site.submit()
    stranger = ContentClient(make_tenant(site.resources, "butcher"), MANAGER)
    found = site.list()[0]["id"]
    assert stranger.send("GET", f"{SUBMISSIONS}/{found}").status == 404
    stranger.send("POST", "spaces", {"site": "shop"})
    assert stranger.send("GET", f"{SUBMISSIONS}/{found}").status == 404
    assert stranger.send("PATCH", f"{SUBMISSIONS}/{found}", {"status": "approved"}).status == 404
    assert stranger.send("GET", f"{SUBMISSIONS}?model=contact").body["submissions"] == []
    assert site.submit(path=PATH.replace("bakery", "butcher")).status == 404


def test_lists_are_read_page_by_page_the_newest_first(site: FormSite, clock: TestClock) -> None:
    for number in range(5):
        clock.now += 10
        site.submit({"name": f"Eve {number}"})
    path, names = f"{SUBMISSIONS}?model=contact&limit=2", []
    page = site.manager.send("GET", path).body
    while True:
        names += [one["data"]["name"] for one in page["submissions"]]
        assert page["total"] == 5
        if "nextCursor" not in page:
            break
        page = site.manager.send("GET", f"{path}&cursor={page['nextCursor']}").body
    assert names == [f"Eve {number}" for number in (4, 3, 2, 1, 0)]
    assert site.manager.send("GET", f"{path}&cursor=../x").status == 400
    assert site.manager.send("GET", f"{SUBMISSIONS}?model=A%23b").status == 400


def test_many_are_decided_at_once_and_one_that_fails_keeps_no_other(site: FormSite) -> None:
    for _ in range(3):
        site.submit()
    ids = [one["id"] for one in site.list()]
    answer = site.manager.send("POST", SUBMISSIONS, {"ids": [*ids[:2], "none", ids[0]], "action": "spam"})
    assert [one["status"] for one in answer.body["results"]] == [200, 200, 404]
    assert len(site.list("spam")) == 2
    assert site.manager.send("POST", SUBMISSIONS, {"ids": ids, "action": "delete"}).status == 200
    assert site.list() == site.list("spam") == []
    too_many = {"ids": [f"{n}" for n in range(51)], "action": "spam"}
    assert site.manager.send("POST", SUBMISSIONS, too_many).status == 400


def list_submission_rows(site: FormSite) -> list[dict[str, Any]]:
    rows = read_table(site.resources.settings.content_table)
    return [row for row in rows if row["sk"]["S"].startswith(("f#", "q#"))]


def test_a_deleted_submission_leaves_nothing(site: FormSite) -> None:
    site.submit()
    assert site.manager.send("DELETE", f"{SUBMISSIONS}/{site.list()[0]['id']}").status == 200
    assert list_submission_rows(site) == []


def test_submissions_go_with_their_model(site: FormSite) -> None:
    site.submit()
    assert site.manager.send("DELETE", "shop/main/models/contact").status == 200
    assert list_submission_rows(site) == []


def test_a_submission_that_is_kept_for_a_day_is_gone_afterwards(site: FormSite, clock: TestClock) -> None:
    site.set_form(keepDays=1)
    site.submit()
    assert ["ttl" in row for row in list_submission_rows(site)] == [True, True]
    clock.now += 86_401
    assert site.list() == []


def test_a_page_learns_which_fields_a_form_has(site: FormSite) -> None:
    site.set_form(requiredOverrides={"email": True})
    event = make_proxy_event("GET", PATH, {}, None)
    form = json.loads(app.handler(event, None)["body"])["form"]
    assert list(form["fields"]) == EXPOSED
    assert (form["fields"]["email"]["required"], form["honeypot"]) == (True, "website")
    assert site.submit({"name": "Eve"}).body["problems"][0]["field"] == "email"


def test_submissions_are_exported_in_parts_and_to_moderators_with_what_was_sent(
    site: FormSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fermata.content_api.submission_requests._EXPORTED_AT_ONCE", 2)
    for number in range(5):
        assert site.submit(SENT | {"name": f"Eve {number}"}).status == 201
    site.decide(site.list()[0]["id"], "spam")

    def export(client: ContentClient) -> list[Any]:
        found, cursor = [], ""
        for _ in range(3):
            answer = client.send("GET", f"shop/main/export?format=submissions{cursor}")
            assert answer.status == 200, answer.body
            found += answer.body["submissions"]
            cursor = f"&cursor={answer.body.get('nextCursor')}"
        assert "nextCursor" not in answer.body
        return found

    exported = export(site.manager)
    assert sorted(one["data"]["name"] for one in exported) == [f"Eve {number}" for number in range(5)]
    assert sorted(one["status"] for one in exported) == ["pending"] * 4 + ["spam"]
    hidden = export(ContentClient(site.signer, ("ai.content.read",)))
    assert [one["id"] for one in hidden] == [one["id"] for one in exported]
    assert "visitor.example" not in json.dumps(hidden)
    assert site.manager.send("GET", "shop/main/export?format=submissions&cursor=f%23").status == 400


def test_the_console_knows_the_types_that_visitors_cannot_fill_in() -> None:
    rules = (Path(__file__).parents[3] / "console/src/studio/form-rules.js").read_text("utf-8")
    [listed] = re.findall(r"UNEXPOSED_TYPES = (\[[^]]*\])", rules)
    assert set(re.findall(r'"(\w+)"', listed)) == set(form_definition._UNEXPOSED_TYPES)
