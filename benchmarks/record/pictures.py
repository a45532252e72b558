"""Drawings as SVG text that follows the colours of the page, light or dark."""

from collections.abc import Mapping, Sequence
from html import escape

from benchmarks.record.statistics import Ranks

# Okabe and Ito's colours, those of the report; a dash and a number tell lines apart beyond them.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#6a51a3")
DASHES = ("", "6 3", "2 2")
WIDTH = 620


def lines(curves: Mapping[str, Sequence[tuple[float, float]]], x_name: str, y_name: str) -> str:
    """A line for every name; the names stand at the right ends, moved apart."""
    curves = {name: points for name, points in curves.items() if points}
    height, left, right, top, bottom = 340, 46, 170, 12, 40
    xs = [x for points in curves.values() for x, _ in points]
    ys = [y for points in curves.values() for _, y in points]
    low, high = min(ys) - 0.01, max(ys) + 0.01
    x_low, x_high = min(xs), max(xs)

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - x_low) / ((x_high - x_low) or 1.0)
        return left + across * (WIDTH - left - right), top + (high - y) / (high - low) * (
            height - top - bottom
        )

    parts = [_y_axis(low, high, left, WIDTH - right, lambda y: at(x_low, y)[1])]
    for x in sorted(set(xs)):
        parts.append(_text(at(x, low)[0], height - bottom + 16, f"{x:g}", "middle"))
    parts.append(_text((left + WIDTH - right) / 2, height - 6, x_name, "middle"))
    ends = sorted(((at(*points[-1])[1], name) for name, points in curves.items()))
    places = _apart([y for y, _ in ends], 13.0, top + 6, height - bottom)
    for (_, name), place in zip(ends, places, strict=True):
        number = list(curves).index(name)
        color, dash = COLORS[number % len(COLORS)], DASHES[number // len(COLORS) % len(DASHES)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in sorted(curves[name])))
        style = f'stroke="{color}" stroke-width="{2.6 if number == 0 else 1.4}" stroke-dasharray="{dash}"'
        parts.append(
            f'<polyline points="{path}" fill="none" {style}><title>{escape(name)}</title></polyline>'
        )
        end = at(*sorted(curves[name])[-1])
        joint = f'x1="{end[0]:.1f}" y1="{end[1]:.1f}" x2="{end[0] + 10:.1f}" y2="{place:.1f}"'
        parts.append(f'<line {joint} stroke="{color}" stroke-width="0.8" opacity="0.6"/>')
        parts.append(_text(end[0] + 13, place + 4, name, "start", weight=600 if number == 0 else 400))
    return _svg(WIDTH, height, parts, f"{y_name} over {x_name}")


def bars(groups: Mapping[str, Sequence[float]], legend: Sequence[str], y_name: str) -> str:
    """Groups of bars, in the order of the legend."""
    height, left, top, bottom = 260, 46, 12 + 16 * len(legend), 26
    high = max((value for values in groups.values() for value in values), default=1.0) * 1.05

    def at(y: float) -> float:
        return top + (1.0 - y / high) * (height - bottom)

    parts = [_y_axis(0.0, high, left, WIDTH - 10, at)]
    wide = (WIDTH - 10 - left) / max(len(groups), 1)
    for place, (name, values) in enumerate(groups.items()):
        start, each = left + place * wide + 0.1 * wide, 0.8 * wide / len(values)
        for i, value in enumerate(values):
            box = f'x="{start + i * each:.1f}" y="{at(value):.1f}" width="{each - 2:.1f}"'
            size = f'height="{at(0.0) - at(value):.1f}" fill="{COLORS[i % len(COLORS)]}"'
            parts.append(f"<rect {box} {size}><title>{escape(legend[i])}: {value:.3f}</title></rect>")
        parts.append(_text(start + 0.4 * wide, at(0.0) + 16, f"{name} missing", "middle"))
    for i, name in enumerate(legend):
        parts.append(
            f'<rect x="{left}" y="{6 + 16 * i}" width="10" height="10" fill="{COLORS[i % len(COLORS)]}"/>'
        )
        parts.append(_text(left + 16, 15 + 16 * i, name, "start"))
    return _svg(WIDTH, int(at(0.0)) + bottom, parts, y_name)


def critical_differences(found: Ranks) -> str:
    """Mean ranks on a line, names at both sides, and bars over those that are not told apart."""
    groups, k = found.groups(), len(found.methods)
    half = -(-k // 2)
    left, right, top = 210, 180, 34 + 8 * len(groups)
    height = top + 20 + 15 * half
    low, high = 1.0, float(max(k, 2))

    def at(rank: float) -> float:
        return left + (rank - low) / (high - low) * (WIDTH - left - right)

    parts = [f'<line x1="{at(low)}" y1="24" x2="{at(high)}" y2="24" stroke="currentColor"/>']
    step = 1 if k <= 14 else 5
    for rank in sorted({1, k, *range(step, k + 1, step)}):
        parts.append(f'<line x1="{at(rank):.1f}" y1="20" x2="{at(rank):.1f}" y2="24" stroke="currentColor"/>')
        parts.append(_text(at(rank), 14, str(rank), "middle"))
    for i, (name, rank) in enumerate(zip(found.methods, found.rank, strict=True)):
        first = i < half
        y = top + 10 + 15 * (i if first else k - 1 - i)
        edge = left - 8 if first else WIDTH - right + 8
        path = f"M{at(rank):.1f},24 V{y:.1f} H{edge}"
        parts.append(
            f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="0.8" opacity="0.55"/>'
        )
        label = f"{name} ({rank:.1f})"
        anchor, x = ("end", edge - 4) if first else ("start", edge + 4)
        parts.append(_text(x, y + 4, label, anchor, weight=600 if name.startswith("fuse") else 400))
    for i, (first_, last) in enumerate(groups):
        y = 31 + 8 * i
        ends = f'x1="{at(found.rank[first_]) - 3:.1f}" x2="{at(found.rank[last]) + 3:.1f}"'
        parts.append(f'<line {ends} y1="{y}" y2="{y}" stroke="{COLORS[0]}" stroke-width="3.5"/>')
    return _svg(WIDTH, height, parts, "mean ranks")


def _y_axis(low: float, high: float, left: float, right: float, at) -> str:
    step = next((s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if (high - low) / s <= 7), 1.0)
    parts, tick = [], step * -(-low // step)
    while tick <= high + 1e-9:
        y = at(tick)
        ends = f'x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"'
        parts.append(f'<line {ends} stroke="var(--line)"/>' + _text(left - 6, y + 4, f"{tick:.2f}", "end"))
        tick += step
    return "".join(parts)


def _apart(places: Sequence[float], gap: float, top: float, bottom: float) -> list[float]:
    """Ascending places moved so that neighbours are `gap` apart, within bounds where they fit."""
    found = list(places)
    for _ in range(60):
        for i in range(len(found) - 1):
            close = gap - (found[i + 1] - found[i])
            if close > 0:
                found[i] -= close / 2
                found[i + 1] += close / 2
        found = [min(max(place, top), bottom) for place in found]
    return found


def _text(x: float, y: float, text: str, anchor: str, weight: int = 400) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
    )


def _svg(width: int, height: int, parts: Sequence[str], name: str) -> str:
    inside = "".join(parts)
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(name)}">{inside}</svg>'
    )
