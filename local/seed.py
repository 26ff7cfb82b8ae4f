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

from fermata.aws import observability
from fermata.aws.clock import Clock
from fermata.aws.resources import CLIENT_CONFIG, Resources
from fermata.aws.settings import Settings
from fermata.credentials import credential_store, scope_defaults
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import NotFound
from fermata.domain.scopes import SCOPES
from fermata.hosts import registry
from fermata.pricing.catalogue_refresh import CatalogueUnavailable, refresh_catalogue
from fermata.wire.auth import tenant_store
from fermata.wire.auth.tenant import TenantLimits
from local.aws_clients import get_session

TENANT, ISSUER, AUDIENCE, USER = "local", "http://127.0.0.1/local", "fermata", "you"
DAY_SECONDS = 86_400
TOKEN_SECONDS = 7 * DAY_SECONDS
EDITOR_PORTS = (3000, 4173, 4321, 5173, 8000, 8080, 8787)
"""Where editors under development usually are; their pages may call the service."""
CAPABILITIES = tuple(str(capability) for capability in Capability)
EDITOR_CAPABILITIES = (
    *("site.read", "site.structure.edit", "site.style.edit"),
    *("data.custom.tables.read", "data.system.tables.read", "users.manage", "media.read"),
    *("content.create", "content.edit.any", "content.publish.any", "content.manage"),
    *("plugins.read", "plugins.edit", "plugins.install"),
)
HOST_CREDENTIAL_FILE = "host_secret"


@dataclass(frozen=True)
class LocalResources(Resources):
    """A resources whose parts are on the local cloud, whatever the process's own environment says."""

    endpoint: str

    @classmethod
    def for_endpoint(cls, endpoint: str, environment: Mapping[str, str]) -> "LocalResources":
        return cls(Settings.from_environment(environment), Clock(), endpoint)

    def _client(self, service: Any) -> Any:
        return get_session().client(service, endpoint_url=self.endpoint, config=CLIENT_CONFIG)


@dataclass(frozen=True)
class SeededModel:
    """Who answers: the demo model, or a real one whose key was in the environment."""

    label: str
    key: str
    id: str
    url: str


def seed_cloud(resources: Resources, directory: Path, model: SeededModel, host_url: str) -> str:
    """A token for the tenant's user."""
    secret = ensure_secret_file(directory, "secret").read_text()
    with _quiet():
        _prices(resources)
        _tenant(resources, secret)
        _host(resources, directory, host_url)
        caller = Caller(tenant=TENANT, user=USER, capabilities=frozenset(CAPABILITIES))
        credential = _credential(resources, caller, model)
        for scope in SCOPES:
            current = scope_defaults.read_default(resources, TENANT, scope)
            if current is None or (current.credential_id, current.model_id) != (credential, model.id):
                scope_defaults.set_default(resources, caller, scope, credential, model.id)
    return sign_token(secret)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The verbs tell the audit what they do; here it is nobody's deed, and the terminal is for the user."""
    log = logging.getLogger("fermata")
    level = log.level
    log.setLevel(logging.WARNING)
    yield
    log.setLevel(level)


def sign_token(secret: str, **claims: Any) -> str:
    """Signed as an editor's own server would sign it; `claims` replace or add."""
    now = int(Clock().time())
    granted = {"capabilities": [*CAPABILITIES, *EDITOR_CAPABILITIES], "tenant": TENANT}
    times = {"iat": now, "exp": now + TOKEN_SECONDS}
    return jwt.encode({"iss": ISSUER, "aud": AUDIENCE, "sub": USER} | granted | times | claims, secret, "HS256")


def _prices(resources: Resources) -> None:
    """With a real model but without a network there is no catalogue; turns run all the same, at unknown prices."""
    try:
        refresh_catalogue(resources)
    except CatalogueUnavailable as error:
        observability.log_warning("prices.not_seeded", reason=str(error))


def ensure_secret_file(directory: Path, name: str) -> Path:
    """A secret of its own, made once for each state directory; nobody else can read the file."""
    file = directory / name
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(48))
    return file


def _host(resources: Resources, directory: Path, url: str) -> None:
    """The demo content system is somewhere else at every start; a host of the operator's own stays."""
    known, last = registry.read_host(resources, TENANT), directory / "host_url"
    if known is None or (last.exists() and known.url == last.read_text()):
        registry.register_host(
            resources, TENANT, url, secret=ensure_secret_file(directory, HOST_CREDENTIAL_FILE).read_text()
        )
        last.write_text(url)


def _tenant(resources: Resources, secret: str) -> None:
    origins = [f"http://{host}:{port}" for host in ("127.0.0.1", "localhost") for port in EDITOR_PORTS]
    try:
        tenant_store.describe_tenant(resources, TENANT)
    except NotFound:
        limits = TenantLimits(token_seconds=TOKEN_SECONDS)
        given = {"issuer": ISSUER, "audience": AUDIENCE, "secret": secret, "limits": limits}
        tenant_store.add_tenant(resources, TENANT, origins=origins, **given)  # type: ignore[arg-type]  # one dict, many types


def _credential(resources: Resources, caller: Caller, model: SeededModel) -> str:
    for credential in credential_store.list_credentials(resources, caller):
        if credential.display_label == model.label:
            if credential_store.open_api_key(resources, TENANT, credential.id, credential.version) != model.key:
                credential_store.update_credential(resources, caller, credential.id, None, model.key)
            return credential.id
    return credential_store.create_credential(resources, caller, "anthropic", "apiKey", model.label, model.key).id
