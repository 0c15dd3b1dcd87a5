"""Plots of benchmarks: roofline, and time against T and H."""
import math

from . import bench
from .figure import BAD, FAINT, legend, pyplot, style
from .words import amount, digits, in_plot, plural

MOST_SERIES = 8  # in one picture; what is more goes into further ones


def group_of(name):
    """impl/fast/T2048_H8 -> impl/fast: what a series is."""
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def roofline(lines, figures):
    points = bench.roofline_points(lines)
    if not points:
        return ""
    plt = pyplot()
    fig, ax = plt.subplots()
    groups = list(dict.fromkeys(group_of(p.name) for p in points))
    for i, group in enumerate(groups):
        mine = [p for p in points if group_of(p.name) == group]
        ax.scatter([p.intensity for p in mine], [p.rate for p in mine], s=18, linewidths=0, **style(i), label=in_plot(group, 24))
    low, high = min(p.intensity for p in points) / 3, max(p.intensity for p in points) * 3
    told = []
    for device, bandwidth, rate in bench.roofs(lines):
        ridge = rate / bandwidth
        xs = sorted({low, min(max(ridge, low), high), high})
        ax.plot(xs, [min(bandwidth * x, rate) for x in xs], color=BAD, linewidth=1.1)
        ax.annotate(in_plot(f"{device}: {amount(bandwidth, 'B/s')}, {amount(rate, 'flop/s')}"), (xs[-1], min(bandwidth * xs[-1], rate)),
                    textcoords="offset points", xytext=(0, 4), ha="right", fontsize=8)
        told.append(f"{device} {amount(bandwidth, 'B/s')} and {amount(rate, 'flop/s')}")
    ax.set(xscale="log", yscale="log", xlabel="flops a byte that must be moved", ylabel="flop/s reached", xlim=(low, high))
    legend(fig, ax)
    alt = (f"Roofline plot of {plural(len(points), 'benchmark')}: rate reached against flops per byte, both logarithmic. "
           f"Roofs: {'; '.join(told) or 'none stated'}.")
    return figures.html(fig, "Roofline", alt,
                        "Bytes and flops are the least that the case needs, not what the implementation moves. Roofs: the "
                        "rates measured in the same run; those of f32 on a CPU are twice as high as drawn, for f64.")


def scaling(lines, figures):
    """A picture for T and one for H, each as many as its series need."""
    out = ""
    every = bench.slopes(lines)
    for axis in ("T", "H", "TH"):
        mine = [s for s in every if s.axis == axis]
        for first in range(0, len(mine), MOST_SERIES):
            out += one_scaling(axis, mine[first:first + MOST_SERIES], figures)
    return out


def one_scaling(axis, every, figures):
    plt = pyplot()
    fig, ax = plt.subplots()
    for i, s in enumerate(every):
        error = "" if math.isnan(s.error) else f" \u00b1 {digits(s.error, 1)}"
        ax.plot(*zip(*s.points), linewidth=1, markersize=5, **style(i), label=in_plot(f"{s.name}: slope {s.slope:.2f}{error}"))
    x0, x1 = min(s.points[0][0] for s in every), max(s.points[-1][0] for s in every)
    y0 = min(s.points[0][1] for s in every) * 0.7
    ax.plot([x0, x1], [y0, y0 * x1 / x0], color=FAINT, linestyle="--", linewidth=1, label="slope 1")
    what = {"T": "tokens T", "H": "heads H", "TH": "tokens x heads T H"}[axis]
    ax.set(xlabel=what, ylabel="seconds (median)")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    legend(fig, ax, 1)
    told = "; ".join(f"{s.name} slope {s.slope:.2f}" for s in every)
    return figures.html(fig, f"Time against {what}", f"Median time against {what}, both logarithmic. {told}.",
                        "A slope of 1 is time in proportion; flatter means a part that does not grow (or idle units), "
                        "steeper means something that grows faster.")
