"""Mutation runs: which faults put into a kernel the checks find."""
from .html import Cell, note, table
from .words import digits


def state(mutant):
    for key in ("state", "verdict", "status"):
        if isinstance(mutant.get(key), str):
            return mutant[key]
    return "killed" if mutant.get("killed") is True else "survived" if mutant.get("killed") is False else "?"


def score(source):
    """(killed, of how many that count): equivalent mutants and those that never ran do not."""
    states = [state(m) for m in source.data["mutants"]]
    return sum(s == "killed" for s in states), sum(s in ("killed", "survived") for s in states)


def headline(sources):
    out = []
    for source in sources:
        killed, count = score(source)
        out.append((f"Mutation: {killed} of {count} faults found", "bad" if killed < count or not count else "good"))
    return out


def section(sources):
    text = ""
    for source in sources:
        killed, count = score(source)
        share = 100 * killed / count if count else None
        text += note(f"{source.path}: {killed} of {count} faults found ({digits(share)} %).", "good" if count and killed == count else "bad")
        rows = [[m["name"], Cell(state(m), kind="bad" if state(m) == "survived" else "good" if state(m) == "killed" else "warn"),
                 *(str(m.get(key, "")) for key in ("kernel", "killed_by", "description"))] for m in source.data["mutants"]]
        text += table("Faults put into the kernels", ["fault", "state", "kernel", "found by", "what it does"], rows)
    return text
