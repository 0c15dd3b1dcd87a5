"""Mutation runs: which faults put into the code the checks see, by policy."""
from .html import Cell, note, num, table
from .inputs import number
from .words import digits

CLASSES = {"gross": "gross: more than 10 bounds off", "subtle": "subtle: 1 to 10 bounds off", "within": "within the bound",
           "protocol": "protocol: refusals, shapes, reports"}


def policies(source):
    """In the order of the file; the first is the one that counts."""
    seen = {}
    for counts in source.data.get("counts", {}).values():
        seen.update(dict.fromkeys(key for key in counts if key != "mutants"))
    first = [p for p in seen if p == "default"]
    return first + [p for p in seen if p != "default"]


def alive(source):
    """Faults that change a result somewhere: only these count."""
    return [mutant for mutant in source.data["mutants"] if mutant["state"] != "equivalent"]


def complaints(source):
    found = source.data.get("complaints", [])
    return [str(line) for line in found] if isinstance(found, list) else []


def score(source):
    """(seen, of how many) under the policy that counts."""
    mutants = alive(source)
    return sum(m["state"] == "killed" for m in mutants), len(mutants)


def headline(sources):
    out = []
    for source in sources:
        seen, count = score(source)
        bad = complaints(source) or not count
        out.append((f"Mutation: {seen} of {count} faults seen", "bad" if bad else "good" if seen == count else ""))
    return out


def by_class(source):
    names = policies(source)
    rows = []
    for key, counts in source.data.get("counts", {}).items():
        total = number(counts.get("mutants"))
        rows.append([CLASSES.get(key, key), num(digits(total), total),
                     *(num(digits(number(counts.get(p))), number(counts.get(p))) for p in names)])
    return table("Faults seen by size of their effect and by policy", ["effect", "faults", *names], rows) if rows else ""


STATES = {"killed": ("seen", "good"), "survived": ("survives", "bad"), "equivalent": ("no effect", "soft")}


def mutant_row(mutant, names):
    text, kind = STATES.get(mutant["state"], (mutant["state"], "warn"))
    if mutant["state"] == "survived" and mutant.get("explanation"):
        kind = "warn"
    effect = number(mutant.get("effect"))
    killed = mutant.get("killed_by_policy")
    killed = killed if isinstance(killed, dict) else {}
    return [mutant["name"], Cell(text, kind=kind), str(mutant.get("class", "")), num(digits(effect), effect),
            str(mutant.get("kernel", "")), str(mutant.get("description", "")), *(str(killed.get(p) or "\u2013") for p in names),
            str(mutant.get("explanation", ""))]


def section(sources):
    text = ""
    for source in sources:
        seen, count = score(source)
        share = f" ({digits(100 * seen / count)} %)" if count else ""
        text += note(f"{source.path}: {seen} of {count} faults seen{share}.", "good" if count and seen == count else "")
        text += "".join(note(line, "bad") for line in complaints(source))
        text += by_class(source)
        names = policies(source) or ["default"]
        order = sorted(source.data["mutants"], key=lambda m: ("survived", "killed", "equivalent").index(m["state"])
                       if m["state"] in STATES else -1)
        text += table("Faults put into the code, survivors first",
                      ["fault", "state", "class", "effect / bound", "in", "what it does", *names, "why it may survive"],
                      [mutant_row(m, names) for m in order])
    return text
