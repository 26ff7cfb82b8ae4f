"""Patch DynamoDB: leave out of a write what nobody reads.

Unpatched MiniStack computes for each transaction how large its rows are, in their indexes too, which only a response
with consumed capacity tells. It copies a row for an update five times, with a copier for objects of any kind.
"""

import copy
from typing import Any

from ministack.services import dynamodb

from local.emulator.patches.registry import patch_line, pin_functions

PLAIN_KINDS = (str, int, float, bool, type(None), bytes)


class JsonCopier:
    """In the place of the module `copy`."""

    @staticmethod
    def deepcopy(value: Any) -> Any:
        """Copy JSON by itself, and leave all else to the module."""
        kind = type(value)
        if kind is dict:
            return {name: JsonCopier.deepcopy(member) for name, member in value.items()}
        if kind is list:
            return [JsonCopier.deepcopy(member) for member in value]
        return value if kind in PLAIN_KINDS else copy.deepcopy(value)


pin_functions(dynamodb, _apply_update_expression="ffd488974842", _apply_set="73710b1ad42b")

# The sizes are kept for the repetition of a request, which asks for consumed capacity if the first one did.
patch_line(
    dynamodb,
    "_transact_write_items",
    "d931eab08754",
    "for tname, effects in _txn_write_effects.items():",
    'for tname, effects in _txn_write_effects.items() if rc != "NONE" else ():',
    copy=JsonCopier,
)
