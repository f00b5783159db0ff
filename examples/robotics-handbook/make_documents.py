"""Makes the three binary documents of the handbook: python make_documents.py

- Canada supplement: a two-column PDF with running header and footer and a ruled table;
- benefits handout: a scanned page, so a PDF that holds one slightly crooked, noisy picture;
- Germany supplement: a Word file with headings and a table.

The files are committed; run this again after changing a text below.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import docx
import numpy as np
import pymupdf

DOCUMENTS = Path(__file__).parent / "documents"
A4 = pymupdf.paper_rect("a4")
MADE = datetime(2026, 7, 1, 9, 0)

CANADA_LEFT = """
<h2>1. Purpose</h2>
<p>This supplement says how the global parental leave policy HR-014 works for employees whose
contract is under the law of a Canadian province, which today means the Toronto office. Where it
is silent, the global policy holds. It replaces version 1, which ended on 30 June 2026.</p>
<h2>2. Federal benefit</h2>
<p>Employment Insurance (EI) pays maternity and parental benefits. You apply to Service Canada
yourself, within four weeks of your last day of work, with the record of employment that payroll
sends. A one-week waiting period applies to each claim. EI decides on eligibility; Orrin cannot
do it for you.</p>
<h2>3. Orrin top-up</h2>
<p>For weeks 1 to 20 of the leave Orrin tops up the federal EI benefit to 100 % of base salary.
During the waiting week Orrin pays the full amount. If EI finds you not eligible, Orrin pays
full base salary for the same 20 weeks, because the global policy does not depend on public
benefits.</p>
"""
CANADA_RIGHT_TOP = """
<h2>4. After week 20</h2>
<p>From week 21 on you receive EI only, and only if you are eligible; there is no top-up. Leave
without pay may go on until week 63, or week 78 for those who chose the extended benefit.</p>
<h2>5. Payments by week</h2>
"""
CANADA_TABLE = (
    ("Weeks", "Federal EI", "Orrin pays", "You receive"),
    ("1 to 20", "If eligible", "Top-up", "100 % of base salary"),
    ("21 to 40", "If eligible", "Nothing", "EI benefit only"),
    ("41 to 63", "Ended", "Nothing", "No pay, job is kept"),
)
CANADA_RIGHT_BOTTOM = """
<h2>6. Benefits plan</h2>
<p>Drug and dental cover go on for the whole leave if you keep paying your share, 41 Canadian
dollars a month. Contributions to the group retirement plan pause after week 20 and can be made
up within 12 months.</p>
<h2>7. Questions</h2>
<p>Write to people-canada@orrin.example. Payroll in Toronto closes on the 18th of each month;
changes that arrive later show in the month after.</p>
"""
STYLE = """
h1 { font-size: 17px; font-family: sans-serif; }
h2 { font-size: 12px; font-family: sans-serif; margin-top: 8px; margin-bottom: 2px; }
p { font-size: 10px; font-family: serif; line-height: 1.25; margin: 0 0 4px 0; }
"""

BENEFITS_TABLE = (
    ("Benefit", "Orrin pays", "You pay", "From"),
    ("Medical plan", "85 %", "15 %", "First day"),
    ("Dental plan", "70 %", "30 %", "First day"),
    ("Vision plan", "50 %", "50 %", "Fourth month"),
    ("Retirement match", "up to 5 %", "your choice", "Second year"),
    ("Gym or sports club", "35 a month", "the rest", "First day"),
    ("Commuter pass", "60 a month", "the rest", "First day"),
)
BENEFITS_NOTES = (
    "Amounts are in dollars in Austin, euros in Berlin and Canadian dollars in Toronto.",
    "The yearly choice is made between 1 and 20 November and holds from 1 January.",
    "A birth, a wedding or a move lets you choose again within 31 days.",
    "Glasses and contact lenses are paid up to 220 once in two years under the vision plan.",
)


def _cells(
    page: pymupdf.Page,
    rows: Sequence[Sequence[str]],
    *,
    at: tuple[float, float],
    widths: Sequence[float],
    height: float,
    size: float,
) -> float:
    """Draws a ruled table, first row in bold; gives the y below it."""
    x, y = at
    for number, row in enumerate(rows):
        left = x
        for text, width in zip(row, widths, strict=True):
            box = pymupdf.Rect(left, y, left + width, y + height)
            page.draw_rect(box, width=0.7)
            inner = pymupdf.Rect(box.x0 + 3, box.y0 + 3, box.x1 - 2, box.y1)
            page.insert_textbox(
                inner, text, fontsize=size, fontname="hebo" if not number else "helv"
            )
            left += width
        y += height
    return y


def canada(path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=A4.width, height=A4.height)
    small = {"fontsize": 8, "fontname": "helv"}
    page.insert_text(
        (50, 40), "Orrin Robotics · HR-014-CA · version 2 · effective 2026-07-01", **small
    )
    page.insert_text((50, 815), "Internal", **small)
    page.insert_text((505, 815), "Page 1 of 1", **small)
    page.insert_htmlbox((50, 55, 545, 100), "<h1>Parental leave supplement: Canada</h1>", css=STYLE)
    page.insert_htmlbox((50, 105, 288, 790), CANADA_LEFT, css=STYLE)
    page.insert_htmlbox((306, 105, 545, 225), CANADA_RIGHT_TOP, css=STYLE)
    below = _cells(page, CANADA_TABLE, at=(306, 228), widths=(48, 56, 52, 83), height=26, size=8)
    page.insert_htmlbox((306, below + 8, 545, 790), CANADA_RIGHT_BOTTOM, css=STYLE)
    document.set_metadata(
        {"title": "Parental leave supplement: Canada", "author": "Orrin Robotics"}
    )
    document.subset_fonts()
    document.save(path, garbage=4, deflate=True, no_new_id=True)


def benefits(path: Path) -> None:
    """Prints the handout, then "scans" it: 150 dpi, grey, half a degree crooked, with noise."""
    printed = pymupdf.open()
    page = printed.new_page(width=A4.width, height=A4.height)
    page.insert_text((60, 90), "Benefits at a glance 2026", fontsize=24, fontname="hebo")
    page.insert_text((60, 120), "What Orrin Robotics pays and what you pay", fontsize=14)
    y = _cells(page, BENEFITS_TABLE, at=(60, 150), widths=(150, 110, 110, 105), height=30, size=14)
    for note in BENEFITS_NOTES:
        y += 42
        page.insert_textbox((60, y, 540, y + 40), note, fontsize=13)
    pixels = page.get_pixmap(dpi=150, colorspace=pymupdf.csGRAY)
    grey = np.frombuffer(pixels.samples, np.uint8).reshape(pixels.height, pixels.width)
    noise = np.random.default_rng(2026).normal(0, 6, grey.shape)
    noisy = np.clip(grey * 0.93 + 8 + noise, 0, 255).astype(np.uint8)
    picture = pymupdf.Pixmap(pymupdf.csGRAY, pixels.width, pixels.height, noisy.tobytes(), False)
    scan = pymupdf.open()
    sheet = scan.new_page(width=A4.width, height=A4.height)
    sheet.insert_image(A4, stream=picture.tobytes("jpeg", jpg_quality=70))
    turn = pymupdf.Matrix(0.5)
    middle = pymupdf.Point(A4.width / 2, A4.height / 2)
    move = pymupdf.Matrix(1, 0, 0, 1, -middle.x, -middle.y) * turn
    move *= pymupdf.Matrix(1, 0, 0, 1, middle.x, middle.y)
    name = sheet.get_contents()[0]
    stream = f"q {move.a:.6f} {move.b:.6f} {move.c:.6f} {move.d:.6f} {move.e:.3f} {move.f:.3f} cm\n"
    scan.update_stream(name, stream.encode() + scan.xref_stream(name) + b"\nQ")
    scan.save(path, garbage=4, deflate=True, no_new_id=True)


def germany(path: Path) -> None:
    document = docx.Document()
    document.core_properties.title = "Parental leave supplement: Germany"
    document.core_properties.author = "Orrin Robotics"
    document.core_properties.created = document.core_properties.modified = MADE
    document.add_heading("Parental leave supplement: Germany", 0)
    document.add_heading("Purpose", 1)
    document.add_paragraph(
        "This supplement says how the global parental leave policy HR-014 works for employees "
        "of the Berlin office. Where it is silent, the global policy holds."
    )
    document.add_heading("Elterngeld and our top-up", 1)
    document.add_paragraph(
        "The state pays parental allowance (Elterngeld), 65 % of net pay and at most 1,800 "
        "euros a month. Orrin pays the difference to full base salary for the first 20 weeks. "
        "You apply at the office of your district within three months of the birth; the "
        "people team fills in the employer's part within 5 working days."
    )
    document.add_heading("Maternity protection", 1)
    document.add_paragraph(
        "Mothers do not work in the 6 weeks before and the 8 weeks after the birth. These "
        "weeks are paid by the health insurer and by Orrin and do not count towards the 20 "
        "weeks."
    )
    document.add_heading("Time without pay and part-time", 1)
    document.add_paragraph(
        "You may be away for up to three years for each child, and up to 24 months of them "
        "can be taken between the third and the eighth birthday. Ask for it in writing 7 "
        "weeks ahead, or 13 weeks ahead for a period after the third birthday."
    )
    table = document.add_table(rows=1, cols=3)
    table.style = "Table Grid"
    rows = (
        ("Period", "Paid by", "Amount"),
        ("Maternity protection", "Health insurer and Orrin", "Full net pay"),
        ("Weeks 1 to 20", "State and Orrin", "Full base salary"),
        ("Week 21 to month 14", "State", "Elterngeld only"),
        ("After month 14", "Nobody", "Unpaid, job is kept"),
    )
    for cell, text in zip(table.rows[0].cells, rows[0], strict=True):
        cell.text = text
    for row in rows[1:]:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    buffer = io.BytesIO()
    document.save(buffer)
    path.write_bytes(buffer.getvalue())


if __name__ == "__main__":
    canada(DOCUMENTS / "people" / "parental-leave-canada.pdf")
    benefits(DOCUMENTS / "people" / "benefits-2026.pdf")
    germany(DOCUMENTS / "people" / "parental-leave-germany.docx")
