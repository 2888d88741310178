# SPDX-License-Identifier: Apache-2.0
"""FLOPs and bytes of captured graphs: by hand, and beside the zoo's of the same blocks."""
import json
import pathlib
import unittest

import orrery
from orrery import _core

BLOCKS = pathlib.Path(__file__).parent / "blocks"


def value(name, *shape, dtype="bfloat16"):
    return {"id": name, "shape": list(shape), "dtype": dtype}


def operator(target, inputs, output, **arguments):
    return {"name": target, "target": target, "inputs": inputs, "outputs": [output], "arguments": arguments}


class ByHand(unittest.TestCase):
    def test_a_linear_layer_is_a_product_and_a_sum_fused_with_what_follows(self):
        # x [2, 3, 4] W [5, 4]: 2 x 6 x 5 x 4 = 240 FLOPs, 2 (24 + 20 + 30) = 148 bytes; behind it the sum with
        # 5 biases and the activation read 60 + 10 bytes and write 60.
        x, y, z = value("x", 2, 3, 4), value("y", 2, 3, 5), value("z", 2, 3, 5)
        kernels = orrery.from_operators([operator("linear", [x, value("w", 5, 4), value("b", 5)], y),
                                         operator("gelu", [y], z)])
        self.assertEqual([(one.kind, one.flops, one.bytes, one.fused) for one in kernels],
                         [("gemm", 240, 148, 1), ("elementwise", 0, 130, 2)])

    def test_causal_attention_counts_what_the_mask_leaves(self):
        # 3 queries, 3 keys: 6 of 9 pairs; 1 x 2 heads, d = 4 + 4: 2 x 2 x 6 x 8 = 192 FLOPs of 288.
        heads = [value(name, 1, 2, 3, 4) for name in "qkv"]
        for causal, flops in ((True, 192), (False, 288)):
            kernels = orrery.from_operators([operator("aten.scaled_dot_product_attention.default", heads,
                                                      value("o", 1, 2, 3, 4), is_causal=causal)])
            self.assertEqual((kernels[0].kind, kernels.total_flops, kernels.total_bytes), ("attention", flops, 4 * 48))

    def test_a_kernel_between_two_sums_keeps_them_apart(self):
        # add (x, x) -> a; mm -> b; add (a, b) -> c: a is written and read again.
        a, b = value("a", 4, 4), value("b", 4, 4)
        kernels = orrery.from_operators([operator("add", [value("x", 4, 4)], a), operator("mm", [a, value("w", 4, 4)], b),
                                         operator("add", [a, b], value("c", 4, 4))])
        self.assertEqual([one.bytes for one in kernels], [64, 96, 96])

    def test_what_is_no_operator_is_a_mistake(self):
        for wrong, text in (({"target": "mm"}, "lacks inputs"),
                            (operator("mm", [value("x", 2, dtype="bf16")], value("y", 2)), "dtype 'bf16'"),
                            (operator("mm", [value("x", -2)], value("y", 2)), "shape")):
            with self.assertRaisesRegex(ValueError, text):
                orrery.from_operators([wrong])


class Zoo(unittest.TestCase):
    """Recorded with PyTorch by record_blocks.py; the zoo's list comes from the published config.json."""

    def compare(self, name, **config):
        path = pathlib.Path(__file__).resolve().parents[2] / f"configs/models/{name}.json"
        recorded = json.loads((BLOCKS / f"{name}.json").read_text())
        captured = orrery.from_operators(recorded["operators"])
        if config:
            import tempfile
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(json.dumps({**json.loads(path.read_text()), **config}))
                file.flush()
                zoo = _core.layer_operators(file.name, 4, 2048, True)
        else:
            zoo = _core.layer_operators(str(path), 4, 2048, True)
        for index, total in ((2, captured.total_flops), (3, captured.total_bytes)):
            expected = sum(one[index] for one in zoo)
            self.assertLess(abs(total / expected - 1), 1e-3, f"{captured}\n{zoo}")
        matrices = sum(one[3] for one in zoo if one[1] == "gemm")
        self.assertEqual(captured.of_kind("gemm").total_bytes, matrices)

    def test_a_gpt_block(self):
        self.compare("gpt2-xl", attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0)

    def test_a_llama_block(self):
        self.compare("llama-3-8b")


if __name__ == "__main__":
    unittest.main()
