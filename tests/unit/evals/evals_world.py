"""Cases and a system that answers as it is told, for the tests of evals."""

from __future__ import annotations

from evals.datasets.questions import Case
from evals.measuring.retrieval import Depths
from evals.reporting.report import Asking
from evals.running.observe import Passage
from quarry import ids
from quarry.records import Document
from quarry.revisions import record_failure

ASKING = Asking(depths=Depths(sent=8, reranked=50))


def case(id="one", **given):
    facts = {"id": id, "question": "What is it?", "kind": "answerable", "status": "answered"}
    if not {"evidence", "relevant"} & given.keys() and given.get("status") != "refused":
        facts["evidence"] = [["it is this"]]
    return Case.model_validate(facts | given)


def refused(id="no", **given):
    return case(id, **{"kind": "unanswerable", "status": "refused", **given})


def passage(text, doc_id="d1", section="", document=""):
    return Passage(document=document or doc_id, doc_id=doc_id, section=section, text=text)


def result(text, doc_id="d1", section=""):
    return {"uri": f"{doc_id}.md", "doc_id": doc_id, "section": section, "text": text}


def search_json(*texts, degraded=()):
    found = [each if isinstance(each, dict) else result(each) for each in texts]
    return {"results": found, "degraded": list(degraded), "trace": []}


def answer_json(text="It is this [S1].", *, status="answered", quotes=(), degraded=(), tokens=None):
    """`quotes` are (doc_id, section, quote); `tokens` are those of prompt and completion."""
    trace = []
    if tokens:
        trace = [{"stage": "generate", "count": tokens[1], "detail": {"prompt_tokens": tokens[0]}}]
    return {
        "status": status,
        "answer": text,
        "citations": [{"uri": d, "doc_id": d, "section": s, "quote": q} for d, s, q in quotes],
        "degraded": list(degraded),
        "trace": trace,
    }


class System:
    """Answers each question from a table; a table entry that is an error is raised."""

    def __init__(self, search=None, answer=None):
        self.tables = {"search": search or {}, "answer": answer or {}}
        self.asked = []

    async def __call__(self, endpoint, body):
        self.asked.append((endpoint, body))
        default = (
            search_json() if endpoint == "search" else answer_json(status="refused", text="No")
        )
        reply = self.tables[endpoint].get(body["question"], default)
        reply = reply.pop(0) if isinstance(reply, list) else reply
        if isinstance(reply, Exception):
            raise reply
        return reply


def fail(world, name, state, **facts):
    """Records that the document could not be read; what was served of it stays."""
    doc_id = ids.doc_id("test", name)
    base = world.stores.catalog.get([doc_id]).get(doc_id)
    failed = Document(doc_id=doc_id, source="test", address=name, uri=name, acl=("public",),
                      state=state, error="It is broken.", **facts)  # fmt: skip
    record_failure(world.stores, base, failed)
