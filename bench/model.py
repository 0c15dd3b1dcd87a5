#!/usr/bin/python3
"""The cost model of bench/model.md on paper: floors, what the kernels' design costs, expected times.

  bench/model.py              prints the tables
  bench/model.py --update     writes them into bench/model.md
  bench/model.py --check      exit 1 when bench/model.md holds other numbers
  bench/model.py --compare KDACHECK   exit 1 where `KDACHECK list plan` says something else

Written from the description of the kernels, apart from harness/plan/cost_model.cpp, so that each checks the other.
"""
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.md")
D = 128      # K = V
CHUNK = 64


@dataclass(frozen=True)
class Device:
    name: str
    sms: int
    clock: float      # Hz
    hbm: float        # bytes/s that copies reach
    l2: float         # bytes/s
    l2_bytes: float   # size
    mma_cycles: float  # a warp-wide m16n8k16, one scheduler
    matrix: float     # dense bf16 flop/s


DEVICES = (Device("A100", 108, 1.41e9, 1.75e12, 3.5e12, 40e6, 8.5, 312e12),
           Device("H100", 132, 1.755e9, 3.0e12, 5.5e12, 50e6, 7, 790e12),
           Device("H200", 132, 1.755e9, 4.3e12, 5.5e12, 50e6, 7, 790e12),
           Device("B200", 148, 1.85e9, 7.2e12, 9e12, 126e6, 8, 1800e12))

# Policy "mixed". Bytes of what the first kernel leaves for the second, of one chunk and head: four [64,128] 16-bit
# operands (Kg, Qg, Kd in two parts), the ten 16x16 blocks of T and of Q in two bf16 parts each, and the factors of channels and tokens.
BLOB = 4 * CHUNK * D * 2 + 2 * 2 * 10 * 16 * 16 * 2 + 2 * D * 4 + 3 * CHUNK * 4
FACTOR_SLOTS = 3900   # instructions that a scheduler issues for a chunk of the first kernel
ISSUE_RATE = 0.65     # of the cycles
CHAIN_MMA = 64 + 64 + 60 + 60 + 192   # P, Q S, T R, Q U, update: of a warp (16 columns) and chunk
CHAIN_FRAGMENTS = 336                # of 256 bytes, loaded for them
TUNED = 1.38          # expected / ideal of a tuned pipeline
RUNGS = (("first correct version, nothing overlapped", 4.2), ("copies overlapped", 1.7), ("tuned", TUNED))
LAUNCH = 3e-6         # seconds, of one kernel
RECURRENT = 1.3       # expected / floor of the recurrent kernel


@dataclass(frozen=True)
class Prefill:
    title: str
    lens: tuple
    H: int

    @property
    def tokens(self):
        return sum(self.lens)

    @property
    def chunks(self):
        return sum(math.ceil(n / CHUNK) for n in self.lens)


def floor_bytes(p):
    """q k v g o in bf16, beta in bf16, states in and out in f32: everything once."""
    return p.tokens * p.H * (5 * D * 2 + 2) + 2 * len(p.lens) * p.H * D * D * 4


def floor_flops(p):
    """6 K V for the state, 3 C K for scores and what comes of them, C^2 for the inverse, a token and head."""
    return p.tokens * p.H * (6 * D * D + 3 * CHUNK * D + CHUNK * CHUNK)


def prefill_times(p, dev):
    """{part: seconds} on the device."""
    blobs = p.chunks * p.H
    workspace = blobs * BLOB
    out = {"floor": max(floor_bytes(p) / dev.hbm, floor_flops(p) / dev.matrix)}
    out["factors hbm"] = (p.tokens * p.H * (3 * D * 2 + 2) + workspace) / dev.hbm
    out["factors issue"] = blobs / dev.sms * FACTOR_SLOTS / (ISSUE_RATE * dev.clock)
    chains = len(p.lens) * p.H
    columns = 32 if chains * D // 32 <= dev.sms else 64
    blocks = chains * D // columns
    mean = p.chunks / len(p.lens)
    # Chunks that the busiest multiprocessor goes through, all its blocks at once or in turn; a lone chain waits for itself.
    steps = max(math.ceil(max(p.lens) / CHUNK), math.ceil(blocks / dev.sms) * mean)
    warps = columns // 16
    out["chain mma"] = steps * CHAIN_MMA * dev.mma_cycles * max(1, warps / 4) / dev.clock
    out["chain smem"] = steps * warps * CHAIN_FRAGMENTS * 256 / 128 / dev.clock
    out["chain l2"] = (D // columns * workspace + p.chunks * p.H * CHUNK * D * 2) / dev.l2
    out["chain hbm"] = (workspace + p.tokens * p.H * 2 * D * 2 + 2 * len(p.lens) * p.H * D * D * 4) / dev.hbm
    parts = [[value for key, value in out.items() if key.startswith(kernel)] for kernel in ("factors", "chain")]
    out["ideal"] = sum(map(max, parts))
    out["expected"] = TUNED * out["ideal"] + 2 * LAUNCH
    return out


def decode_bytes(n, heads, state_bytes):
    """State in and out, and q k v g o in bf16 with beta, of one token."""
    return n * heads * (2 * D * D * state_bytes + 5 * D * 2 + 2)


def decode_times(n, heads, state_bytes, dev):
    floor = decode_bytes(n, heads, state_bytes) / dev.hbm
    return {"floor": floor, "expected": max(RECURRENT * floor, floor + LAUNCH),
            "hot": decode_bytes(n, heads, state_bytes) / 2 <= dev.l2_bytes}


SHAPES = ([Prefill(f"T=8192, H={h}", (8192,), h) for h in (64, 96)]
          + [Prefill(f"6 lengths, 8192 in all, H={h}", (1300, 547, 2048, 963, 271, 3063), h) for h in (64, 96)]
          + [Prefill(f"8 x 1024, H={h}", (1024,) * 8, h) for h in (64, 96)]
          + [Prefill(f"B={b}, T={t}, H=64", (t,) * b, 64) for b in (1, 2) for t in (512, 1024, 2048, 4096, 8192, 16384)])


def row(*cells):
    return "| " + " | ".join(cells) + " |\n"


def table(heads, rows):
    return row(*heads) + row("---", *("---:" for _ in heads[1:])) + "".join(row(*r) for r in rows)


def ms(x):
    return f"{1e3 * x:.3f}"


def tables():
    h200 = next(d for d in DEVICES if d.name == "H200")
    text = "### Prefill: floor and expected time, ms\n\n"
    text += table(("shape", "GB", "Gflop", *(f"{d.name} floor" for d in DEVICES), *(f"{d.name} expected" for d in DEVICES)),
                  [(p.title, f"{floor_bytes(p) / 1e9:.3f}", f"{floor_flops(p) / 1e9:.1f}",
                    *(ms(prefill_times(p, d)["floor"]) for d in DEVICES), *(ms(prefill_times(p, d)["expected"]) for d in DEVICES))
                   for p in SHAPES])
    parts = ("factors hbm", "factors issue", "chain mma", "chain smem", "chain l2", "chain hbm", "ideal", "expected")
    text += "\n### Prefill on H200: where the time goes, ms\n\n"
    text += table(("shape", "floor", *parts, "expected / floor"),
                  [(p.title, ms(t["floor"]), *(ms(t[key]) for key in parts), f"{t['expected'] / t['floor']:.1f}")
                   for p in SHAPES for t in [prefill_times(p, h200)]])
    text += "\n### Prefill on H200: what to expect of each stage of the work, ms\n\n"
    text += table(("shape", *(name for name, _ in RUNGS)),
                  [(p.title, *(ms(factor * prefill_times(p, h200)["ideal"] + 2 * LAUNCH) for _, factor in RUNGS)) for p in SHAPES[:6]])
    text += "\n### Decode, T = 1: floor / expected, \u00b5s\n\n"
    text += table(("shape", "MB", *(d.name for d in DEVICES)),
                  [(f"H={h}, {name} state, N={n}", f"{decode_bytes(n, h, size) / 1e6:.2f}",
                    *(f"{1e6 * t['floor']:.1f} / {1e6 * t['expected']:.1f}{' *' if t['hot'] else ''}" for d in DEVICES
                      for t in [decode_times(n, h, size, d)]))
                   for h in (64, 96) for name, size in (("f32", 4), ("bf16", 2)) for n in (1, 2, 4, 8, 16, 32, 64, 128, 256)])
    return text + "\n\\* the states fit into the L2: a loop over one set of inputs is faster than this floor and proves nothing.\n"


BEGIN, END = "<!-- tables: bench/model.py --update -->\n", "<!-- end of tables -->\n"


def page_with(text):
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    a, b = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page, page[:a] + "\n" + text + "\n" + page[b:]


def compare(program):
    """The largest difference to `list plan` over shapes and devices, by part."""
    worst = 0
    for p in SHAPES:
        batch = f"B={len(p.lens)} T={p.lens[0]}" if len(set(p.lens)) == 1 else f"lens={','.join(map(str, p.lens))}"
        line = f"op=kda_prefill {batch} H={p.H} initial_state=1 final_state=1"
        out = subprocess.run([program, "list", "plan", "--case", line], check=True, capture_output=True, text=True).stdout
        for dev in DEVICES:
            numbers = re.search(rf"^\s*{dev.name}\s+mixed\s+(.*)$", out, re.MULTILINE)
            if not numbers:
                sys.exit(f"model: no line of {dev.name} in: {out}")
            theirs = [float(x) for x in re.sub(r"\d+ \(\d+\)", "", numbers[1]).split()]
            t = prefill_times(p, dev)
            ours = [t[key] for key in ("floor", "factors hbm", "factors issue", "chain mma", "chain smem", "chain l2", "chain hbm", "ideal")]
            ours.append(t["expected"] - 2 * LAUNCH)  # theirs is without launches
            for mine, other in zip(ours, theirs, strict=True):
                difference = abs(1e3 * mine - other)
                worst = max(worst, difference)
                if difference > 6e-4 + 2e-3 * other:  # printed with three digits after the point
                    sys.exit(f"model: {p.title} on {dev.name}: {ours} here, ms {theirs} in list plan")
    print(f"model: agrees with list plan on {len(SHAPES)} shapes and {len(DEVICES)} devices, within {worst:.4f} ms")


def main(arguments):
    if arguments[:1] == ["--compare"] and len(arguments) == 2:
        compare(arguments[1])
    elif arguments in (["--check"], ["--update"]):
        old, new = page_with(tables())
        if arguments == ["--update"]:
            with open(PAGE, "w", encoding="utf-8") as file:
                file.write(new)
        elif old != new:
            sys.exit("model: bench/model.md holds other numbers. Fix: bench/model.py --update")
    elif not arguments:
        print(tables(), end="")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
