"""Expand a SAM template: `python -P expand_sam_template.py`, JSON in and out.

It is a process of its own, because the translator takes 25 MB, which the emulator would keep for one deployment.
"""

import json
import logging
import sys
from types import SimpleNamespace

NO_MANAGED_POLICIES = SimpleNamespace(load=dict)


def main() -> None:
    from samtranslator.public.exceptions import InvalidDocumentException
    from samtranslator.translator.transform import transform

    logging.disable()
    request = json.load(sys.stdin)
    try:
        answer = {"template": transform(request["template"], request["parameters"], NO_MANAGED_POLICIES)}
    except InvalidDocumentException as error:
        answer = {"error": error.message}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
