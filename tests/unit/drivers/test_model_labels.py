"""Models without a label of their own are shown under one that people read."""

import pytest

from fermata.domain.model_info import ModelCapabilities, ModelInfo
from fermata.drivers.model_labels import format_model_label, label_unnamed_models


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("llama4", "Llama 4"),
        ("llama4:latest", "Llama 4"),
        ("llama3.3", "Llama 3.3"),
        ("qwen3", "Qwen 3"),
        ("qwen2.5-coder:7b", "Qwen 2.5 Coder (7B)"),
        ("llama3.3:70b-instruct-q4_K_M", "Llama 3.3 (70B Instruct Q4_K_M)"),
        ("deepseek-r1:8b", "DeepSeek R1 (8B)"),
        ("meta-llama/llama-3.3-70b-instruct", "Llama 3.3 70B Instruct"),
        ("mixtral-8x7b", "Mixtral 8x7B"),
        ("gpt-5.4-mini", "GPT-5.4 Mini"),
        ("gpt-4o", "GPT-4o"),
        ("gpt-4o-2024-08-06", "GPT-4o 2024-08-06"),
        ("chatgpt-4o-latest", "ChatGPT 4o Latest"),
        ("qwen2.5vl:7b", "Qwen 2.5 VL (7B)"),
        ("gemma3n:e4b", "Gemma 3n (E4B)"),
        ("qwen3:30b-a3b", "Qwen 3 (30B A3B)"),
        ("kimi-k2:1t-cloud", "Kimi K2 (1T Cloud)"),
        ("llama4:16x17b", "Llama 4 (16x17B)"),
        ("command-r7b", "Command R7B"),
        ("/models/llama-3.2-3b-instruct.Q4_K_M.gguf", "Llama 3.2 3B Instruct Q4_K_M"),
        ("gpt-oss:20b", "GPT-OSS (20B)"),
        ("o3-mini", "o3 Mini"),
        ("claude-muse-1", "Claude Muse 1"),
        ("claude-opus-4-8", "Claude Opus 4.8"),
        ("claude-opus-4-8-20260514", "Claude Opus 4.8 2026-05-14"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen2.5 VL 7B Instruct"),
        ("/models/phi4-q4_k_m.gguf", "Phi 4 Q4_K_M"),
        ("C:\\models\\gemma3.gguf", "Gemma 3"),
        ("мир-1", "Мир 1"),
        ("google/gemini-2.5-pro-preview-05-06", "Gemini 2.5 Pro Preview 05-06"),
        ("gemini-2.5-flash-lite-preview-09-2025", "Gemini 2.5 Flash Lite Preview 09-2025"),
        ("qwen/qwen3-235b-a22b-07-25:free", "Qwen 3 235B A22B 07-25 (Free)"),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "Claude 3.5 Sonnet 2024-10-22 V2 (0)"),
        ("anthropic.claude-v2:1", "Claude V2 (1)"),
        ("claude-sonnet-4@20250514", "Claude Sonnet 4 2025-05-14"),
        ("ft:gpt-4o-mini-2024-07-18:acme::9abc", "GPT-4o Mini 2024-07-18 (acme 9abc)"),
        ("accounts/fireworks/models/llama-v3p1-70b-instruct", "Llama V3.1 70B Instruct"),
        ("my-llama3.latest", "My Llama3.latest"),
        ("llama3:70b@sha256:abcdef", "Llama 3 (70B)"),
        ("hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M", "Llama 3.2 3B Instruct GGUF (Q4_K_M)"),
        (":latest", ":latest"),
        ("-", "-"),
    ],
)
def test_a_name_becomes_a_label(name: str, label: str) -> None:
    assert format_model_label(name) == label


def test_a_servers_own_label_stays_and_models_that_would_look_alike_keep_their_names() -> None:
    given = {"llama4": "llama4", "llama4:latest": "llama4:latest", "qwen3": "The good one", "phi4": "phi4"}
    capabilities = ModelCapabilities(tool_calling=True, vision_input=False)
    models = [ModelInfo(id=name, label=label, capabilities=capabilities) for name, label in given.items()]
    labels = [model.label for model in label_unnamed_models(models)]
    assert labels == ["llama4", "llama4:latest", "The good one", "Phi 4"]
