"""Plots of check runs: error against bound, share of the bound by family, error against token index."""
import math

from . import check
from .figure import BAD, FAINT, legend, pyplot, style
from .inputs import number
from .words import digits, in_plot, plural

DRAWN = (1e-150, 1e150)  # what has a place on a logarithmic axis, without overflow
FLOOR = 1e-6  # shares below are drawn here: an error of 0 has no logarithm


def thinned(points, cells=120):
    """Points that would lie on each other are drawn once: hundreds of thousands make no better picture."""
    if not points:
        return points
    low = [min(p[i] for p in points) for i in (0, 1)]
    high = [max(p[i] for p in points) for i in (0, 1)]
    size = [(math.log(high[i] / low[i]) / cells or 1) for i in (0, 1)]
    seen = {}
    for p in points:
        seen.setdefault(tuple(int(math.log(p[i] / low[i]) / size[i]) for i in (0, 1)), p)
    return list(seen.values())


def worst_elements(results):
    """{implementation: [(bound, error, passed)]} of the worst element of every tensor, finite and above 0."""
    table = {}
    for result in results:
        for tensor in result.tensors:
            worst = tensor.get("worst", {})
            values = [number(worst.get(key)) for key in ("bound", "expected", "got")]
            if None in values or not all(map(math.isfinite, values)):
                continue
            bound, error = values[0], abs(values[2] - values[1])
            if DRAWN[0] < bound < DRAWN[1] and DRAWN[0] < error < DRAWN[1]:
                table.setdefault(result.implementation, []).append((bound, error, tensor.get("passed") is not False))
    return table


def error_against_bound(results, figures):
    table = worst_elements(results)
    if not table:
        return ""
    plt = pyplot()
    fig, ax = plt.subplots()
    every = [value for points in table.values() for point in points for value in point[:2]]
    ends = [min(every) / 2, max(every) * 2]
    ax.plot(ends, ends, color=BAD, linewidth=1.2, label="error = bound")
    for i, (name, points) in enumerate(table.items()):
        good = thinned([p for p in points if p[2]])
        ax.scatter([p[0] for p in good], [p[1] for p in good], s=12, alpha=0.7, linewidths=0, **style(i),
                   label=in_plot(name, 24))
    over = [p for points in table.values() for p in points if not p[2]]
    if over:
        ax.scatter([p[0] for p in over], [p[1] for p in over], s=60, facecolors="none", edgecolors=BAD,
                   label="in a tensor that failed")
    ax.set(xscale="log", yscale="log", xlabel="bound", ylabel="|got \u2212 exact|")
    legend(fig, ax)
    above = sum(p[1] > p[0] for points in table.values() for p in points)
    count = sum(map(len, table.values()))
    alt = (f"Scatter plot of {count} tensors of {plural(len(table), 'implementation')}: the error of the worst "
           f"element against its bound, both logarithmic. {above} lie above the line error = bound.")
    return figures.html(fig, "Error against bound", alt,
                        "The worst element of every tensor. A tensor above the line has failed; one below may still "
                        "have failed by its RMS error. Errors of exactly 0 are not drawn.")


def share_by_family(results, figures):
    """Share of the bound used, worst of each case, by family."""
    families = sorted({r.family for r in results if r.used_share() is not None})
    if not families:
        return ""
    plt = pyplot()
    fig, ax = plt.subplots(figsize=(5.4, max(2.2, 0.24 * len(families) + 1.2)))
    row = {family: i for i, family in enumerate(families)}
    names = check.implementations(results)
    over = 0
    for i, name in enumerate(names):
        points = [(min(max(share, FLOOR), 1e6), row[r.family] + (i - (len(names) - 1) / 2) * 0.7 / max(len(names), 2))
                  for r in results if r.implementation == name and (share := r.used_share()) is not None]
        over += sum(p[0] > 1 for p in points)
        if points:
            unique = list(dict.fromkeys((float(f"{x:.2g}"), y) for x, y in points))
            ax.scatter([p[0] for p in unique], [p[1] for p in unique], s=11, alpha=0.7, linewidths=0, **style(i),
                       label=in_plot(name, 24))
    ax.axvline(1, color=BAD, linewidth=1.2)
    ax.set_yticks(range(len(families)), [in_plot(family, 16) for family in families])
    ax.set_ylim(len(families) - 0.4, -0.6)
    ax.set(xscale="log", xlabel="share of the bound used (1 = the bound)")
    legend(fig, ax)
    alt = (f"Share of the bound that each case used, by {plural(len(families), 'family').replace('familys', 'families')}"
           f" and implementation, logarithmic. {over} cases are over the bound.")
    return figures.html(fig, "Share of the bound by family", alt,
                        f"One point a case and implementation, the worst of its tensors; below {FLOOR:g} drawn there.")


def envelope(profiles):
    """[(token, largest share, median share)] over all cases, by the stretches of powers of two."""
    edges = sorted({step * i for _, step, shares in profiles for i in range(len(shares))})
    wanted, last = [], -1.0
    for edge in edges:  # about 12 a factor of two, so that short sequences keep every token
        if math.log2(edge + 1) - last >= 1 / 12:
            wanted.append(edge)
            last = math.log2(edge + 1)
    out = []
    for edge in wanted:
        here = sorted(shares[edge // step] for _, step, shares in profiles if edge // step < len(shares))
        if here:
            out.append((edge, here[-1], here[len(here) // 2]))
    return out


def error_against_token(results, figures):
    table = check.token_profiles(results)
    if not table:
        return ""
    plt = pyplot()
    fig, ax = plt.subplots()
    longest = 0
    for i, (name, profiles) in enumerate(table.items()):
        points = [(t + 1, *(min(max(y, FLOOR), 1e6) for y in ys)) for t, *ys in envelope(profiles)]
        longest = max(longest, max(p[0] for p in points))
        look = style(i)
        ax.plot([p[0] for p in points], [p[1] for p in points], linewidth=1.4, color=look["color"], label=in_plot(name, 24),
                marker=look["marker"], markersize=3, markevery=max(1, len(points) // 12))
        ax.plot([p[0] for p in points], [p[2] for p in points], linewidth=0.8, color=look["color"], linestyle=":")
    for result, step, shares in worst_profiles(results):
        ax.plot([step * i + 1 for i in range(len(shares))], [min(max(y, FLOOR), 1e6) for y in shares], linewidth=1,
                color=BAD, linestyle="--")
    ax.axhline(1, color=BAD, linewidth=1.2)
    for bound in range(64, min(longest, 513), 64):
        ax.axvline(bound + 1, color=FAINT, linewidth=0.6)
    ax.set(xscale="log", yscale="log", xlabel="token of its sequence, from 1", ylabel="share of the bound used")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    legend(fig, ax)
    parts = [f"{name}: largest share {digits(max(max(s) for _, _, s in profiles))} over {plural(len(profiles), 'case')}"
             for name, profiles in table.items()]
    alt = "Share of the bound used by output o against the index of the token, both logarithmic. " + "; ".join(parts) + "."
    return figures.html(fig, "Error against token index", alt,
                        "Output o. Solid: the largest of all cases at this token; dotted: their median; dashed red: "
                        "the failed cases that are furthest over. Thin verticals: chunk bounds every 64 tokens up to 512.")


def worst_profiles(results, most=5):
    failed = [result for result in results if result.verdict == "failed"]
    table = check.token_profiles(failed)
    every = [entry for profiles in table.values() for entry in profiles]
    return sorted(every, key=lambda entry: -max(math.inf if math.isnan(s) else s for s in entry[2]))[:most]
