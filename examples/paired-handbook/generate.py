"""Writes the paired handbook: python generate.py FOLDER [--seed N]

100 pages of about 500 words in FOLDER/documents and FOLDER/questions.jsonl. Thirty pages hold a
planted fact (`facts.yaml`), which is asked once in the page's words and once in words that its
sentence has none of; half of the latter are marked as held out. The same seed writes the same
bytes.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from pathlib import Path

import yaml

PAGES = 100
SECTIONS = 6
SENTENCES = (4, 6)

TOPICS = (
    "Waste water,Night shift,Shift handover,Key cabinets,Rooftop terrace,Goods lift,"
    "Paint shop,Tool crib,Test benches,Spare parts,Packing line,Label printers,Cranes,"
    "Ladders,Hot work,Noise,Dust extraction,Lighting,Heating,Water coolers,Plants,"
    "Post room,Reception,Signage,Notice boards,Suggestion scheme,Works council,"
    "Apprentices,Language courses,Onboarding,Exit interviews,Name plates,Business cards,"
    "Translation,Trade fairs,Customer tours,School visits,Alumni,Charity run,"
    "Summer party,Choir,Football team,Running group,Chess club,Quiet room,Prayer room,"
    "Lockers,Showers,Changing rooms,Uniforms,Gloves,Eye protection,Skin care,"
    "Cleaning agents,Floor markings,Traffic routes,Snow clearing,Lightning protection,"
    "Generators,Server room,Cable trays,Printers,Projectors,Telephones,Intercom,Clocks,"
    "Archives of drawings,Calibration,Measuring tools,Scales"
).split(",")

WHO = (
    "the shift lead,the site office,the facility team,the area owner,the deputy,the coordinator,"
    "the quality desk,the planning group,the store keeper,the safety adviser,the team assistant,"
    "the maintenance crew"
).split(",")
WHEN = (
    "at the start of each quarter,before the shift begins,within three working days,by noon,"
    "once the request is complete,after the weekly walk-through,during the annual review,"
    "no later than the next morning,as soon as the form arrives,in the last week of June"
).split(",")
WHERE = (
    "building A,building C,the north wing,the annex,hall 4,the upper floor,the basement,"
    "the training centre,the east yard,the old tower"
).split(",")
THING = (
    "checklist,logbook,register,inspection sheet,ticket,request form,floor plan,inventory list,"
    "handover note,maintenance card,sketch,briefing sheet"
).split(",")
REASON = (
    "because two teams once did it at the same time,since the insurer asks for it,"
    "so that nobody has to guess,because the old rule was misread more than once,"
    "so that a replacement can take over at short notice,as the last audit recommended,"
    "since costs are shared between cost centres,because records used to get lost"
).split(",")
FORMS = (
    "For {topic}, {who} keeps the {thing} and updates it {when}.",
    "{Who} answers for {topic} in {where} and names a stand-in before any absence.",
    "The {thing} hangs in {where}, {reason}.",
    "Changes to {topic} are announced {when} and explained in the next team meeting.",
    "Whoever finds a defect writes it in the {thing}; {who} looks at it {when}.",
    "In {where} the rules for {topic} are stricter, {reason}.",
    "A copy of the {thing} goes to {who}, and the original stays in {where}.",
    "{Who} may make an exception for {n} days, if the {thing} says why.",
    "Every {n} weeks {who} compares the {thing} with what is really there.",
    "Costs up to {money} euros are booked without asking, larger ones {when}.",
    "New colleagues are shown {topic} in {where} by {who} during their first {n} days.",
    "What is written here about {topic} replaces the leaflet of {year}, {reason}.",
    "Please do not move the {thing}: {who} needs it {when}.",
    "Results are kept for {n} months and then destroyed by {who}.",
    "If {who} cannot be reached, the control desk in {where} decides.",
    "Outside suppliers that work on {topic} sign the {thing} {when}.",
    "A question that comes up more than {n} times is added to this page by {who}.",
    "{Who} walks through {where} {when} and notes what has changed about {topic}.",
)
HEADINGS = (
    "Scope,Who does what,How it works,Dates,Exceptions,Records,Costs,Changes,Training,Open points"
).split(",")


def sentence(rng: random.Random, form: str, topic: str) -> str:
    who = rng.choice(WHO)
    return form.format(
        topic=topic,
        who=who,
        Who=who[0].upper() + who[1:],
        when=rng.choice(WHEN),
        where=rng.choice(WHERE),
        thing=rng.choice(THING),
        reason=rng.choice(REASON),
        n=rng.randint(2, 9),
        money=rng.randrange(50, 950, 10),
        year=rng.randint(2009, 2021),
    )


def page(rng: random.Random, title: str, fact: str) -> str:
    """One page in Markdown; a fact stands in the middle of a paragraph in a random section."""
    place = rng.randrange(SECTIONS)
    parts = [f"---\ntitle: {title}\n---\n\n# {title}\n"]
    for number, heading in enumerate(rng.sample(HEADINGS, SECTIONS)):
        forms = rng.sample(FORMS, rng.randint(*SENTENCES))
        sentences = [sentence(rng, form, title.lower()) for form in forms]
        if fact and number == place:
            sentences.insert(rng.randint(1, len(sentences) - 1), fact)
        parts.append(f"\n## {heading}\n\n{' '.join(sentences)}\n")
    return "".join(parts)


def cases(rng: random.Random, facts: list[dict[str, str]]) -> list[dict[str, object]]:
    held_out = set(rng.sample(range(len(facts)), len(facts) // 2))
    made: list[dict[str, object]] = []
    for number, fact in enumerate(facts):
        for words, kind in (("same", "answerable"), ("other", "paraphrase")):
            made.append(
                {
                    "id": f"{slug(fact['page'])}-{words}",
                    "question": fact[words],
                    "kind": kind,
                    "evidence": [[fact["fact"]]],
                    "must": [re.escape(fact["fact"]).replace("\\ ", " ")],
                    "status": "answered",
                    "slices": ["same-words" if words == "same" else "other-words"],
                    "held_out": words == "other" and number in held_out,
                }
            )
    return made


def slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def generate(folder: Path, seed: int) -> None:
    """Writes pages and questions into a folder that is made if it is not there."""
    rng = random.Random(seed)  # noqa: S311 - repeatable text, no secrets
    facts = yaml.safe_load((Path(__file__).parent / "facts.yaml").read_text(encoding="utf-8"))
    planted = {fact["page"]: fact["fact"] for fact in facts}
    titles = [*planted, *TOPICS][:PAGES]
    documents = folder / "documents"
    documents.mkdir(parents=True, exist_ok=True)
    (documents / "_meta.yaml").write_text("acl: [public]\n", encoding="utf-8")
    for title in titles:
        text = page(rng, title, planted.get(title, ""))
        (documents / f"{slug(title)}.md").write_text(text, encoding="utf-8")
    lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in cases(rng, facts)]
    (folder / "questions.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes the paired handbook.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    generate(arguments.folder, arguments.seed)
