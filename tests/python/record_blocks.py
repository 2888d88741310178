#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the operators of two transformer blocks on the meta device, as tests/python/operators_test.py reads
them. Needs PyTorch 1.13 or later; the shapes are those of configs/models/gpt2-xl.json and llama-3-8b.json.

    tests/python/record_blocks.py FOLDER
"""
import json
import pathlib
import sys

import torch
from torch.nn import functional

from orrery.operators import operators_of

BATCH, SEQUENCE = 4, 2048


def attend(query, key, value):
    """Causal, by heads; the name of older versions has an underscore and returns the weights, too."""
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return functional._scaled_dot_product_attention(query, key, value, None, 0.0, is_causal=True)[0]


class GptBlock(torch.nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)
        self.qkv, self.project = torch.nn.Linear(hidden, 3 * hidden), torch.nn.Linear(hidden, hidden)
        self.up, self.down = torch.nn.Linear(hidden, 4 * hidden), torch.nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, tokens, hidden = x.shape
        parts = self.qkv(self.norm_1(x)).split(hidden, dim=2)
        query, key, value = (part.view(batch, tokens, self.heads, -1).transpose(1, 2) for part in parts)
        context = attend(query, key, value).transpose(1, 2).reshape(batch, tokens, hidden)
        x = x + self.project(context)
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class RootMeanSquareNorm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class LlamaBlock(torch.nn.Module):
    def __init__(self, hidden, heads, key_heads, inner):
        super().__init__()
        self.heads, self.key_heads, self.width = heads, key_heads, hidden // heads
        self.norm_1, self.norm_2 = RootMeanSquareNorm(hidden), RootMeanSquareNorm(hidden)
        self.qkv = torch.nn.Linear(hidden, (heads + 2 * key_heads) * self.width, bias=False)
        self.project = torch.nn.Linear(hidden, hidden, bias=False)
        self.gate_up, self.down = torch.nn.Linear(hidden, 2 * inner, bias=False), torch.nn.Linear(inner, hidden, bias=False)

    def rotate(self, x, cosine, sine):
        first, second = x.chunk(2, dim=-1)
        return x * cosine + torch.cat((-second, first), dim=-1) * sine

    def forward(self, x, cosine, sine):
        batch, tokens, hidden = x.shape
        width = self.width
        parts = self.qkv(self.norm_1(x)).split([self.heads * width, self.key_heads * width, self.key_heads * width], dim=2)
        query, key, value = (part.view(batch, tokens, -1, width).transpose(1, 2) for part in parts)
        query, key = self.rotate(query, cosine, sine), self.rotate(key, cosine, sine)
        repeats = self.heads // self.key_heads
        key, value = (one[:, :, None].expand(-1, -1, repeats, -1, -1).reshape(batch, self.heads, tokens, width)
                      for one in (key, value))
        x = x + self.project(attend(query, key, value).transpose(1, 2).reshape(batch, tokens, hidden))
        gate, up = self.gate_up(self.norm_2(x)).chunk(2, dim=-1)
        return x + self.down(functional.silu(gate) * up)


def record(folder, name, block, *shapes):
    inputs = [torch.empty(shape, device="meta", dtype=torch.bfloat16) for shape in shapes]
    operators = operators_of(block.to(device="meta", dtype=torch.bfloat16), inputs)
    (folder / f"{name}.json").write_text(json.dumps({"torch": torch.__version__, "operators": operators}) + "\n")


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    record(target, "gpt2-xl", GptBlock(1600, 25), (BATCH, SEQUENCE, 1600))
    record(target, "llama-3-8b", LlamaBlock(4096, 32, 8, 14336), (BATCH, SEQUENCE, 4096), (SEQUENCE, 128), (SEQUENCE, 128))
