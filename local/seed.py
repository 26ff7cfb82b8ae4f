"""Seed a local cloud: prices, one tenant with its secret and demo host, one credential, a default for every scope.

Everything is made through the functions that operators and editors use. Seeding again changes only what differs.
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
from fermata.credentials.open_credential import open_api_key
from fermata.domain.agent_ids import SCOPES
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import NotFound
from fermata.domain.value_dataclass import value_dataclass
from fermata.hosts import registry
from fermata.pricing.catalogue_refresh import CatalogueUnavailable, refresh_catalogue
from fermata.wire.auth import tenant_store
from fermata.wire.auth.tenant import TenantLimits
from local.aws_clients import get_session

TENANT = "local"
ISSUER = "http://127.0.0.1/local"
AUDIENCE = "fermata"
USER = "you"
DAY_SECONDS = 86_400
TOKEN_SECONDS = 7 * DAY_SECONDS
EDITOR_PORTS = (3000, 4173, 4321, 5173, 8000, 8080, 8787)
"""Ports that editors under development usually listen on."""
EDITOR_ORIGINS = tuple(f"http://{host}:{port}" for host in ("127.0.0.1", "localhost") for port in EDITOR_PORTS)
"""Whose pages may call the service and upload to it."""
CAPABILITIES = tuple(str(capability) for capability in Capability)
EDITOR_CAPABILITIES = (
    *("site.read", "site.structure.edit", "site.style.edit"),
    *("data.custom.tables.read", "data.system.tables.read", "users.manage", "media.read"),
    *("content.create", "content.edit.any", "content.publish.any", "content.manage"),
    *("plugins.read", "plugins.edit", "plugins.install"),
)
HOST_CREDENTIAL_FILE = "host_secret"
WIDE_LIMITS = TenantLimits(
    user_prompts_per_minute=100_000,
    user_turns_at_once=1_000,
    user_readers_at_once=1_000,
    tenant_prompts_per_minute=100_000,
    tenant_turns_at_once=20_000,
    tenant_readers_at_once=20_000,
)
"""For tenants whose one user is a program that measures or tests (docs/limits.md)."""


@value_dataclass(frozen=True)
class LocalResources(Resources):
    """Resources on the local cloud at `endpoint`; the environment of this process is ignored."""

    endpoint: str

    @classmethod
    def for_endpoint(cls, endpoint: str, environment: Mapping[str, str]) -> "LocalResources":
        return cls(Settings.from_environment(environment), Clock(), endpoint)

    def _client(self, service: Any) -> Any:
        return get_session().client(service, endpoint_url=self.endpoint, config=CLIENT_CONFIG)


@dataclass(frozen=True)
class SeededModel:
    """The model of all scopes: the demo model, or a real one whose API key was in the environment."""

    label: str
    key: str
    id: str
    url: str


def seed_cloud(resources: Resources, directory: Path, model: SeededModel, host_url: str) -> str:
    """Seed the cloud and return a token of the tenant's user."""
    secret = ensure_secret_file(directory, "secret").read_text()
    with _without_audit_events():
        _seed_prices(resources)
        _seed_tenant(resources, secret)
        _seed_host(resources, directory, host_url)
        caller = Caller(tenant=TENANT, user=USER, capabilities=frozenset(CAPABILITIES))
        credential_id = _seed_credential(resources, caller, model)
        for scope in SCOPES:
            current = scope_defaults.read_default(resources, TENANT, scope)
            if current is None or (current.credential_id, current.model_id) != (credential_id, model.id):
                scope_defaults.set_default(resources, caller, scope, credential_id, model.id)
    return sign_token(secret)


@contextlib.contextmanager
def _without_audit_events() -> Iterator[None]:
    """Suppress audit events: seeding is no user's action, and the terminal is for the user."""
    logger = logging.getLogger("fermata")
    level = logger.level
    logger.setLevel(logging.WARNING)
    yield
    logger.setLevel(level)


def sign_token(secret: str, **claims: Any) -> str:
    """Sign a token as an editor's server does. `claims` add to the usual ones or replace them."""
    now = int(Clock().time())
    usual_claims: dict[str, Any] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": USER,
        "tenant": TENANT,
        "capabilities": [*CAPABILITIES, *EDITOR_CAPABILITIES],
        "iat": now,
        "exp": now + TOKEN_SECONDS,
    }
    return jwt.encode(usual_claims | claims, secret, "HS256")


def _seed_prices(resources: Resources) -> None:
    """Fetch the price catalogue. Without a network there is none, and turns run at unknown prices."""
    try:
        refresh_catalogue(resources, emits_age=False)
    except CatalogueUnavailable as error:
        observability.log_warning("prices.not_seeded", reason=str(error))


def ensure_secret_file(directory: Path, name: str) -> Path:
    """Get the file of a secret, which is made once per directory and is readable by its owner only."""
    file = directory / name
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(48))
    return file


def _seed_host(resources: Resources, directory: Path, url: str) -> None:
    """Register the demo host, whose address changes at every start. A host that an operator has registered stays."""
    registered = registry.read_host(resources, TENANT)
    last_url_file = directory / "host_url"
    if registered is None or (last_url_file.exists() and registered.url == last_url_file.read_text()):
        secret = ensure_secret_file(directory, HOST_CREDENTIAL_FILE).read_text()
        registry.register_host(resources, TENANT, url, secret=secret)
        last_url_file.write_text(url)


def _seed_tenant(resources: Resources, secret: str) -> None:
    try:
        tenant_store.describe_tenant(resources, TENANT)
    except NotFound:
        tenant_store.add_tenant(
            resources,
            TENANT,
            origins=list(EDITOR_ORIGINS),
            issuer=ISSUER,
            audience=AUDIENCE,
            secret=secret,
            limits=WIDE_LIMITS.model_copy(update={"token_seconds": TOKEN_SECONDS}),
        )


def _seed_credential(resources: Resources, caller: Caller, model: SeededModel) -> str:
    for credential in credential_store.list_credentials(resources, caller):
        if credential.display_label == model.label:
            if open_api_key(resources, TENANT, credential.id, credential.version) != model.key:
                credential_store.update_credential(resources, caller, credential.id, None, model.key)
            return credential.id
    return credential_store.create_credential(resources, caller, "anthropic", "apiKey", model.label, model.key).id
