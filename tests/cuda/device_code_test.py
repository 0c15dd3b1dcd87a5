#!/usr/bin/env python3
"""What the compiler made of the kernels: instructions by kernel and architecture.

    device_code_test.py ptx NVCC ROOT SCRATCH ARCH...      compiles the sources to PTX
    device_code_test.py sass NVCC ROOT OBJECT_FOLDER       disassembles the built objects

Of the chain of the prefill the matrix instructions, matrix loads and transpositions are counted
exactly, as the cost model counts them. Nothing may live in local memory. Exit status 77: what it
needs is not here (said on one line).
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

FILES = ("prefill_kernels.cu", "recurrent_kernels.cu")
POLICIES = ("mixed", "split", "bf16")
KERNELS = {"prefill_kernels.cu": 9, "recurrent_kernels.cu": 12}  # variants in a file


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def short_name(mangled):
    """prefill_chain mixed 64, prefill_factors split, recurrent ..."""
    prefill = re.search(r"prefill_(factors|chain)_kernel.*?PrefillPolicyE(\d)(?:ELi(\d+))?", mangled)
    if prefill:
        return " ".join(filter(None, (f"prefill_{prefill[1]}", POLICIES[int(prefill[2])], prefill[3])))
    recurrent = re.search(r"recurrent_kernel(I\w*)", mangled)
    return f"recurrent {recurrent[1][:40]}" if recurrent else mangled


def ptx_by_kernel(text):
    """kernel -> its instructions, one a line"""
    bodies = {}
    for entry in re.finditer(r"^\.visible \.entry (\w+)\((.*?)^\}", text, re.MULTILINE | re.DOTALL):
        bodies[short_name(entry[1])] = entry[2].splitlines()
    return bodies


def sass_by_kernel(text):
    """(architecture, kernel) -> its instructions"""
    bodies = {}
    arch = None
    body = []
    for line in text.splitlines():
        if m := re.match(r"\s*arch = (\w+)", line):
            arch = m[1]
        elif m := re.match(r"\s*Function : (\S+)", line):
            body = bodies.setdefault((arch, short_name(m[1])), [])
        elif m := re.match(r"\s*/\*[0-9a-f]{4,5}\*/\s+(.*?);", line):
            body.append(m[1])
    return bodies


PTX = {
    "mma f16": r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.f16\.f16\.f32",
    "mma bf16": r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.bf16\.bf16\.f32",
    "ldmatrix": r"ldmatrix\.sync\.aligned\.m8n8\.x4\.shared",
    "ldmatrix trans": r"ldmatrix\.sync\.aligned\.m8n8\.x4\.trans",
    "movmatrix": r"movmatrix\.sync",
    "copy 16": r"cp\.async\.cg\.shared\.global .*, 16,",
    "copy wait": r"cp\.async\.wait_group",
    "barrier": r"\bbar(rier)?\.sync",
    "load 16": r"\bld\.global(\.nc)?\.v(4\.(u|b|f|s)32|2\.(u|b|f)64)",
    "store 16": r"\bst\.(global|shared)\.v(4\.(u|b|f|s)32|2\.(u|b|f)64)",
    "local": r"\b(ld|st)\.local|\.local ",
}
SASS = {
    "mma f16": r"\bHMMA\.16816\.F32 ",
    "mma bf16": r"\bHMMA\.16816\.F32\.BF16 ",
    "ldmatrix": r"\bLDSM\.16\.M88\.4 ",
    "ldmatrix trans": r"\bLDSM\.16\.MT88\.4 ",
    "movmatrix": r"\bMOVM\.16\.MT88 ",
    "copy 16": r"\bLDGSTS\.E\.BYPASS\.\S*128",
    "copy wait": r"\b(DEPBAR\.LE SB0|LDGDEPBAR)",
    "barrier": r"\bBAR\.SYNC",
    "load 16": r"\bLDG\.E\.(\w+\.)*128",
    "store 16": r"\bST[GS]\.(E\.)?(\w+\.)*128",
    "local": r"\b(LDL|STL)\b",
}


def count(body, patterns):
    found = collections.Counter()
    for line in body:
        for what, pattern in patterns.items():
            if re.search(pattern, line):
                found[what] += 1
    return found


def chain_counts(policy):
    """Of a warp and chunk; every loop around them is unrolled."""
    wide = 2 if policy == "split" else 1    # parts of Kg and Qg
    small = 1 if policy == "bf16" else 2    # of R, U, Q, Kd; T has two
    products = {(1, 1): 1, (1, 2): 2, (2, 2): 3}
    read = 128 * products[wide, wide]
    rest = 20 * products[small, 2] + (20 + 64) * products[small, small]
    return {
        "mma f16": read if policy == "mixed" else 0,
        "mma bf16": rest + (0 if policy == "mixed" else read),
        "ldmatrix": 64 * wide + 10 * 2 + 10 * small,
        "ldmatrix trans": 32 * small + 4,
        "movmatrix": 16,
    }


def wanted(kernel):
    """What -> the exact number, or (at least,)."""
    name = kernel.split()
    if name[0] == "prefill_chain":
        return {**chain_counts(name[1]), "copy 16": (3,), "copy wait": (2,), "barrier": (2,),
                "load 16": (1,), "local": 0}
    if name[0] == "prefill_factors":
        level = {"mixed": ("mma f16", 16), "split": ("mma bf16", 48), "bf16": ("mma bf16", 16)}[name[1]]
        merges = {"mma bf16": 42}
        least = {**merges, level[0]: level[1] + (42 if level[0] == "mma bf16" else 0)}
        return {**{k: (v,) for k, v in least.items()}, "ldmatrix": (16,), "copy 16": (1,),
                "copy wait": (1,), "barrier": (4,), "store 16": (4,), "local": 0}
    if name[0] == "recurrent":
        return {"barrier": (2,), "local": 0}
    return None


def differences(where, kernel, found):
    want = wanted(kernel)
    if want is None:
        return [f"{where}: unknown kernel {kernel}"]
    wrong = []
    for what, number in want.items():
        if isinstance(number, tuple):
            if found[what] < number[0]:
                wrong.append(f"{where} {kernel}: {what}: wanted at least {number[0]}, got {found[what]}")
        elif found[what] != number:
            wrong.append(f"{where} {kernel}: {what}: wanted {number}, got {found[what]}")
    return wrong


def judge(found_by_kernel, arches):
    """found_by_kernel: (arch, kernel) -> Counter. Prints a line a kernel; returns what is wrong."""
    wrong = []
    for (arch, kernel), found in sorted(found_by_kernel.items()):
        print(f"{arch:8} {kernel:48} " + ", ".join(f"{what} {n}" for what, n in found.items()))
        wrong += differences(arch, kernel, found)
    for arch in arches:
        number = sum(1 for a, kernel in found_by_kernel if a == arch)
        if number != sum(KERNELS.values()):
            wrong.append(f"{arch}: wanted {sum(KERNELS.values())} kernels, got {number}")
        vectors = sum(found["load 16"] for (a, kernel), found in found_by_kernel.items()
                      if a == arch and kernel.startswith("recurrent"))
        stores = sum(found["store 16"] for (a, kernel), found in found_by_kernel.items()
                     if a == arch and kernel.startswith("recurrent"))
        if vectors == 0 or stores == 0:
            wrong.append(f"{arch} recurrent: 16-byte loads {vectors}, stores {stores}")
    return wrong


def from_ptx(nvcc, root, scratch, arches):
    found = {}
    for arch in arches:
        for file in FILES:
            out = pathlib.Path(scratch) / f"{file}.{arch}.ptx"
            subprocess.run([nvcc, "-std=c++20", "-O3", f"-arch=compute_{arch}", f"-I{root}", "-ptx",
                            str(pathlib.Path(root) / "cuda" / file), "-o", str(out)], check=True)
            for kernel, body in ptx_by_kernel(out.read_text()).items():
                found[f"sm_{arch}", kernel] = count(body, PTX)
    return judge(found, [f"sm_{arch}" for arch in arches])


def from_sass(nvcc, objects):
    tools = os.environ.get("PATH", "") + os.pathsep + str(pathlib.Path(nvcc).parent)
    if not shutil.which("cuobjdump", path=tools) or not shutil.which("nvdisasm", path=tools):
        skip("no cuobjdump and nvdisasm on PATH or beside nvcc: the machine code is not read")
    if not all((pathlib.Path(objects) / f"{file}.o").is_file() for file in FILES):
        skip("this build has no device code")
    found = {}
    for file in FILES:
        text = subprocess.run([shutil.which("cuobjdump", path=tools), "-sass",
                               str(pathlib.Path(objects) / f"{file}.o")], check=True, text=True,
                              capture_output=True, env={**os.environ, "PATH": tools}).stdout
        for key, body in sass_by_kernel(text).items():
            found[key] = count(body, SASS)
    return judge(found, sorted({arch for arch, kernel in found}) or ["nothing"])


def main(arguments):
    if len(arguments) < 4 or arguments[0] not in ("ptx", "sass"):
        sys.exit(__doc__)
    how, nvcc, root, folder = arguments[:4]
    if not pathlib.Path(nvcc).is_file():
        skip("there is no nvcc: no device code")
    wrong = from_ptx(nvcc, root, folder, arguments[4:]) if how == "ptx" else from_sass(nvcc, folder)
    print("\n".join(wrong) or "as wanted")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
