"""Text and numbers as a page shows them. Names come from files and users: none may forge markup or lines."""
import html
import math
import re
import unicodedata


def clean(value):
    """Text without characters that hide, reorder or break it: controls, direction marks, lone surrogates."""
    out = []
    for char in str(value):
        category = unicodedata.category(char)
        if char in "\n\t":
            out.append(" ")
        elif category in ("Cc", "Cs") or char in "\u200b\u200e\u200f\u2028\u2029\u2060\ufeff" \
                or "\u202a" <= char <= "\u202e" or "\u2066" <= char <= "\u2069":
            out.append("\ufffd")
        else:
            out.append(char)
    return "".join(out)


def escaped(value):
    """For HTML text and attributes."""
    return html.escape(clean(value), quote=True)


def escaped_lines(value, most=200):
    """The last lines of a longer text."""
    return "\n".join(escaped(line) for line in str(value).splitlines()[-most:])


def in_plot(value, most=60):
    """For matplotlib, which takes what stands between dollars for mathematics. Long names would leave no
    room for the drawing."""
    text = clean(value)
    return (text if len(text) <= most else text[:most - 1] + "\u2026").replace("$", r"\$")


def code_span(value):
    """For Markdown: nothing in it is markup, a mention or the end of a table cell."""
    text = clean(value).replace("|", "\u2758")
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text.strip() else "(empty)"


def digits(x, count=3):
    """A number in few digits; a dash for none."""
    if x is None:
        return "\u2013"
    if not math.isfinite(x):
        return {math.inf: "inf", -math.inf: "-inf"}.get(x, "nan")
    return str(int(x)) if x == int(x) and abs(x) < 1e6 else f"{x:.{count}g}"


def with_unit(x, steps):
    """The number in the unit that leaves 1 ... 1000 before the point."""
    if x is None or not math.isfinite(x) or x == 0:
        return digits(x)
    for factor, unit in steps:
        if abs(x) >= factor:
            return f"{x / factor:.3g} {unit}"
    factor, unit = steps[-1]
    return f"{x / factor:.3g} {unit}"


def seconds(x):
    return with_unit(x, ((1, "s"), (1e-3, "ms"), (1e-6, "\u00b5s"), (1e-9, "ns")))


def amount(x, unit=""):
    """1.5 GB, 3 T: decimal steps."""
    return with_unit(x, ((1e12, "T" + unit), (1e9, "G" + unit), (1e6, "M" + unit), (1e3, "k" + unit),
                         (1, unit))).strip()


def plural(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
