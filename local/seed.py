"""What a fresh local cloud holds: one tenant with its own secret and a demo content system, one credential, and a
default for every scope.

Everything is made through the verbs an operator and an editor use. Seeding again changes only what differs.
"""

import contextlib
import logging
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt

from fermata.aws import signals
from fermata.aws.clock import Clock
from fermata.aws.desk import CLIENT_CONFIG, Desk
from fermata.aws.settings import Settings
from fermata.credentials import defaults, keyring
from fermata.hosts import registry
from fermata.pricing.refreshing import CatalogueUnavailable, refresh
from fermata.wire import tenants
from fermata.wire.tenant import Limits
from fermata.words.caller import Caller, Capability
from fermata.words.errors import NotFound
from fermata.words.scopes import SCOPES
from local.clients import session

TENANT, ISSUER, AUDIENCE, USER = "local", "http://127.0.0.1/local", "fermata", "you"
DAY = 86_400
TOKEN_SECONDS = 7 * DAY
PORTS = (3000, 4173, 4321, 5173, 8000, 8080, 8787)
"""Where editors under development usually are; their pages may call the service."""
CAPABILITIES = tuple(str(capability) for capability in Capability)
EDITOR = (
    *("site.read", "site.structure.edit", "site.style.edit"),
    *("data.custom.tables.read", "data.system.tables.read", "users.manage", "media.read"),
    *("content.create", "content.edit.any", "content.publish.any", "content.manage"),
    *("plugins.read", "plugins.edit", "plugins.install"),
)
FOR_THE_HOST = "host_secret"


@dataclass(frozen=True)
class LocalDesk(Desk):
    """A desk whose parts are on the local cloud, whatever the process's own environment says."""

    endpoint: str

    @classmethod
    def at(cls, endpoint: str, environment: Mapping[str, str]) -> "LocalDesk":
        return cls(Settings.from_environment(environment), Clock(), endpoint)

    def _client(self, service: Any) -> Any:
        return session().client(service, endpoint_url=self.endpoint, config=CLIENT_CONFIG)


@dataclass(frozen=True)
class Model:
    """Who answers: the demo model, or a real one whose key was in the environment."""

    label: str
    key: str
    id: str
    url: str


def seed(desk: Desk, directory: Path, model: Model, host_url: str) -> str:
    """A token for the tenant's user."""
    secret = secret_file(directory, "secret").read_text()
    with _quiet():
        _prices(desk)
        _tenant(desk, secret)
        _host(desk, directory, host_url)
        caller = Caller(tenant=TENANT, user=USER, capabilities=frozenset(CAPABILITIES))
        credential = _credential(desk, caller, model)
        for scope in SCOPES:
            current = defaults.read(desk, TENANT, scope)
            if current is None or (current.credential_id, current.model_id) != (credential, model.id):
                defaults.set_default(desk, caller, scope, credential, model.id)
    return token(secret)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The verbs tell the audit what they do; here it is nobody's deed, and the terminal is for the user."""
    log = logging.getLogger("fermata")
    level = log.level
    log.setLevel(logging.WARNING)
    yield
    log.setLevel(level)


def token(secret: str, **claims: Any) -> str:
    """Signed as an editor's own server would sign it; `claims` replace or add."""
    now = int(Clock().time())
    granted = {"capabilities": [*CAPABILITIES, *EDITOR], "tenant": TENANT}
    times = {"iat": now, "exp": now + TOKEN_SECONDS}
    return jwt.encode({"iss": ISSUER, "aud": AUDIENCE, "sub": USER} | granted | times | claims, secret, "HS256")


def _prices(desk: Desk) -> None:
    """With a real model but without a network there is no catalogue; turns run all the same, at unknown prices."""
    try:
        refresh(desk)
    except CatalogueUnavailable as error:
        signals.warn("prices.not_seeded", reason=str(error))


def secret_file(directory: Path, name: str) -> Path:
    """A secret of its own, made once for each state directory; nobody else can read the file."""
    file = directory / name
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(48))
    return file


def _host(desk: Desk, directory: Path, url: str) -> None:
    """The demo content system is somewhere else at every start; a host of the operator's own stays."""
    known, last = registry.read(desk, TENANT), directory / "host_url"
    if known is None or (last.exists() and known.url == last.read_text()):
        registry.register(desk, TENANT, url, secret=secret_file(directory, FOR_THE_HOST).read_text())
        last.write_text(url)


def _tenant(desk: Desk, secret: str) -> None:
    origins = [f"http://{host}:{port}" for host in ("127.0.0.1", "localhost") for port in PORTS]
    try:
        tenants.show_tenant(desk, TENANT)
    except NotFound:
        limits = Limits(token_seconds=TOKEN_SECONDS)
        given = {"issuer": ISSUER, "audience": AUDIENCE, "secret": secret, "limits": limits}
        tenants.add_tenant(desk, TENANT, origins=origins, **given)  # type: ignore[arg-type]  # one dict, many types


def _credential(desk: Desk, caller: Caller, model: Model) -> str:
    for credential in keyring.of_caller(desk, caller):
        if credential.display_label == model.label:
            if keyring.open_key(desk, TENANT, credential.id, credential.version) != model.key:
                keyring.change(desk, caller, credential.id, None, model.key)
            return credential.id
    return keyring.create(desk, caller, "anthropic", "apiKey", model.label, model.key).id
