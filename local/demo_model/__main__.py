"""Serve the demo model until it is stopped: `python -m local.demo_model`."""

import argparse
import json

from local.demo_model.response_stream import ResponsePace
from local.demo_model.server import make_server
from local.listening_sockets import open_listener


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m local.demo_model",
        description="A rule-based stand-in for a model (not an AI) that speaks Anthropic's, OpenAI's, OpenRouter's and "
        "Ollama's protocols on 127.0.0.1. Prints one JSON line with its address, then serves until Ctrl-C. "
        "Its pages under /demo/ answer what is signed with the key in FERMATA_RUN_CREDENTIALS (`id:secret`).",
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 picks a free one (default)")
    parser.add_argument("--first-ms", type=float, default=0, help="delay before the first byte of an answer")
    parser.add_argument("--chunk-ms", type=float, default=0, help="delay between two pieces of text")
    parser.add_argument("--chunks", type=int, default=0, help="pieces a text is sent in; 0 sends word by word")
    options = parser.parse_args()
    listener = open_listener(options.port)
    port = listener.getsockname()[1]
    print(json.dumps({"port": port, "url": f"http://127.0.0.1:{port}"}), flush=True)
    make_server(ResponsePace(options.first_ms, options.chunk_ms, options.chunks)).run([listener])


if __name__ == "__main__":
    main()
