"""What a fixture is before it becomes a file."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdagen.formats import Tensor

FLAGS = (
    "use_qk_l2norm_in_kernel",
    "use_gate_in_kernel",
    "use_beta_sigmoid_in_kernel",
    "safe_gate",
    "allow_neg_eigval",
    "state_v_first",
    "output_final_state",
    "return_intermediate_states",
    "disable_recompute",
    "cp_context",
    "no_target",
)
REALS = ("scale", "lower_bound", "smooth_factor", "a", "b", "c", "target_latency")

Value = int | float | str
Answer = dict[str, Tensor | Value]


@dataclass
class Fixture:
    """One case. `expected` holds datasets (Tensor) and attributes (numbers, strings)."""

    name: str
    op: str
    inputs: dict[str, Tensor]
    params: dict[str, int | float]
    tags: str
    description: str
    oracle: str
    expected: Answer = field(default_factory=dict)

    def flag(self, name: str) -> bool:
        return bool(self.params.get(name, 0))


def param_dtype(name: str) -> str:
    """Flags are bytes, reals f64, everything else a 64-bit integer."""
    if name in FLAGS:
        return "u8"
    return "f64" if name in REALS else "i64"
