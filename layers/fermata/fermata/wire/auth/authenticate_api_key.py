"""Authenticate servers that present an API key (decision 0256).

A process caches what it reads for a minute: a key that is revoked is refused everywhere within a minute, and a request
with a key costs at most one read. The last use is stored in the usage table, as that of credentials is.
"""

from fermata.aws.api_key_rows import api_key_partition
from fermata.aws.last_uses import read_last_uses, store_last_use
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Unauthorized
from fermata.wire.auth.api_key import (
    API_KEY_MARK,
    ApiKeyText,
    ServerApiKey,
    parse_api_key,
)
from fermata.wire.auth.api_key_store import read_api_key

_CACHE_SECONDS = 60
_RECORD_INTERVAL_SECONDS = 3_600


def read_api_key_uses(resources: Resources, tenant: str) -> dict[str, str]:
    """Return when each key was last used, by its id. It is up to an hour behind."""
    return read_last_uses(resources, api_key_partition(tenant))


def authenticate_api_key(resources: Resources, text: str) -> Caller:
    """Authenticate the server that sent a key.

    Raises:
        Unauthorized: It is no key, or one that is revoked or has expired.
    """
    parts = parse_api_key(text)
    if parts is None or parts.mark != API_KEY_MARK:
        raise Unauthorized("Unauthorized", reason="malformed")
    key = resources.cache.get_or_load(
        ("api key", parts.tenant, parts.id), _CACHE_SECONDS, lambda: read_api_key(resources, parts.tenant, parts.id)
    )
    return admit_key(resources, parts, key).to_caller()


def admit_key(resources: Resources, parts: ApiKeyText, key: ServerApiKey | None) -> ServerApiKey:
    """Return the key if a text with its secret is admitted under the mark that the key has."""
    if key is None or key.mark != parts.mark or not key.is_valid(parts.secret, resources.clock.time()):
        raise Unauthorized("Unauthorized: the API key is unknown, revoked or expired.", reason="api_key")
    return key


def record_api_key_use(resources: Resources, caller: Caller) -> None:
    """Record that the caller's key is used now, at most once an hour in each process.

    It never fails: a write that fails is logged.
    """

    def write() -> bool:
        store_last_use(resources, api_key_partition(caller.tenant), caller.api_key, "api_key")
        return True  # also after a failure: a request with a key does not wait for further ones

    resources.cache.get_or_load(("api key used", caller.tenant, caller.api_key), _RECORD_INTERVAL_SECONDS, write)
