"""Define the response bodies of operations that export and erase data."""

from typing import Literal

from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel


class PrivacyJobView(ResponseModel):
    """An export or erasure. `counts` says what was done so far, by kind. When an erasure is done, it is the receipt."""

    id: str
    kind: Literal["export", "erasure"]
    state: Literal["waiting", "running", "settling", "done", "expired"]
    requested_at: InstantField
    updated_at: InstantField
    done_at: InstantField | None
    counts: dict[str, CountField]
    erased_name: str | None = None
    """The pseudonym under which the ledger goes on."""
    deleted_because: Literal["age", "erasure"] | None = None
    """Of an expired export: whether its files were a day old, or an erasure has deleted them."""
    downloads: list[str] | None = None
    """URLs of the parts of an export, for ten minutes."""


class PrivacyJobResponse(ResponseModel):
    job: PrivacyJobView
