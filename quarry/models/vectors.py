"""Small arithmetic that the models share."""

from __future__ import annotations

import numpy as np

from quarry.errors import ModelError
from quarry.records import Vectors

_TINY = 1e-12


def unit_rows(rows: Vectors) -> Vectors:
    """Rows scaled to length 1; shape and dtype float32 are kept. Raises ModelError if not finite.

    A row of zeros stays a row of zeros.
    """
    if not np.isfinite(rows).all():
        raise ModelError(
            "The embedder gave values that are not finite; set embedder.dtype to float32."
        )
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Vectors = (rows / np.maximum(lengths, _TINY)).astype(np.float32, copy=False)
    return scaled
