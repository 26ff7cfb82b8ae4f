"""Read botocore's descriptions of AWS services without their documentation, which is half of what they take.

Standard library and botocore only, because function processes load this file by its path.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from botocore.loaders import JSONFileLoader

OPENERS = ((".json", open), (".json.gz", gzip.open))


class CompactFileLoader(JSONFileLoader):
    """Reads a description into plain dictionaries. Nothing else of botocore's loader changes."""

    def load_file(self, file_path: str) -> Any:
        """Return the value of a JSON file whose path is given without suffix; None if there is no such file."""
        for suffix, open_file in OPENERS:
            if Path(file_path + suffix).is_file():
                with open_file(file_path + suffix, "rb") as file:
                    return json.loads(file.read(), object_hook=_empty_documentation)
        return None


def read_compactly(session: Any) -> None:
    """Let a boto3 session read descriptions so from now on."""
    session._session.get_component("data_loader").file_loader = CompactFileLoader()


def _empty_documentation(members: dict[str, Any]) -> dict[str, Any]:
    if isinstance(members.get("documentation"), str):  # otherwise it is something that has this name
        members["documentation"] = ""  # some code of botocore's expects one
    return members
