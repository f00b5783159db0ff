"""The example corpora say what their question sets ask for."""

from __future__ import annotations

import re
import runpy

import docx
import pymupdf
import pytest
import yaml

from evals.datasets.questions import Kind, evidence_ranks, load_questions
from quarry.text import analyze
from tests.conftest import REPO

EXAMPLES = REPO / "examples"
SHOP = EXAMPLES / "outdoor-shop"
HANDBOOK = EXAMPLES / "robotics-handbook"
SETS = [
    SHOP / "questions.jsonl",
    HANDBOOK / "questions.jsonl",
    HANDBOOK / "fault_codes.jsonl",
    EXAMPLES / "orders" / "questions.jsonl",
]
SCANNED = "benefits-2026.pdf"


def text_of(path):
    if path.suffix == ".pdf":
        with pymupdf.open(path) as document:
            return "\n".join(page.get_text() for page in document)
    if path.suffix == ".docx":
        document = docx.Document(str(path))
        cells = [c.text for t in document.tables for row in t.rows for c in row.cells]
        return "\n".join([*(p.text for p in document.paragraphs), *cells])
    return path.read_text(encoding="utf-8")


def documents(folder):
    found = sorted(p for p in (folder / "documents").rglob("*") if p.is_file())
    return {p.name: p for p in found if not p.name.endswith((".meta.yaml", "_meta.yaml"))}


def front_matter(path):
    match = re.match(r"---\n(.*?)\n---\n", path.read_text(encoding="utf-8"), re.DOTALL)
    assert match, path.name
    return yaml.safe_load(match.group(1))


@pytest.mark.parametrize("path", SETS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_piece_of_evidence_stands_in_a_document(path):
    names = documents(path.parent)
    texts = [text_of(document) for name, document in names.items() if name != SCANNED]
    for case in load_questions(path):
        if "scan" in case.slices:
            continue
        assert None not in evidence_ranks(case, texts), case.id


@pytest.mark.parametrize("path", SETS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_evidence_would_pass_its_own_patterns(path):
    """A forbidden pattern that matches the evidence would fail every right answer."""
    for case in load_questions(path):
        phrases = " ".join(phrase for piece in case.evidence for phrase in piece)
        for pattern in case.must_not:
            assert not re.search(pattern, phrases, re.IGNORECASE), case.id


def test_the_shop_has_five_pages_with_url_and_date_and_twelve_sections():
    pages = documents(SHOP)
    assert len(pages) == 5
    sections = 0
    for page in pages.values():
        facts = front_matter(page)
        assert facts["url"].startswith("https://") and facts["updated"]
        sections += len(re.findall("^## ", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert sections == 12


def test_the_shop_asks_ten_questions_and_two_have_no_answer():
    cases = load_questions(SHOP / "questions.jsonl")
    assert len(cases) == 10
    assert {c.id for c in cases if c.status == "refused"} == {"shop-iceland", "shop-price-match"}
    shop = " ".join(text_of(page) for page in documents(SHOP).values())
    assert "Iceland" not in shop and "match" not in shop


def test_the_changed_page_replaces_one_section_and_keeps_the_others():
    old = text_of(SHOP / "documents" / "returns.md").split("\n## ")
    new = text_of(SHOP / "updates" / "returns.md").split("\n## ")
    assert old[1].startswith("Unused items, 30 days") and "30 days" not in "".join(new)
    assert new[1].startswith("Unopened items, 45 days") and "45 days" not in "".join(old)
    assert old[2:] == new[2:]


def test_the_handbook_has_eighteen_documents_and_one_exact_copy():
    handbook = documents(HANDBOOK)
    assert len(handbook) == 18
    copy = handbook["time-off-copy.md"].read_bytes()
    assert copy == handbook["time-off.md"].read_bytes()


def test_the_fault_reference_has_sixty_codes_one_section_each():
    reference = text_of(documents(HANDBOOK)["rc7-fault-reference.md"])
    codes = re.findall(r"^## (E-\d{4}) ", reference, re.MULTILINE)
    assert codes == [f"E-{number}" for number in range(1001, 1061)]
    asked = load_questions(HANDBOOK / "fault_codes.jsonl")
    assert [case.id for case in asked] == [f"fault-{code.lower()}" for code in codes]


def test_the_handbook_asks_thirty_six_questions_of_every_kind_by_seven_people():
    cases = load_questions(HANDBOOK / "questions.jsonl")
    assert len(cases) == 36
    assert {case.kind for case in cases} == set(Kind)
    users = yaml.safe_load((HANDBOOK / "users.yaml").read_text(encoding="utf-8"))["users"]
    people = {case.person for case in cases}
    assert len(users) == 6 and people == set(users) | {"zoe"}
    assert users["pat"]["groups"] == []


def test_what_one_person_may_not_know_another_is_told():
    cases = load_questions(HANDBOOK / "questions.jsonl")
    answered = {case.question for case in cases if case.status == "answered"}
    paired = [c for c in cases if c.kind is Kind.FORBIDDEN and c.question in answered]
    assert len(paired) == 2


def test_paraphrases_of_the_dead_relative_share_no_word_with_the_policy():
    bereavement = text_of(documents(HANDBOOK)["bereavement-leave.md"]).lower()
    assert "father" not in bereavement and "passed away" not in bereavement


def test_the_scan_has_no_text_and_the_canadian_supplement_has_two_columns():
    assert text_of(documents(HANDBOOK)[SCANNED]).strip() == ""
    with pymupdf.open(documents(HANDBOOK)["parental-leave-canada.pdf"]) as document:
        lefts = {round(block[0], -1) for block in document[0].get_text("blocks")}
    assert {50, 310} <= lefts


def generated(name, folder, seed):
    runpy.run_path(str(EXAMPLES / name / "generate.py"))["generate"](folder, seed)
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_paired_handbook_is_the_same_for_a_seed_and_another_for_another(tmp_path):
    one = generated("paired-handbook", tmp_path / "one", 7)
    assert one == generated("paired-handbook", tmp_path / "two", 7)
    assert one != generated("paired-handbook", tmp_path / "three", 8)


def test_the_paired_handbook_asks_thirty_facts_twice_in_a_hundred_pages(tmp_path):
    generated("paired-handbook", tmp_path, 7)
    pages = documents(tmp_path)
    assert len(pages) == 100
    assert 45_000 < sum(len(text_of(page).split()) for page in pages.values()) < 55_000
    cases = load_questions(tmp_path / "questions.jsonl")
    paraphrases = [case for case in cases if case.kind is Kind.PARAPHRASE]
    assert len(cases) == 60 and len(paraphrases) == 30
    assert sum(case.held_out for case in paraphrases) == 15
    assert all(case in paraphrases for case in cases if case.held_out)
    texts = [text_of(page) for page in pages.values()]
    for case in cases:
        phrase = case.evidence[0][0]
        assert sum(phrase in text for text in texts) == 1
        shared = set(analyze(case.question)) & set(analyze(phrase))
        assert len(shared) == 0 if case in paraphrases else len(shared) >= 2, case.id


def test_the_committed_orders_are_those_of_the_default_seed(tmp_path):
    for path, content in generated("orders", tmp_path, 11).items():
        assert (EXAMPLES / "orders" / path).read_bytes() == content


def test_orders_come_in_pairs_that_differ_by_two_swapped_digits():
    orders = (EXAMPLES / "orders" / "documents" / "orders.jsonl").read_text(encoding="utf-8")
    numbers = re.findall(r'"_id": "(ORD-\d+)"', orders)
    assert len(numbers) == len(set(numbers)) == 120
    assert {"ORD-99107", "ORD-99170"} <= set(numbers)
    for one, other in zip(numbers[::2], numbers[1::2], strict=True):
        assert one != other and sorted(one) == sorted(other)


def test_the_examples_are_evaluated_in_their_order_and_each_once(monkeypatch, tmp_path):
    module = runpy.run_path(str(EXAMPLES / "evaluate.py"))
    main, outcome = module["main"], module["Outcome"]
    begun, codes = [], {"orders": 137}

    def run(name, needed):
        begun.append(name)
        return outcome(name=name, code=codes.get(name, 0), seconds=0.0)

    monkeypatch.setitem(main.__globals__, "in_a_process", run)
    monkeypatch.setitem(main.__globals__, "REPORTS", tmp_path)
    assert main([]) == 137
    assert sorted(begun) == sorted(module["STEPS"].keys() - module["ON_DEMAND"])
    begun.clear()
    assert main(["noise", "crowd", "noise"]) == 0
    assert sorted(begun) == ["crowd", "noise"]
    with pytest.raises(SystemExit):
        main(["nothing"])
