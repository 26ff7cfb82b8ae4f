"""Turn texts into vectors with a static model: the mean of the vectors of a text's tokens (decision 0568).

The model is two files of the wheel `wordllama`: 32,000 vectors of 256 numbers, and a tokenizer. Nothing is downloaded.
They are read when the first text comes: a demo model that is asked for no vectors needs no memory for them.
"""

import json
import math
import struct
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NamedTuple

DIMENSIONS = 256
_PACKAGE = "wordllama"
_WEIGHTS_FILE = ("weights", "l2_supercat_256.safetensors")
_TOKENIZER_FILE = ("tokenizers", "l2_supercat_tokenizer_config.json")
_ROW = struct.Struct(f"<{DIMENSIONS}e")  # half precision
_loading = threading.Lock()
_loaded: list["StaticModel"] = []


class EmbeddedText(NamedTuple):
    """The vector of a text, of length 1, and how many tokens the text has."""

    vector: list[float]
    tokens: int


class StaticModel:
    """Vectors of tokens, and the tokenizer that they belong to."""

    def __init__(self, tokenizer: Any, rows: bytes) -> None:
        self._tokenizer = tokenizer
        self._rows = rows

    def embed_text(self, text: str) -> EmbeddedText:
        """Return the vector of a text; one of zeros if it has no tokens."""
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        total = [0.0] * DIMENSIONS
        for token, count in Counter(tokens).items():
            row = _ROW.unpack_from(self._rows, token * _ROW.size)
            total = [before + count * value for before, value in zip(total, row, strict=True)]
        length = math.hypot(*total) or 1.0
        return EmbeddedText([value / length for value in total], len(tokens))


def load_static_model() -> StaticModel:
    """Return the model of this process, which is read at the first call.

    Raises:
        RuntimeError: The files of the installed wheel are others than those that this module knows.
    """
    with _loading:
        if not _loaded:
            _loaded.append(_read_static_model())
        return _loaded[0]


def embed_texts_statically(texts: Sequence[str]) -> list[EmbeddedText]:
    """Return the vector of each text."""
    model = load_static_model()
    return [model.embed_text(text) for text in texts]


def _read_static_model() -> StaticModel:
    import safetensors
    from tokenizers import Tokenizer

    deserialize: Callable[[bytes], list[tuple[str, dict[str, Any]]]] = safetensors.deserialize
    wheel = distribution(_PACKAGE)
    folder = Path(str(wheel.locate_file(_PACKAGE)))
    ((_, tensor),) = deserialize(folder.joinpath(*_WEIGHTS_FILE).read_bytes())
    tokenizer = Tokenizer.from_file(str(folder.joinpath(*_TOKENIZER_FILE)))
    tokenizer.no_truncation()
    if (tensor["dtype"], tensor["shape"]) != ("F16", [tokenizer.get_vocab_size(), DIMENSIONS]):
        found = json.dumps([tensor["dtype"], tensor["shape"]])
        raise RuntimeError(f"The weights of {_PACKAGE} {wheel.version} are {found}. Install what the lock file names.")
    return StaticModel(tokenizer, bytes(tensor["data"]))
