"""The console on AWS: only with its parameter, and as strict as the local one."""

import json
from pathlib import Path

import boto3
from moto import mock_aws

from local import template
from local.console_upload import upload_console
from local.front_door.console_files import ConsoleFiles
from local.generate_console_policy import update_console_policy

DOCUMENT = template.load_template(template.TEMPLATE_PATH)
CONSOLE = {name: one for name, one in DOCUMENT["Resources"].items() if name.startswith("Console")}


def test_nothing_of_the_console_is_deployed_without_its_parameter() -> None:
    assert DOCUMENT["Parameters"]["Console"]["Default"] == "false"
    assert len(CONSOLE) == 6
    assert {one["Condition"] for one in CONSOLE.values()} == {"HasConsole"}
    outputs = {name: one for name, one in DOCUMENT["Outputs"].items() if name.startswith("Console")}
    assert {one["Condition"] for one in outputs.values()} == {"HasConsole"}


def test_the_policy_is_that_of_the_page() -> None:
    written = template.TEMPLATE_PATH.read_text()
    assert written.count("written by `make template`\n            ContentSecurityPolicy: !Sub") == 1
    assert update_console_policy(written) == written, "the page has changed: run `make template`"


def test_a_page_with_another_import_map_has_another_policy(tmp_path: Path) -> None:
    (tmp_path / "console").mkdir()
    (tmp_path / "console" / "index.html").write_text('<script type="importmap">{"imports": {}}</script>')
    written = template.TEMPLATE_PATH.read_text()
    changed = update_console_policy(written, ConsoleFiles(tmp_path))
    assert [line.partition("'sha256-")[0] for line in changed.splitlines()] == [
        line.partition("'sha256-")[0] for line in written.splitlines()
    ]
    assert changed != written


def test_the_bucket_is_read_by_the_distribution_only() -> None:
    statements = CONSOLE["ConsoleBucketPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    (allowed,) = [statement for statement in statements if statement["Effect"] == "Allow"]
    assert allowed["Principal"] == {"Service": "cloudfront.amazonaws.com"}
    assert "ConsoleDistribution" in allowed["Condition"]["StringEquals"]["aws:SourceArn"]["Fn::Sub"]
    assert set(CONSOLE["ConsoleBucket"]["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}


def test_an_upload_replaces_the_console(tmp_path: Path) -> None:
    (tmp_path / "console" / "src").mkdir(parents=True)
    (tmp_path / "console" / "index.html").write_text("<!doctype html>")
    (tmp_path / "console" / "src" / "old.js").write_text("1")
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="console")
        upload_console(s3, "console", ConsoleFiles(tmp_path))
        (tmp_path / "console" / "src" / "old.js").rename(tmp_path / "console" / "src" / "new.js")
        assert upload_console(s3, "console", ConsoleFiles(tmp_path), "https://acme.example/console") == 3
        keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket="console")["Contents"]]
        page = s3.get_object(Bucket="console", Key="console/index.html")
        config = json.loads(s3.get_object(Bucket="console", Key=keys[0])["Body"].read())
    assert [key.removeprefix("console/") for key in keys] == ["config.json", "index.html", "src/new.js"]
    assert (page["ContentType"], page["CacheControl"]) == ("text/html; charset=utf-8", "no-cache")
    assert config == {"signIn": "token", "signInUrl": "https://acme.example/console"}
