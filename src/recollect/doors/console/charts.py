"""Small charts as SVG. They need no script, and each has its figures as a table for whoever cannot see it.

The drawing is stretched to its place while labels are text of the page, so these stay readable at every width.
"""

from collections.abc import Sequence
from math import floor, log10
from typing import NamedTuple

from markupsafe import Markup

# Of the drawing's own units; the page decides how large they are.
WIDTH, HEIGHT = 1000, 100
SERIES_COLOURS = 8

# So much of a column's place is left empty between two of them.
GAP = 0.2

_FIGURE = Markup("""<figure class="plot">
<figcaption class="spread"><span>{title}</span><span>{legend}</span></figcaption>
<div class="plot-area"><span class="plot-top" aria-hidden="true">{top}</span>
<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" aria-label="{summary}">
<path class="axis" d="M0 0H{width}M0 {middle}H{width}M0 {height}H{width}"/>{drawing}</svg></div>
<div class="plot-ends" aria-hidden="true">{ends}</div>
<details><summary>Figures<span class="spoken"> of {title}</span></summary>
<div class="figures" tabindex="0" role="region" aria-label="Figures: {title}"><table>
<thead><tr><th scope="col">When</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div></details>
</figure>""")
_CELL = Markup('<td class="num">{}</td>')
_KEY = Markup(
    '<span class="key"><svg viewBox="0 0 1 1" aria-hidden="true">'
    '<rect class="s{}" width="1" height="1"/></svg>{}</span>'
)


class Column(NamedTuple):
    """What happened at a time: a figure for each series."""

    label: str
    values: Sequence[float]


class Mark(NamedTuple):
    """A figure at a time."""

    label: str
    value: float
    warns: bool = False
    """Whether somebody should look at it."""


def columns(title: str, series: Sequence[str], points: Sequence[Column]) -> Markup:
    """Columns over time, one on top of another for each series; at most eight series can be told apart."""
    top = rounded_up(max((sum(point.values) for point in points), default=0))
    drawing: list[Markup] = []
    for number, (label, values) in enumerate(points):
        said = ", ".join(f"{name} {figure(value)}" for name, value in zip(series, values, strict=True))
        drawing.append(_place(number, len(points), f"{label}: {said}", stacked(number, len(points), values, top)))
    legend = [_KEY.format(colour(number), name) for number, name in enumerate(series)] if len(series) > 1 else []
    totals = [sum(point.values) for point in points]
    return _figure(title, series, points, top, Markup("").join(drawing), Markup("").join(legend), totals)


def line(
    title: str,
    points: Sequence[Mark],
    threshold: float | None = None,
    top: float | None = None,
    baseline: Sequence[float] = (),
) -> Markup:
    """One figure over time, the value that it should not fall below, and what each was compared with."""
    highest = top or rounded_up(max([*(mark.value for mark in points), *baseline, threshold or 0]))
    step = WIDTH / max(len(points), 1)
    places = [(step * (number + 0.5), HEIGHT - _height(mark.value, highest)) for number, mark in enumerate(points)]
    path = "".join(f"{'L' if number else 'M'}{x:.4g} {y:.4g}" for number, (x, y) in enumerate(places))
    drawing = [Markup('<path class="line" d="{}"/>').format(path)]
    if baseline:
        levels = (HEIGHT - _height(value, highest) for value in baseline)
        path = "".join(f"M{step * number:.4g} {y:.4g}h{step:.4g}" for number, y in enumerate(levels))
        drawing.insert(0, Markup('<path class="line before" d="{}"/>').format(path))
    for number, (mark, (x, y)) in enumerate(zip(points, places, strict=True)):
        kind = "line dot warns" if mark.warns else "line dot"
        dot = Markup('<path class="{}" d="M{:.4g} {:.4g}h0"/>').format(kind, x, y)
        said = f"{mark.label}: {figure(mark.value)}{', below the threshold' if mark.warns else ''}"
        drawing.append(_place(number, len(points), said, dot))
    legend = Markup('<span class="key before">baseline</span>') if baseline else Markup("")
    if threshold is not None:
        rule = HEIGHT - _height(threshold, highest)
        drawing.insert(0, Markup('<path class="rule" d="M0 {:.4g}H{}"/>').format(rule, WIDTH))
        legend += Markup('<span class="key ruled">at least {}</span>').format(figure(threshold))
    series: tuple[str, ...] = ("Value",)
    rows = [Column(mark.label, (mark.value,)) for mark in points]
    if baseline:
        series = ("Value", "Baseline")
        rows = [Column(mark.label, (mark.value, before)) for mark, before in zip(points, baseline, strict=True)]
    totals = [mark.value for mark in points]
    return _figure(title, series, rows, highest, Markup("").join(drawing), legend, totals)


def bar(value: float, of: float, label: str) -> Markup:
    """How much of something is used; without a bound, an empty track. The label is what a screen reader says."""
    share = min(max(value / of, 0), 1) if of > 0 else 0
    return Markup(
        '<svg class="bar" viewBox="0 0 {width} 1" preserveAspectRatio="none" role="img" aria-label="{label}">'
        '<title>{label}</title><rect class="track" width="{width}" height="1"/>'
        '<rect class="{colour}" width="{used:.4g}" height="1"/></svg>'
    ).format(width=WIDTH, label=label, colour="minus" if value > of > 0 else "s1", used=share * WIDTH)


def figure(value: float) -> str:
    """A figure for people: whole ones with separators, others with what matters."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3g}"


def rounded_up(value: float) -> float:
    """The next 1, 2 or 5 with zeros, for the end of an axis."""
    if value <= 0:
        return 1
    unit = 10.0 ** floor(log10(value))
    return next(step * unit for step in (1, 2, 5, 10) if step * unit >= value * 0.999_999)


def colour(number: int) -> int:
    """Which of the colours a series has."""
    return number % SERIES_COLOURS + 1


def stacked(number: int, of: int, values: Sequence[float], top: float) -> Markup:
    """One column, a piece for each series."""
    step = WIDTH / of
    pieces: list[Markup] = []
    ground = float(HEIGHT)
    for place, value in enumerate(values):
        height = _height(value, top)
        ground -= height
        if height:
            pieces.append(
                Markup('<rect class="s{}" x="{:.5g}" y="{:.4g}" width="{:.4g}" height="{:.4g}"/>').format(
                    colour(place), step * (number + GAP / 2), ground, step * (1 - GAP), height
                )
            )
    return Markup("").join(pieces)


def _height(value: float, top: float) -> float:
    return min(max(value / top, 0), 1) * HEIGHT


def _place(number: int, of: int, said: str, drawn: Markup) -> Markup:
    """What is drawn at a time; pointing anywhere above or below it says what it is."""
    step = WIDTH / of
    return Markup('<g><title>{}</title><rect class="hit" x="{:.5g}" width="{:.4g}" height="{}"/>{}</g>').format(
        said, step * number, step, HEIGHT, drawn
    )


def _figure(
    title: str,
    series: Sequence[str],
    points: Sequence[Column],
    top: float,
    drawing: Markup,
    legend: Markup,
    totals: Sequence[float],
) -> Markup:
    labels = [point.label for point in points]
    summary = f"{title}: nothing yet"
    if points:
        most = totals.index(max(totals))
        summary = f"{title}, {labels[0]} to {labels[-1]}: the most is {figure(totals[most])} ({labels[most]})"
        summary += f", the last {figure(totals[-1])}"
    ends = labels if len(labels) < 3 else [labels[0], labels[len(labels) // 2], labels[-1]]
    return _FIGURE.format(
        title=title,
        legend=legend,
        top=figure(top),
        width=WIDTH,
        height=HEIGHT,
        middle=HEIGHT // 2,
        summary=summary,
        drawing=drawing,
        ends=Markup("").join(Markup("<span>{}</span>").format(label) for label in ends),
        heads=Markup("").join(Markup('<th scope="col" class="num">{}</th>').format(name) for name in series),
        rows=Markup("").join(
            Markup('<tr><th scope="row">{}</th>{}</tr>').format(
                label, Markup("").join(_CELL.format(figure(value)) for value in values)
            )
            for label, values in points
        ),
    )
