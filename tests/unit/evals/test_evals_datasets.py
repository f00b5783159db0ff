"""Loading question sets and retrieval collections."""

from __future__ import annotations

import json

import jsonschema
import pytest

from evals.datasets.beir import load_beir
from evals.datasets.questions import (
    Case,
    evidence_ranks,
    json_schema,
    load_all,
    load_questions,
)
from quarry.errors import SourceNotFound, UsageError
from tests.conftest import REPO

GOOD = {
    "id": "one",
    "question": "What is it?",
    "kind": "answerable",
    "evidence": [["it is this"]],
    "status": "answered",
}


def written(tmp_path, *cases):
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    return path


def test_a_set_keeps_its_order_and_fills_in_what_is_left_out(tmp_path):
    first, second = load_questions(written(tmp_path, GOOD, {**GOOD, "id": "two"}))
    assert (first.id, second.id) == ("one", "two")
    assert first.person == "" and first.groups == () and first.held_out is False


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": "trick"}, "'kind'"),
        ({"must": ["("]}, "'must.0'"),
        ({"evidence": [[]]}, "at least one phrase"),
        ({"evidence": []}, "needs evidence"),
        ({"status": "refused"}, "no evidence"),
        ({"relevant": {"d1": 1}}, "not both"),
        ({"evidence": [], "relevant": {"d1": -1}}, "'relevant.d1'"),
        ({"person": "a", "groups": ["b"]}, "not both"),
        ({"expected": "x"}, "'expected'"),
        ({"id": ""}, "'id'"),
    ],
)
def test_a_line_that_does_not_fit_is_named_with_its_reason(tmp_path, change, told):
    path = written(tmp_path, {**GOOD, "id": "zero"}, {**GOOD, **change})
    with pytest.raises(UsageError, match="line 2") as caught:
        load_questions(path)
    assert told in str(caught.value)


def test_a_case_may_name_judged_documents_or_be_judged_by_its_answer_alone(tmp_path):
    collection_case = {**GOOD, "evidence": [], "relevant": {"d1": 2, "d2": 0}}
    answer_case = {**GOOD, "id": "two", "evidence": [], "must": ["yes"]}
    first, second = load_questions(written(tmp_path, collection_case, answer_case))
    assert first.judged and not second.judged


def test_several_sets_are_one_if_no_id_is_in_two_of_them(tmp_path):
    one = written(tmp_path, GOOD)
    (tmp_path / "more").mkdir()
    two = written(tmp_path / "more", {**GOOD, "id": "two"})
    assert [case.id for case in load_all([one, two])] == ["one", "two"]
    with pytest.raises(UsageError, match="another set"):
        load_all([one, one])


def test_two_cases_cannot_share_an_id(tmp_path):
    with pytest.raises(UsageError, match="'one' was used before"):
        load_questions(written(tmp_path, GOOD, GOOD))


def test_a_set_that_is_not_there_or_empty_is_an_error(tmp_path):
    with pytest.raises(SourceNotFound):
        load_questions(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="no questions"):
        load_questions(written(tmp_path))


def test_the_published_schema_is_that_of_the_loader():
    published = REPO / "evals" / "datasets" / "schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == json_schema()


def test_the_published_schema_refuses_what_the_loader_refuses():
    check = jsonschema.Draft202012Validator(json_schema())
    assert check.is_valid(GOOD)
    assert not check.is_valid({**GOOD, "kind": "trick"})
    assert not check.is_valid({**GOOD, "expected": "x"})


def test_evidence_is_found_across_lines_case_and_odd_spaces():
    case = Case.model_validate({**GOOD, "evidence": [["top-up to 100 %"], ["absent", "the *end*"]]})
    texts = ["nothing", "a Top\u2011up  to\n100\u00a0% of pay", "this is the *END*"]
    assert evidence_ranks(case, texts) == [2, 3]
    assert evidence_ranks(case, texts[:2]) == [2, None]


def collection(tmp_path, *, qrels="query-id\tcorpus-id\tscore\n1\td1\t1\n1\td2\t0\n"):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "x"}\n')
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "2", "text": "unjudged"}\n\n{"_id": "1", "text": "judged"}\n'
    )
    (tmp_path / "qrels" / "test.tsv").write_text(qrels)
    return tmp_path


def test_only_judged_questions_are_asked(tmp_path):
    dataset = load_beir(collection(tmp_path))
    assert dataset.queries == {"1": "judged"}
    assert dataset.qrels == {"1": {"d1": 1, "d2": 0}}
    assert dataset.name == tmp_path.name


def test_judgements_without_a_heading_lose_no_line(tmp_path):
    assert load_beir(collection(tmp_path, qrels="1\td1\t2\n")).qrels == {"1": {"d1": 2}}


@pytest.mark.parametrize(
    ("qrels", "told"),
    [
        ("1\td1\n", "line 1"),
        ("query-id\tcorpus-id\tscore\n1\td1\tyes\n", "line 2"),
        ("query-id\tcorpus-id\tscore\n", "no judgements"),
        ("7\td1\t1\n", "query '7'"),
    ],
)
def test_judgements_that_do_not_fit_are_an_error(tmp_path, qrels, told):
    with pytest.raises(UsageError, match=told):
        load_beir(collection(tmp_path, qrels=qrels))


@pytest.mark.parametrize("gone", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_folder_that_lacks_a_file_is_named(tmp_path, gone):
    (collection(tmp_path) / gone).unlink()
    with pytest.raises(SourceNotFound, match=gone.rpartition("/")[2]):
        load_beir(tmp_path)


def test_a_query_line_that_is_no_query_is_named(tmp_path):
    (collection(tmp_path) / "queries.jsonl").write_text('{"_id": "1"}\n')
    with pytest.raises(UsageError, match="line 1"):
        load_beir(tmp_path)
