"""Make a label that people read from the name of a model, for servers that give none (decision 0212)."""

import re
from collections import Counter
from collections.abc import Sequence

from fermata.domain.model_info import ModelInfo

_ACRONYMS = {"gpt": "GPT", "oss": "OSS", "vl": "VL", "moe": "MoE", "glm": "GLM", "ai": "AI"}
_SPELLINGS = {
    "deepseek": "DeepSeek",
    "qwq": "QwQ",
    "starcoder": "StarCoder",
    "codellama": "Code Llama",
    "tinyllama": "TinyLlama",
    "llava": "LLaVA",
    "smollm": "SmolLM",
    "wizardlm": "WizardLM",
    "internlm": "InternLM",
    "minimax": "MiniMax",
    "chatgpt": "ChatGPT",
}
_FILE_ENDING = re.compile(r"\.(?:gguf|bin|safetensors)$", re.IGNORECASE)
_QUANTIZATION_OF_FILE = re.compile(r"\.(?=I?Q\d|B?F\d\d$)", re.IGNORECASE)
_DATE = re.compile(r"-(20\d\d)-?(0[1-9]|1[0-2])-?([0-3]\d)(?=-|$)")
_DATE_IN_LABEL = re.compile(r"\b(20\d\d)\.(\d\d)\.(\d\d)\b")
_SHORT_DATE = re.compile(r"-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]|20\d\d)(?=-|$)")
_SHORT_DATE_IN_LABEL = re.compile(r"\b(\d\d)/(\d+)\b")
_SPLIT_VERSION = re.compile(r"-(\d{1,2})-(\d{1,2})(?=-|$)")
_VERSION_WITH_P = re.compile(r"(?<=-v)(\d{1,2})p(\d{1,2})(?=-|$)", re.IGNORECASE)
_REGION_AND_MAKER = re.compile(r"\A(?:[a-z-]{2,6}\.)?[a-z][a-z0-9]*\.(?=[a-z]{3})")
_FINE_TUNED = "ft:"
_FAMILY_WITH_VERSION = re.compile(r"([a-z]{3,})(\d+(?:\.\d+)*)(n|vl)?", re.IGNORECASE)
_SIZE = re.compile(r"[aer]?(?:\d+x)?\d+(?:\.\d+)?[bmte]", re.IGNORECASE)
_SHORT_CODE = re.compile(r"[a-z]\d+(?:\.\d+)*|[a-z]\d[^\W_]*_\w+", re.IGNORECASE)
_OPENAI_REASONING_MODEL = re.compile(r"o\d+", re.IGNORECASE)


def format_model_label(name: str) -> str:
    """Return `Llama 4` for `llama4`, `Qwen 2.5 Coder (7B)` for `qwen2.5-coder:7b`, `GPT-5.4 Mini` for `gpt-5.4-mini`.

    A path, a maker before a slash, the ending of a file and the tag `latest` are left out. A name that its maker has
    spelled with capitals keeps them. The names that its owner gave to a fine-tuned model follow in brackets.
    """
    tuned, *own = name.removeprefix(_FINE_TUNED).split(":") if name.startswith(_FINE_TUNED) else [""]
    if tuned:
        return f"{format_model_label(tuned)} ({' '.join(filter(None, own)) or 'fine-tuned'})"
    base, _, tag = _FILE_ENDING.sub("", name.rstrip("/").replace("\\", "/").rpartition("/")[2]).partition(":")
    words = _split_words(_REGION_AND_MAKER.sub("", _QUANTIZATION_OF_FILE.sub("-", base.replace("@", "-")), count=1))
    label = " ".join(_format_word(word, is_first=index == 0) for index, word in enumerate(words) if word)
    label = _DATE_IN_LABEL.sub(r"\1-\2-\3", re.sub(r"^GPT (?=\d|OSS)", "GPT-", label))
    label, tag = _SHORT_DATE_IN_LABEL.sub(r"\1-\2", label), tag.partition("@")[0]
    suffix = "" if tag in ("", "latest") else f" ({' '.join(map(_format_tag_word, tag.split('-')))})"
    return f"{label}{suffix}".strip() or name


def _split_words(base: str) -> list[str]:
    """Split a name, with each date and each version in one word."""
    dated = _SHORT_DATE.sub(r"-\1/\2", _DATE.sub(r"-\1.\2.\3", base))
    return _VERSION_WITH_P.sub(r"\1.\2", _SPLIT_VERSION.sub(r"-\1.\2", dated)).split("-")


def label_unnamed_models(models: Sequence[ModelInfo]) -> tuple[ModelInfo, ...]:
    """Replace labels that are no more than the model's name; of models that would look alike, keep the names."""
    labels = [format_model_label(model.id) if model.label == model.id else model.label for model in models]
    counts = Counter(labels)
    return tuple(
        model.model_copy(update={"label": label if counts[label] == 1 else model.label})
        for model, label in zip(models, labels, strict=True)
    )


def _format_word(word: str, *, is_first: bool) -> str:
    if not word.islower():
        return word
    if word in _ACRONYMS or word in _SPELLINGS:
        return _ACRONYMS.get(word) or _SPELLINGS[word]
    if is_first and _OPENAI_REASONING_MODEL.fullmatch(word):
        return word
    if family := _FAMILY_WITH_VERSION.fullmatch(word):
        variant = {None: "", "vl": " VL"}.get(family[3], family[3])
        return f"{_format_word(family[1], is_first=False)} {family[2]}{variant}"
    return _format_tag_word(word)


def _format_tag_word(word: str) -> str:
    if _SIZE.fullmatch(word):
        return word.upper().replace("X", "x")
    if _SHORT_CODE.fullmatch(word):
        return word.upper()
    return word[:1].upper() + word[1:]
