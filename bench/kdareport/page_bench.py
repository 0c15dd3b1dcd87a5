"""Sections of the page that come from benchmark, counter and comparison files."""
from . import bench, plots_bench
from .html import Cell, code, note, num, table
from .inputs import number
from .words import amount, digits, plural, seconds


def fraction_cell(line):
    x = line.fraction
    if x is None:
        return num("\u2013", None)
    impossible = line.impossible or x > 1
    return num(digits(x) + (" impossible" if impossible else ""), x, "bad" if impossible else "")


def times(lines):
    rows = []
    for line in lines:
        state = ""
        if line.failed:
            state = Cell("error: " + line.problem, kind="bad")
        elif line.problem:
            state = Cell(line.problem, kind="soft")
        elif len(line.seconds) == 1:
            state = Cell("a single repetition", kind="warn")
        rows.append([
            line.name, num(seconds(line.median), line.median), num(str(len(line.seconds)), len(line.seconds)),
            num("\u2013" if line.spread is None else f"{100 * line.spread:.1f} %", line.spread),
            num(amount(line.counter("tokens/s")), line.counter("tokens/s")),
            num(amount(line.counter("min_bytes"), "B"), line.counter("min_bytes")),
            num(amount(line.counter("min_flops")), line.counter("min_flops")),
            num(seconds(line.counter("floor_s")), line.counter("floor_s")), fraction_cell(line), state])
    return note("Time: the median of the repetitions. Spread: (largest \u2212 smallest) / median. Floor: the least time that the "
                "bytes and flops of the case allow on this machine. Fraction: floor / time.", "soft") + table("Times",
                 ["benchmark", "time", "repetitions", "spread", "tokens/s", "bytes at least", "flops at least", "floor",
                  "fraction", "remark"], rows)


def benchmarks(lines, figures):
    if not lines:
        return ""
    flagged = [line for line in lines if line.impossible or (line.fraction or 0) > 1]
    text = "".join(note(f"{line.name}: faster than its floor. It came out of a cache, or the measurement is wrong.", "bad")
                   for line in flagged)
    plots = plots_bench.roofline(lines, figures) + plots_bench.scaling(lines, figures)
    text += f'<div class="figures">{plots}</div>' if plots else ""
    slopes = bench.slopes(lines)
    if slopes:
        rows = [[s.name, s.axis, num(f"{s.slope:.3f}", s.slope), num(digits(s.error, 2), s.error if s.error == s.error else None),
                 ", ".join(str(x) for x, _ in s.points)] for s in slopes]
        text += table("Slope of log time against log T or H", ["benchmarks", "against", "slope", "standard error", "at"], rows)
    return text + times(lines)


def ratios(lines, base):
    """Against --base; a verdict is the business of `bench --compare`."""
    if not base:
        return ""
    rows = []
    for entry in bench.ratios(lines, base):
        why = "" if entry.ratio else "only in the base" if entry.line is None else "new" if entry.base is None else \
            entry.line.problem or entry.base.problem or "no time"
        rows.append([entry.name, num(seconds(entry.base and entry.base.median), entry.base and entry.base.median),
                     num(seconds(entry.line and entry.line.median), entry.line and entry.line.median),
                     num("\u2013" if entry.ratio is None else f"{entry.ratio:.3f}", entry.ratio), Cell(why, kind="warn")])
    return note("Ratios of medians, new over base. Whether a ratio is more than noise is for kdacheck bench --compare "
                "to say; give its JSON to this page for its verdicts.") + table(
        "Against the base", ["benchmark", "base", "new", "new / base", "remark"], rows)


VERDICT_KINDS = {"slower": "bad", "grew": "bad", "faster": "good", "fewer": "good", "no verdict": "warn"}


def comparison(source):
    """JSON of bench --compare."""
    data = source.data
    counts = data.get("counts")
    text = note(f"{data.get('base', '?')} \u2192 {data.get('new', '?')}: "
                + (", ".join(f"{value} {key}" for key, value in counts.items()) if isinstance(counts, dict) else ""))
    for line in data.get("notes", []) if isinstance(data.get("notes"), list) else []:
        text += note(line, "warn")
    if data.get("kind") == "counters":
        rows = [[str(line.get("kernel", "")), str(line.get("case", "")), str(line.get("counter", "")),
                 num(digits(number(line.get("base")), 12), number(line.get("base"))),
                 num(digits(number(line.get("new")), 12), number(line.get("new"))),
                 Cell(line["verdict"], kind=VERDICT_KINDS.get(line["verdict"], "")), line.get("reason", "")]
                for line in data["lines"]]
        return text + table("Counters that differ", ["kernel", "case", "counter", "base", "new", "verdict", "why"], rows)
    rows = []
    for line in data["lines"]:
        values = {key: number(line.get(key)) for key in ("base_median_s", "new_median_s", "ratio", "p", "band")}
        rows.append([line.get("name", ""), *(num(seconds(values[key]), values[key]) for key in ("base_median_s", "new_median_s")),
                     num(digits(values["ratio"], 4), values["ratio"]), num(digits(values["p"], 2), values["p"]),
                     num("\u2013" if values["band"] is None else f"\u00b1{100 * values['band']:.1f} %", values["band"]),
                     Cell(line["verdict"], kind=VERDICT_KINDS.get(line["verdict"], "")), line.get("reason", "")])
    return text + note("p: of the Mann\u2013Whitney test. Band: how far two runs of one program differ.", "soft") + table("Verdict on every line",
                        ["benchmark", "base", "new", "new / base", "p", "A/A band", "verdict", "why"], rows)


def counters(sources, base):
    text = ""
    for source in sources:
        for other in base:
            rows = [[name, kernel, case, what, num(digits(old, 12), old), num(digits(new, 12), new),
                     Cell("grew" if (new or 0) > (old or 0) else "fewer", kind="bad" if (new or 0) > (old or 0) else "good")]
                    for name, case, kernel, what, old, new in bench.counter_changes(source.data, other.data)]
            text += table(f"Counters that differ from {other.path}", ["implementation", "kernel", "case", "counter", "base", "new", "change"],
                          rows) if rows else note(f"No counter differs from {other.path}.", "good")
        text += by_case(source.data) + by_kernel(source.data)
    return text


def by_case(data):
    rows = [[case, kernel, name, what, num(f"{value:.12g}", value)]
            for name, case, kernel, what, value in bench.counter_rows(data) if name and value]
    return table("Exact counts of the executor by case and kernel, zeros left out", ["case", "kernel", "implementation", "counter", "count"],
                 rows) if rows else ""


def by_kernel(data):
    kernels = data.get("kernels", [])
    if not kernels:
        missing = data.get("kernels_missing")
        return note(f"Registers and spills: {missing}", "soft") if missing else ""
    keys = ("registers", "spill_stores", "spill_loads", "stack", "static_shared", "dynamic_shared", "threads", "blocks_per_sm")
    rows = [[Cell(k["kernel"], markup=code(k["kernel"]).markup), k.get("arch", ""),
             *(num(digits(number(k.get(key)), 9), number(k.get(key)), "bad" if key.startswith("spill") and number(k.get(key)) else "")
               for key in keys), k.get("limited_by", "")] for k in kernels]
    return table("Kernels as the CUDA compiler reports them, and the blocks per multiprocessor that follow",
                 ["kernel", "arch", *(key.replace("_", " ") for key in keys), "limited by"], rows)


def headline(lines):
    """One line on the benchmarks: (text, class)."""
    failed = [line for line in lines if line.failed]
    skipped = [line for line in lines if line.problem and not line.failed]
    text = plural(len(lines), "benchmark")
    if skipped:
        text += f", {len(skipped)} skipped"
    return (text + f", {len(failed)} with an error", "bad") if failed else (text, "")
