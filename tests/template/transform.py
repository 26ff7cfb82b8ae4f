"""Reads a SAM template, writes the CloudFormation template that AWS would make of it. Stdin to stdout.

Runs under the emulator's environment: SAM's translator pins an older pydantic than the functions use, and that
environment has it anyway, because the local cloud deploys with the same translator.
"""

import json
import sys

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

LOCAL_PATHS = ("CodeUri", "ContentUri", "DefinitionUri")


class NoManagedPolicies:
    """Every role is written out, so the translator has no policy's name to look up."""

    def load(self) -> dict[str, str]:
        return {}


def main() -> None:
    template = yaml_parse(sys.stdin.read())
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        for name in LOCAL_PATHS:
            if name in properties:
                properties[name] = f"s3://packaged/{properties[name]}"
    json.dump(transform(template, {}, NoManagedPolicies()), sys.stdout)


if __name__ == "__main__":
    main()
