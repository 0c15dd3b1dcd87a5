"""The summary for a CI page or a comment: short, whatever the size of the run."""
from . import bench, check, page
from .inputs import number
from .page_bench import fraction_cell
from .words import clean, code_span, digits, plural, seconds

MOST_FAILURES = 20
MOST_LINES = 40
MOST_BYTES = 60000  # GitHub takes 65536 for a comment


def plain(text):
    """Text in which nothing is markup, a mention or a reference."""
    return "".join("\\" + c if c in "\\`*_[]#|~" else {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;"}.get(c, c)
                   for c in clean(text))


def row(*cells):
    return "| " + " | ".join(cells) + " |\n"


def verdict_table(results):
    names = check.implementations(results)
    columns = check.verdicts_seen(results)
    text = row("implementation", *(c.replace("_", " ") for c in columns)) + row("---", *("---:" for _ in columns))
    for name in names:
        counts = check.counts([r for r in results if r.implementation == name])
        text += row(code_span(name), *(str(counts.get(c, 0)) for c in columns))
    return text + "\n"


def failure_list(results):
    bad = check.failures(results)
    if not bad:
        return ""
    text = f"### {plural(len(bad), 'failure')}\n\n"
    for result in bad[:MOST_FAILURES]:
        data = result.data
        worst = next((t for t in result.tensors if t.get("passed") is False), {})
        where = check.place(worst.get("worst", {}).get("place"))
        detail = data.get("detail", "")
        detail = detail if len(detail) <= 300 else detail[:297] + "..."
        text += f"- **{plain(result.verdict.replace('_', ' '))}** {code_span(result.name)} {code_span(result.implementation)}"
        text += (f" at {code_span(where)}" if where else "") + (f": {plain(detail)}" if detail else "") + "\n"
        if data.get("command"):
            text += f"  - repeat: {code_span(data['command'][:500])}\n"
    if len(bad) > MOST_FAILURES:
        text += f"- and {len(bad) - MOST_FAILURES} more: see the page\n"
    return text + "\n"


def bench_table(lines, base):
    if not lines:
        return ""
    before = {entry.name: entry for entry in bench.ratios(lines, base)} if base else {}
    text = row("benchmark", "time", "floor", "fraction", *(["new / base"] if base else []))
    text += row("---", "---:", "---:", "---:", *(["---:"] if base else []))
    for line in lines[:MOST_LINES]:
        ratio = before[line.name].ratio if line.name in before else None
        time = plain(line.problem[:80]) if line.problem else seconds(line.median)
        text += row(code_span(line.name), time, seconds(line.counter("floor_s")), fraction_cell(line).text,
                    *([digits(ratio, 4)] if base else []))
    if len(lines) > MOST_LINES:
        text += f"\n{len(lines) - MOST_LINES} more lines are on the page.\n"
    return "### Benchmarks\n\n" + text + "\n"


def comparisons(sources):
    text = ""
    for source in sources:
        worse = [line for line in source.data["lines"] if line["verdict"] in ("slower", "grew")]
        for line in worse[:MOST_LINES]:
            what = line.get("name") or " ".join(str(line.get(k, "")) for k in ("kernel", "case", "counter"))
            change = f"{digits(number(line.get('ratio')), 4)} times" if number(line.get("ratio")) else \
                f"{digits(number(line.get('base')), 12)} to {digits(number(line.get('new')), 12)}"
            text += f"- **{plain(line['verdict'])}** {code_span(what)}: {change}\n"
    return "### Slower, or more\n\n" + text + "\n" if text else ""


def changes(results, base):
    if not base:
        return ""
    diff = check.changes(results, base)
    text = (f"Against the base: {len(diff.broke)} broke, {len(diff.fixed)} fixed, {len(diff.new)} new, {len(diff.gone)} gone, "
            f"{diff.same} the same.\n")
    for result, before in diff.broke[:MOST_FAILURES]:
        text += f"- broke: {code_span(result.name)} {code_span(result.implementation)}, {plain(before.verdict)} before\n"
    return text + "\n"


def render(inputs, title):
    results = check.results_of(inputs.of("check"))
    lines = bench.lines_of(inputs.of("bench"))
    text = f"## {plain(title)}\n\n"
    for line, kind in page.headline(inputs, results, lines):
        text += f"- {'**' if kind == 'bad' else ''}{plain(line)}{'**' if kind == 'bad' else ''}\n"
    text += "\n"
    if results:
        text += verdict_table(results) + changes(results, check.results_of(inputs.base_of("check"))) + failure_list(results)
    text += comparisons(inputs.of("comparison"))
    text += bench_table(lines, bench.lines_of(inputs.base_of("bench")))
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        cut = text.encode("utf-8", "replace")[:MOST_BYTES].decode("utf-8", "ignore")
        text = cut[:cut.rindex("\n") + 1] + "\nCut here: the rest is on the page.\n"
    return text
