"""Serve the demo host until it is stopped: `python -m local.demo_host --tenant NAME --secret-file FILE`."""

import argparse
from pathlib import Path

from local.demo_host.demo_content import DemoContent
from local.demo_host.server import DemoHostServer
from local.parent_watch import announce_ready


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m local.demo_host",
        description="A tenant's content system with made-up data (docs/host.md) on 127.0.0.1. Prints its address, then "
        "serves until Ctrl-C.",
    )
    parser.add_argument("--tenant", required=True, help="whose tokens are taken")
    parser.add_argument("--secret-file", required=True, type=Path, help="what they are signed with")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 picks a free one (default)")
    options = parser.parse_args()
    server = DemoHostServer(DemoContent.load_content(), options.tenant, options.secret_file.read_text(), options.port)
    announce_ready(server.url)
    server.serve_forever()


if __name__ == "__main__":
    main()
