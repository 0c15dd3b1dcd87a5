"""What check runs say: verdicts by family, failures, the share of the bound, changes against a base."""
import math
from collections import Counter, defaultdict
from dataclasses import dataclass

from .inputs import number

# In the order in which they matter.
BAD = ("crashed", "timed_out", "malformed", "failed", "refused", "mistrusted", "fixture_error")
HARMLESS = ("passed", "unsupported", "known_failure", "skipped")
KNOWN = BAD + ("known_failure", "skipped", "passed", "unsupported")


@dataclass
class Result:
    """One case and implementation."""
    data: dict
    source: str  # file that it was read from

    @property
    def key(self):
        return (self.data["implementation"], self.data["name"], self.data.get("file") or self.data.get("case", ""))

    @property
    def name(self):
        return self.data["name"]

    @property
    def implementation(self):
        return self.data["implementation"] or "(fixtures)"

    @property
    def verdict(self):
        return self.data["verdict"]

    @property
    def bad(self):
        """Whatever is not known to be harmless counts as bad, also verdicts that this page has no word for."""
        return self.verdict not in HARMLESS

    @property
    def family(self):
        return family_of(self.data)

    @property
    def tensors(self):
        return self.data.get("tensors", [])

    def used_share(self):
        """Largest error / bound of all tensors; None where nothing was compared by a bound."""
        shares = [number(tensor.get("used_share")) for tensor in self.tensors]
        shares = [math.inf if math.isnan(share) else share for share in shares if share is not None]
        return max(shares, default=None)


def family_of(data):
    """The first tag of the fixture; for case lines the family that they name, else the op."""
    tags = [tag.strip() for tag in data.get("tags", "").split(",") if tag.strip()]
    if tags:
        return tags[0]
    for word in data.get("case", "").split():
        if word.startswith("family="):
            return word[len("family="):]
    return "case lines" if data.get("case") else data["op"] or "(unreadable)"


def results_of(sources):
    return [Result(data, source.path) for source in sources for data in source.data["results"]]


def repeated(results):
    """How many results stand in more than one file: shards overlap, or a file was given twice."""
    return sum(count - 1 for count in Counter(result.key for result in results).values())


def shard_of(source):
    """(index, count, inputs) of a file that holds one of several shards, else None."""
    shard = source.data.get("shard")
    if not isinstance(shard, dict):
        return None
    index, count = shard.get("index"), shard.get("count")
    whole = all(isinstance(x, int) and not isinstance(x, bool) for x in (index, count))
    return (index, count, str(shard.get("inputs"))) if whole and 1 <= index <= count and count > 1 else None


def shard_notes(sources):
    """One line for every run of which there are only shards: which are missing, and what none of them can say."""
    runs = defaultdict(set)
    for source in sources:
        if shard := shard_of(source):
            runs[shard[1:]].add(shard[0])
    notes = []
    for (count, _), there in runs.items():
        missing = sorted(set(range(1, min(count, 10_000) + 1)) - there)
        if missing:
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            notes.append(f"{len(there)} of {count} shards: not {', '.join(map(str, missing[:5]))}{more}")
        else:
            notes.append(f"all {count} shards, each judged alone: whether errors lean over the whole run is for kdacheck merge")
    return notes


def counts(results):
    return Counter(result.verdict for result in results)


def verdicts_seen(results):
    """Columns of a table of verdicts: those that there are, between passed and unsupported."""
    seen = counts(results)
    order = [v for v in KNOWN if seen.get(v)] + [v for v in seen if v not in KNOWN]
    return ["passed", *(v for v in order if v not in ("passed", "unsupported")), "unsupported"]


def implementations(results):
    """In the order in which they first appear."""
    return list(dict.fromkeys(result.implementation for result in results))


def by_family(results):
    """{family: {implementation: Counter of verdicts}}, families sorted."""
    table = defaultdict(lambda: defaultdict(Counter))
    for result in results:
        table[result.family][result.implementation][result.verdict] += 1
    return {family: table[family] for family in sorted(table)}


def failures(results):
    """Everything that is neither passed nor unsupported, the worst kinds first, then in order of the run."""
    order = {verdict: i for i, verdict in enumerate(BAD)}
    return sorted((result for result in results if result.bad), key=lambda r: order.get(r.verdict, -1))


def place(at):
    """n=0 t=42 hv=1 v=3, with what there is of it."""
    if not isinstance(at, dict):
        return ""
    return " ".join(f"{key}={at[key]}" for key in ("chunk", "n", "t", "hv", "k", "v") if key in at)


@dataclass
class Changes:
    """What differs from a base run, each a list of (result, base result or None)."""
    broke: list
    fixed: list
    new: list
    gone: list
    same: int


def changes(results, base):
    """By implementation and case; files may lie elsewhere, so where two cases share a name they are not told
    apart. The verdict of a case that is there twice is its worst one."""
    def index(runs):
        table = {}
        for result in runs:
            key = (result.implementation, result.data["op"], result.name)
            if key not in table or (result.bad and not table[key].bad):
                table[key] = result
        return table

    now, before = index(results), index(base)
    out = Changes([], [], [], [], 0)
    for key, result in now.items():
        if key not in before:
            out.new.append((result, None))
        elif result.verdict == before[key].verdict:
            out.same += 1
        elif result.bad:
            out.broke.append((result, before[key]))
        elif before[key].bad:
            out.fixed.append((result, before[key]))
        elif before[key].verdict == "passed":  # no longer judged is a loss, too
            out.broke.append((result, before[key]))
        elif result.verdict == "passed":
            out.fixed.append((result, before[key]))
        else:  # not judged for one reason or another
            out.same += 1
    out.gone = [(before[key], before[key]) for key in before if key not in now]
    return out


LIMITS = ("element", "row", "group", "bias")


def limit_shares(tensor):
    """{limit: share} of policy derived: how much of each kind of limit the tensor uses."""
    sigma = tensor.get("sigma", {})
    shares = {key: sigma[key].get("share") for key in LIMITS if isinstance(sigma.get(key), dict)}
    return {key: number(value) for key, value in shares.items() if number(value) is not None}


def biases(sources):
    """[(entry, path)]: errors of one implementation that lean to one side over all cases of a run."""
    return [(entry, source.path) for source in sources for entry in source.data.get("bias", [])]


MOST_STEP = 1 << 62  # tokens are counted in int64; a larger step has no place on the axis


def token_profiles(results):
    """{implementation: [(result, step, shares)]} of tensor o; a share of nan is infinite, as in used_share()."""
    table = defaultdict(list)
    for result in results:
        for tensor in result.tensors:
            tokens = tensor.get("tokens", {})
            step, shares = tokens.get("step"), tokens.get("used_share")
            if tensor["name"] != "o" or not isinstance(step, int) or not 1 <= step <= MOST_STEP \
                    or not isinstance(shares, list):
                continue
            values = [number(share) for share in shares]
            if values and all(value is not None for value in values):
                values = [math.inf if math.isnan(value) else value for value in values]
                table[result.implementation].append((result, step, values))
    return table
