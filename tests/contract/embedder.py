"""What every Embedder does; an implementation's test inherits this and gives `embedder`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from quarry.ports import Embedder
from quarry.records import Vectors

TEXTS = [
    "The tent must be clean and dry when it arrives.",
    "",
    "E-1042",
    "Standard delivery takes three to five business days. " * 8,
    "환불은 30일 이내에 가능합니다",
    "The tent must be clean and dry when it arrives.",
    "\n \n",
]


def assert_same(found: Vectors, expected: Vectors) -> None:
    """Equal but for half precision, which computes a text a little differently in each batch."""
    assert found.shape == expected.shape
    cosines = (np.atleast_2d(found) * np.atleast_2d(expected)).sum(axis=1)
    assert cosines.min() > 0.999


class EmbedderContract:
    @pytest.fixture
    def embedder(self) -> Embedder:
        raise NotImplementedError

    def test_vectors_are_unit_float32_rows_of_the_fingerprints_dimension(
        self, embedder: Embedder
    ) -> None:
        vectors = embedder.embed_documents(TEXTS)
        assert vectors.shape == (len(TEXTS), embedder.fingerprint.dimension)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)

    def test_a_question_is_one_unit_vector(self, embedder: Embedder) -> None:
        vector = embedder.embed_question("May I return a used tent?")
        assert vector.shape == (embedder.fingerprint.dimension,)
        assert vector.dtype == np.float32
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)

    def test_questions_embed_together_as_they_do_alone(self, embedder: Embedder) -> None:
        questions = ["Must the tent be dry?", "May I return a used tent?"]
        for row, question in zip(embedder.embed_questions(questions), questions, strict=True):
            assert_same(row, embedder.embed_question(question))

    def test_vectors_come_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        together = embedder.embed_documents(TEXTS)
        for row, text in zip(together, TEXTS, strict=True):
            assert_same(row, embedder.embed_documents([text])[0])

    def test_no_text_gives_no_vector(self, embedder: Embedder) -> None:
        assert embedder.embed_documents([]).shape == (0, embedder.fingerprint.dimension)
        assert embedder.count_tokens([]) == []

    def test_a_text_is_nearest_to_what_it_resembles(self, embedder: Embedder) -> None:
        documents = embedder.embed_documents(
            ["The tent must be clean and dry.", "Customs duties are paid by the customer."]
        )
        question = embedder.embed_question("Must the tent be dry?")
        near, far = documents @ question
        assert near > far

    def test_a_text_past_the_limit_is_cut_and_still_embedded(self, embedder: Embedder) -> None:
        limit = embedder.fingerprint.max_tokens
        long, longer = ("tent " * limit, "tent " * limit + "customs " * 50)
        vectors = embedder.embed_documents([long, longer])
        assert_same(vectors[0], vectors[1])

    def test_tokens_are_counted_uncut_and_in_order(self, embedder: Embedder) -> None:
        limit = embedder.fingerprint.max_tokens
        counts = embedder.count_tokens(["", "tent", "tent " * (2 * limit)])
        assert counts[0] < counts[1]
        assert counts[2] > 2 * limit
        assert counts == [embedder.count_tokens([t])[0] for t in ("", "tent", "tent " * 2 * limit)]

    def test_several_threads_may_embed_at_once(self, embedder: Embedder) -> None:
        expected = embedder.embed_documents(TEXTS)
        with ThreadPoolExecutor(4) as pool:
            vectors = list(pool.map(lambda _: embedder.embed_documents(TEXTS), range(8)))
            counts = list(pool.map(lambda _: embedder.count_tokens(TEXTS), range(8)))
        for found in vectors:
            assert_same(found, expected)
        assert all(found == counts[0] for found in counts)

    def test_the_fingerprint_is_complete(self, embedder: Embedder) -> None:
        fingerprint = embedder.fingerprint
        assert fingerprint.model_id
        assert fingerprint.weights_hash
        assert fingerprint.dimension > 0
        assert fingerprint.max_tokens > 0
        assert fingerprint.normalized


class TokenEmbedderContract:
    """For embedders that also give the vectors of single tokens."""

    def test_token_vectors_are_unit_rows_one_a_token(self, embedder: Embedder) -> None:
        short, long = embedder.token_embeddings(["tent", "a dry tent with a broken zipper"])
        for rows in (short, long):
            assert rows.dtype == np.float32
            assert rows.shape[1] == embedder.fingerprint.dimension
            np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
        assert 0 < len(short) < len(long)

    def test_token_vectors_come_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        together = embedder.token_embeddings(TEXTS)
        for rows, text in zip(together, TEXTS, strict=True):
            alone = embedder.token_embeddings([text])[0]
            assert rows.shape == alone.shape
            assert ((rows * alone).sum(axis=1) > 0.99).all()
