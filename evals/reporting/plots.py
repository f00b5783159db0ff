"""Plots of a report as SVG by matplotlib: no script, nothing to load, readable when printed."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

from evals.compare import Difference
from evals.reporting.xml_text import xml_text

P = ParamSpec("P")

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
"""Paul Tol's bright scheme, which colour-blind readers can tell apart."""
_GREY = "#777777"


def _literally(draw: Callable[P, str]) -> Callable[P, str]:
    """Text stays text, so that it can be searched and copied; dollar signs are no formulas."""

    @wraps(draw)
    def drawn(*arguments: P.args, **options: P.kwargs) -> str:
        import matplotlib

        with matplotlib.rc_context(
            {"svg.fonttype": "none", "svg.hashsalt": "quarry", "text.parse_math": False}
        ):
            return draw(*arguments, **options)

    return drawn


@_literally
def bars(groups: Sequence[str], columns: Mapping[str, Sequence[float]], *, title: str) -> str:
    """One group of horizontal bars a name, one bar a run; values from 0 to 1."""
    height = 0.9 + len(groups) * (0.22 * len(columns) + 0.12)
    figure, axes = _figure(8.0, height)
    width = 0.8 / max(1, len(columns))
    bars = []
    for number, values in enumerate(columns.values()):
        places = [position + number * width for position in range(len(groups))]
        bars.append(axes.barh(places, values, width, color=_colour(number)))
        axes.bar_label(bars[-1], fmt="%.2f", padding=2, fontsize=8)
    axes.set_yticks(
        [position + 0.4 - width / 2 for position in range(len(groups))], [*map(xml_text, groups)]
    )
    axes.set_xlim(0, 1.08)
    axes.invert_yaxis()
    axes.set_title(xml_text(title), loc="left", fontsize=11)
    if len(columns) > 1:
        _legend(figure, bars, columns)
    return _svg(figure)


@_literally
def differences(found: Mapping[str, Difference], *, title: str) -> str:
    """Mean differences with their 95 % intervals, where they have one, round a line at 0."""
    figure, axes = _figure(8.0, 1.0 + 0.28 * len(found))
    for position, each in enumerate(found.values()):
        mean = each.second - each.first
        colour = _COLOURS[0] if each.tells else _GREY
        if each.low is not None:
            axes.plot([each.low, each.high], [position, position], color=colour, linewidth=2)
        axes.plot([mean], [position], "o", color=colour, markersize=5)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.set_title(xml_text(title), loc="left", fontsize=11)
    return _svg(figure)


@_literally
def depths(columns: Mapping[str, Mapping[int, float]], *, title: str) -> str:
    """One line a run over the depth of the list, 1 to the deepest, on a logarithmic axis."""
    figure, axes = _figure(8.0, 3.2)
    lines = []
    for number, values in enumerate(columns.values()):
        lines += axes.plot(list(values), list(values.values()), color=_colour(number))
    deepest = max((max(values, default=1) for values in columns.values()), default=1)
    axes.set_xscale("log")
    ticks = [depth for depth in (1, 2, 3, 5, 10, 20, 50, 100) if depth <= deepest]
    axes.set_xticks(ticks, [str(depth) for depth in ticks])
    axes.minorticks_off()
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("passages looked at")
    axes.set_title(xml_text(title), loc="left", fontsize=11)
    _legend(figure, lines, columns)
    return _svg(figure)


def _legend(figure: Any, drawn: Sequence[Any], labels: Iterable[str]) -> None:
    # Given with what is drawn: as a label of its own, a name that begins with _ would be left out.
    names = [*map(xml_text, labels)]
    figure.legend(drawn, names, loc="outside lower center", ncols=len(names), fontsize=8)


def _figure(width: float, height: float) -> tuple[Any, Any]:
    # The object interface keeps no state between plots and needs no display.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    return figure, axes


def _svg(figure: Any) -> str:
    """The `<svg>` element alone."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]
