"""Loads sentence-transformers models quietly and turns what can go wrong into one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from quarry.errors import ConfigError, ModelError
from quarry.models.location import Location


def load_sentence_transformer(location: Location, device: str) -> Any:
    """The model in float32, in evaluation mode. Raises ModelError or ConfigError."""
    from sentence_transformers import SentenceTransformer

    with loading(location):
        model = SentenceTransformer(
            location.source,
            device=pick_device(device),
            local_files_only=location.folder is not None,
            model_kwargs={"dtype": torch.float32},
        )
    return model.eval()


@contextmanager
def loading(location: Location) -> Iterator[None]:
    """Without progress bars; any fault of the libraries becomes ModelError."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        where = "its folder" if location.folder else "the hub or the local cache"
        raise ModelError(
            f"The model {location.model_id} cannot be loaded from {where}: "
            f"{str(error).splitlines()[0] if str(error) else type(error).__name__}"
        ) from error
    finally:
        if shown:
            logging.enable_progress_bar()


def pick_device(device: str) -> str:
    """`auto` is a GPU if there is one. Raises ConfigError for one that is not there."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device == "auto":
        return next(name for name, there in available.items() if there)
    if not available.get(device.partition(":")[0], False):
        raise ConfigError(f"The device {device} is not available here; set device to auto.")
    return device
