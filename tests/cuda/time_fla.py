#!/usr/bin/env python3
"""Times chunk_kda of flash-linear-attention on the shapes that device_check times, one line each.

    time_fla.py PATH        PATH holds the package `fla`; needs PyTorch, Triton and a GPU

bf16 inputs, log decays ready-made, l2norm in the kernel, a final state: what device_check asks of
cuda-prefill. CUDA events around each call, the L2 flushed before it; median. A shape that fails is
said and the rest goes on.
"""
import statistics
import sys

DIM = 128
RUNS = 15
MIXED = (1300, 547, 2048, 963, 271, 3063)


def shapes():
    """(what, B, T, H, lengths of a packed batch or None)"""
    for H in (64, 96):
        yield f"1 x 8192 H={H}", 1, 8192, H, None
        yield f"6 lengths, 8192 in all, H={H}", 1, sum(MIXED), H, MIXED
        yield f"8 x 1024 H={H}", 1, 8192, H, (1024,) * 8
    for B in (1, 2):
        for T in (512, 1024, 2048, 4096, 8192, 16384):
            if (B, T) != (1, 8192):
                yield f"{B} x {T} H=64", B, T, 64, None


def median_us(torch, call):
    flush = torch.empty(64 << 20, dtype=torch.float32, device="cuda")
    for _ in range(3):  # compiles and tunes
        call()
    times = []
    for _ in range(RUNS):
        flush.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return statistics.median(times)


def inputs(torch, B, T, H):
    def uniform(low, high, *shape):
        x = torch.rand(*shape, device="cuda") * (high - low) + low
        return x.to(torch.bfloat16)

    wide = (B, T, H, DIM)
    return {"q": uniform(-1, 1, *wide), "k": uniform(-1, 1, *wide), "v": uniform(-1, 1, *wide),
            "g": uniform(-0.1, 0, *wide), "beta": uniform(0, 1, B, T, H)}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    import torch
    from fla.ops.kda import chunk_kda
    for what, B, T, H, lens in shapes():
        try:
            x = inputs(torch, B, T, H)
            packed = {}
            if lens:
                bounds = [sum(lens[:i]) for i in range(len(lens) + 1)]
                packed["cu_seqlens"] = torch.tensor(bounds, dtype=torch.long, device="cuda")

            def call():
                with torch.inference_mode():
                    return chunk_kda(**x, **packed, output_final_state=True,
                                     use_qk_l2norm_in_kernel=True)

            print(f"time     fla {what:<42} measured  {median_us(torch, call):.1f} us", flush=True)
        except Exception as error:  # noqa: BLE001: another shape may do
            print(f"time     fla {what:<42} failed    {type(error).__name__}: {str(error)[:80]}", flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
