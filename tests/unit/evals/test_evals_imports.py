"""Question sets made from BEIR folders, TREC files and spreadsheets."""

from __future__ import annotations

import pytest

from evals.datasets.imports import import_set
from evals.datasets.questions import load_questions, write_questions
from quarry.errors import SourceNotFound, UsageError


def test_a_beir_folder_becomes_one_case_a_judged_question(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n')
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "1", "text": "judged"}\n{"_id": "2", "text": "only zeros"}\n'
    )
    (tmp_path / "qrels" / "test.tsv").write_text("1\td1\t2\n1\td2\t-1\n2\td1\t0\n")
    made = import_set(tmp_path)
    assert [(case.id, case.question, case.relevant) for case in made.cases] == [
        ("1", "judged", {"d1": 2, "d2": 0})
    ]
    assert made.unjudged == 1


def trec(tmp_path, topics="7\tblunt bodies\n8\tnobody judged this\n", qrels="7 0 d1 1\n"):
    (tmp_path / "topics.tsv").write_text(topics)
    (tmp_path / "qrels.txt").write_text(qrels)
    return import_set(tmp_path / "topics.tsv", tmp_path / "qrels.txt")


def test_topics_without_judgements_are_left_out_and_counted(tmp_path):
    made = trec(tmp_path)
    assert [case.id for case in made.cases] == ["7"] and made.unjudged == 1


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"topics": "7 no tab\n"}, "topics.tsv, line 1"),
        ({"qrels": "7 0 d1 1\n7 0 d1\n"}, "qrels.txt, line 2"),
        ({"qrels": "9 0 d1 1\n"}, "topic '9'"),
        ({"qrels": "\n"}, "no judgements"),
    ],
)
def test_trec_files_that_do_not_fit_are_named_with_their_line(tmp_path, files, told):
    with pytest.raises(UsageError, match=told):
        trec(tmp_path, **files)


def sheet(tmp_path, text):
    path = tmp_path / "cases.csv"
    path.write_text(text, encoding="utf-8")
    return import_set(path)


def test_a_spreadsheet_gives_cases_with_pieces_on_lines_and_alternatives_between_bars(tmp_path):
    made = sheet(
        tmp_path,
        "question,evidence,must,groups,held_out\n"
        '"What, exactly?","one | first\ntwo","a\nb","staff, hr",true\n'
        "Do you ship to Mars?,,,,\n",
    )
    first, second = made.cases
    assert first.evidence == (("one", "first"), ("two",))
    assert (first.id, first.must, first.groups) == ("row-1", ("a", "b"), ("staff", "hr"))
    assert first.held_out and (first.status, first.kind) == ("answered", "answerable")
    assert (second.id, second.status, second.kind) == ("row-2", "refused", "unanswerable")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("query,must\nx,y\n", "line 1.*'query'"),
        ("id,must\nx,y\n", "line 1"),
        ('question,must\n"two\nlines",ok\nx,(\n', "line 4.*'must.0'"),
        ("question\n", "no questions"),
    ],
)
def test_a_spreadsheet_that_does_not_fit_is_named_with_its_line(tmp_path, text, told):
    with pytest.raises(UsageError, match=told):
        sheet(tmp_path, text)


def test_what_is_imported_can_be_written_and_loaded_again(tmp_path):
    made = trec(tmp_path)
    assert write_questions(made.cases, tmp_path / "set.jsonl") == 1
    assert load_questions(tmp_path / "set.jsonl") == list(made.cases)


def test_a_path_that_is_nothing_or_no_known_format_is_an_error(tmp_path):
    with pytest.raises(SourceNotFound):
        import_set(tmp_path / "none")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match="qrels"):
        import_set(tmp_path / "notes.txt")
