"""Question sets made from BEIR folders, TREC files and spreadsheets."""

from __future__ import annotations

import pytest

from evals.datasets.imports import import_set
from evals.datasets.questions import Case, load_questions, write_questions
from quarry.errors import SourceNotFound, UsageError


def test_a_beir_folder_becomes_one_case_a_judged_question(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n')
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "1", "text": "judged"}\n{"_id": "2", "text": "only zeros"}\n'
        '{"_id": "3", "text": "not in the qrels"}\n'
    )
    (tmp_path / "qrels" / "test.tsv").write_text("1\td1\t2\n1\td2\t-1\n2\td1\t0\n")
    made = import_set(tmp_path)
    assert [(case.id, case.question, case.relevant) for case in made.cases] == [
        ("1", "judged", {"d1": 2, "d2": 0})
    ]
    assert made.unjudged == 2


def trec(tmp_path, topics="7\tblunt bodies\n8\tnobody judged this\n", qrels="7 0 d1 1\n"):
    (tmp_path / "topics.tsv").write_text(topics)
    (tmp_path / "qrels.txt").write_text(qrels)
    return import_set(tmp_path / "topics.tsv", tmp_path / "qrels.txt")


def test_topics_without_judgements_are_left_out_and_counted(tmp_path):
    made = trec(tmp_path)
    assert [case.id for case in made.cases] == ["7"] and made.unjudged == 1


CLASSIC = """\
<top>
<num> Number: 7
<title> blunt
bodies
<desc> Description:
What is said of <blunt> bodies?
</top>

<top>
<num>8</num>
<title>Topic: nobody judged this</title>
</top>
"""


def test_topics_in_the_classic_form_are_asked_by_their_titles(tmp_path):
    made = trec(tmp_path, topics=CLASSIC)
    assert [(case.id, case.question) for case in made.cases] == [("7", "blunt bodies")]
    assert made.unjudged == 1


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"topics": "7 no tab\n"}, "topics.tsv, line 1"),
        ({"qrels": "7 0 d1 1\n7 0 d1\n"}, "qrels.txt, line 2"),
        ({"qrels": "9 0 d1 1\n"}, "topic '9'"),
        ({"qrels": "\n"}, "no judgements"),
        ({"topics": "\n<top>\n<num> 7\n</top>\n"}, "line 2: .*<title>"),
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
    (first,) = made.cases
    assert first.evidence == (("one", "first"), ("two",))
    assert (first.id, first.must, first.groups) == ("row-1", ("a", "b"), ("staff", "hr"))
    assert first.held_out and (first.status, first.kind) == ("answered", "answerable")
    assert made.unjudged == 1


def test_a_row_is_refused_only_if_it_says_so(tmp_path):
    made = sheet(
        tmp_path,
        "question,status,kind,must_not\nA?,refused,,\nB?,,unanswerable,\nC?,,forbidden,\n"
        "D?,,,no\nE?,,injection,\n",
    )
    assert [(case.question, case.status, case.kind) for case in made.cases] == [
        ("A?", "refused", "unanswerable"),
        ("B?", "refused", "unanswerable"),
        ("C?", "refused", "forbidden"),
    ]
    assert made.unjudged == 2


def test_a_row_may_judge_documents_and_go_on_from_a_conversation(tmp_path):
    made = sheet(
        tmp_path,
        'question,relevant,conversation\n"And then?","a b.md\nc.md | 2\nd.md | 0",'
        '"user: How long?\nAssistant: 20 weeks,\nas it says."\n',
    )
    (only,) = made.cases
    assert only.relevant == {"a b.md": 1, "c.md": 2, "d.md": 0} and only.status == "answered"
    assert [(turn.role, turn.content) for turn in only.conversation] == [
        ("user", "How long?"),
        ("assistant", "20 weeks,\nas it says."),
    ]


def test_every_key_of_a_case_may_be_a_column(tmp_path):
    columns = list(Case.model_fields)
    cells = [
        {"question": "Q?", "must": "x", "kind": "answerable"}.get(name, "") for name in columns
    ]
    assert len(sheet(tmp_path, f"{','.join(columns)}\n{','.join(cells)}\n").cases) == 1


@pytest.mark.parametrize("name", ["cases.csv", "topics.tsv"])
def test_a_file_that_is_not_utf_8_is_told_how_to_save_it(tmp_path, name):
    (tmp_path / "qrels.txt").write_text("7 0 d1 1\n")
    (tmp_path / name).write_bytes("question,must\n7\tWas heißt das?,ja\n".encode("latin-1"))
    with pytest.raises(UsageError, match=f"{name} is not in UTF-8"):
        import_set(tmp_path / name, tmp_path / "qrels.txt" if name == "topics.tsv" else None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("query,must\nx,y\n", "line 1.*'query'"),
        ("id,must\nx,y\n", "line 1"),
        ('question,must\n"two\nlines",ok\nx,(\n', "line 4.*'must.0'"),
        ("question\n", "no questions"),
        ("question\nHow long?\n", "judge some first"),
        ("question,relevant\nx,a | b\n", "line 2.*whole number"),
        ("question,must,conversation\nx,y,hello\n", "line 2.*'user:'"),
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
