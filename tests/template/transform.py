"""Transform a SAM template from stdin to the CloudFormation template that AWS makes of it, to stdout.

The argument is a JSON object of parameters that differ from their defaults.

It runs in the emulator's environment, because SAM's translator pins an older pydantic than the functions use. The local
cloud deploys with the same translator.
"""

import json
import sys

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

LOCAL_PATHS = ("CodeUri", "ContentUri", "DefinitionUri")


class NoManagedPolicies:
    """No managed policies: every role is written out."""

    def load(self) -> dict[str, str]:
        return {}


def main() -> None:
    template = yaml_parse(sys.stdin.read())
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        for name in LOCAL_PATHS:
            if name in properties:
                properties[name] = f"s3://packaged/{properties[name]}"
    json.dump(transform(template, json.loads(sys.argv[1]), NoManagedPolicies()), sys.stdout)


if __name__ == "__main__":
    main()
