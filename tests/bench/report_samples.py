"""Files as the subcommands write them, small, with everything that a page must survive."""
import copy
import json
import math
import os

HOSTILE = '<script>document.title="owned"</script>"\'`|$x$ @everyone [a](http://b)\u202e\x1b[31m'


def tensor(name="o", share=0.5, passed=True, **more):
    return {"name": name, "passed": passed, "reason": "" if passed else "over_bound",
            "detail": "" if passed else "n=0 hv=1 t=42: wanted 1.02 within 0.0173, got 0.02", "dtype": "bf16",
            "used_share": share if math.isfinite(share) else "inf",
            "metrics": {"compared": 2240, "bad": 0 if passed else 1, "max_abs": 1.0, "max_rel": 0.98, "rms_ratio": 0.257,
                        "max_ulp": 735, "non_finite": 0},
            "worst": {"place": {"n": 0, "t": 42, "hv": 1, "v": 3}, "expected": 1.02, "got": 1.02 - 0.0173 * share
                      if math.isfinite(share) else "nan", "bound": 0.0173},
            "window": {"first_row": 41, "first_col": 2, "rows": 2, "cols": 3, "expected": [0.06, 0.008, 0.085, -0.047, 1.02, 0.046],
                       "got": [0.06, 0.008, 0.085, -0.047, "nan", 0.046]}, **more}


def profile(tokens=130, share=0.5):
    step = 1
    while tokens / step > 32:
        step *= 2
    return {"step": step, "used_share": [share * (0.5 + 0.5 * i * step / tokens) for i in range(math.ceil(tokens / step))]}


def sigma(share):
    return {key: {"share": share if math.isfinite(share) else "inf", "place": "n=0 hv=1 t=42"} for key in ("element", "row", "group", "bias")} | {
        "rms": 0.8, "mean": 0.01, "rows": 70, "resolution": 0.0123}


def result(name, implementation="peer-f32", verdict="passed", share=0.5, tags="gate,overflow", **more):
    passed = verdict != "failed"
    out = {"name": name, "op": "chunk_kda", "implementation": implementation, "verdict": verdict, "seconds": 1.5e-4,
           "command": f"./kdacheck check {name}.h5 --impl {implementation}", "file": f"{name}.h5", "tags": tags,
           "oracle": "numpy-f64", "policy": "derived"}
    if verdict in ("passed", "failed"):
        out["tensors"] = [tensor(share=share, passed=passed, tokens=profile(share=share), sigma=sigma(share)), tensor("final_state", 0.01)]
    if not passed:
        out.update(code="over_bound", detail="o: n=0 hv=1 t=42: RMS error of 101 deviations, wanted at most 4")
    return out | more


def report(results, **more):
    counts = {}
    for entry in results:
        counts[entry["verdict"]] = counts.get(entry["verdict"], 0) + 1
    return {"format": "kdacheck-report", "version": 1, "environment": {"kdacheck": "0.1.0", "machine": "x86_64", "compiler": "12.2.0"},
            "cases": len(results), "counts": counts, "input_errors": [], "interrupted": False, "seconds": 1.0,
            "results": results} | more


def good():
    return report([result(f"case{i}", name, share=10.0 ** -(i % 5 + 1), tags=("gate", "tail", "varlen")[i % 3])
                   for i in range(12) for name in ("reference", "peer-f32")])


def bad():
    results = good()["results"]
    results += [result("over", verdict="failed", share=58.5, tags="tail"),
                result("nan", verdict="failed", share=math.inf, tags="varlen"),
                result(HOSTILE, HOSTILE, verdict="failed", share=3, tags=HOSTILE, command=f"./kdacheck check {HOSTILE}",
                       detail=HOSTILE),
                result("state", verdict="refused", code="initial_state_invalid", detail="refused a case that its contract accepts"),
                result("empty", verdict="mistrusted", code="zeros_would_pass"),
                result("other", "reference", verdict="unsupported"),
                result("far", "gpu", verdict="skipped", detail="there is no GPU here"),
                result("old", verdict="known_failure", code="over_bound", known_failure="fixed in the next release, until 2027-01-01"),
                result("fell", verdict="crashed", code="signal", detail="ended by SIGSEGV", output="line 1\n<b>line 2"),
                result("future", "reference", verdict="a_verdict_of_tomorrow"),
                {"name": "broken", "op": "", "implementation": "", "verdict": "fixture_error", "file": "broken.h5",
                 "detail": "broken.h5: truncated", "command": "./kdacheck check broken.h5"}]
    return report(results, input_errors=["nowhere.h5: not found"], idle=["never-ran"], notes=["a note"],
                  bias=[{"implementation": "peer-f32", "cases": 12, "mean": 0.02, "t": 9.5, "passed": False},
                        {"implementation": "reference", "cases": 12, "mean": 0.0, "t": "inf", "passed": True}])


def bench_line(name, seconds, floor=None, repetition=0, **more):
    moved, flops = 1e6 * seconds * 1e3, 4e6 * seconds * 1e3
    return {"name": name, "run_name": name, "run_type": "iteration", "repetition_index": repetition, "iterations": 1,
            "real_time": seconds * 1e3, "cpu_time": seconds * 1e3, "time_unit": "ms", "tokens/s": 1e6, "min_bytes": moved,
            "min_flops": flops, "floor_s": floor if floor is not None else seconds / 4, "fraction": 0.25} | more


def bench(scale=1.0):
    lines = []
    for tokens in (512, 1024, 2048, 4096):
        for i in range(5):
            lines.append(bench_line(f"impl/fast/T{tokens}_H8", scale * 1e-6 * tokens * (1 + 0.01 * i), repetition=i))
    for heads in (1, 2, 4, 8):
        lines.append(bench_line(f"impl/reference/T256_H{heads}", scale * 1e-4 * heads))
    lines += [bench_line("impl/fast/cached", 1e-3, floor=2e-3, label="impossible"),
              {"name": "gpu/recurrent/T1", "run_type": "iteration", "error_occurred": True, "error_message": "skipped: no GPU"},
              {"name": "impl/wrong/T1", "run_type": "iteration", "error_occurred": True, "error_message": "the result failed"},
              bench_line("impl/zero", 1e-3, real_time=0), bench_line("impl/median", 1e-3, run_type="aggregate"),
              bench_line("impl/nan", 1e-3, real_time="nan"), bench_line("impl/unit", 1e-3, time_unit="weeks")]
    return {"context": {"kdacheck_bench": "1", "commit": "abc", "cpu": "a CPU", "gpu": "none: no driver", "driver": "none",
                        "build_flags": "-O2", "num_cpus": 2}, "benchmarks": lines}


def counters(barriers=4):
    return {"format": "kdacheck-counters", "version": 1, "cases": [
        {"implementation": "cuda-recurrent", "case": "decode_kv_f32", "line": "op=recurrent_kda B=2 T=1", "total": {"launches": 1},
         "launches": [{"kernel": "recurrent", "grid": [8, 1, 1], "block": [128, 1, 1],
                       "counters": {"blocks": 8, "path_barriers": barriers, "mma": 0}, "shares": {"global_load": 1.0}}]}],
        "kernels": [{"kernel": "recurrent_kernel<float, true, 64>", "file": "recurrent_kernels.cu", "arch": "sm_90a", "registers": 100,
                     "spill_stores": 8, "spill_loads": 0, "stack": 0, "static_shared": 3712, "dynamic_shared": 0, "threads": 128,
                     "blocks_per_sm": 5, "limited_by": "registers"}]}


def mutation():
    def mutant(name, state, **more):
        by = {"default": "chunk_a: failed over_bound" if state == "killed" else None, "fla": None}
        return {"name": name, "description": f"does {name}", "kernel": "values", "class": "gross", "effect": 12.5, "state": state,
                "killed_by": by["default"] or "", "killed_by_policy": by, "explanation": ""} | more
    return {"format": "kdacheck-mutation", "version": 1, "environment": {"kdacheck": "0.1.0"}, "cases": 3, "seconds": 1.0,
            "counts": {"gross": {"mutants": 3, "default": 2, "fla": 0}, "subtle": {"mutants": 0, "default": 0, "fla": 0}},
            "complaints": ["late_decay survives"], "not_used": [],
            "mutants": [mutant("no_sigmoid", "killed"), mutant("swapped_heads", "killed", effect="inf"),
                        mutant("late_decay", "survived", explanation=HOSTILE), mutant("dead", "equivalent")]}


def comparison():
    return {"format": "kdacheck-bench-comparison", "version": 1, "kind": "times", "base": "base.json", "new": "new.json",
            "notes": ["no A/A run was given"], "counts": {"faster": 0, "slower": 1, "same": 1, "no verdict": 1},
            "lines": [{"name": "impl/fast/T2048_H8", "verdict": "slower", "reason": "", "base_median_s": 0.1, "new_median_s": 0.11,
                       "ratio": 1.1, "p": 0.0004, "band": 0.012, "base_repetitions": 9, "new_repetitions": 9},
                      {"name": "impl/fast/T512_H8", "verdict": "same", "reason": "", "base_median_s": 0.1, "new_median_s": 0.1,
                       "ratio": 1.0, "p": 0.6, "band": 0.012, "base_repetitions": 9, "new_repetitions": 9},
                      {"name": "gone", "verdict": "no verdict", "reason": "only in the base", "base_median_s": 0.1,
                       "new_median_s": None, "ratio": None, "p": None, "band": None, "base_repetitions": 9, "new_repetitions": 0}]}


def write(folder, **files):
    """{name: path} of files written as JSON."""
    paths = {}
    for name, data in files.items():
        paths[name] = os.path.join(folder, f"{name}.json")
        with open(paths[name], "w", encoding="utf-8") as file:
            json.dump(copy.deepcopy(data), file)
    return paths
