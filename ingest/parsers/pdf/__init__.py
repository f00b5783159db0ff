"""PDF: text in reading order, headings, lists, tables, forms and scans.

document.py    one file: opening it, page by page, its state and title
lines.py       the lines of a page, upright, with their glyphs mended
ocr.py         the lines of a scanned page
grid.py        ruled tables
layout.py      columns and reading order; tables without rules
furniture.py   page numbers and running heads
paragraphs.py  rows to paragraphs, headings, lists and code
joining.py     one line to the next: hyphens, scripts without blanks
"""
