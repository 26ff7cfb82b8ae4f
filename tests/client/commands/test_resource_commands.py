"""`fermata conversations`, `credentials`, `models` and `defaults`: output, requests, exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fermata_client.cli import main
from tests.threaded_server import ThreadedServer
from tests.waiting import BACKSTOP_SECONDS

KEY = "sk-ant-secret"
CONVERSATION = {
    "id": "c1",
    "scope": "site",
    "title": "Home \x1b[31mpage",
    "modelId": "claude-sonnet-4-5",
    "promptTokensTotal": 1234,
    "completionTokensTotal": 56,
    "costUsdTotal": 0.0123,
    "updatedAt": "2026-11-28T09:30:00.000Z",
}


def message(role: str, tool: str | None, *content: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "toolName": tool, "content": list(content)}


INSERT = {"kind": "toolCall", "toolCallId": "t", "toolName": "insertHtml", "input": {"parentId": "root"}}
MESSAGES = [
    message("user", None, {"kind": "text", "text": "Add a footer"}, {"kind": "image", "mimeType": "image/jpeg"}),
    message("assistant", None, {"kind": "text", "text": "I will.\nNow."}),
    message("assistant", "insertHtml", INSERT),
    message("tool", "insertHtml", {"kind": "toolResult", "ok": True}),
    message("tool", "moveNode", {"kind": "toolResult", "ok": False, "error": "No such node"}),
]
CREDENTIAL = {
    "id": "k1",
    "providerId": "anthropic",
    "displayLabel": "Mine",
    "baseUrl": None,
    "keyFingerprintCurrent": True,
    "lastUsedAt": "2026-11-28T09:30:00.000Z",
}
MODEL = {
    "id": "claude-opus-5",
    "tier": "smartest",
    "contextWindow": 200_000,
    "pricing": {"inputPerMTok": 5.0, "outputPerMTok": 25.0},
    "capabilities": {"toolCalling": True, "visionInput": True, "promptCache": False, "streaming": True},
}
API_KEY = {
    "id": "0011223344556677",
    "label": "Importer \x1b[31m",
    "capabilities": ["ai.chat", "site.read"],
    "scopes": None,
    "expiresAt": None,
    "revokedAt": None,
    "lastUsedAt": "2026-11-28T09:30:00.000Z",
}
KEY_RULES = {
    "project": "shop/main", "role": "viewer", "models": None, "tools": ["brain_query"], "locales": None,
    "instructions": "", "modelId": None, "messagesPerMinute": 5, "messagesPerMonth": 100,
}  # fmt: skip
USAGE = {"promptTokens": 1, "completionTokens": 1, "chatCount": 1, "costUsd": 0.1}
RESPONSE_BY_REQUEST: dict[str, Any] = {
    "GET /conversations?scope=site&limit=20": {"conversations": [CONVERSATION]},
    "GET /conversations?scope=content&limit=20": {
        "conversations": [CONVERSATION | {"id": "c2", "scope": "content", "updatedAt": "2026-11-28T10:00:00.000Z"}]
    },
    "GET /conversations?scope=data&limit=20": {"conversations": []},
    "GET /conversations?scope=plugin&limit=20": {"conversations": []},
    "GET /conversations?scope=site&limit=3": {"conversations": [CONVERSATION] * 2, "nextCursor": "next"},
    "GET /conversations?scope=site&cursor=next&limit=1": {"conversations": [CONVERSATION | {"id": "c3"}]},
    "GET /conversations/c1?limit=50": {
        "conversation": CONVERSATION | {"messages": MESSAGES, "activeTurn": {"bridgeId": "b1", "state": "paused"}},
        "nextCursor": "17",
    },
    "GET /conversations/c1?before=17&limit=2": {"conversation": CONVERSATION | {"messages": []}},
    "PUT /conversations/c1": {"conversation": CONVERSATION | {"title": "Start"}},
    "DELETE /conversations/c1": {"ok": True},
    "GET /credentials": {"credentials": [CREDENTIAL, CREDENTIAL | {"id": "k2", "keyFingerprintCurrent": False}]},
    "POST /credentials": {"credential": CREDENTIAL},
    "PUT /credentials/k1": {"credential": CREDENTIAL},
    "POST /credentials/k1/test": {"ok": True, "modelCount": 12},
    "POST /credentials/k2/test": {"ok": False, "error": "Anthropic authentication failed."},
    "DELETE /credentials/k1": {"ok": True},
    "GET /providers/anthropic/models?credentialId=k1": {"models": [MODEL]},
    "GET /providers/openai/models?credentialId=k9": {"models": []},
    "GET /api-keys": {"apiKeys": [API_KEY, API_KEY | {"revokedAt": "2026-11-28T09:30:00.000Z", "scopes": ["site"]}]},
    "POST /api-keys": {"apiKey": API_KEY, "key": "fmk_bakery_0011223344556677_secret"},
    "POST /api-keys/0011223344556677/rotate": {"apiKey": API_KEY, "key": "fmk_bakery_0011223344556677_new"},
    "PATCH /api-keys/0011223344556677": {"apiKey": API_KEY | {"conversation": KEY_RULES}},
    "DELETE /api-keys/0011223344556677": {"ok": True},
    "POST /exports": {"job": {"id": "j1"}},
    "POST /erasures": {"job": {"id": "j2"}},
    "GET /exports/j1": {"job": {"id": "j1", "state": "done", "downloads": ["https://s3.example/part"]}},
    "GET /erasures/j2": {"job": {"id": "j2", "state": "running"}},
    "GET /scopes": {"scopes": [{"name": name} for name in ("site", "content", "data", "plugin")]},
    "GET /defaults": {"defaults": {"site": {"credentialId": "k1", "modelId": "claude-opus-5"}}},
    "PUT /defaults/site": {"default": {"scope": "site"}},
    "DELETE /defaults/site": None,
    "GET /audit": {"since": "2026-11-01", "totals": USAGE, "byUser": [], "byScope": [], "byModel": [], "byDay": []},
}


class Service(ThreadedServer):
    def __init__(self) -> None:
        self.bodies: list[tuple[str, Any]] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        line = f"{self.command} {self.path.removeprefix('/admin/api/ai')}"
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.bodies.append((line, json.loads(body) if body else None))
        response_body = RESPONSE_BY_REQUEST.get(line, {"error": "Not here"})
        self.send_response(404 if line not in RESPONSE_BY_REQUEST else 204 if response_body is None else 200)
        payload = b"" if response_body is None else json.dumps(response_body).encode()
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def log_message(self, *_: Any) -> None:
        """Log nothing: tests read the requests from the service."""


@contextmanager
def run_service() -> Iterator[Service]:
    with Service() as service:
        thread = Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.chdir(tmp_path)
    with run_service() as service:
        monkeypatch.setenv("FERMATA_URL", f"http://127.0.0.1:{service.server_port}")
        monkeypatch.setenv("FERMATA_TOKEN", "token")
        yield service


def run(*arguments: str, stdin_text: str = "") -> Result:
    return CliRunner().invoke(main, list(arguments), input=stdin_text)


def sent_bodies(service: Service, method: str) -> list[Any]:
    return [body for line, body in service.bodies if line.startswith(method)]


class TestConversations:
    def test_alone_it_lists_those_of_every_scope_the_last_used_first(self) -> None:
        result = run("conversations")
        assert result.exit_code == 0
        heading, first, second = result.stdout.splitlines()
        assert heading.split() == ["id", "used", "scope", "USD", "title"]
        assert first == "c2  2026-11-28 10:00  content  0.0123  Home [31mpage"
        assert second == "c1  2026-11-28 09:30  site     0.0123  Home [31mpage"

    def test_a_longer_list_is_fetched_page_by_page(self) -> None:
        result = run("conversations", "list", "--scope", "site", "--limit", "3", "--json")
        assert [conversation["id"] for conversation in json.loads(result.stdout)] == ["c1", "c1", "c3"]

    def test_one_is_shown_with_what_was_said_and_done(self) -> None:
        result = run("conversations", "show", "c1")
        assert result.exit_code == 0
        assert result.stdout.splitlines() == [
            "Home [31mpage",
            "site · claude-sonnet-4-5 · 2026-11-28 09:30 · 1,234 + 56 tokens · $0.0123",
            "",
            "> Add a footer",
            "> [image/jpeg]",
            "I will.",
            "Now.",
            "  → insertHtml parentId=root",
            "  ✓ insertHtml",
            "  ✗ moveNode: No such node",
        ]
        assert result.stderr.splitlines() == [
            "A turn is paused in it: b1",
            "Older messages: fermata conversations show c1 --before 17",
        ]

    def test_older_messages_are_a_page_away(self) -> None:
        assert run("conversations", "show", "c1", "--before", "17", "--limit", "2").exit_code == 0

    def test_one_is_renamed(self, service: Service) -> None:
        result = run("conversations", "rename", "c1", "Start")
        assert result.stdout == "c1 is now called: Start\n"
        assert sent_bodies(service, "PUT") == [{"title": "Start"}]

    def test_one_is_deleted_when_that_is_confirmed(self, service: Service) -> None:
        assert run("conversations", "delete", "c1", stdin_text="n\n").exit_code == 1
        assert sent_bodies(service, "DELETE") == []
        assert run("conversations", "delete", "c1", stdin_text="y\n").exit_code == 0
        assert run("conversations", "delete", "c1", "--yes").stdout == "c1 is deleted.\n"
        assert len(sent_bodies(service, "DELETE")) == 2

    def test_one_that_is_not_there_is_one_sentence(self) -> None:
        result = run("conversations", "show", "none")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == "fermata: The service refused the request with 404: Not here\n"


class TestCredentials:
    def test_alone_it_lists_them_without_their_keys(self) -> None:
        heading, first, second = run("credentials").stdout.splitlines()
        assert heading.split() == ["id", "provider", "key", "used", "label", "address"]
        assert first.split() == ["k1", "anthropic", "sealed", "2026-11-28", "09:30", "Mine", "-"]
        assert "enter again" in second

    def test_a_key_comes_in_on_standard_input(self, service: Service) -> None:
        result = run("credentials", "add", "anthropic", "--label", "Mine", stdin_text=f"{KEY}\n")
        assert (result.exit_code, result.stdout) == (0, "k1\n")
        assert KEY not in result.output
        assert sent_bodies(service, "POST") == [
            {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Mine", "apiKey": KEY}
        ]

    def test_a_key_comes_in_from_the_environment(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_KEY", KEY)
        run("credentials", "add", "anthropic", "--label", "Mine", "--key-env", "MY_KEY")
        run("credentials", "change", "k1", "--key-env", "MY_KEY", "--label", "Ours")
        assert [body["apiKey"] for body in sent_bodies(service, "POST") + sent_bodies(service, "PUT")] == [KEY, KEY]

    def test_a_server_without_a_key_is_entered_by_its_address(self, service: Service) -> None:
        run("credentials", "add", "ollama", "--label", "Ours", "--base-url", "https://o.example", "--no-key")
        [body] = sent_bodies(service, "POST")
        assert (body["authMode"], body["baseUrl"], "apiKey" in body) == ("baseUrl", "https://o.example", False)

    @pytest.mark.parametrize(
        ("arguments", "error_text"),
        [
            (["add", "anthropic", "--label", "Mine"], "Standard input holds no key"),
            (["add", "anthropic", "--label", "Mine", "--key-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE is not set"),
            (["add", "anthropic", "--label", "Mine", "--no-key"], "there must be an address"),
            (["change", "k1"], "Give what to change"),
            (["change", "k1", "--new-key"], "Standard input holds no key"),
        ],
    )
    def test_what_is_missing_is_said_and_nothing_is_sent(
        self, service: Service, arguments: list[str], error_text: str
    ) -> None:
        result = run("credentials", *arguments)
        assert result.exit_code == 1
        assert error_text in result.stderr
        assert result.stderr.count("\n") == 1
        assert service.bodies == []

    def test_no_option_takes_a_key(self) -> None:
        for command in ("add", "change"):
            assert "--key " not in run("credentials", command, "--help").stdout
            assert run("credentials", command, "x", "--key", KEY).exit_code == 2

    def test_a_good_one_says_how_much_it_opens_and_a_bad_one_fails(self) -> None:
        assert run("credentials", "test", "k1").stdout == "It works, and opens 12 models.\n"
        failed_result = run("credentials", "test", "k2")
        assert (failed_result.exit_code, failed_result.stderr) == (
            1,
            "fermata: It does not work: Anthropic authentication failed.\n",
        )

    def test_one_is_deleted_when_that_is_confirmed(self, service: Service) -> None:
        assert run("credentials", "delete", "k1").exit_code == 1
        assert run("credentials", "delete", "k1", "--yes").stdout == "k1 is deleted.\n"
        assert len(sent_bodies(service, "DELETE")) == 1


class TestApiKeys:
    def test_alone_it_lists_them_with_what_they_may_do(self) -> None:
        heading, first, second = run("api-keys").stdout.splitlines()
        assert heading.split() == ["id", "state", "used", "label", "may", "scopes"]
        assert "\x1b" not in first
        assert first.endswith("ai.chat, site.read  all")
        assert second.split()[1] == "revoked"
        assert second.endswith("site")

    def test_a_new_key_alone_is_printed_to_standard_output(self, service: Service) -> None:
        result = run("api-keys", "create", "Importer", "--capability", "ai.chat", "--scope", "site", "--days", "2")
        assert result.stdout == "fmk_bakery_0011223344556677_secret\n"
        assert "shown only now" in result.stderr
        assert sent_bodies(service, "POST") == [
            {"label": "Importer", "capabilities": ["ai.chat"], "scopes": ["site"], "expiresInSeconds": 172_800}
        ]

    def test_a_key_of_the_conversation_api_is_created_and_changed_with_its_rules(self, service: Service) -> None:
        rules = ("--role", "viewer", "--tool", "brain_query", "--per-minute", "5", "--language-model", "")
        assert run("api-keys", "create", "Robot", "--project", "shop/main", *rules, "--model", "faq").exit_code == 0
        sent = {"role": "viewer", "models": ["faq"], "tools": ["brain_query"], "modelId": None, "messagesPerMinute": 5}
        assert sent_bodies(service, "POST") == [{"label": "Robot", "conversation": {"project": "shop/main"} | sent}]
        changed = run(
            "api-keys", "change", "0011223344556677", "--model", "all", "--per-month", "100", "--label", "Bot"
        )
        assert changed.stdout == "0011223344556677: viewer in shop/main; tools brain_query; 5/min, 100/month\n"
        assert sent_bodies(service, "PATCH") == [
            {"label": "Bot", "conversation": {"models": None, "messagesPerMonth": 100}}
        ]

    @pytest.mark.parametrize(
        "arguments",
        [
            ("create", "Robot"),
            ("create", "Robot", "--project", "shop/main", "--capability", "ai.chat"),
            ("create", "Robot", "--capability", "ai.chat", "--role", "viewer"),
            ("change", "0011223344556677"),
        ],
    )
    def test_a_key_is_a_servers_or_one_of_the_conversation_api(
        self, service: Service, arguments: tuple[str, ...]
    ) -> None:
        refused = run("api-keys", *arguments)
        assert (refused.exit_code, bool(refused.stderr)) == (2, True)
        assert sent_bodies(service, "POST") + sent_bodies(service, "PATCH") == []

    def test_one_is_rotated(self, service: Service) -> None:
        result = run("api-keys", "rotate", "0011223344556677", "--overlap", "60")
        assert result.stdout == "fmk_bakery_0011223344556677_new\n"
        assert sent_bodies(service, "POST") == [{"overlapSeconds": 60}]

    def test_one_is_revoked_when_that_is_confirmed(self, service: Service) -> None:
        assert run("api-keys", "revoke", "0011223344556677").exit_code == 1
        assert run("api-keys", "revoke", "0011223344556677", "--yes").exit_code == 0
        assert len(sent_bodies(service, "DELETE")) == 1


class TestPrivacy:
    def test_an_export_and_an_erasure_are_started_for_one_subject(self, service: Service) -> None:
        assert run("privacy", "export", "--user", "ada").stdout == "j1\n"
        assert run("privacy", "erase", "--conversation", "c1", "--yes").stdout == "j2\n"
        assert sent_bodies(service, "POST") == [{"userId": "ada"}, {"conversationId": "c1"}]

    def test_nothing_is_erased_unconfirmed_or_without_one_subject(self, service: Service) -> None:
        assert run("privacy", "erase", "--user", "ada", stdin_text="n\n").exit_code == 1
        assert run("privacy", "erase", "--yes").exit_code == 1
        assert run("privacy", "erase", "--user", "ada", "--tenant", "bakery", "--yes").exit_code == 1
        assert service.bodies == []

    def test_their_state_is_printed(self) -> None:
        assert json.loads(run("privacy", "export-status", "j1").stdout)["downloads"] == ["https://s3.example/part"]
        assert json.loads(run("privacy", "erase-status", "j2").stdout)["state"] == "running"


class TestModels:
    def test_they_are_listed_with_what_they_cost_hold_and_can(self) -> None:
        heading, model = run("models", "--credential", "k1").stdout.splitlines()
        assert heading.split() == ["provider", "model", "tier", "window", "in", "out", "can"]
        assert model.split() == ["anthropic", "claude-opus-5", "smartest", "200,000", "5", "25", "tools", "images"]

    def test_one_provider_that_fails_hides_no_other(self) -> None:
        result = run("models")
        assert result.exit_code == 0
        assert len(result.stdout.splitlines()) == 2
        assert result.stderr == "fermata: Not here (k2)\n"

    def test_a_caller_who_may_not_list_credentials_names_the_provider(self, service: Service) -> None:
        assert run("models", "--provider", "openai", "--credential", "k9").exit_code == 0
        assert [line for line, _ in service.bodies] == ["GET /providers/openai/models?credentialId=k9"]

    @pytest.mark.parametrize(
        ("arguments", "error_text"),
        [(["--credential", "none"], "no credential none"), (["--provider", "openai"], "Name the credential as well")],
    )
    def test_what_does_not_fit_is_said(self, arguments: list[str], error_text: str) -> None:
        result = run("models", *arguments)
        assert (result.exit_code, error_text in result.stderr) == (1, True)

    def test_programs_get_everything(self) -> None:
        [response_body] = json.loads(run("models", "--credential", "k1", "--json").stdout)
        assert response_body == MODEL | {"providerId": "anthropic", "credentialId": "k1"}


class TestDefaults:
    def test_alone_it_shows_every_scope(self) -> None:
        lines = [line.split() for line in run("defaults").stdout.splitlines()]
        assert lines[1:3] == [["site", "claude-opus-5", "k1"], ["content", "-", "-"]]
        assert len(lines) == 5

    def test_one_is_set_and_cleared(self, service: Service) -> None:
        assert run("defaults", "set", "site", "k1", "m").stdout == "site uses m.\n"
        assert run("defaults", "clear", "site").stdout == "site has no default.\n"
        assert sent_bodies(service, "PUT") == [{"credentialId": "k1", "modelId": "m"}]
        assert sent_bodies(service, "DELETE") == [None]

    def test_what_the_service_says_of_an_unknown_scope_is_shown(self) -> None:
        result = run("defaults", "set", "shop", "k1", "m")
        assert (result.exit_code, result.stderr) == (1, "fermata: The service refused the request with 404: Not here\n")

    def test_a_new_scope_of_the_service_needs_no_new_client(self, monkeypatch: pytest.MonkeyPatch) -> None:
        scopes = [*RESPONSE_BY_REQUEST["GET /scopes"]["scopes"], {"name": "kitchen"}]
        monkeypatch.setitem(RESPONSE_BY_REQUEST, "GET /scopes", {"scopes": scopes})
        monkeypatch.setitem(RESPONSE_BY_REQUEST, "DELETE /defaults/kitchen", None)
        assert run("defaults").stdout.splitlines()[-1].split() == ["kitchen", "-", "-"]
        assert run("defaults", "clear", "kitchen").stdout == "kitchen has no default.\n"


@pytest.mark.parametrize(
    "command",
    [
        *(f"conversations {verb}" for verb in ("list", "show", "rename", "delete")),
        *(f"credentials {verb}" for verb in ("list", "add", "change", "test", "delete")),
        *(f"api-keys {verb}" for verb in ("list", "create", "rotate", "revoke")),
        *(f"privacy {verb}" for verb in ("export", "erase", "export-status", "erase-status")),
        *(f"defaults {verb}" for verb in ("show", "set", "clear")),
        "models",
    ],
)
def test_every_command_explains_itself(command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert all(option in result.stdout for option in ("--url", "--token"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", ["audit", "conversations", "credentials", "models", "defaults"])
def test_a_closed_output_causes_no_traceback(command: str) -> None:
    """The reader of the pipe is gone before the first line comes."""
    program = [sys.executable, "-c", "from fermata_client.cli import main; main()", command]
    read_end, write_end = os.pipe()
    os.close(read_end)
    result = subprocess.run(program, stdout=write_end, stderr=subprocess.PIPE, timeout=BACKSTOP_SECONDS, check=False)
    os.close(write_end)
    assert result.returncode == 1
    assert not any(word in result.stderr for word in (b"Traceback", b"roken pipe", b"BrokenPipe"))


@pytest.mark.parametrize("group", ["conversations", "credentials", "api-keys", "defaults"])
def test_a_group_alone_takes_the_options_of_what_it_shows(group: str) -> None:
    listed = run(group, "show" if group == "defaults" else "list", "--json")
    assert run(group, "--json").stdout == listed.stdout
    assert listed.stdout.startswith(("[", "{"))
    assert "Commands:" in run(group, "-h").stdout
    assert (run(group, "--paint").exit_code, run(group, "paint").exit_code) == (2, 2)
