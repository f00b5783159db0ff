"""Writes the records and questions of this example: python generate.py [FOLDER] [--seed N]

Orders and errors come in pairs whose numbers differ by two swapped digits, and some records name
the other one of their pair, so that only an exact reading of an identifier finds the right record.
The same seed writes the same bytes; the committed files are those of the default seed.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

HERE = Path(__file__).parent
ITEMS = (
    "a two-person tent,a gas stove,a pair of trekking poles,a down sleeping bag,"
    "a 40 litre backpack,a rain jacket,a head torch,a climbing harness,a cooking set,a foam mat,"
    "a water filter,ski gloves"
).split(",")
CITIES = "Bergen,Oslo,Hamburg,Lyon,Turin,Ghent,Porto,Gdansk,Graz,Malmo,Cork,Basel".split(",")
ENDS = (
    "was delivered on {day} and signed for at the door.",
    "arrived on {day} with a crushed corner; a replacement was sent the next day.",
    "has had no scan since {day} and is being searched for by the carrier.",
    "was sent back unopened and refunded in full on {day}.",
    "was held at customs until {day} and then released.",
    "was picked up from the parcel shop on {day}.",
)
ERRORS = (
    "the payment service did not answer in time; ask the customer to pay again after 15 minutes",
    "the label printer has no paper or its cover is open",
    "the address was not found by the carrier; call the customer before it is shipped",
    "the weight on the scale differs from the order by more than a tenth",
    "the customs form lacks the tariff number of at least one item",
    "the stock count fell below zero; count the shelf and correct it",
    "the gift card was used by somebody else in the same minute",
    "the pickup code was entered wrongly five times and is locked",
)
FIRST = ((99107, 99170), (90412, 90421), (93358, 93385), (91760, 91706), (95523, 95532))


def pairs(rng: random.Random, count: int) -> list[tuple[int, int]]:
    """Distinct five-digit numbers and their twins with two neighbouring digits swapped."""
    made = list(FIRST)
    used = {number for pair in made for number in pair}
    while len(made) < count:
        digits = list(str(rng.randint(90000, 99999)))
        at = rng.randint(2, 3)
        twin = digits.copy()
        twin[at], twin[at + 1] = twin[at + 1], twin[at]
        pair = int("".join(digits)), int("".join(twin))
        if pair[0] != pair[1] and used.isdisjoint(pair):
            used.update(pair)
            made.append(pair)
    return made


def order(rng: random.Random, number: int, twin: int, refers: bool) -> dict[str, str]:
    item, city = rng.choice(ITEMS), rng.choice(CITIES)
    day = f"{rng.randint(1, 28)} {rng.choice(('May', 'June', 'July', 'August'))} 2026"
    end = rng.choice(ENDS).format(day=day)
    text = f"Order ORD-{number}: {item} for a customer in {city}. It {end}"
    if refers:
        text += f" It replaces ORD-{twin}, which was lost on the way."
    return {"_id": f"ORD-{number}", "title": f"Order ORD-{number}", "text": text}


def error(number: int, meaning: str) -> dict[str, str]:
    code = f"E-{number}"
    text = f"The warehouse system shows {code} when {meaning}."
    return {"_id": code, "title": f"Error {code}", "text": text}


def records(rng: random.Random) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    orders: list[dict[str, str]] = []
    for number, (one, other) in enumerate(pairs(rng, 60)):
        orders.append(order(rng, one, other, refers=False))
        orders.append(order(rng, other, one, refers=number % 3 == 0))
    twins = ((1043, 1034), (2117, 2171), (3056, 3065), (4208, 4280))
    numbers = [number for pair in twins for number in pair]
    errors = [error(number, meaning) for number, meaning in zip(numbers, ERRORS, strict=True)]
    return orders, errors


def case(name: str, question: str, evidence: str, must: str, kind: str) -> dict[str, object]:
    return {
        "id": name,
        "question": question,
        "kind": kind,
        "evidence": [[evidence]],
        "must": [must],
        "status": "answered",
        "slices": ["identifier" if kind == "identifier" else "policy"],
    }


def refused(name: str, question: str) -> dict[str, object]:
    return {
        "id": name,
        "question": question,
        "kind": "unanswerable",
        "must_not": ["ORD-9\\d+: a", "signed for"],
        "status": "refused",
        "slices": ["identifier", "unanswerable"],
    }


def cases(orders: list[dict[str, str]], errors: list[dict[str, str]]) -> list[dict[str, object]]:
    forms = ("Where is {}?", "{}", "what happened to order {}", "status of {} please")
    made = [
        case(
            record["_id"].lower(),
            forms[number % len(forms)].format(record["_id"]),
            record["text"].split(". ")[0],
            record["_id"],
            "identifier",
        )
        for number, record in enumerate((*orders[:40], *errors))
    ]
    made += [
        case(
            "damage-deadline",
            "Within how many days must a damaged parcel be reported?",
            "must be reported within 7 days of delivery",
            "7 days",
            "answerable",
        ),
        case(
            "missing-outside-eu",
            "When does a parcel outside the EU count as missing?",
            "20 business days after it outside the EU",
            "20 business days",
            "answerable",
        ),
        case(
            "broken-on-arrival",
            "The stove came out of the box in pieces. By when do I have to complain?",
            "must be reported within 7 days of delivery",
            "7 days",
            "paraphrase",
        ),
        refused("ord-99071", "Where is ORD-99071?"),
        refused("e-1403", "What does E-1403 mean?"),
    ]
    return made


def generate(folder: Path, seed: int) -> None:
    """Writes orders, errors and questions; the policies beside them are written by hand."""
    orders, errors = records(random.Random(seed))  # noqa: S311 - repeatable text, no secrets
    for path, lines in (
        (folder / "documents" / "orders.jsonl", orders),
        (folder / "documents" / "errors.jsonl", errors),
        (folder / "questions.jsonl", cases(orders, errors)),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes the orders example.")
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    parser.add_argument("--seed", type=int, default=11)
    arguments = parser.parse_args()
    generate(arguments.folder, arguments.seed)
