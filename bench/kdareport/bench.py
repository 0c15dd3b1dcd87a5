"""What benchmark files say: medians, floors, the slope against T and H, ratios to a base."""
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

from .inputs import number

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
SKIPPED = "skipped: "
LEAST, MOST = 1e-150, 1e150  # seconds, counters: keeps ratios of what a file holds within the range of a double
MOST_DIGITS = 18  # of T or H in a name; what is longer is no extent
DRAWN = (1e-100, 1e100)  # flops/s, bytes/s, flops a byte: matplotlib overflows near the ends of the doubles


@dataclass
class Line:
    """One benchmark, all its repetitions."""
    name: str
    source: str
    seconds: list = field(default_factory=list)
    counters: dict = field(default_factory=dict)
    problem: str = ""  # why there are no times, or not all; "skipped: ..." is no error
    impossible: bool = False

    @property
    def median(self):
        return median(self.seconds) if self.seconds else None

    @property
    def spread(self):
        """(largest - smallest) / median of the repetitions; None for one."""
        return (max(self.seconds) - min(self.seconds)) / self.median if len(self.seconds) > 1 else None

    @property
    def failed(self):
        return bool(self.problem) and not self.problem.startswith(SKIPPED)

    def counter(self, key):
        return self.counters.get(key)

    @property
    def fraction(self):
        """Of the floor: from the median, where the file states the floor; else what the file says."""
        floor = self.counter("floor_s")
        if floor is not None and floor > 0 and self.median:
            return floor / self.median
        return self.counter("fraction")


def lines_of(sources):
    """Every benchmark of every file, by name; lines of one name in one file are repetitions."""
    out = []
    for source in sources:
        table = {}
        for entry in source.data["benchmarks"]:
            if entry.get("run_type") == "aggregate":
                continue
            name = entry.get("run_name") or entry["name"]
            line = table.setdefault(name, Line(name, source.path))
            add(line, entry)
        out += sorted(table.values(), key=lambda line: natural(line.name))
    return out


def natural(name):
    """Sorts T512 before T2048; runs interleave their benchmarks in an order that says nothing."""
    parts = re.split(r"(\d+)", name)  # every second one is a number, too long for int() perhaps
    numbers = [part.lstrip("0") if i % 2 else "" for i, part in enumerate(parts)]
    return [(i % 2, len(numbers[i]), numbers[i] if i % 2 else part) for i, part in enumerate(parts)]


def add(line, entry):
    if entry.get("error_occurred"):
        line.problem = str(entry.get("error_message") or "an error without a message")
        return
    unit = UNITS.get(entry.get("time_unit", "ns"))
    time = number(entry.get("real_time"))
    if unit is None:
        line.problem = f"time_unit {entry.get('time_unit')} is not known"
    elif time is None or not time > 0:
        line.problem = f"real_time is {entry.get('real_time')}, not a positive time"
    elif not LEAST < time * unit < MOST:
        line.problem = f"real_time is {entry.get('real_time')}, not between {LEAST:g} s and {MOST:g} s"
    else:
        line.seconds.append(time * unit)
        for key, value in entry.items():
            if (x := number(value)) is not None and abs(x) < MOST:  # not NaN, nor infinite
                line.counters.setdefault(key, x)
    if "impossible" in str(entry.get("label", "")):
        line.impossible = True


@dataclass
class Slope:
    """log(time) against log(T) or log(H), all else in the name being equal."""
    name: str  # with the varied number replaced by *
    axis: str  # "T", "H" or "TH", their product
    points: list  # (extent, seconds), ascending
    slope: float
    error: float  # standard error; nan for two points


def extent(name, axis):
    """(value, name without it) for names such as impl/fast/T2048_H8 or .../T:2048/H:8; None without."""
    found = re.search(rf"(?<![A-Za-z]){axis}[:=]?(\d+)", name)
    if not found or len(found[1]) > MOST_DIGITS or int(found[1]) == 0:
        return None
    return int(found[1]), name[:found.start(1)] + "*" + name[found.end(1):]


def fit_slope(points):
    """Least squares of log y = s log x + c: (s, standard error); None for extents whose logarithms are the same."""
    xs = [math.log(x) for x, _ in points]
    ys = [math.log(y) for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    sxx = sum((x - mean_x) ** 2 for x in xs)
    if not sxx:  # 10^15 and 10^15 + 1
        return None
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sxx
    if len(points) < 3:
        return slope, math.nan
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in zip(xs, ys))
    return slope, math.sqrt(rest / (len(points) - 2) / sxx)


def slopes(lines):
    """One for every group of lines that differ in T only, or in H only, and have 2 extents or more; lines with
    both that are in no such group are fitted against their product."""
    groups = defaultdict(list)
    for line in (line for line in lines if line.median):
        for axis in ("T", "H"):
            at = extent(line.name, axis)
            if at:
                groups[axis, at[1]].append((at[0], line))
    fitted = {key: members for key, members in groups.items() if len({x for x, _ in members}) > 1}
    used = {line.name for members in fitted.values() for _, line in members}
    for line in (line for line in lines if line.median and line.name not in used):
        tokens = extent(line.name, "T")
        heads = extent(tokens[1], "H") if tokens else None
        if heads:
            fitted.setdefault(("TH", heads[1]), []).append((tokens[0] * heads[0], line))
    out = []
    for (axis, name), members in fitted.items():
        best = {}
        for x, line in members:  # the same line in two files: the faster one
            best[x] = min(line.median, best.get(x, math.inf))
        points = sorted(best.items())
        if len(points) > 1 and (fit := fit_slope(points)):
            out.append(Slope(name, axis, points, *fit))
    return sorted(out, key=lambda s: (("T", "H", "TH").index(s.axis), s.name))


@dataclass
class Point:
    """A line on the roofline plot."""
    name: str
    intensity: float  # flops a byte that must be moved
    rate: float       # flops/s reached


def drawn(*values):
    """Whether all have a place on a logarithmic axis; nan has none."""
    return all(DRAWN[0] < x < DRAWN[1] for x in values)


def roofline_points(lines):
    out = []
    for line in lines:
        moved, flops = line.counter("min_bytes"), line.counter("min_flops")
        if line.median and moved and flops and moved > 0 and flops > 0:
            point = Point(line.name, flops / moved, flops / line.median)
            if drawn(point.intensity, point.rate):
                out.append(point)
    return out


def roofs(lines):
    """[(name, bytes/s, flops/s)]: the rates that the run measured, in its lines rate/...; in a file without them,
    what the floors imply. A floor is max(bytes / bandwidth, flops / rate): no roof is below what any line says.
    Rates that cannot be drawn are left out."""
    out = []
    for line in lines:
        if line.name.startswith("rate/") and (bandwidth := line.counter("bytes/s") or 0) > 0:
            device = line.name.split("/")[1]
            for key, unit in (("flops/s", ""), ("mma_flops/s", " mma")):
                if drawn(bandwidth, rate := line.counter(key) or 0):
                    out.append((device + unit, bandwidth, rate))
    if out:
        return out
    table = {}
    for line in lines:
        moved, flops, floor = (line.counter(key) for key in ("min_bytes", "min_flops", "floor_s"))
        if moved and flops and floor and min(moved, flops, floor) > 0:
            roof = table.setdefault(line.name.split("/")[0], [0, 0])
            roof[:] = [max(roof[0], moved / floor), max(roof[1], flops / floor)]
    return [(name, *roof) for name, roof in table.items() if drawn(*roof)]


@dataclass
class Ratio:
    """A line against the base's line of the same name."""
    name: str
    base: Line  # None where it is new
    line: Line  # None where it is gone

    @property
    def ratio(self):
        if self.base and self.line and self.base.median and self.line.median:
            return self.line.median / self.base.median
        return None


def ratios(lines, base):
    now = {line.name: line for line in lines}
    before = {line.name: line for line in base}
    return [Ratio(name, before.get(name), now.get(name)) for name in dict.fromkeys([*now, *before])]


def counter_rows(data):
    """[(implementation, case, kernel, counter, value)], numbers only, launches of one kernel in a case summed."""
    table = {}
    for case in data["cases"]:
        for launch in case.get("launches", []):
            for name, value in launch["counters"].items():
                if (x := number(value)) is not None:
                    key = (case.get("implementation", ""), case["case"], launch["kernel"], name)
                    table[key] = table.get(key, 0) + x
    for kernel in data.get("kernels", []):
        for name in ("registers", "spill_stores", "spill_loads", "stack", "static_shared"):
            if (x := number(kernel.get(name))) is not None:
                table["", str(kernel.get("arch", "")), kernel["kernel"], name] = x
    return [(*key, value) for key, value in table.items()]


def counter_changes(data, base):
    """[(implementation, case, kernel, counter, base, new)] of those that differ; None = not there."""
    now = {row[:4]: row[4] for row in counter_rows(data)}
    before = {row[:4]: row[4] for row in counter_rows(base)}
    return [(*key, before.get(key), now.get(key)) for key in dict.fromkeys([*now, *before])
            if before.get(key) != now.get(key)]
