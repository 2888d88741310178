# SPDX-License-Identifier: Apache-2.0
"""What tools/measure_gpu.py needs of PyTorch: operands in device memory, launches of kernels, their times."""
import itertools
import math
import time

ALIGNED = 256  # elements, of operands in memory
LEAST_BUFFER = 1 << 30  # elements, of random numbers


class NotPossible(Exception):
    """This machine cannot measure what was asked for; the text says what is missing."""


class TorchBackend:
    """What the measurements need of PyTorch; tests put a fake in its place."""

    framework = "pytorch"

    def __init__(self):
        try:
            import torch
        except ImportError as error:
            raise NotPossible("PyTorch is not installed: pip install torch") from error
        if not torch.cuda.is_available():
            raise NotPossible("PyTorch finds no GPU (torch.cuda.is_available() is false)")
        self.torch = torch
        self.version = torch.__version__
        self.device = torch.cuda.get_device_name()
        self.dtypes = {"bf16": torch.bfloat16, "fp16": torch.float16}
        if hasattr(torch, "_scaled_mm") and torch.cuda.get_device_capability() >= (8, 9):
            self.dtypes["fp8"] = torch.float8_e4m3fn
        self.stream = torch.cuda.Stream()  # graphs are captured on it; backward passes run where forward ones did
        torch.cuda.set_stream(self.stream)
        self.numbers = {}

    def types(self):
        return tuple(self.dtypes)

    def elapsed_us(self, launches, calls):
        """Device time of `calls` launches, cycling through the list."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for call in range(calls):
            launches[call % len(launches)]()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1000

    def replays_us(self, launches, calls, runs):
        """Device times of `runs` replays of a graph of `calls` launches; one more before warms up."""
        graph = self.torch.cuda.CUDAGraph()
        graph.capture_begin()
        for call in range(calls):
            launches[call % len(launches)]()
        graph.capture_end()
        graph.replay()
        return [self.elapsed_us([graph.replay], 1) for _ in range(runs)]

    def host_us(self, launch, calls):
        """Host time to issue `calls` launches, without waiting for them."""
        self.torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            launch()
        issued = time.perf_counter() - begin
        self.torch.cuda.synchronize()
        return issued * 1e6

    def rest(self, seconds):
        """Nothing runs for so long."""
        self.torch.cuda.synchronize()
        time.sleep(seconds)

    def operands(self, dtype, sets, *shapes):
        """`sets` times tensors of these shapes, side by side in one buffer of normally distributed numbers."""
        torch = self.torch
        sizes = [math.ceil(math.prod(shape) / ALIGNED) * ALIGNED for shape in shapes]
        flat = self.numbers.get(dtype)
        if flat is None or len(flat) < sets * sum(sizes):
            self.numbers[dtype] = flat = None  # its memory may be needed
            flat = torch.empty(max(LEAST_BUFFER, sets * sum(sizes)), device="cuda", dtype=self.dtypes[dtype])
            for part in flat.split(1 << 28):
                part.copy_(torch.randn(len(part), device="cuda", dtype=torch.bfloat16))
            self.numbers[dtype] = flat
        places = itertools.accumulate(sizes * sets, initial=0)
        return [[flat[at:at + math.prod(shape)].view(shape) for shape, at in zip(shapes, places)] for _ in range(sets)]

    def gemm(self, dtype, m, n, k, sets):
        torch = self.torch
        one = torch.ones((), device="cuda")

        def launch(a, b):
            if dtype == "fp8":
                return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                                use_fast_accum=True)
            out = torch.empty(m, n, device="cuda", dtype=self.dtypes[dtype])
            return lambda: torch.mm(a, b.t(), out=out)
        return [launch(a, b) for a, b in self.operands(dtype, sets, (m, k), (n, k))]

    def attention(self, dtype, library, batch, heads, kv_heads, head_dim, queries, keys, causal, backward, sets):
        torch = self.torch
        kernels = torch.nn.attention
        backend = {"flash2": kernels.SDPBackend.FLASH_ATTENTION, "cudnn": kernels.SDPBackend.CUDNN_ATTENTION}[library]

        def attend(q, k, v):
            with kernels.sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                                        enable_gqa=heads != kv_heads)

        def launch(q, k, v):
            if not backward:
                return lambda: attend(q, k, v)
            inputs = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
            out = attend(*inputs)
            gradient = torch.randn_like(out)
            return lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True)
        shapes = ((batch, heads, queries, head_dim),) + 2 * ((batch, kv_heads, keys, head_dim),)
        return [launch(*tensors) for tensors in self.operands(dtype, sets, *shapes)]

    def grouped(self, dtype, experts, m, n, k, sets):
        torch = self.torch
        ends = torch.arange(1, experts + 1, device="cuda", dtype=torch.int32) * m

        def launch(a, b):
            return lambda: torch._grouped_mm(a, b.transpose(1, 2), offs=ends)
        return [launch(a, b) for a, b in self.operands(dtype, sets, (experts * m, k), (experts, n, k))]

    def stream_kernel(self, kernel, rows, width, sets):
        torch = self.torch
        if kernel == "adamw":
            return [self.adamw(rows * width) for _ in range(sets)]
        weight = torch.ones(width, device="cuda", dtype=torch.bfloat16)
        functional = torch.nn.functional
        kernels = {"add": lambda x, y, out: torch.add(x, y, out=out),
                   "rms_norm": lambda x, _y, _out: functional.rms_norm(x, (width,), weight),
                   "layer_norm": lambda x, _y, _out: functional.layer_norm(x, (width,), weight, weight),
                   "softmax": lambda x, _y, out: torch.softmax(x, -1, out=out)}

        def launch(x, y):
            out = torch.empty_like(x)
            return lambda: kernels[kernel](x, y, out)
        return [launch(x, y) for x, y in self.operands("bf16", sets, (rows, width), (rows, width))]

    def adamw(self, parameters):
        torch = self.torch
        states = [[torch.rand(parameters, device="cuda")] for _ in range(4)]
        steps = [torch.ones((), device="cuda")]
        return lambda: torch._fused_adamw_(*states, [], steps, lr=1e-6, beta1=0.9, beta2=0.95, weight_decay=0.1,
                                           eps=1e-8, amsgrad=False, maximize=False)

    def copy(self, direction, size):
        torch = self.torch
        on_device = torch.empty(size, dtype=torch.uint8, device="cuda")
        other = (torch.empty_like(on_device) if direction == "device" else
                 torch.empty(size, dtype=torch.uint8, pin_memory=True))
        if direction == "host_to_device":
            return lambda: on_device.copy_(other, non_blocking=True)
        return lambda: other.copy_(on_device, non_blocking=True)

    def empty(self):
        one = self.torch.zeros(1, device="cuda")
        return lambda: one.add_(1)
