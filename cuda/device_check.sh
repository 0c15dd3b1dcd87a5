#!/bin/sh
# Checks the device code on a machine with a GPU: primitive layouts, packed fixtures, repeats under
# load, compute-sanitizer, times. Needs nvcc and a host compiler, no network and no other library.
#
#   cuda/device_check.sh [--fla PATH] [OUT [PACK]]   on the GPU machine; PACK from tests/cuda's
#                                                    pack_fixtures
#   cuda/device_check.sh --rehearse [OUT [PACK]]     the same on the CPU executor, without nvcc
#
# With --fla, sources of flash-linear-attention: its prefill is timed on the same shapes, where
# python3 has PyTorch and Triton. Leaves device_check.json and device_check.txt in OUT (default
# build/device_check). Exit status of device_check: 0 passed, 1 failed, 3 no GPU.
set -eu
cd "$(dirname "$0")/.."

device=gpu
fla=
while :; do
  case ${1:-} in
    --rehearse) device=cpu ;;
    --fla)
      fla=${2:?"--fla wants a path"}
      shift
      ;;
    *) break ;;
  esac
  shift
done
out=${1:-build/device_check}
pack=${2:-}
mkdir -p "$out/obj"

host="reference/types/*.cpp reference/activated.cpp reference/recurrent.cpp
  cuda/argument_checks.cpp cuda/device_tensors.cpp cuda/executor_device.cpp cuda/prefill*.cpp
  cuda/recurrent*.cpp cuda/simt/[a-eg-z]*.cpp cuda/simt/fault.cpp
  cuda/simt/fiber.cpp tests/cuda/case_pack.cpp tests/cuda/device_check_main.cpp
  tests/cuda/layout_check.cpp tests/cuda/layout_run.cpp"
case $(uname -m) in
  x86_64) host="$host cuda/simt/fiber_x86_64.cpp" ;;
  *) host="$host cuda/simt/fiber_ucontext.cpp" ;;
esac
code=""
if [ $device = gpu ]; then
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  # Only for the GPU at hand: a third of the time.
  arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
  case $arch in 9* | 1*) arch=${arch}a ;; esac
  code="cuda/gpu_device.cu cuda/prefill_kernels.cu cuda/recurrent_kernels.cu tests/cuda/layout_kernels.cu
    tests/cuda/device_timing.cu"
else
  host="$host cuda/unavailable.cpp tests/cuda/layout_no_gpu.cpp tests/cuda/device_timing_none.cpp"
fi

# One line a file: object, then the command that makes it.
commands=$out/commands.txt
: >"$commands"
for file in $host; do
  object=$out/obj/$(echo "$file" | tr / _).o
  echo "${CXX:-g++} -std=c++20 -O2 -ffp-contract=off -I. -c $file -o $object" >>"$commands"
done
for file in $code; do
  object=$out/obj/$(echo "$file" | tr / _).o
  echo "$nvcc -std=c++20 -O3 -arch=sm_$arch -I. -c $file -o $object" >>"$commands"
done
rm -f "$out"/obj/*.o
xargs -P "$(nproc)" -I{} sh -c '{}' <"$commands"
if [ $device = gpu ]; then
  "$nvcc" -arch=sm_"$arch" "$out"/obj/*.o -o "$out/device_check" -lpthread
else
  ${CXX:-g++} "$out"/obj/*.o -o "$out/device_check" -lpthread
fi

status=0
"$out/device_check" --device $device ${pack:+--pack "$pack"} --json "$out/device_check.json" \
  >"$out/device_check.txt" || status=$?
cat "$out/device_check.txt"
[ $device = gpu ] && [ $status != 3 ] || exit $status

if [ -n "$fla" ]; then
  if python3 -c 'import torch, triton' 2>"$out/fla.txt"; then
    timeout 120 python3 tests/cuda/time_fla.py "$fla" 2>>"$out/fla.txt" | tee -a "$out/device_check.txt" || true
  else
    echo "fla: python3 has no PyTorch and Triton: not timed" | tee -a "$out/device_check.txt"
  fi
fi

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ -x "$sanitizer" ]; then
  for tool in memcheck racecheck synccheck initcheck; do
    if timeout 45 "$sanitizer" --tool $tool --error-exitcode 9 "$out/device_check" --quick \
      ${pack:+--pack "$pack"} >"$out/$tool.txt" 2>&1; then
      said=passed
    else
      said=failed
      status=1
    fi
    echo "sanitizer $tool $said" | tee -a "$out/device_check.txt"
  done
else
  echo "sanitizer: compute-sanitizer is not installed" | tee -a "$out/device_check.txt"
fi
exit $status
