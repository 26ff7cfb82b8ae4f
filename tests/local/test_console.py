"""The front door serves the console, and signs in nobody but who has opened a link of `make run`."""

import asyncio
import json
import os
import time
from pathlib import Path

import httpx
import pytest

from fermata_client.service.connection_files import write_connection_file
from local import console_sign_in
from local.console_sign_in import CODE_SECONDS, ConsoleSecrets, make_sign_in_link
from local.front_door.asgi import Receive, Scope, Send
from local.front_door.console import Console
from local.front_door.console_files import ConsoleFiles, make_content_security_policy

URL = "http://127.0.0.1:8787"
OWN_PAGE = {"origin": URL, "sec-fetch-site": "same-origin", "sec-fetch-dest": "empty"}
TOKEN = "token.of.you"


async def echo_headers(scope: Scope, receive: Receive, send: Send) -> None:
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(headers).encode()})


class Browser:
    """What a browser does: it keeps cookies, and says whose page sends a request."""

    def __init__(self, state: Path, files: ConsoleFiles | None = None) -> None:
        self.state = state
        self.cookies = httpx.Cookies()
        self.app = Console(echo_headers, files or ConsoleFiles(), ConsoleSecrets(state), TOKEN)

    def send(self, method: str, path: str, *, body: object = None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}

        async def call() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url=URL, cookies=self.cookies) as client:
                response = await client.request(method, path, json=body, headers=named)
                self.cookies.update(client.cookies)
                return response

        return asyncio.run(call())

    def sign_in(self, code: str | None = None) -> httpx.Response:
        code = code or ConsoleSecrets(self.state).issue_code()
        return self.send("POST", "/console/session", body={"code": code}, **OWN_PAGE)

    def get_authorization(self, **headers: str) -> str | None:
        received = self.send("GET", "/admin/api/ai/scopes", **headers).json()
        assert "fermata_console" not in received.get("cookie", "")
        authorization: str | None = received.get("authorization")
        return authorization


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    return Browser(tmp_path)


def test_a_link_signs_one_browser_in_and_its_page_acts_as_the_user(browser: Browser, tmp_path: Path) -> None:
    address, _, code = make_sign_in_link(URL, tmp_path).partition("#code=")
    assert address == f"{URL}/console/"
    cookie = browser.sign_in(code).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert browser.get_authorization(**OWN_PAGE) == f"Bearer {TOKEN}"
    assert TOKEN not in cookie


def test_another_link_is_printed_while_the_service_runs(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="make run"):
        console_sign_in.main(tmp_path)
    write_connection_file(tmp_path / "local.json", {"url": URL, "token": TOKEN})
    console_sign_in.main(tmp_path)
    code = capsys.readouterr().out.strip().partition("#code=")[2]
    assert browser.sign_in(code).json() == {"signedIn": True}


def test_a_link_that_was_used_or_is_old_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    code = ConsoleSecrets(tmp_path).issue_code()
    browser.sign_in(code)
    stranger = Browser(tmp_path)
    refused = stranger.sign_in(code)
    assert (refused.status_code, "make console" in refused.json()["error"]) == (403, True)
    old = ConsoleSecrets(tmp_path).issue_code()
    past = time.time() - CODE_SECONDS - 1
    for file in (tmp_path / "console" / "codes").iterdir():
        os.utime(file, (past, past))
    assert stranger.sign_in(old).status_code == 403
    assert browser.sign_in(code).json() == {"signedIn": True}  # opened again where it was used


@pytest.mark.parametrize("code", ["", "../sessions/x", "x" * 5000, "ünknown", "\0"])
def test_what_is_no_code_signs_nobody_in(browser: Browser, code: str) -> None:
    assert browser.send("POST", "/console/session", body={"code": code}, **OWN_PAGE).status_code == 403
    assert browser.send("POST", "/console/session", body=[code], **OWN_PAGE).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://localhost:5173", "sec-fetch-site": "same-site"},
        {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": "null", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {},
    ],
)
def test_a_session_counts_only_for_requests_of_the_consoles_own_page(browser: Browser, headers: dict[str, str]) -> None:
    browser.sign_in()
    assert browser.get_authorization(**headers) is None
    code = ConsoleSecrets(browser.state).issue_code()
    assert browser.send("POST", "/console/session", body={"code": code}, **headers).status_code == 403
    assert browser.send("DELETE", "/console/session", **headers).status_code == 403


@pytest.mark.parametrize("kind", ["image", "style", "script", "iframe", "document", "object", "video", "font", ""])
def test_a_picture_frame_or_form_of_a_page_that_is_edited_has_no_session(browser: Browser, kind: str) -> None:
    """The canvas has the console's origin, and what is in it may name addresses of the service."""
    browser.sign_in()
    assert browser.get_authorization(**OWN_PAGE | {"sec-fetch-dest": kind}) is None


def test_a_token_of_the_callers_own_is_left_alone(browser: Browser) -> None:
    browser.sign_in()
    assert browser.get_authorization(authorization="Bearer other", **OWN_PAGE) == "Bearer other"


def test_a_session_outlives_a_restart_and_ends_when_the_person_signs_out(browser: Browser, tmp_path: Path) -> None:
    browser.sign_in()
    restarted = Browser(tmp_path)
    restarted.cookies = browser.cookies
    assert restarted.send("GET", "/console/session", **OWN_PAGE).json() == {"signedIn": True}
    stolen = httpx.Cookies(browser.cookies)
    restarted.send("DELETE", "/console/session", **OWN_PAGE)
    restarted.cookies = stolen
    assert restarted.get_authorization(**OWN_PAGE) is None
    assert "make console" in restarted.send("GET", "/console/session", **OWN_PAGE).json()["error"]


def test_cookies_of_other_servers_on_this_machine_pass_through(browser: Browser) -> None:
    browser.sign_in()
    browser.cookies.set("theirs", "1")
    browser.cookies.set("fermata_console_9999", "other")
    received = browser.send("GET", "/x", **OWN_PAGE).json()["cookie"]
    assert received == "theirs=1; fermata_console_9999=other"


def test_the_page_may_load_its_own_scripts_only_and_is_asked_for_each_time(browser: Browser) -> None:
    answer = browser.send("GET", "/console/")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self' 'sha256-" in policy
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
    assert answer.headers["cache-control"] == "no-cache"
    again = browser.send("GET", "/console/", if_none_match=answer.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("style/console.css", "text/css; charset=utf-8"),
        ("src/app.js", "text/javascript; charset=utf-8"),
        ("packages/client/index.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
def test_files_have_their_types(browser: Browser, path: str, content_type: str) -> None:
    answer = browser.send("GET", f"/console/{path}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)


@pytest.mark.parametrize(
    "path",
    [
        "packages/client/../package.json",
        "packages/client/%2e%2e/package.json",
        "..%2fpyproject.toml",
        "../../../etc/passwd",
        "../template.yaml",
        "packages/panel/../../node_modules/.package-lock.json",
        "npm/grapesjs/dist/index.js",
        "packages/client/",
        "src",
        "src/app.js/x",
        "%00",
        "x" * 5000 + ".js",
    ],
)
def test_no_other_file_of_the_machine_is_served(browser: Browser, path: str) -> None:
    assert ConsoleFiles().read(path) is None
    assert browser.send("GET", f"/console/{path.replace('..', '%2e%2e')}").status_code == 404


def test_the_address_itself_leads_to_the_console(browser: Browser) -> None:
    for path in ("/", "/console"):
        assert browser.send("GET", path).headers["location"] == "/console/"


def test_without_npm_packages_the_page_is_told_which_are_missing(tmp_path: Path) -> None:
    (tmp_path / "console").mkdir()
    browser = Browser(tmp_path, ConsoleFiles(tmp_path))
    assert browser.send("GET", "/console/config.json").json()["missingPackages"] == ["grapesjs", "marked"]
    assert browser.send("GET", "/console/npm/grapesjs/grapes.min.js").status_code == 404


def test_an_import_map_is_allowed_by_its_hash() -> None:
    page = '<script type="importmap">{}</script>'
    assert "'sha256-RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o='" in make_content_security_policy(page)
