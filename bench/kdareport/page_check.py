"""Sections of the page that come from check runs and mutation runs."""
from . import check, plots_check
from .html import Cell, note, num, table
from .inputs import number
from .words import digits, escaped, escaped_lines, plural, seconds

MOST_WINDOWS = 200  # failures that are shown with both arrays; all are listed
MOST_INDEX = 1 << 62  # of rows and columns of a tensor; Python prints no number of more than 4300 digits


def tally(counter):
    """'19 passed, 2 failed' of a Counter, what matters first."""
    order = check.KNOWN
    names = [v for v in order if counter.get(v)] + [v for v in counter if v not in order]
    return ", ".join(f"{counter[v]} {v.replace('_', ' ')}" for v in names)


def verdict_cell(counter):
    bad = sum(n for v, n in counter.items() if v not in check.HARMLESS)
    passed = counter.get("passed", 0)
    if bad:
        rest = {v: n for v, n in counter.items() if v not in ("passed", "unsupported", "skipped")}
        text = f"{tally(rest)} of {bad + passed + counter.get('known_failure', 0)}"
        return Cell(text, -bad, "bad")
    if passed or counter.get("known_failure"):
        known = counter.get("known_failure", 0)
        return Cell(f"{passed} passed" + (f", {known} known failures" if known else ""), passed, "good")
    return Cell("\u2013" if not counter else tally(counter), "", "warn" if counter.get("skipped") else "soft")


def verdicts(results):
    """By family, a column for every implementation."""
    names = check.implementations(results)
    families = check.by_family(results)
    rows = [[family, *(verdict_cell(row.get(name, {})) for name in names)] for family, row in families.items()]
    shown = check.verdicts_seen(results)
    totals = [[name, *(num(str(c.get(v, 0)), c.get(v, 0), "bad" if c.get(v) and v in check.BAD else "") for v in shown)]
              for name in names for c in [check.counts([r for r in results if r.implementation == name])]]
    return (table("Verdicts by implementation", ["implementation", *(v.replace("_", " ") for v in shown)], totals)
            + note("The family of a case is the first tag of its fixture.", "soft") + table("Verdicts by family", ["family", *names], rows))


def window(data, worst):
    """Expected and got around the worst element, row under row."""
    cells = {key: data.get(key) for key in ("rows", "cols", "first_row", "first_col")}
    values = {key: data.get(key) for key in ("expected", "got")}
    if not all(isinstance(x, int) and not isinstance(x, bool) for x in cells.values()) or \
            not all(isinstance(x, list) and len(x) == cells["rows"] * cells["cols"] for x in values.values()):
        return ""
    if not 0 < cells["rows"] * cells["cols"] <= 400 or max(map(abs, cells.values())) > MOST_INDEX:
        return ""
    at = worst.get("place", {}) if isinstance(worst.get("place"), dict) else {}
    axis = "k" if "k" in at else "t"
    here = (at.get(axis), at.get("v"))
    rows = ""
    for i in range(cells["rows"]):
        for key in ("expected", "got"):
            line = "".join(
                f'<td class="num{" here" if (cells["first_row"] + i, cells["first_col"] + j) == here else ""}">'
                f'{escaped(digits(number(values[key][i * cells["cols"] + j]), 7))}</td>' for j in range(cells["cols"]))
            rows += f'<tr><th scope="row">{axis}={cells["first_row"] + i} {key}</th>{line}</tr>\n'
    heads = "".join(f'<th scope="col">v={cells["first_col"] + j}</th>' for j in range(cells["cols"]))
    return f'<div class="wide"><table class="window"><thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def finding(title, data):
    if not data:
        return ""
    values = ", ".join(f"{key} {digits(number(data.get(key)), 9)}" for key in ("expected", "got", "bound"))
    return f"<p>{escaped(title)}: <b>{escaped(check.place(data.get('place')))}</b> \u2014 {escaped(values)}</p>"


def failed_tensor(tensor, with_window):
    metrics = tensor.get("metrics", {})
    facts = ", ".join(f"{key.replace('_', ' ')} {digits(number(metrics.get(key)))}"
                      for key in ("max_abs", "max_rel", "rms_ratio", "max_ulp", "bad", "compared") if key in metrics)
    out = f"<p><b>{escaped(tensor['name'])}</b>: {escaped(tensor.get('reason', ''))} \u2014 {escaped(tensor.get('detail', ''))}"
    out += f' <span class="soft">({escaped(facts)})</span></p>'
    out += finding("worst", tensor.get("worst")) + finding("first over the bound", tensor.get("first_bad"))
    return out + (window(tensor.get("window", {}), tensor.get("worst", {})) if with_window else "")


def failure(result, with_window):
    data = result.data
    head = " ".join(filter(None, (result.verdict.upper().replace("_", " "), result.name, result.implementation, data.get("code", ""))))
    body = f"<p>{escaped(data.get('detail', ''))}</p>"
    body += "".join(failed_tensor(t, with_window) for t in result.tensors if t.get("passed") is False)
    if data.get("output"):
        body += f"<p>what it printed:</p><pre>{escaped_lines(data['output'])}</pre>"
    if data.get("oracle"):
        body += f'<p class="soft">expected values: {escaped(data["oracle"])}; policy: {escaped(data.get("policy") or "none")}</p>'
    if data.get("command"):
        body += f"<p>repeat:</p><pre><code>{escaped(data['command'])}</code></pre>"
    return f'<details class="failure"{" open" if with_window else ""}><summary><b>{escaped(head)}</b></summary>{body}</details>\n'


def failures(results):
    bad = check.failures(results)
    if not bad:
        return note("None.", "good")
    text = "".join(failure(result, i < MOST_WINDOWS) for i, result in enumerate(bad))
    if len(bad) > MOST_WINDOWS:
        text = note(f"{len(bad)} in all; both arrays are shown for the first {MOST_WINDOWS}.") + text
    return text


def not_proved(results):
    """Known failures and what was skipped, with the reason: neither passed nor failed."""
    rows = [[r.name, r.implementation, Cell(r.verdict.replace("_", " "), kind="warn"), r.data.get("code", ""),
             r.data.get("known_failure") or r.data.get("detail", "")] for r in results if r.verdict in ("known_failure", "skipped")]
    return table("Known failures, and what was skipped", ["case", "implementation", "verdict", "code", "reason"], rows) if rows else ""


def lists(source, key):
    found = source.data.get(key, [])
    return [str(entry) for entry in found] if isinstance(found, list) else []


def input_errors(sources):
    lines = [f"{source.path}: {name} was asked for and ran no case" for source in sources for name in lists(source, "idle")]
    lines += [f"{source.path}: {text}" for source in sources for text in lists(source, "notes")]
    lines += [f"{source.path}: {error}" for source in sources for error in source.data.get("input_errors", [])]
    lines += [f"{source.path}: interrupted, the cases after these were not run" for source in sources
              if source.data.get("interrupted") is True]
    lines += [f"{source.path}: stopped, {source.data['stopped']}: {source.data.get('not_run')} more cases were not run"
              for source in sources if source.data.get("stopped")]
    return "".join(note(line, "bad") for line in lines) + "".join(note(line) for line in check.shard_notes(sources))


def accuracy(results, figures):
    plots = (plots_check.error_against_bound(results, figures) + plots_check.error_against_token(results, figures)
             + plots_check.share_by_family(results, figures))
    if not plots:
        return ""
    rows = []
    judged = any(check.limit_shares(tensor) for result in results for tensor in result.tensors)
    for result in sorted(results, key=lambda r: -(r.used_share() or 0))[:200]:
        if result.used_share() is None:
            continue
        worst = max(result.tensors, key=lambda t: number(t.get("used_share")) or 0)
        shares, sigma = check.limit_shares(worst), worst.get("sigma", {})
        limits = [num(digits(shares.get(key)), shares.get(key), "bad" if shares.get(key, 0) > 1 else "") for key in check.LIMITS]
        limits += [num(digits(number(sigma.get(key))), number(sigma.get(key))) for key in ("rms", "resolution")]
        rows.append([result.name, result.implementation, result.family, worst["name"],
                     num(digits(result.used_share()), result.used_share(), "bad" if result.bad else ""),
                     *(limits if judged else []), Cell(check.place(worst.get("worst", {}).get("place")), kind="line"),
                     num(seconds(number(result.data.get("seconds"))), number(result.data.get("seconds")))])
    return f'<div class="figures">{plots}</div>' + (note(LIMITS_SAID, "soft") if judged else "") + table(
        "The 200 cases that used most of their bound",
        ["case", "implementation", "family", "tensor", "share of the bound", *(["element", "row", "group", "bias", "RMS z", "resolution"]
         if judged else []), "worst at", "time"], rows)


LIMITS_SAID = ("Element, row, group, bias: share of each limit of policy derived; RMS z: of error / standard deviation; resolution: "
               "relative error from which an element fails.")


def bias(sources):
    """Over all cases of a run: errors must not lean to one side."""
    entries = check.biases(sources)
    rows = [[entry["implementation"], num(digits(number(entry.get("cases"))), number(entry.get("cases"))),
             num(digits(number(entry.get("mean"))), number(entry.get("mean"))), num(digits(number(entry.get("t"))), number(entry.get("t"))),
             Cell("failed" if entry.get("passed") is False else "passed", kind="bad" if entry.get("passed") is False else "good"), path]
            for entry, path in entries]
    return note("Over all cases of a run the errors of an implementation must not lean to one side: mean of z, the error over its "
                "standard deviation, away from zero, and t of that mean.", "soft") + table("Bias over a run",
                 ["implementation", "cases", "mean", "t", "verdict", "file"], rows) if rows else ""


def changes(results, base):
    if not base:
        return ""
    diff = check.changes(results, base)
    rows = []
    for what, entries in (("broke", diff.broke), ("fixed", diff.fixed), ("new", diff.new), ("gone", diff.gone)):
        for result, before in entries:
            now = "\u2013" if what == "gone" else result.verdict
            kind = "bad" if what == "broke" or (what == "new" and result.bad) else "good" if what == "fixed" else "warn"
            rows.append([Cell(what, kind=kind), result.name, result.implementation, before.verdict if before else "\u2013", now])
    text = note(f"{len(diff.broke)} broke, {len(diff.fixed)} fixed, {len(diff.new)} new, {len(diff.gone)} gone, {diff.same} the same.",
                "bad" if diff.broke else "")
    return text + (table("Verdicts that changed", ["change", "case", "implementation", "base", "now"], rows) if rows else "")


def repeated(results):
    count = check.repeated(results)
    return note(f"{plural(count, 'result')} stand in more than one file and are counted each time.", "warn") if count else ""
