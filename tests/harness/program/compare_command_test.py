"""kdacheck compare as its users meet it: every single-place fault in a result file is found and named.

Usage: compare_command_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""

import json
import unittest

import h5py
import numpy as np

from program_testing import FIXTURES, ProgramTest, run


class Compare(ProgramTest):
    def setUp(self):
        super().setUp()
        self.fixture = self.gen()
        with h5py.File(self.fixture) as file:
            self.expected = {k: file["expected"][k][...] for k in ("o", "final_state", "h")}

    def compare(self, change=None, dtype=np.float32, policy=None, attrs=None, formats=None):
        result = self.folder / "result.h5"
        tensors = {k: v.astype(dtype) for k, v in self.expected.items()}
        if change:
            change(tensors)
        with h5py.File(result, "w") as file:
            for name, tensor in tensors.items():
                file[name] = tensor
            for name, value in (attrs or {}).items():
                file.attrs[name] = value
        return run("compare", result, self.fixture, *(["--policy", policy] if policy else []),
                   *(["--formats", formats] if formats else []))

    def assert_fails(self, change, *words, formats=None):
        done = self.compare(change, formats=formats)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stdout)

    def above_rms(self, tensor):
        values = self.expected[tensor]
        flat = np.flatnonzero(np.abs(values) > np.sqrt(np.mean(values**2)))
        return np.unravel_index(flat[len(flat) // 2], values.shape)

    def test_the_right_result_passes(self):
        for policy in (None, "derived", "fla", "sglang"):
            done = self.compare(policy=policy)
            self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.compare(dtype=np.float64, policy="exact").returncode, 0)

    def test_flipped_bits(self):
        for tensor in ("o", "final_state", "h"):
            place = self.above_rms(tensor)

            def flip(tensors, bit):
                bits = tensors[tensor].view(np.uint32)
                bits[place] ^= np.uint32(1 << bit)

            axis = f"t={place[1]}" if tensor == "o" else f"hv={place[1]}"
            self.assert_fails(lambda t: flip(t, 31), f"{tensor}:", axis)  # sign
            self.assert_fails(lambda t: flip(t, 23), f"{tensor}:", axis)  # lowest exponent bit

    def test_swapped_heads(self):
        self.assert_fails(lambda t: t.update(o=t["o"][:, :, ::-1]), "o:", "t=")
        self.assert_fails(lambda t: t.update(final_state=t["final_state"][:, ::-1]), "final_state:", "hv=")

    def test_transposed_state(self):
        self.assert_fails(lambda t: t.update(final_state=t["final_state"].swapaxes(2, 3)), "final_state:", "k=", "v=")
        self.assert_fails(lambda t: t.update(h=t["h"].swapaxes(2, 3)), "h:", "chunk=")

    def test_nan(self):
        for tensor in ("o", "final_state", "h"):
            self.assert_fails(lambda t: t[tensor].__setitem__((0, 1, 1, 1), np.nan), f"{tensor}:", "non_finite")

    def test_off_by_one_token(self):
        self.assert_fails(lambda t: t.update(o=np.roll(t["o"], 1, axis=1)), "o:", "t=")

    def test_zeros(self):
        for tensor in ("o", "final_state", "h"):
            self.assert_fails(lambda t: t[tensor].fill(0), f"{tensor}:")

    def test_faults_where_keys_coincide(self):
        """Rounding costs most there, so that a bound is widest; faults must not hide under it."""
        for name in ("prefill_identical_keys_t64", "prefill_alternating_keys_t64", "prefill_saturated_t64"):
            self.fixture = FIXTURES / f"{name}.h5"
            with h5py.File(self.fixture) as file:
                self.expected = {k: v[...] for k, v in file["expected"].items()}
            self.assertEqual(self.compare().returncode, 0)
            self.assert_fails(lambda t: t.update(o=np.roll(t["o"], 1, axis=1)), "o:", "t=")
            for tensor in self.expected:
                self.assert_fails(lambda t: t.update({tensor: t[tensor] * 2}), f"{tensor}:")
                self.assert_fails(lambda t: t.update({tensor: t[tensor] * 1.02}), f"{tensor}:", formats="f32")

    def test_wrong_shape_type_and_missing(self):
        self.assert_fails(lambda t: t.update(o=t["o"][:, :-1]), "shape_mismatch")
        self.assert_fails(lambda t: t.pop("final_state"), "missing")
        done = self.compare(lambda t: t.update(o=t["o"].astype(np.int32)))
        self.assertNotEqual(done.returncode, 0)

    def test_refusal_of_an_accepted_case(self):
        done = self.compare(lambda t: t.clear(), attrs={"error": "beta_shape", "message": "no"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("refused", done.stdout)

    def test_refusal_of_a_refused_case(self):
        self.fixture = self.gen("refused.h5", "--chunk", "16")
        right = self.compare(lambda t: t.clear(), attrs={"error": "chunk_size_unsupported", "message": "no"})
        self.assertEqual(right.returncode, 0, right.stdout)
        self.assertEqual(self.compare().returncode, 1)

    def test_json(self):
        report = self.folder / "verdict.json"
        self.compare()
        done = run("compare", self.folder / "result.h5", self.fixture, "--json", report)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(report.read_text())["verdict"], "passed")

    def test_unreadable_files(self):
        self.assert_one_line_error(run("compare", self.folder / "none.h5", self.fixture), 2, "none.h5")
        self.assert_one_line_error(run("compare", self.fixture, self.folder / "none.h5"), 2, "none.h5")


if __name__ == "__main__":
    unittest.main()
