"""Read what an API key may do in a space now, so that one that is revoked or changed within a turn counts at once."""

from fermata.aws.api_key_rows import read_api_key_id, read_live_api_key
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.domain.value_dataclass import value_dataclass


@value_dataclass(frozen=True)
class AskingKey:
    """A key that asks for something in a space.

    Attributes:
        is_admitted: Whether it is valid, and for this space.
        rules: Of a key of the Conversation API; None for a server's key, for which its rights alone count.
    """

    is_admitted: bool
    rules: ConversationKeyRules | None = None


def read_asking_key(resources: Resources, space: SpaceKey, user: str) -> AskingKey | None:
    """Return the key that acts under a name; None if a person does.

    Args:
        resources: Of the process.
        space: What it asks about.
        user: The name.
    """
    key_id = read_api_key_id(user)
    if not key_id:
        return None
    row = read_live_api_key(resources, space.tenant, key_id)
    if row is None:
        return AskingKey(is_admitted=False)
    if row.get("conversation") is None:
        return AskingKey(is_admitted=True)
    rules = ConversationKeyRules.from_row(row["conversation"])
    return AskingKey(rules.project == space.name, rules)
