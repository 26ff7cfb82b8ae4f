"""Define whose data is exported or erased: a conversation, a user, or a whole tenant."""

import hashlib
import hmac
import re
from typing import Literal

from fermata.domain.base import DomainModel

_ERASED_NAME = re.compile("erased-[0-9a-f]{20}")
SubjectKind = Literal["conversation", "user", "tenant", "space"]


class DataSubject(DomainModel):
    """Whose data it is. `id` is the conversation's id, the user's id, the tenant's name, or a content space's."""

    kind: SubjectKind
    tenant: str
    id: str


def make_erased_name(salt: str, name: str) -> str:
    """Return the pseudonym that replaces a name. Without the random salt, nobody can compute it from the name."""
    return f"erased-{hmac.new(salt.encode(), name.encode(), hashlib.sha256).hexdigest()[:20]}"


def is_erased_name(name: str) -> bool:
    """Return whether a name is a pseudonym. A user may be called `erased-ada`, which is none."""
    return _ERASED_NAME.fullmatch(name) is not None
