"""Authenticate callers by a bearer token (a JWT), or by the same token in an HttpOnly cookie (decision 0021).

A server of the tenant may send an API key as the bearer token instead (wire/auth/api_key_store.py).

A token is a JWT whose issuer names the tenant. The tenant's record pins the signature: HS256 with a shared secret, or
RS256/ES256 with a key from the tenant's JWKS. PyJWT checks signature, issuer, audience and times, against the wall
clock with thirty seconds of leeway. This module also checks that the token's lifetime is within the tenant's limit.

A browser sends a cookie by itself. So the Origin of every unsafe request with a cookie must be one of the tenant's; a
missing Origin is refused. A bearer token cannot be sent without the page's knowledge: its Origin only decides whether
the page can read the response (wire/http/dispatch.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jwt

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Forbidden, OriginRefused, Unauthorized
from fermata.wire.auth.api_key import looks_like_api_key
from fermata.wire.auth.authenticate_api_key import authenticate_api_key
from fermata.wire.auth.fetch_signing_keys import get_signing_keys
from fermata.wire.auth.tenant import Tenant, TenantSecret, normalize_origin
from fermata.wire.auth.tenant_store import find_tenant, find_tenant_by_issuer, is_registered_origin
from fermata.wire.auth.verified_tokens import VerifiedTokens, hash_text

_SESSION_COOKIES = ("fermata_session", "instatic_admin_session")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_LEEWAY_SECONDS = 30
_MAX_TOKEN_CHARACTERS = 8192
_MAX_CLAIM_CHARACTERS = 200
_REQUIRED_CLAIMS = ["iss", "aud", "sub", "exp", "iat"]
_INVALID_ORIGIN = "Forbidden: invalid origin"


def authenticate(resources: Resources, headers: Mapping[str, str], method: str) -> Caller:
    """Authenticate the caller of a request.

    Args:
        headers: The request's headers, with lower-case names.

    Raises:
        Unauthorized: There is no valid token.
        Forbidden: The token came in a cookie, and the Origin is not one of the tenant's.
    """
    token, is_from_cookie = _read_token(headers)
    if looks_like_api_key(token) and not is_from_cookie:
        return _authenticate_server(resources, token)
    must_check_origin = is_from_cookie and method not in _SAFE_METHODS
    origin = headers.get("origin", "")
    if must_check_origin and not is_registered_origin(resources, origin):
        raise OriginRefused(_INVALID_ORIGIN)
    tenant, claims = _verify_token(resources, token)
    if must_check_origin and normalize_origin(origin) not in tenant.origins:
        raise OriginRefused(_INVALID_ORIGIN)
    return _build_caller(tenant, claims)


def _authenticate_server(resources: Resources, text: str) -> Caller:
    caller = authenticate_api_key(resources, text)
    if find_tenant(resources, caller.tenant) is None:  # erased, and the key was still cached or came late
        raise Unauthorized("Unauthorized", reason="api_key")
    return caller


def require_capability(caller: Caller, *capabilities: str) -> None:
    """Raise Forbidden unless the caller has at least one of the capabilities."""
    if not any(caller.has_capability(capability) for capability in capabilities):
        raise Forbidden("Forbidden")


def _read_token(headers: Mapping[str, str]) -> tuple[str, bool]:
    """Return the token, and whether it came in a cookie. An Authorization header takes precedence over cookies."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip(), False
    cookies = dict(_parse_cookies(headers.get("cookie", "")))
    for name in _SESSION_COOKIES:
        # An editor may use the same name for a session of its own. Only three parts make a JWT (decision 0021).
        if cookies.get(name, "").count(".") == 2:
            return cookies[name], True
    raise Unauthorized("Unauthorized", reason="missing")


def _parse_cookies(header: str) -> Iterator[tuple[str, str]]:
    for part in header.split(";"):
        name, _, value = part.partition("=")
        yield name.strip(), value.strip().strip('"')


def _verify_token(resources: Resources, token: str) -> tuple[Tenant, Mapping[str, Any]]:
    if len(token) > _MAX_TOKEN_CHARACTERS or not token.isascii():
        raise Unauthorized("Unauthorized", reason="malformed")
    try:
        return _verify_signature(resources, token)
    except jwt.ExpiredSignatureError as error:
        raise Unauthorized("Unauthorized: the token has expired.", reason="expired") from error
    except jwt.ImmatureSignatureError as error:
        text = "Unauthorized: the token is not valid yet. Check the clock of its issuer."
        raise Unauthorized(text, reason="not_yet_valid") from error
    except jwt.InvalidAudienceError as error:
        raise Unauthorized("Unauthorized: the token is for another audience.", reason="audience") from error
    except jwt.MissingRequiredClaimError as error:
        raise Unauthorized(f"Unauthorized: the token has no {error.claim!r}.", reason="missing_claim") from error
    except jwt.PyJWTError as error:
        raise Unauthorized("Unauthorized", reason=_find_refusal_reason(error)) from error


def _find_refusal_reason(error: jwt.PyJWTError) -> str:
    match error:
        case jwt.InvalidIssuerError():
            return "unknown_issuer"
        case jwt.InvalidSignatureError():
            return "bad_signature"
        case _:
            return "malformed"


def _verify_signature(resources: Resources, token: str) -> tuple[Tenant, Mapping[str, Any]]:
    """Verify a token with the keys that its tenant has now. One that this process has verified so is not decoded."""
    verified_tokens = resources.cache.get_shared("verified-tokens", VerifiedTokens)
    known = verified_tokens.find_token(token)
    issuer = known.issuer if known else jwt.decode(token, options={"verify_signature": False}).get("iss")
    tenant = find_tenant_by_issuer(resources, issuer) if isinstance(issuer, str) else None
    if tenant is None:
        raise jwt.InvalidIssuerError("no tenant has this issuer")
    header = known.header if known else jwt.get_unverified_header(token)
    for key, algorithm in _list_keys(resources, tenant, header):
        verified_with = (hash_text(key) if isinstance(key, str) else key, algorithm, tenant.issuer, tenant.audience)
        if known and known.verified_with == verified_with:
            return tenant, known.claims
        try:
            claims = _decode(token, key, algorithm, tenant)
        except jwt.InvalidSignatureError:
            continue
        verified_tokens.add_token(token, header, claims, verified_with)
        return tenant, claims
    raise jwt.InvalidSignatureError("none of the tenant's keys signed this")


def _list_keys(resources: Resources, tenant: Tenant, header: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield each key with the one algorithm it may be used for. The token's header cannot add algorithms."""
    if tenant.jwks_url:
        for key in get_signing_keys(resources, tenant.jwks_url, str(header.get("alg")), header.get("kid")):
            yield key, str(key.algorithm_name)
        return
    for secret in _select_secrets(tenant.list_valid_secrets(resources.clock.time()), header.get("kid")):
        text = resources.vault.open_secret(secret.sealed, purpose="caller-secret", tenant=tenant.name, name=secret.id)
        yield text, "HS256"


def _select_secrets(secrets: Sequence[TenantSecret], key_id: Any) -> Sequence[TenantSecret]:
    """Return the secret that the token names by its id, or all: a server may use ids of its own, or none."""
    return [secret for secret in secrets if secret.id == key_id] or secrets


def _decode(token: str, key: Any, algorithm: str, tenant: Tenant) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(
        token,
        key,
        algorithms=[algorithm],
        audience=tenant.audience,
        issuer=tenant.issuer,
        leeway=_LEEWAY_SECONDS,
        options={"require": _REQUIRED_CLAIMS, "enforce_minimum_key_length": True},
    )
    return claims


def _to_timestamp(claim: Any) -> float:
    try:
        return float(claim)
    except OverflowError:
        raise Unauthorized("Unauthorized: the token's times are out of range.", reason="invalid_claim") from None


def _build_caller(tenant: Tenant, claims: Mapping[str, Any]) -> Caller:
    if _to_timestamp(claims["exp"]) - _to_timestamp(claims["iat"]) > tenant.limits.token_seconds:
        allowed = tenant.limits.token_seconds
        text = f"Unauthorized: the token is valid for longer than the {allowed} seconds allowed."
        raise Unauthorized(text, reason="lifetime")
    if claims.get("tenant", tenant.name) != tenant.name:
        raise Unauthorized("Unauthorized: the token is for another tenant.", reason="other_tenant")
    user = claims["sub"]
    if not 1 <= len(user) <= _MAX_CLAIM_CHARACTERS or not user.isprintable():
        raise Unauthorized(
            f"Unauthorized: the token's 'sub' must be 1 to {_MAX_CLAIM_CHARACTERS} printable characters.",
            reason="invalid_claim",
        )
    capabilities = claims.get("capabilities", [])
    if not isinstance(capabilities, list) or not all(isinstance(name, str) for name in capabilities):
        text = "Unauthorized: the token's 'capabilities' must be a list of strings."
        raise Unauthorized(text, reason="invalid_claim")
    return Caller(tenant=tenant.name, user=user, capabilities=frozenset(capabilities), label=_read_label(claims))


def _read_label(claims: Mapping[str, Any]) -> str:
    """Return the user's name, else the e-mail address, else nothing. Claims that are no printable text are ignored."""
    for name in ("name", "email"):
        claim = claims.get(name)
        text = claim.strip() if isinstance(claim, str) else ""
        if 1 <= len(text) <= _MAX_CLAIM_CHARACTERS and text.isprintable():
            return text
    return ""
