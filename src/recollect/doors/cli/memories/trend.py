"""The trend of the golden test as a chart: in characters for the terminal, and as SVG."""

from collections.abc import Sequence
from html import escape

from recollect.memory.cognitive.golden import GoldenRun

HEIGHT = 10
_LABEL = 6

_WIDTH_PX, _HEIGHT_PX = 800, 320
_LEFT_PX, _TOP_PX, _RIGHT_PX, _BOTTOM_PX = 56, 40, 24, 40


def chart(runs: Sequence[GoldenRun], columns: int) -> str:
    """The last runs that fit, a column each: `*` the precision, `!` one that drifted, `-` the baseline."""
    shown = runs[-max(columns - _LABEL, 1) :]
    low, high = _range(shown)
    rows = [[" "] * len(shown) for _ in range(HEIGHT)]
    for column, run in enumerate(shown):
        rows[_row(run.baseline_precision, low, high)][column] = "-"
        rows[_row(run.precision_at_5, low, high)][column] = "!" if run.drift_detected else "*"
    values = [high - (high - low) * row / (HEIGHT - 1) for row in range(HEIGHT)]
    labels = [f"{value:.2f}" if row % 3 == 0 else "" for row, value in enumerate(values)]
    lines = [f"{label:>{_LABEL - 1}} {''.join(cells)}".rstrip() for label, cells in zip(labels, rows, strict=True)]
    # First and last day under their columns, if there is room for both.
    first, last = shown[0].day.isoformat(), shown[-1].day.isoformat()
    gap = len(shown) - len(first) - len(last)
    days = f"{first}{' ' * gap}{last}" if gap > 0 else f"{first} to {last}" if first != last else first
    return "\n".join([*lines, " " * _LABEL + days])


def svg(runs: Sequence[GoldenRun]) -> str:
    """Every run at its day, with the baseline it was held to; drift is marked by colour and by shape."""
    low, high = _range(runs)
    first, last = runs[0].day.toordinal(), runs[-1].day.toordinal()

    def x(run: GoldenRun) -> float:
        part = (run.day.toordinal() - first) / (last - first) if last > first else 0.5
        return round(_LEFT_PX + part * (_WIDTH_PX - _LEFT_PX - _RIGHT_PX), 1)

    def y(value: float) -> float:
        return round(_TOP_PX + (high - value) / (high - low) * (_HEIGHT_PX - _TOP_PX - _BOTTOM_PX), 1)

    measured = " ".join(f"{x(run)},{y(run.precision_at_5)}" for run in runs)
    baseline = " ".join(f"{x(run)},{y(run.baseline_precision)}" for run in runs)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH_PX} {_HEIGHT_PX}" role="img" '
            'font-family="sans-serif" font-size="12">',
            f"<title>{escape(_title(runs))}</title>",
            f'<rect width="{_WIDTH_PX}" height="{_HEIGHT_PX}" fill="white"/>',
            f'<text x="{_LEFT_PX}" y="20" font-size="14">{escape(_title(runs))}</text>',
            *(
                f'<line x1="{_LEFT_PX}" y1="{y(value)}" x2="{_WIDTH_PX - _RIGHT_PX}" y2="{y(value)}" stroke="#ddd"/>'
                f'<text x="{_LEFT_PX - 8}" y="{y(value) + 4}" text-anchor="end">{value:.2f}</text>'
                for value in (low, (low + high) / 2, high)
            ),
            f'<polyline points="{baseline}" fill="none" stroke="#666" stroke-dasharray="6 4"/>',
            f'<polyline points="{measured}" fill="none" stroke="#1f5fa8" stroke-width="2"/>',
            *(_mark(run, x(run), y(run.precision_at_5)) for run in runs),
            *(
                f'<text x="{x(run)}" y="{_HEIGHT_PX - 14}" text-anchor="middle">{run.day}</text>'
                for run in dict.fromkeys((runs[0], runs[-1]))
            ),
            "</svg>\n",
        ]
    )


def _range(runs: Sequence[GoldenRun]) -> tuple[float, float]:
    """The lowest and the highest figure shown; a level line stands in the middle."""
    values = [value for run in runs for value in (run.precision_at_5, run.baseline_precision)]
    low, high = min(values), max(values)
    return (low, high) if high - low > 1e-9 else (max(low - 0.1, 0.0), min(high + 0.1, 1.0))


def _row(value: float, low: float, high: float) -> int:
    return round((high - value) / (high - low) * (HEIGHT - 1))


def _title(runs: Sequence[GoldenRun]) -> str:
    return f"Precision at 5 of the golden set, {runs[0].day} to {runs[-1].day} (dashed: baseline, square: drift)"


def _mark(run: GoldenRun, x: float, y: float) -> str:
    says = f"<title>{run.day}: {run.precision_at_5:.3f}{', drift' if run.drift_detected else ''}</title>"
    if run.drift_detected:
        return f'<rect x="{x - 4}" y="{y - 4}" width="8" height="8" fill="#b3261e">{says}</rect>'
    return f'<circle cx="{x}" cy="{y}" r="3.5" fill="#1f5fa8">{says}</circle>'
