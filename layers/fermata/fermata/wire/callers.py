"""Who is asking: a bearer token, or the same token in an HttpOnly cookie.

A token is a JWT whose issuer names the tenant. The tenant's record pins how it is signed: HS256 with a shared
secret, or RS256/ES256 with a key from its JWKS. The library checks signature, issuer, audience and times (against
the wall clock, thirty seconds of leeway); here is added that it must not be good for longer than the tenant allows.

Origins. Whoever sends a cookie may have been made to: then the Origin of every unsafe request must be one of the
tenant's, and a missing one is refused. Nobody can be made to send a bearer token: its Origin decides only whether
the browser may read the answer (wire/edge.py).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import jwt

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.wire.keys import signing_keys
from fermata.wire.tenant import Tenant, normal_origin
from fermata.wire.tenants import origin_is_known, tenant_of_issuer
from fermata.words.caller import Caller
from fermata.words.errors import Forbidden, Unauthorized

COOKIES = ("fermata_session", "instatic_admin_session")
SAFE = ("GET", "HEAD", "OPTIONS")
LEEWAY = 30
MOST_TOKEN = 8192
MOST_TEXT = 200
REQUIRED = ["iss", "aud", "sub", "exp", "iat"]
BAD_ORIGIN = "Forbidden: invalid origin"


def identify(desk: Desk, headers: Mapping[str, str], method: str) -> Caller:
    """Who sends these headers (names in lower case). Raises Unauthorized, or Forbidden for a wrong Origin."""
    token, from_cookie = _token(headers)
    guarded = from_cookie and method not in SAFE
    origin = headers.get("origin", "")
    if guarded and not origin_is_known(desk, origin):
        raise Forbidden(BAD_ORIGIN)
    tenant, claims = _verified(desk, token)
    if guarded and normal_origin(origin) not in tenant.origins:
        raise Forbidden(BAD_ORIGIN)
    return _caller(tenant, claims)


def require(caller: Caller, *capabilities: str) -> None:
    """At least one of them."""
    if not any(caller.may(capability) for capability in capabilities):
        raise Forbidden("Forbidden")


def _token(headers: Mapping[str, str]) -> tuple[str, bool]:
    """The token and whether it came in a cookie. An Authorization header counts before any cookie."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip(), False
    cookies = dict(_cookies(headers.get("cookie", "")))
    for name in COOKIES:
        # An editor may keep a session of its own under the same name: what has no three parts is not for us.
        if cookies.get(name, "").count(".") == 2:
            return cookies[name], True
    raise Unauthorized("Unauthorized")


def _cookies(header: str) -> Iterator[tuple[str, str]]:
    for part in header.split(";"):
        name, _, value = part.partition("=")
        yield name.strip(), value.strip().strip('"')


def _verified(desk: Desk, token: str) -> tuple[Tenant, dict[str, Any]]:
    if len(token) > MOST_TOKEN or not token.isascii():
        raise Unauthorized("Unauthorized")
    try:
        return _checked(desk, token)
    except jwt.ExpiredSignatureError as error:
        raise Unauthorized("Unauthorized: the token has expired.") from error
    except jwt.ImmatureSignatureError as error:
        raise Unauthorized("Unauthorized: the token is not valid yet. Check the clock of its issuer.") from error
    except jwt.InvalidAudienceError as error:
        raise Unauthorized("Unauthorized: the token is for another audience.") from error
    except jwt.MissingRequiredClaimError as error:
        raise Unauthorized(f"Unauthorized: the token has no {error.claim!r}.") from error
    except jwt.PyJWTError as error:
        signals.warn("token_refused", reason=type(error).__name__)
        raise Unauthorized("Unauthorized") from error


def _checked(desk: Desk, token: str) -> tuple[Tenant, dict[str, Any]]:
    issuer = jwt.decode(token, options={"verify_signature": False}).get("iss")
    tenant = tenant_of_issuer(desk, issuer) if isinstance(issuer, str) else None
    if tenant is None:
        raise jwt.InvalidIssuerError("no tenant has this issuer")
    for key, algorithm in _keys(desk, tenant, jwt.get_unverified_header(token)):
        try:
            claims = _decoded(token, key, algorithm, tenant)
        except jwt.InvalidSignatureError:
            continue
        return tenant, claims
    raise jwt.InvalidSignatureError("none of the tenant's keys signed this")


def _keys(desk: Desk, tenant: Tenant, header: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Each key with the one algorithm it may be used for; the token's header never widens that."""
    if tenant.jwks_url:
        kid = header.get("kid")
        for key in signing_keys(desk, tenant.jwks_url, str(header.get("alg")), kid):
            yield key, str(key.algorithm_name)
        return
    for secret in tenant.valid_secrets(desk.clock.time()):
        text = desk.vault.open(secret.sealed, purpose="caller-secret", tenant=tenant.name, name=secret.id)
        yield text, "HS256"


def _decoded(token: str, key: Any, algorithm: str, tenant: Tenant) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(
        token,
        key,
        algorithms=[algorithm],
        audience=tenant.audience,
        issuer=tenant.issuer,
        leeway=LEEWAY,
        options={"require": REQUIRED, "enforce_minimum_key_length": True},
    )
    return claims


def _instant(claim: Any) -> float:
    try:
        return float(claim)
    except OverflowError:
        raise Unauthorized("Unauthorized: the token's times are not of this world.") from None


def _caller(tenant: Tenant, claims: Mapping[str, Any]) -> Caller:
    if _instant(claims["exp"]) - _instant(claims["iat"]) > tenant.limits.token_seconds:
        longest = tenant.limits.token_seconds
        raise Unauthorized(f"Unauthorized: the token is good for longer than the {longest} seconds allowed.")
    if claims.get("tenant", tenant.name) != tenant.name:
        raise Unauthorized("Unauthorized: the token is for another tenant.")
    user = claims["sub"]
    if not 1 <= len(user) <= MOST_TEXT or not user.isprintable():
        raise Unauthorized(f"Unauthorized: the token's 'sub' must be 1 to {MOST_TEXT} printable characters.")
    capabilities = claims.get("capabilities", [])
    if not isinstance(capabilities, list) or not all(isinstance(name, str) for name in capabilities):
        raise Unauthorized("Unauthorized: the token's 'capabilities' must be a list of strings.")
    return Caller(tenant=tenant.name, user=user, capabilities=frozenset(capabilities), label=_label(claims))


def _label(claims: Mapping[str, Any]) -> str:
    """The name a person goes by, else the e-mail address; whatever is no such thing is nobody's name."""
    for name in ("name", "email"):
        text = claims.get(name)
        if isinstance(text, str) and 1 <= len(text) <= MOST_TEXT and text.isprintable():
            return text
    return ""
