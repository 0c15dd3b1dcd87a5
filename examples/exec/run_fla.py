"""flash-linear-attention's `chunk_kda` and `fused_recurrent_kda` (pip install flash-linear-attention).

    kdacheck check --impl 'exec:python3 examples/exec/run_fla.py {in} {out}'

Cases of `chunk_kda` go to the chunked kernel, those of `recurrent_kda` to the recurrent one; cases of `kda_prefill`
go to the chunked kernel too, whose rules are others: what it refuses is judged as a refusal.

Without a GPU, Triton's interpreter can run the kernels on the CPU, slowly: set TRITON_INTERPRET=1. Cases with bf16 are
refused there: the interpreter of Triton 3.9 multiplies bf16 matrices as the integers that hold them, and cuts values
off where a GPU rounds.

What the library raises has no codes. `RULES` says which of kdacheck's rules a message stands for; a message that is
not there is written as it is and then counts as a wrong code where a refusal is expected.
"""

import os
import sys

import kdacheck_exec

# Parts of messages of the library (0.5 and 0.6), in the order of kdacheck's contract.
RULES = (("chunk_size", "chunk_size_unsupported"),
         ("allow_neg_eigval", "neg_eigval_without_fused_beta"),
         ("divisible", "head_count_not_divisible"),
         ("batch size is expected to be 1", "varlen_needs_batch_one"),
         ("A_log", "gate_params_missing"),
         ("number of initial states", "state_count_mismatch"),
         ("lower_bound", "lower_bound_out_of_range"),
         ("float32", "initial_state_invalid"))


def import_library():
    try:
        import fla.ops.kda as kda
        from fla.ops.common import chunk_delta_h
    except ImportError as error:
        kdacheck_exec.unavailable(f"flash-linear-attention cannot be imported: {error}")
    if os.environ.get("TRITON_INTERPRET") == "1":  # its kernel uses loop counters as scalars of Triton
        from triton.runtime.interpreter import interpreter_semantic
        chunk_delta_h.range = lambda *bounds: (interpreter_semantic.to_tensor(i, False) for i in range(*map(int, bounds)))
    return kda


def prepare_interpreter():
    """Before the library is imported: what its kernels use and the interpreter (Triton 3.9) does not have."""
    try:
        import triton.language
        from triton.runtime.autotuner import Autotuner
    except ImportError as error:
        kdacheck_exec.unavailable(f"flash-linear-attention needs Triton, which cannot be imported: {error}")
    # No driver times the configurations of a kernel: the first is taken; all of them must be right.
    Autotuner.do_bench = staticmethod(lambda kernel_call, quantiles: (0.0, 0.0, 0.0))
    # A builtin imported by name is not interpreted; without it the library loads the row instead.
    del triton.language.gather


def device_or_give_up():
    if os.environ.get("TRITON_INTERPRET") == "1":
        try:
            import torch
        except ImportError as error:
            kdacheck_exec.unavailable(f"flash-linear-attention needs PyTorch, which cannot be imported: {error}")
        prepare_interpreter()
        return torch, "cpu"
    return kdacheck_exec.need_cuda("flash-linear-attention"), "cuda"


def call(torch, kda, case, inputs):
    """o, final_state, h."""
    p = case.params
    if inputs.get("cu_seqlens") is not None:
        inputs["cu_seqlens"] = inputs["cu_seqlens"].long()
    shared = dict(inputs, scale=p["scale"], **{name: p[name] for name in (
        "output_final_state", "use_qk_l2norm_in_kernel", "use_gate_in_kernel", "use_beta_sigmoid_in_kernel",
        "allow_neg_eigval", "lower_bound", "state_v_first")})
    if case.op == "recurrent_kda":
        if p["return_intermediate_states"]:
            raise NotImplementedError("fused_recurrent_kda returns no states before chunks")
        return *kda.fused_recurrent_kda(**shared), None
    with torch.inference_mode():
        result = kda.chunk_kda(**shared, chunk_size=p["chunk_size"], safe_gate=p["safe_gate"],
                               disable_recompute=p["disable_recompute"],
                               return_intermediate_states=p["return_intermediate_states"])
    return result if len(result) == 3 else (*result, None)


def main():
    source, target = sys.argv[1:]
    case = kdacheck_exec.read_case(source)
    torch, device = device_or_give_up()
    if device == "cpu" and "bf16" in case.dtypes.values():
        kdacheck_exec.refuse(target, "implementation_unsupported", "bf16 in Triton's interpreter")
    kda = import_library()
    try:
        o, final_state, h = call(torch, kda, case, kdacheck_exec.torch_inputs(torch, case, device))
    except NotImplementedError as error:
        kdacheck_exec.refuse(target, "implementation_unsupported", error)
    except (ValueError, AssertionError) as error:
        code = next((code for words, code in RULES if words in str(error)), "refused")
        kdacheck_exec.refuse(target, code, error)
    if h is not None and h.dim() == 5 and h.shape[0] > 1:  # [B,NT,...]: sequences in order
        h = h.reshape(-1, *h.shape[2:])
    kdacheck_exec.write_result(target, case, o, final_state, h)


if __name__ == "__main__":
    main()
