"""What the programs in this folder share: reading a case, writing a result, refusing, giving up.

Needs h5py and NumPy only. A program for `--impl 'exec:python3 my_kernel.py {in} {out}'` is

    case = kdacheck_exec.read_case(sys.argv[1])
    o, final_state, h = my_kernel(case)
    kdacheck_exec.write_result(sys.argv[2], case, o, final_state, h)
"""

import sys
from dataclasses import dataclass, field

import h5py
import numpy as np

UNAVAILABLE = 77  # exit status: this machine cannot run it
FLAGS = ("use_qk_l2norm_in_kernel", "use_gate_in_kernel", "safe_gate", "use_beta_sigmoid_in_kernel",
         "allow_neg_eigval", "state_v_first", "output_final_state", "return_intermediate_states",
         "cp_context", "disable_recompute")


@dataclass
class Case:
    """One call. `inputs` holds arrays by name, bf16 and f16 as f32 (exact); `dtypes` how they are stored:
    "bf16", "f16", "f32", "f64", "i32", "i64"."""

    op: str
    inputs: dict = field(default_factory=dict)
    dtypes: dict = field(default_factory=dict)
    params: dict = field(default_factory=dict)  # all flags as bool, chunk_size, scale and lower_bound or None

    @property
    def cu_seqlens(self):
        """Bounds of the sequences as a list, or None."""
        bounds = self.inputs.get("cu_seqlens")
        return None if bounds is None else [int(b) for b in bounds]


def _is_bf16(dataset):
    """A 16-bit float with 8 bits of exponent, or 16-bit unsigned that says so."""
    kind = dataset.id.get_type()
    if isinstance(kind, h5py.h5t.TypeFloatID):
        return kind.get_size() == 2 and kind.get_fields()[2] == 8
    return dataset.attrs.get("dtype") == "bf16"


def _read(dataset):
    if _is_bf16(dataset):
        if dataset.dtype.kind == "f":
            return dataset.astype("float32")[...], "bf16"
        return (dataset[...].astype(np.uint32) << 16).view(np.float32), "bf16"
    values = dataset[...]
    names = {"f2": "f16", "f4": "f32", "f8": "f64", "i4": "i32", "i8": "i64"}
    name = names[f"{values.dtype.kind}{values.dtype.itemsize}"]
    return (values.astype(np.float32) if name == "f16" else values.astype(values.dtype.newbyteorder("="))), name


def read_case(path):
    """The case in a fixture without expected values, which is what kdacheck hands to a program."""
    with h5py.File(path) as file:
        op = file.attrs["op"]
        case = Case(op if isinstance(op, str) else op.decode())
        for name, dataset in file["inputs"].items():
            case.inputs[name], case.dtypes[name] = _read(dataset)
        given = {name: value.item() for name, value in file["params"].attrs.items()} if "params" in file else {}
    case.params = {name: bool(given.pop(name, 0)) for name in FLAGS}
    case.params |= {"chunk_size": 64, "scale": None, "lower_bound": None} | given
    return case


def _tensor(values):
    """A torch tensor or an array, as an array that HDF5 can hold without loss."""
    if hasattr(values, "detach"):
        values = values.detach().float().cpu().numpy()
    return np.asarray(values)


def write_result(path, case, o, final_state=None, h=None):
    """Writes what the case asks for. A leading 1 of h, as some libraries return it, may stay."""
    with h5py.File(path, "w") as file:
        file["o"] = _tensor(o)
        if case.params["output_final_state"] and final_state is not None:
            file["final_state"] = _tensor(final_state)
        if case.params["return_intermediate_states"] and h is not None:
            file["h"] = _tensor(h)


def refuse(path, code, message):
    """Says that the case must not be computed, and ends the program. `kdacheck list errors` has the codes;
    "implementation_unsupported" is a right case that this kernel was not made for."""
    with h5py.File(path, "w") as file:
        file.attrs["error"] = code
        file.attrs["message"] = str(message)
    sys.exit(0)


def unavailable(why):
    """Says that the library or the GPU is missing, and ends the program."""
    print(why, file=sys.stderr)
    sys.exit(UNAVAILABLE)


def need_cuda(library):
    """torch, on a machine with a GPU; else ends the program."""
    try:
        import torch
    except ImportError as error:
        unavailable(f"{library} needs PyTorch, which cannot be imported: {error}")
    if not torch.cuda.is_available():
        unavailable(f"{library} needs a CUDA GPU, and PyTorch {torch.__version__} finds none")
    return torch


def torch_inputs(torch, case, device):
    """The inputs as tensors of their stored dtypes."""
    types = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64,
             "i32": torch.int32, "i64": torch.int64}
    return {name: torch.from_numpy(np.ascontiguousarray(values)).to(types[case.dtypes[name]]).to(device)
            for name, values in case.inputs.items()}
