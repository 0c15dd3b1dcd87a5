"""200 fixtures that something went wrong with, the same in every run: bytes damaged, and structures that
h5py or the HDF5 library itself can make but that no fixture may have.

`make(source, folder, canary)` writes them and returns a list of Mutant; `canary` is a file that must never
be opened, which links, external storage and virtual datasets point to.
"""

import random
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

STRUCTURE_BASE = "data/fixtures/chunk_hand_case_f32.h5"
# The bundled ones are in HDF5's newer format, whose metadata have checksums; our writer's are in the older one.
BASES = (STRUCTURE_BASE, "tests/fuzz/corpus/fixture/varlen.h5", "data/fixtures/chunk_hv2.h5",
         "tests/fuzz/corpus/fixture/recurrent.h5", "data/fixtures/prefill_fused_bound_t64.h5",
         "tests/fuzz/corpus/fixture/refused.h5", "data/fixtures/fit_first_nan.h5", "tests/fuzz/corpus/fixture/fit.h5",
         "data/fixtures/predict_mid.h5", "tests/fuzz/corpus/fixture/predict.h5")
# Raw damage: whatever it hits, a file passes only if what counts is unharmed, which its hash vouches for.
DAMAGE = ("passed", "file_unreadable", "file_not_hdf5", "file_truncated", "format_unknown", "version_unsupported",
          "op_unknown", "input_missing", "name_unknown", "dataset_unwritten", "dataset_type_unsupported",
          "checksum_mismatch", "content_hash_mismatch", "attribute_invalid")


@dataclass
class Mutant:
    path: Path
    base: str
    what: str
    allowed: tuple  # "passed", "failed" or names of error codes


def flip_bits(data, rng):
    for _ in range(rng.choice((1, 1, 2, 4, 16, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def flip_metadata(data, rng):
    """Bits near the signatures of the library's own structures: heaps, trees, object headers."""
    places = [i for mark in (b"TREE", b"HEAP", b"SNOD", b"GCOL", b"OHDR", b"\x89HDF") for i in find_all(data, mark)]
    for _ in range(rng.choice((1, 2, 8))):
        at = min(rng.choice(places) + rng.randrange(64), len(data) - 1)
        data[at] ^= 1 << rng.randrange(8)


def find_all(data, mark):
    at, found = bytes(data).find(mark), []
    while at >= 0:
        found.append(at)
        at = bytes(data).find(mark, at + 1)
    return found


def truncate(data, rng):
    del data[rng.randrange(len(data)):]


def overwrite_header(data, rng):
    begin = rng.choice((0, 8, 16, 24, 48, 96))
    length = rng.choice((4, 8, 16, 64, 512))
    data[begin:begin + length] = rng.randbytes(len(data[begin:begin + length]))


def swap_blocks(data, rng):
    size = rng.choice((16, 64, 256, 512))
    a, b = (rng.randrange(len(data) // size) * size for _ in range(2))
    data[a:a + size], data[b:b + size] = data[b:b + size], data[a:a + size]


def blank(data, rng):
    begin = rng.randrange(len(data))
    length = rng.choice((8, 64, 1024))
    data[begin:begin + length] = rng.choice((b"\0", b"\xff")) * len(data[begin:begin + length])


def huge_word(data, rng):
    """A length or an address of the library's becomes very large."""
    at = rng.randrange(len(data) // 8) * 8
    data[at:at + 8] = rng.choice((2**31, 2**32 - 16, 2**40, 2**63, 2**64 - 2)).to_bytes(8, "little")


def long_string(data, rng):
    """A string attribute claims to have gigabytes: 4 bytes of length before the address of a global heap."""
    heaps = find_all(data, b"GCOL")
    places = [at - 4 for heap in heaps for at in find_all(data, heap.to_bytes(8, "little"))]
    at = rng.choice(places)
    data[at:at + 4] = rng.choice((2**20, 2**31 - 1, 2**31, 2**32 - 1)).to_bytes(4, "little")


RAW = ((flip_bits, 32), (flip_metadata, 26), (truncate, 20), (overwrite_header, 16), (swap_blocks, 14), (blank, 10),
       (huge_word, 8), (long_string, 8))


def replace(file, name, *arguments, **options):
    if name in file:
        del file[name]
    return file.create_dataset(name, *arguments, **options)


def low_level(file, name, plist, shape=(1, 1, 1, 2), most=None):
    del file[name]
    space = h5py.h5s.create_simple(shape, most)
    return h5py.h5d.create(file.id, name.encode(), h5py.h5t.IEEE_F32LE, space, dcpl=plist)


def external_storage(file, canary):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_external(str(canary).encode(), 0, 8)
    low_level(file, "inputs/q", plist)


def virtual_dataset(file, canary):
    layout = h5py.VirtualLayout((1, 1, 1, 2), "f4")
    layout[...] = h5py.VirtualSource(str(canary), "x", (1, 1, 1, 2))
    del file["inputs/q"]
    file.create_virtual_dataset("inputs/q", layout)


def unknown_filter(file, _):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1, 1, 1, 2))
    plist.set_filter(32004, h5py.h5z.FLAG_OPTIONAL, ())
    low_level(file, "inputs/q", plist).write_direct_chunk((0, 0, 0, 0), b"\0" * 8)


def bomb(file, _):
    """4 MiB of zeros deflated, as every chunk of 4 GiB."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1, 1 << 20))
    plist.set_deflate(9)
    dataset = low_level(file, "inputs/q", plist, (1024, 1 << 20))
    chunk = zlib.compress(bytes(4 << 20), 9)
    for i in range(64):
        dataset.write_direct_chunk((i, 0), chunk)


def inflating_chunk(file, _):
    """A chunk that inflates to far more than its place."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1, 1, 1, 2))
    plist.set_deflate(9)
    low_level(file, "inputs/q", plist).write_direct_chunk((0, 0, 0, 0), zlib.compress(bytes(64 << 20), 9))


def huge_chunk(file, _):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1, 1, 1, 1 << 29))
    plist.set_deflate(1)
    low_level(file, "inputs/q", plist, most=(1, 1, 1, h5py.h5s.UNLIMITED)).write_direct_chunk((0, 0, 0, 0), zlib.compress(bytes(8)))


def short_chunk(file, _):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1, 1, 1, 2))
    plist.set_fletcher32()
    low_level(file, "inputs/q", plist).write_direct_chunk((0, 0, 0, 0), b"\0\0")


def wrong_checksum(file, _):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1, 1, 1, 2))
    plist.set_fletcher32()
    low_level(file, "inputs/q", plist).write_direct_chunk((0, 0, 0, 0), bytes(range(12)))


def many_dimensions(file, _):
    replace(file, "inputs/q", data=np.ones((1,) * 32, "f4"))


def null_space(file, _):
    del file["inputs/q"]
    h5py.h5d.create(file.id, b"inputs/q", h5py.h5t.IEEE_F32LE, h5py.h5s.create(h5py.h5s.NULL))


def deep_groups(file, _):
    group = file
    for _ in range(300):
        group = group.create_group("deeper")


def many_members(file, _):
    for i in range(2000):
        file["inputs"].create_dataset(f"extra{i}", data=np.float32(i))


def put(name, value, dtype=None):
    return lambda file, _: file["params"].attrs.create(name, value, dtype=dtype)


def root(name, value, dtype=None):
    return lambda file, _: file.attrs.create(name, value, dtype=dtype)


def drop(name):
    return lambda file, _: file.__delitem__(name)


def data(name, value):
    return lambda file, _: replace(file, name, data=value)


def empty(name, shape, dtype="f4", **options):
    return lambda file, _: replace(file, name, shape=shape, dtype=dtype, **options)


UNREADABLE, TYPE, ATTRIBUTE, UNKNOWN = ("file_unreadable",), ("dataset_type_unsupported",), ("attribute_invalid",), ("name_unknown",)
FAILED = ("failed",)
REFUSED = ("refused",)  # by the contract, and the fixture says nothing of it
SPACE = ("dataset_unwritten",)
# Of chunk_hand_case_f32 (B=T=H=1, K=V=2), without its hash, which would tell of every change first.
STRUCTURES = (
    ("an external link in place of a tensor", lambda f, c: (drop("inputs/q")(f, c), f.__setitem__("inputs/q", h5py.ExternalLink(str(c), "/x"))), UNREADABLE),
    ("an external link in place of a group", lambda f, c: (drop("params")(f, c), f.__setitem__("params", h5py.ExternalLink(str(c), "/"))), UNREADABLE),
    ("an external link beside the rest", lambda f, c: f.__setitem__("more", h5py.ExternalLink(str(c), "/x")), UNREADABLE),
    ("an external link of a relative path", lambda f, c: f.__setitem__("more", h5py.ExternalLink("../canary/canary.h5", "/x")), UNREADABLE),
    ("an external link to nowhere", lambda f, c: f.__setitem__("more", h5py.ExternalLink("/no/such/file.h5", "/x")), UNREADABLE),
    ("an external link to itself", lambda f, c: f.__setitem__("more", h5py.ExternalLink(f.filename, "/more")), UNREADABLE),
    ("an external link in the expected values", lambda f, c: (drop("expected/o")(f, c), f.__setitem__("expected/o", h5py.ExternalLink(str(c), "/x"))), UNREADABLE),
    ("a soft link", lambda f, c: (drop("inputs/q")(f, c), f.__setitem__("inputs/q", h5py.SoftLink("/inputs/k"))), UNREADABLE),
    ("a soft link to itself", lambda f, c: f.__setitem__("inputs/x", h5py.SoftLink("/inputs/x")), UNREADABLE),
    ("soft links in a circle", lambda f, c: (f.__setitem__("a", h5py.SoftLink("/b")), f.__setitem__("b", h5py.SoftLink("/a"))), UNREADABLE),
    ("a dangling soft link", lambda f, c: f.__setitem__("inputs/x", h5py.SoftLink("/nowhere")), UNREADABLE),
    ("a group that holds the root", lambda f, c: f["inputs"].__setitem__("up", f["/"]), UNKNOWN),
    ("the root as its own member", lambda f, c: f.__setitem__("self", f["/"]), UNKNOWN),
    ("one dataset under two names", lambda f, c: (drop("inputs/q")(f, c), f.__setitem__("inputs/q", f["inputs/k"])), ("passed", "failed")),
    ("external storage", external_storage, UNREADABLE),
    ("a virtual dataset", virtual_dataset, UNREADABLE),
    ("an unknown filter", unknown_filter, TYPE),
    ("scale-offset", lambda f, c: replace(f, "inputs/q", data=np.ones((1, 1, 1, 2), "f4"), chunks=True, scaleoffset=2), TYPE),
    ("lzf", lambda f, c: replace(f, "inputs/q", data=np.ones((1, 1, 1, 2), "f4"), chunks=True, compression="lzf"), TYPE),
    ("a bomb of chunks", bomb, UNREADABLE),
    ("a chunk that inflates beyond its place", inflating_chunk, UNREADABLE),
    ("a chunk larger than the file may take", huge_chunk, UNREADABLE),
    ("a chunk shorter than its checksum", short_chunk, ("checksum_mismatch",)),
    ("a wrong checksum", wrong_checksum, ("checksum_mismatch",)),
    ("2^40 elements never written", empty("inputs/q", (1, 1, 1, 2**40)), SPACE),
    ("2^40 elements in chunks never written", empty("inputs/q", (1, 1, 1, 2**40), chunks=(1, 1, 1, 1024)), SPACE),
    ("2^63 - 1 elements", empty("inputs/q", (2**31, 2**31, 2), chunks=(1024, 1, 1)), SPACE),
    ("extents whose product overflows", empty("inputs/q", (2**40, 2**40, 2**40), chunks=(1, 1, 1)), SPACE),
    ("32 dimensions", many_dimensions, REFUSED),
    ("no elements", data("inputs/q", np.ones((1, 0, 1, 2), "f4")), REFUSED),
    ("a null dataspace", null_space, TYPE),
    ("a scalar in place of a tensor", data("inputs/q", np.float32(1)), REFUSED),
    ("integers", data("inputs/q", np.ones((1, 1, 1, 2), "i4")), REFUSED),
    ("booleans", data("inputs/q", np.ones((1, 1, 1, 2), bool)), TYPE),
    ("complex numbers", data("inputs/q", np.ones((1, 1, 1, 2), "c8")), TYPE),
    ("strings", data("inputs/q", np.array([b"a", b"b"])), TYPE),
    ("strings of any length", data("inputs/q", np.array(["a", "b"], dtype=h5py.string_dtype())), TYPE),
    ("80-bit floats", data("inputs/q", np.ones((1, 1, 1, 2), np.longdouble)), TYPE),
    ("unsigned 16 bits that nobody calls bf16", data("inputs/q", np.ones((1, 1, 1, 2), "u2")), TYPE),
    ("not a number", data("inputs/q", np.full((1, 1, 1, 2), np.nan, "f4")), ("passed", "failed", "mistrusted")),
    ("expected values of another shape", data("expected/o", np.ones((1, 1, 1, 3))), ("expected_shape",)),
    ("expected values that are wrong", data("expected/o", np.full((1, 1, 1, 2), 99.0)), FAILED),
    ("expected integers", data("expected/o", np.ones((1, 1, 1, 2), "i8")), TYPE),
    ("a group in place of a tensor", lambda f, c: (drop("inputs/q")(f, c), f.create_group("inputs/q")), TYPE),
    ("a tensor in place of a group", lambda f, c: (drop("params")(f, c), f.create_dataset("params", data=1)), TYPE),
    ("a named type", lambda f, c: (drop("inputs/q")(f, c), f.__setitem__("inputs/q", np.dtype("f4"))), TYPE),
    ("an input less", drop("inputs/q"), ("input_missing",)),
    ("no inputs", drop("inputs"), ("input_missing",)),
    ("no parameters", drop("params"), ("passed", "failed")),
    ("a member more", lambda f, c: f.create_dataset("inputs/w", data=1.0), UNKNOWN),
    ("2000 members more", many_members, UNKNOWN),
    ("300 groups in one another", deep_groups, UNKNOWN),
    ("a parameter more", put("warp", 1), UNKNOWN),
    ("a parameter of text", put("scale", "one"), ATTRIBUTE),
    ("a list of parameters", put("scale", [1.0, 2.0]), ATTRIBUTE),
    ("a flag of 7", put("safe_gate", 7), ATTRIBUTE),
    ("a chunk size beyond 63 bits", put("chunk_size", 2**64 - 1, "u8"), ATTRIBUTE),
    ("a scale that is not a number", put("scale", float("nan")), REFUSED),
    ("another format", root("format", "png"), ("format_unknown",)),
    ("a number as format", root("format", 1), ("format_unknown",)),
    ("version 2", root("version", 2), ("version_unsupported",)),
    ("another op", root("op", "softmax"), ("op_unknown",)),
    ("no name", lambda f, c: f.attrs.__delitem__("name"), ("input_missing",)),
    ("a name of control characters", root("name", "a\x1b[2Jb"), ATTRIBUTE),
    ("a name that is no UTF-8", root("name", np.bytes_(b"\xff\xfe")), ATTRIBUTE),
    ("a hash that is not right", root("content_sha256", "0" * 64), ("content_hash_mismatch",)),
)


def strip_hash(file):
    if "content_sha256" in file.attrs:
        del file.attrs["content_sha256"]


def make(source, folder, canary):
    mutants = []
    rng = random.Random(20270131)

    def add(base, what, allowed):
        path = folder / f"{len(mutants):03}_{what.replace(' ', '_')}.h5"
        mutants.append(Mutant(path, base, what, allowed))
        return path

    for mutate, count in RAW:
        for i in range(count):
            base = BASES[i % len(BASES)]
            content = bytearray((source / base).read_bytes())
            mutate(content, rng)
            add(base, mutate.__name__, DAMAGE).write_bytes(content)
    for what, change, allowed in STRUCTURES:
        path = add(STRUCTURE_BASE, what, allowed)
        shutil.copyfile(source / STRUCTURE_BASE, path)
        with h5py.File(path, "r+") as file:
            strip_hash(file)
            change(file, canary)
    return mutants
