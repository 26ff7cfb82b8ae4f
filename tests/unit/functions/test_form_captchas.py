"""Captchas of forms: a visitor has to solve one, which the service of the site checks once."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from fermata.aws.resources import Resources, get_resources
from fermata.content.content_space import SpaceKey
from fermata.content.forms import check_captcha
from fermata.content.forms.captcha_keys import CaptchaService
from fermata.domain.workspace_plan import Subscription
from functions.credentials import app as credentials_app
from tests.proxy_events import make_proxy_event
from tests.resources import TestClock
from tests.threaded_server import ThreadedServer, serve_in_thread
from tests.unit.functions.test_content import MANAGER, Answer
from tests.unit.functions.test_forms import PATH, SENT, FormSite

SPACE = SpaceKey("bakery", "shop")
KEYS = {"service": "turnstile", "siteKey": "0x4AAA", "secret": "secret-of-turnstile"}
SOLVED = SENT | {"cf-turnstile-response": "solved-1"}


class CaptchaServer(ThreadedServer):
    """A service that knows one secret, and accepts each solution that begins with `solved` once."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.status, self.body = 200, b""
        super().__init__(("127.0.0.1", 0), _Handler)

    def check(self, form: dict[str, str]) -> dict[str, Any]:
        seen = [one["response"] for one in self.asked]
        self.asked.append(form)
        if form["secret"] != KEYS["secret"]:
            return {"success": False, "error-codes": ["invalid-input-secret"]}
        if not form["response"].startswith("solved"):
            return {"success": False, "error-codes": ["invalid-input-response"]}
        if form["response"] in seen:
            return {"success": False, "error-codes": ["timeout-or-duplicate"]}
        return {"success": True, "hostname": "bakery.example", "error-codes": []}


class _Handler(BaseHTTPRequestHandler):
    server: CaptchaServer

    def do_POST(self) -> None:
        form = dict(parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode()))
        body = self.server.body or json.dumps(self.server.check(form)).encode()
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[CaptchaServer]:
    with serve_in_thread(CaptchaServer()) as server:
        for one in CaptchaService:
            monkeypatch.setitem(check_captcha.VERIFY_URLS, one, f"http://127.0.0.1:{server.server_port}/siteverify")
        yield server


@pytest.fixture
def site(resources: Resources, deployed: None, service: CaptchaServer, monkeypatch: pytest.MonkeyPatch) -> FormSite:
    monkeypatch.setenv("FERMATA_STAGE", "local")
    get_resources.cache_clear()
    site = FormSite(resources)
    assert site.set_form(captcha=True).status == 200
    assert set_captcha(site, "PUT", KEYS).status == 200
    return site


def set_captcha(site: FormSite, method: str, body: Any = None, *, capabilities: list[str] = MANAGER) -> Answer:
    headers = site.signer.bearer_headers(capabilities=capabilities)
    event = make_proxy_event(method, "/admin/api/ai/content-git/shop/main/captcha", headers, body)
    answer = credentials_app.handler(event, None)
    return Answer(answer["statusCode"], json.loads(answer["body"]), "")


def test_a_form_is_sent_with_a_captcha_that_was_solved(site: FormSite, service: CaptchaServer) -> None:
    assert site.submit(SOLVED).status == 201
    [asked] = service.asked
    assert asked == {"secret": KEYS["secret"], "response": "solved-1", "remoteip": "198.51.100.7"}
    [found] = site.list()
    assert found["data"] == SENT, "what solves the captcha is not kept"


def test_an_html_form_without_a_script_of_its_own_sends_it_too(site: FormSite, service: CaptchaServer) -> None:
    form = "application/x-www-form-urlencoded"
    assert site.submit(raw=urlencode(SOLVED), Content_Type=form).status == 201
    assert site.submit(raw=urlencode(SENT), Content_Type=form).status == 400
    assert len(site.list()) == 1


@pytest.mark.parametrize("solution", [None, "", "guessed", 7, ["solved-1"], "x" * 8193])
def test_without_a_solved_captcha_nothing_is_stored(site: FormSite, solution: Any) -> None:
    sent = SENT if solution is None else SENT | {"cf-turnstile-response": solution}
    refused = site.submit(sent)
    assert (refused.status, "Solve it again" in refused.body["error"]) == (400, True)
    assert site.list() == []


def test_a_solution_is_good_for_one_form_and_its_repetition(site: FormSite, service: CaptchaServer) -> None:
    assert site.submit(SOLVED, idempotency_key="visit-1").status == 201
    assert site.submit(SOLVED, idempotency_key="visit-1").status == 201, "the response of the first was lost"
    assert len(service.asked) == 1
    assert site.submit(SOLVED | {"message": "Again"}, idempotency_key="visit-2").status == 400
    assert len(site.list()) == 1


def test_a_wrong_field_does_not_use_the_solution_up(site: FormSite, service: CaptchaServer) -> None:
    assert site.submit(SOLVED | {"email": "nobody"}).status == 400
    assert service.asked == []
    assert site.submit(SOLVED).status == 201


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"<html>"), (200, b"[]"), (500, b"{}"), (200, b"[" * 60_000), (200, b'{"success":"yes"}')],
)
def test_a_service_that_does_not_answer_lets_nothing_through(
    site: FormSite, service: CaptchaServer, status: int, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    service.status, service.body = status, body
    refused = site.submit(SOLVED)
    assert (refused.status, "Try again in a minute" in refused.body["error"]) == (503, True)
    assert site.list() == []
    assert "form.captcha_not_checked" in caplog.text
    assert KEYS["secret"] not in caplog.text


def test_keys_that_the_service_does_not_know_are_no_fault_of_the_visitor(site: FormSite) -> None:
    assert set_captcha(site, "PUT", KEYS | {"secret": "another"}).status == 200
    assert site.submit(SOLVED).status == 503


def test_codes_of_the_service_are_logged_and_its_words_are_not(
    site: FormSite, service: CaptchaServer, caplog: pytest.LogCaptureFixture
) -> None:
    codes = ["invalid-input-secret", f"no such secret: {KEYS['secret']}", {"secret": KEYS["secret"]}]
    service.body = json.dumps({"success": False, "error-codes": codes}).encode()
    assert site.submit(SOLVED).status == 503
    [reason] = [record.reason for record in caplog.records if record.message == "form.captcha_not_checked"]
    assert reason == "invalid-input-secret"


def test_a_form_whose_site_has_no_captcha_is_not_ready(site: FormSite) -> None:
    assert set_captcha(site, "DELETE").status == 200
    assert set_captcha(site, "GET").body == {"captcha": None}
    refused = site.submit(SOLVED)
    assert (refused.status, "not set up" in refused.body["error"]) == (503, True)
    assert site.set_form(captcha=False).status == 200
    assert site.submit(SENT).status == 201


def test_the_secret_is_sealed_and_never_shown(site: FormSite) -> None:
    assert set_captcha(site, "GET").body == {"captcha": {"service": "turnstile", "siteKey": "0x4AAA"}}
    row = site.resources.tables.get_item(site.resources.settings.content_table, SPACE.pk, "g#captcha")
    assert row is not None
    assert KEYS["secret"] not in str(row)
    same = {name: value for name, value in KEYS.items() if name != "secret"}
    assert set_captcha(site, "PUT", same).status == 200, "the secret stays with its public key"
    assert site.submit(SOLVED).status == 201
    assert set_captcha(site, "PUT", same | {"siteKey": "0x5"}).status == 400, "another key has another secret"
    assert set_captcha(site, "PUT", KEYS, capabilities=["ai.content.write"]).status == 403
    assert set_captcha(site, "PUT", KEYS | {"service": "own"}).status == 400


def test_a_page_is_told_which_captcha_to_draw(site: FormSite) -> None:
    from functions.api import app

    shown = json.loads(app.handler(make_proxy_event("GET", PATH), None)["body"])["form"]
    assert shown["captcha"] == {"service": "turnstile", "siteKey": "0x4AAA"}


def test_captchas_are_part_of_a_plan(site: FormSite, clock: TestClock) -> None:
    site.set_form(captcha=False)
    site.choose_plan(Subscription(plan="free"), clock)
    assert site.set_form(captcha=True).status == 402
