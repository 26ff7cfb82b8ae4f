"""Accept large content through presigned URLs and check it whenever it is used."""

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.exceptions import ClientError

from fermata.aws import uploads
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, Gone, InvalidRequest, NotFound, PayloadTooLarge
from tests.faults import FaultScript
from tests.resources import TestClock
from tests.uploads import announce_test_upload, put_upload

ADA = Caller(tenant="bakery", user="ada@example.com", capabilities=frozenset())
BOB, EVE = ADA.model_copy(update={"user": "bob"}), ADA.model_copy(update={"tenant": "butcher"})
RAW = b'{"page": {"id": "p1"}}'


def fetch(resources: Resources, ref: str, caller: Caller = ADA, kind: uploads.UploadKind = "snapshot") -> bytes:
    return uploads.fetch_upload(resources, caller, uploads.parse_upload_ref(ref, kind))


def test_what_was_put_is_what_is_used_again_and_again(resources: Resources) -> None:
    ref = put_upload(resources, ADA, "snapshot", RAW)
    assert fetch(resources, ref) == fetch(resources, ref) == RAW


def test_the_address_is_good_for_minutes_and_for_exactly_what_was_announced(resources: Resources) -> None:
    upload = announce_test_upload(resources, "snapshot", RAW)
    at = urlsplit(uploads.presign_upload(resources, ADA, upload))
    query = {name: values[0] for name, values in parse_qs(at.query).items()}
    assert set(query["X-Amz-SignedHeaders"].split(";")) == {"host", *upload.signed_headers}
    assert query["X-Amz-Expires"] == "300"
    assert upload.signed_headers["content-length"] == str(len(RAW))
    assert base64.b64decode(upload.signed_headers["x-amz-checksum-sha256"]) == hashlib.sha256(RAW).digest()
    assert at.hostname == "fermata.s3.eu-central-1.amazonaws.com"


def test_the_key_names_the_tenant_and_hides_the_user(resources: Resources) -> None:
    upload = announce_test_upload(resources, "snapshot", RAW)
    path = urlsplit(uploads.presign_upload(resources, ADA, upload)).path
    assert path.startswith("/uploads/bakery/")
    assert "ada" not in path
    assert len({urlsplit(uploads.presign_upload(resources, who, upload)).path for who in (ADA, BOB, EVE)}) == 3


@pytest.mark.parametrize("other", [BOB, EVE])
def test_anothers_reference_leads_nowhere(resources: Resources, other: Caller) -> None:
    ref = put_upload(resources, ADA, "snapshot", RAW)
    with pytest.raises(NotFound, match="PUT it"):
        fetch(resources, ref, other)


def test_an_upload_that_was_only_announced_does_not_exist_for_any_answer_of_the_bucket(
    resources: Resources, faults: FaultScript
) -> None:
    """Who may not list a bucket is told that access is denied."""
    ref = announce_test_upload(resources, "snapshot", RAW).ref
    with pytest.raises(NotFound):
        fetch(resources, ref)
    faults.fail_call("s3.GetObject", "AccessDenied")
    with pytest.raises(NotFound):
        fetch(resources, ref)


def test_a_bucket_in_trouble_is_not_taken_for_an_upload_that_is_missing(
    resources: Resources, faults: FaultScript
) -> None:
    ref = put_upload(resources, ADA, "snapshot", RAW)
    faults.fail_call("s3.GetObject", "InternalError", times=9)
    with pytest.raises(ClientError):
        fetch(resources, ref)


@pytest.mark.parametrize("instead", [b"", RAW + b" ", RAW.replace(b"p1", b"p2"), b"x" * 1000])
def test_content_that_differs_from_the_announced_is_refused_even_if_the_bucket_accepted_it(
    resources: Resources, instead: bytes
) -> None:
    ref = put_upload(resources, ADA, "snapshot", RAW, instead=instead)
    with pytest.raises(Conflict, match="differs from the announced content"):
        fetch(resources, ref)


def test_after_a_day_it_is_gone_and_says_so(resources: Resources, clock: TestClock) -> None:
    ref = put_upload(resources, ADA, "snapshot", RAW)
    clock.advance(86_399)
    assert fetch(resources, ref) == RAW
    clock.advance(1)
    with pytest.raises(Gone, match="Upload it again"):
        fetch(resources, ref)


def test_a_reference_that_was_made_to_last_longer_leads_nowhere(resources: Resources, clock: TestClock) -> None:
    ref = put_upload(resources, ADA, "snapshot", RAW)
    until = str(int(clock.time()) + uploads.UPLOAD_TTL_SECONDS)
    with pytest.raises(NotFound):
        fetch(resources, ref.replace(until, str(int(until) + 1)))


@pytest.mark.parametrize(
    "ref",
    [
        *("", "x", "snapshot", "../turns/bakery/t1/abc"),
        f"image-5-{'a' * 64}-1800000000",
        f"snapshot-05-{'a' * 64}-1800000000",
        f"snapshot-5-{'A' * 64}-1800000000",
        f"snapshot-5-{'a' * 64}-1800000000/..",
        f"snapshot-5-{'a' * 64}-١٨٠٠٠٠٠٠٠٠",
    ],
)
def test_what_is_no_reference_of_this_kind_is_refused(ref: str) -> None:
    with pytest.raises(InvalidRequest, match="no reference"):
        uploads.parse_upload_ref(ref, "snapshot")


@pytest.mark.parametrize(("kind", "most"), [("snapshot", 16 * 1024 * 1024), ("image", 10_000_000)])
def test_each_kind_has_a_size_above_which_it_is_neither_announced_nor_used(
    resources: Resources, kind: Any, most: int
) -> None:
    assert uploads.announce_upload(resources, kind, most, "a" * 64)
    with pytest.raises(PayloadTooLarge, match=f"{most:,} bytes at most"):
        uploads.announce_upload(resources, kind, most + 1, "a" * 64)
    forged = uploads.Upload(kind, most + 1, "a" * 64, int(resources.clock.time()) + 60)
    with pytest.raises(PayloadTooLarge):
        fetch(resources, forged.ref, kind=kind)


def test_the_longest_reference_fits_where_bodies_take_one() -> None:
    assert len(uploads.Upload("snapshot", 999_999_999, "a" * 64, 99_999_999_999).ref) <= uploads.MAX_UPLOAD_REF_CHARS
