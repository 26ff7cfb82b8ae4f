import base64
import json
import time
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any, Self

import jwt
import pytest

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Forbidden, Unauthorized
from fermata.wire.auth import authentication, verified_tokens
from fermata.wire.auth.authentication import authenticate, require_capability
from fermata.wire.auth.tenant import TenantLimits
from fermata.wire.auth.tenant_store import describe_tenant, rotate_tenant_secret
from tests.resources import TestClock, resources_of_new_process
from tests.tenant_tokens import TokenSigner, make_tenant

STOPPED_AT = 1_800_000_000
"""When the tests of the leeway take place."""


@pytest.fixture
def bakery(resources: Resources) -> TokenSigner:
    return make_tenant(resources)


def test_a_bearer_token_authenticates_its_caller(resources: Resources, bakery: TokenSigner) -> None:
    caller = authenticate(resources, bakery.bearer_headers(user="ada", capabilities=("ai.chat", "site.read")), "POST")
    assert caller == Caller(tenant="bakery", user="ada", capabilities=frozenset({"ai.chat", "site.read"}))


def test_a_token_without_capabilities_may_do_nothing(resources: Resources, bakery: TokenSigner) -> None:
    caller = authenticate(resources, bakery.bearer_headers(capabilities=None), "GET")
    assert caller.capabilities == frozenset()
    with pytest.raises(Forbidden, match=r"^Forbidden$"):
        require_capability(caller, Capability.CHAT)


@pytest.mark.parametrize(
    ("claims", "label"),
    [
        ({"name": "Ada Lovelace", "email": "ada@example.com"}, "Ada Lovelace"),
        ({"name": "  Ada ", "email": "ada@example.com"}, "Ada"),
        ({"name": "   ", "email": "ada@example.com"}, "ada@example.com"),
        ({"name": "", "email": ""}, ""),
        ({"name": "A\u202eda", "email": "ada@example.com"}, "ada@example.com"),
        ({"name": 7, "email": None}, ""),
        ({"name": "a" * 2000}, ""),
    ],
)
def test_a_user_is_shown_under_a_name_that_people_can_read(
    resources: Resources, bakery: TokenSigner, claims: dict[str, Any], label: str
) -> None:
    assert authenticate(resources, bakery.bearer_headers(**claims), "GET").label == label


def test_one_of_the_needed_capabilities_is_enough(resources: Resources, bakery: TokenSigner) -> None:
    caller = authenticate(resources, bakery.bearer_headers(capabilities=("ai.turns.manage",)), "GET")
    require_capability(caller, Capability.CHAT, Capability.TURNS)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": "Basic YTpi"},
        {"authorization": "Bearer a.b.c"},
        {"authorization": "Bearer " + "x" * 9000},
        {"authorization": "Bearer caf\u00e9.caf\u00e9.caf\u00e9"},
        {"cookie": "fermata_session="},
        {"cookie": "theme=dark"},
        {"cookie": "fermata_session=opaque-session-id"},
    ],
)
def test_without_a_token_the_answer_is_unauthorized(resources: Resources, headers: dict[str, str]) -> None:
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        authenticate(resources, headers, "GET")


@dataclass(frozen=True)
class SecondsFromNow:
    """A time in seconds from when the test runs, however long after it was collected."""

    seconds: int


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"exp": SecondsFromNow(-120)}, "has expired"),
        ({"iat": SecondsFromNow(120)}, "not valid yet"),
        ({"nbf": SecondsFromNow(120)}, "not valid yet"),
        ({"aud": "somebody else"}, "another audience"),
        ({"aud": None}, "no 'aud'"),
        ({"exp": None}, "no 'exp'"),
        ({"iat": None}, "no 'iat'"),
        ({"sub": None}, "no 'sub'"),
        ({"exp": SecondsFromNow(3 * 86_400)}, "longer than the 86400 seconds"),
        ({"iat": 0}, "longer than the 86400 seconds"),
        ({"tenant": "florist"}, "another tenant"),
        ({"sub": ""}, "'sub' must be"),
        ({"sub": "a\nb"}, "'sub' must be"),
        ({"sub": "x" * 201}, "'sub' must be"),
        ({"capabilities": "ai.chat"}, "'capabilities' must be"),
        ({"capabilities": [1]}, "'capabilities' must be"),
        ({"capabilities": {"ai.chat": True}}, "'capabilities' must be"),
        ({"sub": 7}, r"^Unauthorized$"),
        ({"exp": "soon"}, r"^Unauthorized$"),
        ({"exp": 10**400}, "out of range"),
        ({"iat": -(10**400)}, "out of range"),
        ({"exp": float("inf")}, r"^Unauthorized$"),
        ({"iat": float("nan")}, r"^Unauthorized$"),
        ({"iss": "https://nobody.example"}, r"^Unauthorized$"),
        ({"iss": "\ud800"}, r"^Unauthorized$"),
    ],
)
def test_a_token_with_a_wrong_claim_is_refused(
    resources: Resources, bakery: TokenSigner, claims: dict[str, Any], says: str
) -> None:
    now = int(time.time())
    absolute_claims = {
        name: now + value.seconds if isinstance(value, SecondsFromNow) else value for name, value in claims.items()
    }
    with pytest.raises(Unauthorized, match=says):
        authenticate(resources, bakery.bearer_headers(**absolute_claims), "GET")


@pytest.mark.parametrize("claims", [{"iss": 5}, {"iss": ["https://bakery.example"]}, {"iss": None}])
def test_an_issuer_that_is_no_text_is_refused(
    resources: Resources, bakery: TokenSigner, claims: dict[str, Any]
) -> None:
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        authenticate(resources, {"authorization": f"Bearer {forge_token(bakery, claims, 'HS256')}"}, "GET")


class StoppedDatetime(datetime):
    """The clock of PyJWT, which stands still."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(STOPPED_AT, tz)


@pytest.fixture
def _stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jwt.api_jwt.datetime", StoppedDatetime)


@pytest.mark.usefixtures("_stopped_clock")
@pytest.mark.parametrize(("claim", "seconds"), [("iat", 30), ("nbf", 30), ("exp", -29)])
def test_clocks_may_differ_by_half_a_minute(
    resources: Resources, bakery: TokenSigner, claim: str, seconds: int
) -> None:
    times = {"iat": STOPPED_AT - 60, "exp": STOPPED_AT + 600}
    headers = bakery.bearer_headers(**(times | {claim: STOPPED_AT + seconds}))
    assert authenticate(resources, headers, "GET").user == "ada"


@pytest.mark.usefixtures("_stopped_clock")
@pytest.mark.parametrize(
    ("claim", "seconds", "says"), [("iat", 31, "not valid yet"), ("nbf", 31, "not valid yet"), ("exp", -30, "expired")]
)
def test_clocks_may_not_differ_by_more(
    resources: Resources, bakery: TokenSigner, claim: str, seconds: int, says: str
) -> None:
    times = {"iat": STOPPED_AT - 60, "exp": STOPPED_AT + 600}
    with pytest.raises(Unauthorized, match=says):
        authenticate(resources, bakery.bearer_headers(**(times | {claim: STOPPED_AT + seconds})), "GET")


@pytest.fixture
def decoded_tokens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tokens whose signature PyJWT has verified."""
    verified: list[str] = []
    decode = authentication._decode

    def record(token: str, *arguments: Any) -> dict[str, Any]:
        verified.append(token)
        return decode(token, *arguments)

    monkeypatch.setattr(authentication, "_decode", record)
    return verified


def test_a_token_is_verified_once(resources: Resources, bakery: TokenSigner, decoded_tokens: list[str]) -> None:
    headers = bakery.bearer_headers(user="ada")
    callers = [authenticate(resources, headers, "GET") for _ in range(3)]
    assert (callers[0].user, len(set(callers)), len(decoded_tokens)) == ("ada", 1, 1)


@pytest.mark.parametrize("moved_by", [-7200, 7200])
def test_a_verified_token_is_verified_again_where_the_clock_has_left_its_time(
    resources: Resources,
    bakery: TokenSigner,
    decoded_tokens: list[str],
    monkeypatch: pytest.MonkeyPatch,
    moved_by: int,
) -> None:
    now = int(time.time())
    headers = bakery.bearer_headers(iat=now, exp=now + 3600)
    authenticate(resources, headers, "GET")
    monkeypatch.setattr("time.time", lambda: now + moved_by)
    authenticate(resources, headers, "GET")  # PyJWT has a clock of its own, by which the token is valid
    assert len(decoded_tokens) == 2


def test_a_verified_token_ends_with_the_secret_that_signed_it(resources: Resources, bakery: TokenSigner) -> None:
    headers = bakery.bearer_headers()
    authenticate(resources, headers, "GET")
    rotate_tenant_secret(resources, "bakery", overlap_seconds=0)
    with pytest.raises(Unauthorized):
        authenticate(resources, headers, "GET")


def test_a_changed_token_is_not_taken_for_the_verified_one(resources: Resources, bakery: TokenSigner) -> None:
    headers = bakery.bearer_headers()
    authenticate(resources, headers, "GET")
    with pytest.raises(Unauthorized):
        authenticate(resources, {"authorization": headers["authorization"][:-4] + "AAAA"}, "GET")


def test_few_verified_tokens_are_kept(
    resources: Resources, bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verified_tokens, "MAX_KEPT_TOKENS", 2)
    for user in ("ada", "ben", "cleo"):
        authenticate(resources, bakery.bearer_headers(user=user), "GET")
    kept = resources.cache.get_shared("verified-tokens", verified_tokens.VerifiedTokens)
    assert len(kept._known) <= 2


def test_a_tenant_may_demand_shorter_tokens(resources: Resources) -> None:
    strict = make_tenant(resources, "strict", limits=TenantLimits(token_seconds=300))
    with pytest.raises(Unauthorized, match="longer than the 300 seconds"):
        authenticate(resources, strict.bearer_headers(), "GET")


def test_a_token_that_names_its_own_tenant_is_accepted(resources: Resources, bakery: TokenSigner) -> None:
    assert authenticate(resources, bakery.bearer_headers(tenant="bakery"), "GET").tenant == "bakery"


def test_a_token_signed_with_another_tenants_secret_is_refused(resources: Resources, bakery: TokenSigner) -> None:
    florist = make_tenant(resources, "florist")
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        authenticate(resources, bakery.bearer_headers(iss=florist.issuer, aud=florist.audience), "GET")


def test_two_tenants_with_the_same_user_are_two_callers(resources: Resources, bakery: TokenSigner) -> None:
    florist = make_tenant(resources, "florist")
    assert authenticate(resources, bakery.bearer_headers(), "GET").tenant == "bakery"
    assert authenticate(resources, florist.bearer_headers(), "GET").tenant == "florist"


@pytest.mark.parametrize("algorithm", ["none", "None", "HS512", "RS256"])
def test_the_header_of_a_token_never_chooses_the_algorithm(
    resources: Resources, bakery: TokenSigner, algorithm: str
) -> None:
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        authenticate(resources, {"authorization": f"Bearer {forge_token(bakery, {}, algorithm)}"}, "GET")


def test_a_correctly_signed_hs512_token_is_refused(resources: Resources, bakery: TokenSigner) -> None:
    token = jwt.encode(bakery.make_claims(), bakery.key, "HS512")
    with pytest.raises(Unauthorized):
        authenticate(resources, {"authorization": f"Bearer {token}"}, "GET")


def test_after_a_rotation_both_secrets_are_valid_until_the_overlap_ends(resources: Resources, clock: TestClock) -> None:
    bakery = make_tenant(resources)
    newer = TokenSigner(
        "bakery", bakery.issuer, bakery.audience, rotate_tenant_secret(resources, "bakery", overlap_seconds=3600)
    )
    assert authenticate(resources, bakery.bearer_headers(), "GET").user == "ada"
    assert authenticate(resources, newer.bearer_headers(), "GET").user == "ada"
    clock.advance(3601)
    assert authenticate(resources, newer.bearer_headers(), "GET").user == "ada"
    with pytest.raises(Unauthorized):
        authenticate(resources, bakery.bearer_headers(), "GET")


def test_a_rotation_takes_effect_in_every_process_within_a_minute(resources: Resources, clock: TestClock) -> None:
    bakery = make_tenant(resources)
    warm = resources_of_new_process(resources)
    assert authenticate(warm, bakery.bearer_headers(), "GET").user == "ada"
    rotate_tenant_secret(resources, "bakery", overlap_seconds=0)
    clock.advance(61)
    with pytest.raises(Unauthorized):
        authenticate(warm, bakery.bearer_headers(), "GET")


def test_a_warm_process_authenticates_a_caller_without_aws_calls(resources: Resources, bakery: TokenSigner) -> None:
    authenticate(resources, bakery.bearer_headers(), "GET")
    calls: list[str] = []
    for part in (resources.tables, resources.vault):
        part._client.meta.events.register("before-call", lambda model, **_: calls.append(model.name))
    assert authenticate(resources, bakery.bearer_headers(user="bob"), "GET").user == "bob"
    assert calls == []


class TestCookies:
    @pytest.mark.parametrize("name", ["fermata_session", "instatic_admin_session"])
    def test_the_token_may_come_in_a_cookie(self, resources: Resources, bakery: TokenSigner, name: str) -> None:
        assert authenticate(resources, bakery.cookie_headers(name), "GET").user == "ada"

    def test_an_editors_own_session_cookie_is_skipped(self, resources: Resources, bakery: TokenSigner) -> None:
        headers = {"cookie": f"fermata_session=opaque; instatic_admin_session={bakery.sign_token()}"}
        assert authenticate(resources, headers, "GET").user == "ada"

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
    def test_an_unsafe_request_needs_the_tenants_origin(
        self, resources: Resources, bakery: TokenSigner, method: str
    ) -> None:
        headers = bakery.cookie_headers() | {"origin": "https://BAKERY.example:443/"}
        assert authenticate(resources, headers, method).user == "ada"

    @pytest.mark.parametrize(
        "origin", [None, "", "null", "https://evil.example", "https://bakery.example.evil.example"]
    )
    def test_a_wrong_or_missing_origin_is_forbidden(
        self, resources: Resources, bakery: TokenSigner, origin: str | None
    ) -> None:
        headers = bakery.cookie_headers() | ({} if origin is None else {"origin": origin})
        with pytest.raises(Forbidden, match=r"^Forbidden: invalid origin$"):
            authenticate(resources, headers, "POST")

    def test_another_tenants_origin_is_forbidden(self, resources: Resources, bakery: TokenSigner) -> None:
        florist = make_tenant(resources, "florist")
        with pytest.raises(Forbidden, match="invalid origin"):
            authenticate(resources, bakery.cookie_headers() | {"origin": florist.origin}, "POST")

    def test_the_origin_is_checked_before_the_token(self, resources: Resources, bakery: TokenSigner) -> None:
        headers = {"cookie": "fermata_session=not.a.token", "origin": "https://evil.example"}
        with pytest.raises(Forbidden):
            authenticate(resources, headers, "POST")

    def test_a_get_request_needs_no_origin(self, resources: Resources, bakery: TokenSigner) -> None:
        assert authenticate(resources, bakery.cookie_headers(), "GET").user == "ada"

    def test_a_bearer_token_is_accepted_from_any_origin(self, resources: Resources, bakery: TokenSigner) -> None:
        assert (
            authenticate(resources, bakery.bearer_headers() | {"origin": "https://evil.example"}, "POST").user == "ada"
        )

    def test_a_cookie_does_not_replace_an_invalid_bearer_token(self, resources: Resources, bakery: TokenSigner) -> None:
        with pytest.raises(Unauthorized):
            authenticate(
                resources, bakery.cookie_headers() | {"authorization": "Bearer a.b.c", "origin": bakery.origin}, "POST"
            )


def forge_token(signer: TokenSigner, claims: dict[str, Any], algorithm: str) -> str:
    """Make a token that names `algorithm`, with these claims and without a valid signature."""
    kept = {name: value for name, value in (signer.make_claims() | claims).items() if value is not None}
    parts = [{"alg": algorithm, "typ": "JWT"}, kept]
    head = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    signature = jwt.api_jws.PyJWS().get_algorithm_by_name("HS256").sign(head.encode(), str(signer.key).encode())
    return f"{head}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


@pytest.mark.parametrize("named", ["new", "old", "unknown", None])
def test_both_secrets_of_a_rotation_sign_and_a_key_id_selects_one(resources: Resources, named: str | None) -> None:
    bakery = make_tenant(resources)
    old_id = describe_tenant(resources, "bakery")["secrets"][0]["id"]
    new_secret = rotate_tenant_secret(resources, "bakery")
    new_id = describe_tenant(resources, "bakery")["secrets"][0]["id"]
    kid = {"new": new_id, "old": old_id, "unknown": "mine", None: None}[named]
    accepted = {
        name: _is_accepted(resources, replace(bakery, key=key, kid=kid))
        for name, key in (("old", bakery.key), ("new", new_secret))
    }
    assert accepted == {"old": named != "new", "new": named != "old"}


def _is_accepted(resources: Resources, signer: TokenSigner) -> bool:
    try:
        authenticate(resources, signer.bearer_headers(), "GET")
    except Unauthorized:
        return False
    return True
