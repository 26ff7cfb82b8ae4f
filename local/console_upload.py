"""Put the files of the console into the bucket of a stack that has the parameter `Console`: `make console-upload`.

It uses the AWS credentials of whoever runs it. Files that are not part of the console any more are deleted afterwards.
"""

import argparse
import json
import sys
from typing import Any

import boto3

from local.front_door.console_files import ConsoleFile, ConsoleFiles

PREFIX = "console/"
CONFIG_PATH = "config.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make console-upload", description=__doc__)
    parser.add_argument("--stack", required=True)
    parser.add_argument("--sign-in-url", default="", help="where people without a token are sent (docs/deployment.md)")
    arguments = parser.parse_args()
    outputs = read_outputs(boto3.client("cloudformation"), arguments.stack)
    if "ConsoleBucketName" not in outputs:
        sys.exit(f"The stack {arguments.stack} has no console. Deploy it with the parameter Console=true.")
    files = ConsoleFiles()
    if missing := files.list_missing_packages():
        sys.exit(f"npm packages are missing: {', '.join(missing)}. Run: python3 -m local.install_node_packages")
    count = upload_console(boto3.client("s3"), outputs["ConsoleBucketName"], files, arguments.sign_in_url)
    print(f"{count} files are uploaded. The console is at {outputs['ConsoleUrl']}")


def read_outputs(cloudformation: Any, stack: str) -> dict[str, str]:
    (described,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}


def upload_console(s3: Any, bucket: str, files: ConsoleFiles, sign_in_url: str = "") -> int:
    """Upload all files, the page last, and delete what is no file of the console. Return how many were uploaded."""
    config = {"signIn": "token"} | ({"signInUrl": sign_in_url} if sign_in_url else {})
    content = {path: file for path in files.list_paths() if (file := files.read(path))}
    content[CONFIG_PATH] = ConsoleFile(json.dumps(config).encode(), "application/json")
    for path in sorted(content, key=lambda path: (path.endswith(".html"), path)):
        file = content[path]
        s3.put_object(
            Bucket=bucket,
            Key=PREFIX + path,
            Body=file.content,
            ContentType=file.content_type,
            CacheControl="no-cache",
        )
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=PREFIX)
    stored = {entry["Key"] for page in pages for entry in page.get("Contents", [])}
    for key in sorted(stored - {PREFIX + path for path in content}):
        s3.delete_object(Bucket=bucket, Key=key)
    return len(content)


if __name__ == "__main__":
    main()
