"""Puts the sections together."""
from . import bench, check, page_bench, page_check, page_mutate
from .figure import Figures
from .html import note, page, table
from .words import clean, escaped, plural

# Keys of benchmark contexts that say nothing about the machine.
NOT_ENVIRONMENT = ("caches", "load_avg", "executable", "kdacheck_bench")


def environment(inputs):
    """A row for every fact, a column for every file; facts that all files agree on come once."""
    columns = []
    for source, which in [(s, "") for s in inputs.sources] + [(s, "base: ") for s in inputs.base]:
        facts = source.data.get("environment") or source.data.get("context")
        if isinstance(facts, dict):
            columns.append((which + source.path, {clean(key): value_text(value) for key, value in facts.items()
                                                  if key not in NOT_ENVIRONMENT}))
    if not columns:
        return ""
    keys = list(dict.fromkeys(key for _, facts in columns for key in facts))
    rows = [[key, *(facts.get(key, "\u2013") for _, facts in columns)] for key in keys]
    return table("What the files say about where they were made", ["", *(path for path, _ in columns)], rows)


def value_text(value):
    if isinstance(value, (dict, list)):
        return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else ", ".join(map(str, value))
    return str(value)


def headline(inputs, results, lines):
    """[(text, class)]: what a reader who sees nothing else must know."""
    out = []
    if results:
        counts = check.counts(results)
        bad = sum(result.bad for result in results)
        unproved = {v: counts[v] for v in ("known_failure", "skipped") if counts.get(v)}  # neither passed nor failed
        judged = len(results) - counts.get("unsupported", 0) - counts.get("fixture_error", 0) - sum(unproved.values())
        if bad or not judged:
            out.append((f"Check: {page_check.tally(counts)}" if judged or bad else "Check: nothing was compared", "bad"))
        else:
            beside = "".join(f", {number} {verdict.replace('_', ' ')}" for verdict, number in unproved.items())
            out.append((f"Check: all {judged} results passed{beside}", "bad" if "skipped" in unproved else "good"))
    elif inputs.of("check"):
        out.append(("Check: no result in it", "bad"))
    for source in inputs.of("check"):
        errors = len(source.data.get("input_errors", []))
        if errors or source.data.get("interrupted") is True:
            out.append((f"{source.path}: " + ("interrupted" if source.data.get("interrupted") is True else f"{plural(errors, 'input')} could not be read"), "bad"))
        if source.data.get("stopped"):
            out.append((f"{source.path}: stopped before its last case", "bad"))
    out += [(note, "bad" if " shards: not " in note else "") for note in check.shard_notes(inputs.of("check"))]
    for entry, path in check.biases(inputs.of("check")):
        if entry.get("passed") is False:
            out.append((f"{path}: the errors of {entry['implementation']} lean to one side over the run", "bad"))
    if lines:
        text, kind = page_bench.headline(lines)
        out.append((f"Benchmarks: {text}", kind))
    for source in inputs.of("comparison"):
        counts = source.data.get("counts", {})
        counts = counts if isinstance(counts, dict) else {}
        worse = (counts.get("slower") or 0) or (counts.get("grew") or 0)
        out.append((f"Comparison: {', '.join(f'{v} {k}' for k, v in counts.items())}", "bad" if worse else ""))
    out += page_mutate.headline(inputs.of("mutate"))
    return out


def render(inputs, title):
    """The whole page as text."""
    figures = Figures()
    results = check.results_of(inputs.of("check"))
    base_results = check.results_of(inputs.base_of("check"))
    lines = bench.lines_of(inputs.of("bench"))
    lead = "".join(f'<p class="verdict {kind}">{escaped(text)}</p>\n' for text, kind in headline(inputs, results, lines))
    sections = [
        ("verdicts", "Verdicts", page_check.input_errors(inputs.of("check")) + page_check.repeated(results)
         + (page_check.verdicts(results) if results else "")),
        ("failures", "Failures", (page_check.failures(results) + page_check.not_proved(results)) if results else ""),
        ("changes", "Changes against the base", page_check.changes(results, base_results)),
        ("accuracy", "Accuracy", (page_check.accuracy(results, figures) if results else "") + page_check.bias(inputs.of("check"))),
        ("mutation", "Mutation score", page_mutate.section(inputs.of("mutate"))),
        ("benchmarks", "Benchmarks", page_bench.benchmarks(lines, figures)),
        ("ratios", "Times against the base", page_bench.ratios(lines, bench.lines_of(inputs.base_of("bench")))),
        ("comparison", "Comparison", "".join(map(page_bench.comparison, inputs.of("comparison")))),
        ("counters", "Counters", page_bench.counters(inputs.of("counters"), inputs.base_of("counters"))),
        ("environment", "Environment", environment(inputs)),
    ]
    files = note("Made from: " + ", ".join(s.path for s in inputs.sources)
                 + ("; base: " + ", ".join(s.path for s in inputs.base) if inputs.base else ""), "soft")
    return page(title, lead + files, sections)
