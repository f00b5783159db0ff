"""Learned fusion: features, the model's file, and what it can and cannot be."""

from __future__ import annotations

import json

import numpy as np
import pytest

from quarry.errors import ConfigError
from quarry.fusion import FEATURES, Fusion, Item, features, load_fusion, save_fusion
from quarry.records import Candidate, Document, Signals
from tests.unit.serve.serve_world import chunk_of

FLAT = dict.fromkeys(FEATURES, 0.0)


def item(doc="d1", title="", section="", **signals):
    return Item(doc_id=doc, title=title, section=section, signals=Signals(**signals))


def column(name, question, items):
    return list(features(question, items)[:, FEATURES.index(name)])


def test_features_are_standardised_within_the_question():
    items = [item(dense_score=score, rerank_score=score * 100) for score in (0.1, 0.5, 0.6)]
    found = features("q", items)
    assert found.shape == (3, len(FEATURES))
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found[:, FEATURES.index("dense")].std(), 1)
    np.testing.assert_allclose(column("dense", "q", items), column("late", "q", items))


def test_what_is_equal_for_all_says_nothing():
    assert column("lexical", "q", [item(lexical_score=3.0), item(lexical_score=3.0)]) == [0.0, 0.0]
    assert features("q", []).shape == (0, len(FEATURES))


def test_a_score_that_is_not_known_is_the_lowest_and_no_bm25_is_none():
    dense = column("dense", "q", [item(dense_score=0.9), item(dense_score=0.2), item()])
    assert dense[1] == dense[2] < dense[0]
    lexical = column("lexical", "q", [item(lexical_score=2.0), item()])
    assert lexical == pytest.approx([1.0, -1.0])


def test_a_passage_gains_from_the_other_passages_of_its_document():
    items = [
        item("a", dense_score=0.1),
        item("a", dense_score=0.9),
        item("b", dense_score=0.1),
    ]
    best = column("document_best", "q", items)
    assert best[0] == best[1] > best[2]
    mean = column("document_mean", "q", items)
    assert mean[0] == mean[1] > mean[2]


def test_a_rare_word_of_the_question_in_a_title_counts_more_than_a_common_one():
    titles = ["Leave policy", "Leave in Canada", "Leave in Canada and elsewhere", "Toronto"]
    items = [item(f"d{n}", title=title) for n, title in enumerate(titles)]
    found = column("title", "leave in toronto", items)
    assert found[3] > found[0] == found[1]


def test_the_order_is_that_of_the_weights():
    items = [item(dense_score=0.9, lexical_score=1.0), item(dense_score=0.1, lexical_score=9.0)]
    by_dense = Fusion(weights=FLAT | {"dense": 1.0}).scores("q", items)
    by_words = Fusion(weights=FLAT | {"lexical": 1.0}).scores("q", items)
    assert by_dense[0] > by_dense[1] and by_words[0] < by_words[1]
    assert Fusion(weights=FLAT).scores("q", []) == []


def test_an_item_is_what_a_candidate_shows():
    document = Document(doc_id="d", source="s", address="a", uri="a", title="Title")
    chunk = chunk_of("d", 0, "text", section=("One", "Two"))
    candidate = Candidate(chunk=chunk, document=document, signals=Signals(dense_score=0.5))
    assert Item.of(candidate) == item("d", title="Title", section="One Two", dense_score=0.5)


def test_a_model_is_written_and_read_again(tmp_path):
    path = tmp_path / "fusion.json"
    fusion = Fusion(weights=FLAT | {"late": 0.5}, learned_from="cranfield")
    save_fusion(fusion, path, {"nDCG@10": 0.57})
    assert load_fusion(path) == fusion
    assert json.loads(path.read_text())["measured"] == {"nDCG@10": 0.57}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (None, "cannot be read"),
        ("{", "no fusion file"),
        ({"weights": {"dense": 1.0}}, "no fusion file"),
        ({"format": 2}, "another version"),
        ({"weights": FLAT | {"dense": float("nan")}}, "another version"),
        ({"weights": FLAT | {"more": 1.0}}, "another version"),
    ],
)
def test_a_file_that_is_no_model_is_an_error(tmp_path, change, told):
    path = tmp_path / "fusion.json"
    save_fusion(Fusion(weights=FLAT), path, {})
    if change is None:
        path.unlink()
    elif isinstance(change, str):
        path.write_text(change)
    else:
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ConfigError, match=told):
        load_fusion(path)
