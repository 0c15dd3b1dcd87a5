"""Fixtures as HDF5 files, and the hash over their content."""

from __future__ import annotations

import hashlib
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5p, h5s, h5t

from kdagen.fixture import Fixture, param_dtype
from kdagen.formats import STORAGE, Tensor

FORMAT = "kdacheck-fixture"
VERSION = 1
HASH = "content_sha256"

Key = tuple[bytes, bytes, bytes]  # object path, b"A" or b"D", attribute name


@dataclass(frozen=True)
class Record:
    """One attribute or dataset: type, extents, bytes of the elements."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def tensor(self) -> Tensor:
        return Tensor(self.dtype, np.frombuffer(self.data, STORAGE[self.dtype]).reshape(self.shape))


def _bf16_type() -> h5t.TypeFloatID:
    kind = h5t.IEEE_F32LE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_ebias(127)
    kind.set_precision(16)
    kind.set_size(2)
    return kind


FILE_TYPES = {
    "bf16": _bf16_type(),
    "f16": h5t.IEEE_F16LE,
    "f32": h5t.IEEE_F32LE,
    "f64": h5t.IEEE_F64LE,
    "i32": h5t.STD_I32LE,
    "i64": h5t.STD_I64LE,
    "u8": h5t.STD_U8LE,
}


def records(fixture: Fixture) -> dict[Key, Record]:
    """Everything the file will hold, except the hash."""
    out: dict[Key, Record] = {}

    def attribute(path: str, name: str, value: int | float | str, dtype: str) -> None:
        data = value.encode() if dtype == "str" else np.array(value, STORAGE[dtype]).tobytes()
        out[path.encode(), b"A", name.encode()] = Record(dtype, (), data)

    def dataset(path: str, tensor: Tensor) -> None:
        out[path.encode(), b"D", b""] = Record(tensor.dtype, tensor.shape, tensor.data.tobytes())

    attribute("/", "version", VERSION, "i32")
    for name in ("op", "name", "description", "tags", "oracle"):
        attribute("/", name, getattr(fixture, name), "str")
    attribute("/", "format", FORMAT, "str")
    for name, tensor in fixture.inputs.items():
        dataset(f"/inputs/{name}", tensor)
    for name, value in fixture.params.items():
        attribute("/params", name, value, param_dtype(name))
    for name, value in fixture.expected.items():
        if isinstance(value, Tensor):
            dataset(f"/expected/{name}", value)
        else:
            dtype = {str: "str", int: "i64", float: "f64"}[type(value)]
            attribute("/expected", name, value, dtype)
    return out


def content_sha256(content: dict[Key, Record]) -> str:
    """The hash that data/README.md defines; the attribute that stores it is left out."""
    digest = hashlib.sha256()
    for path, kind, name in sorted(content):
        if (path, kind, name) == (b"/", b"A", HASH.encode()):
            continue
        record = content[path, kind, name]
        extents = ",".join(str(n) for n in record.shape).encode()
        head = (path, name, record.dtype.encode(), extents, str(len(record.data)).encode())
        digest.update(kind + b"".join(part + b"\0" for part in head) + record.data)
    return digest.hexdigest()


def write(fixture: Fixture, folder: Path) -> None:
    """Writes NAME.h5 beside its place, then renames it."""
    content = records(fixture)
    part = folder / f".{fixture.name}.part"
    with _create(part) as file:
        for (path, kind, name), record in content.items():
            if kind == b"D":
                _write_dataset(file, path, record)
            else:
                _write_attribute(file[path.decode()], name.decode(), record)
        file.attrs[HASH] = content_sha256(content)
    os.replace(part, folder / f"{fixture.name}.h5")


def _create(path: Path) -> h5py.File:
    """An empty fixture. Without times in it, so that equal content makes equal files."""
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(h5f.LIBVER_V110, h5f.LIBVER_V110)  # no index beside a dataset of one chunk
    creation, group = h5p.create(h5p.FILE_CREATE), h5p.create(h5p.GROUP_CREATE)
    for plist in (creation, group):
        plist.set_obj_track_times(False)
        plist.set_attr_phase_change(32, 0)  # no index beside a few attributes
    file = h5f.create(bytes(path), h5f.ACC_TRUNC, creation, access)
    for name in (b"inputs", b"params", b"expected"):
        h5g.create(file, name, gcpl=group)
    return h5py.File(file)


def _write_attribute(owner: h5py.Group, name: str, record: Record) -> None:
    if record.dtype == "str":
        owner.attrs[name] = record.data.decode()
        return
    space = h5s.create(h5s.SCALAR)
    attr = h5a.create(owner.id, name.encode(), FILE_TYPES[record.dtype], space)
    attr.write(np.frombuffer(record.data, STORAGE[record.dtype]).reshape(()))


def _write_dataset(file: h5py.File, path: bytes, record: Record) -> None:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_obj_track_times(False)
    array = np.frombuffer(record.data, STORAGE[record.dtype]).reshape(record.shape)
    if record.data:
        plist.set_chunk(record.shape)
        if _worth_compressing(array):
            plist.set_shuffle()
            plist.set_deflate(9)
        plist.set_fletcher32()
    file_type = FILE_TYPES[record.dtype]
    dataset = h5d.create(file.id, path, file_type, h5s.create_simple(record.shape), plist)
    dataset.write(h5s.ALL, h5s.ALL, array, file_type)


def _worth_compressing(array: np.ndarray) -> bool:
    """Whether deflate, after the bytes are shuffled, saves a third."""
    planes = np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, array.itemsize).T
    return array.nbytes > 2048 and len(zlib.compress(planes.tobytes(), 1)) < array.nbytes * 2 // 3


def read(path: Path) -> dict[Key, Record]:
    """Every attribute and dataset of a file, as stored."""
    out: dict[Key, Record] = {}
    with h5py.File(path, "r") as file:
        out.update(_attributes("/", file))

        def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
            place = f"/{name}"
            out.update(_attributes(place, item))
            if isinstance(item, h5py.Dataset):
                out[place.encode(), b"D", b""] = _read_dataset(item)

        file.visititems(visit)
    return out


def _attributes(path: str, owner: h5py.Group) -> dict[Key, Record]:
    out: dict[Key, Record] = {}
    for name in owner.attrs:
        attr = owner.attrs.get_id(name)
        value = owner.attrs[name]
        if isinstance(value, str):
            record = Record("str", (), value.encode())
        else:
            dtype = _type_name(attr.get_type())
            record = Record(dtype, attr.shape, np.asarray(value, STORAGE[dtype]).tobytes())
        out[path.encode(), b"A", name.encode()] = record
    return out


def _read_dataset(dataset: h5py.Dataset) -> Record:
    dtype = _type_name(dataset.id.get_type())
    array = np.empty(dataset.shape, STORAGE[dtype])
    dataset.id.read(h5s.ALL, h5s.ALL, array, FILE_TYPES[dtype])
    if array.size and not dataset.fletcher32:
        raise ValueError(f"{dataset.name} has no checksum")
    return Record(dtype, dataset.shape, array.tobytes())


def _type_name(kind: h5t.TypeID) -> str:
    for name, candidate in FILE_TYPES.items():
        if kind.equal(candidate):
            return name
    raise ValueError("a type that fixtures do not use")
