# SPDX-License-Identifier: Apache-2.0
"""FLOPs and bytes of a captured PyTorch graph, counted as the zoo counts a model's.

An operator is a dict, as capture() makes it of a node of a torch.export graph:

    {"name": "linear", "target": "aten.linear.default",
     "inputs": [{"id": "x", "shape": [4, 2048, 4096], "dtype": "bfloat16"}, ...],
     "outputs": [{"id": "linear", "shape": [4, 2048, 6144], "dtype": "bfloat16"}],
     "arguments": {"is_causal": true}}

Matrix products and attention are kernels of their own and count FLOPs; what streams its operands is fused
as compilers fuse it: with producers that no other kernel stands between, so that a group reads what
comes from outside once and writes what is used outside. The bias of a linear layer over more than two
dimensions is a sum behind the product, fused with what follows. Views cost nothing.

    product     2 batch m n k FLOPs; operands and result
    attention   4 B heads pairs d FLOPs, pairs = S_q S_kv, of a causal mask those that it leaves
    norm        input and output, once each; from single operators: a group that begins at the reduction
"""
import collections
import math
import re

try:
    import numpy
except ImportError:
    numpy = None

SIZES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "int32": 4, "int16": 2,
         "int8": 1, "uint8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1}
VIEWS = set("view reshape transpose permute expand slice split split_with_sizes chunk unbind unsqueeze squeeze t "
            "detach alias getitem select narrow flatten unflatten contiguous _unsafe_view expand_as view_as "
            "lift_fresh_copy dropout sym_size get movedim swapaxes T mT requires_grad_".split())
PRODUCTS = set("mm addmm bmm baddbmm matmul linear".split())
ATTENTION = re.compile(r"(_?scaled_dot_product)\w*attention\w*|flash_attn\w*")
NORMS = set("layer_norm native_layer_norm rms_norm _fused_rms_norm group_norm native_group_norm".split())
REDUCTIONS = set("mean sum var var_mean amax amin norm linalg_vector_norm".split())
SOFTMAX = set("softmax _softmax log_softmax _log_softmax _safe_softmax".split())
EMBEDDING = set("embedding index_select gather".split())

Operator = collections.namedtuple("Operator", "name kind flops bytes fused")
Operator.__doc__ = "One kernel: its name, kind, FLOPs, bytes, and how many operators of the graph it fuses."


class Operators(list):
    """The kernels of a graph, in order."""

    @property
    def flops(self):
        return column([operator.flops for operator in self])

    @property
    def bytes(self):
        return column([operator.bytes for operator in self])

    @property
    def total_flops(self):
        return float(sum(operator.flops for operator in self))

    @property
    def total_bytes(self):
        return int(sum(operator.bytes for operator in self))

    def of_kind(self, kind):
        return Operators(operator for operator in self if operator.kind == kind)


def column(values):
    return values if numpy is None else numpy.array(values, dtype=float)


def from_operators(operators):
    """The kernels of a list of operators (dicts, in the order of the graph), with FLOPs and bytes."""
    return Graph(operators).kernels()


def capture(module, example_inputs):
    """The kernels of a PyTorch module, called with these inputs. On the meta device nothing is computed
    and no memory taken: `with torch.device("meta"): module = ...`."""
    return from_operators(operators_of(module, example_inputs))


def operators_of(module, example_inputs):
    """The operators of a module as from_operators() takes them, and as JSON can keep them: those of its
    torch.export graph, or of older versions the functions that a call makes."""
    import torch
    if hasattr(torch, "export"):
        graph = torch.export.export(module, tuple(example_inputs)).graph_module.graph
        return [operator_of_node(node) for node in graph.nodes if node.op == "call_function"]
    return called_functions(torch, module, example_inputs)


def operator_of_node(node):
    inputs = [value_of(*one) for argument in node.all_input_nodes for one in tensors_of(argument)]
    schema = getattr(node.target, "_schema", None)
    names = [argument.name for argument in schema.arguments] if schema else []
    target = str(node.target) if "aten" in str(node.target) else getattr(node.target, "__name__", str(node.target))
    return {"name": node.name, "target": target, "inputs": inputs,
            "outputs": [value_of(*one) for one in tensors_of(node)],
            "arguments": plain_arguments({**dict(zip(names, node.args)), **node.kwargs})}


def tensors_of(node):
    values = node.meta.get("val")
    several = values if isinstance(values, (tuple, list)) else [values]
    return [(node.name if number == 0 else f"{node.name}.{number}", value)
            for number, value in enumerate(several) if hasattr(value, "shape")]


def value_of(name, value):
    return {"id": name, "shape": [int(extent) for extent in value.shape],
            "dtype": str(value.dtype).removeprefix("torch.")}


def plain_arguments(given):
    return {name: value for name, value in given.items() if isinstance(value, (bool, int, float, str))}


def called_functions(torch, module, example_inputs):
    from torch.overrides import TorchFunctionMode
    operators, alive, names = [], [], {}

    def named(tensor):
        if id(tensor) not in names:
            names[id(tensor)] = f"value_{len(names)}"
            alive.append(tensor)  # its id is not another's
        return value_of(names[id(tensor)], tensor)

    def tensors_in(values):
        for value in values:
            if isinstance(value, torch.Tensor):
                yield value
            elif isinstance(value, (tuple, list)):
                yield from tensors_in(value)

    class Recorder(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), keywords=None):
            result = function(*arguments, **(keywords or {}))
            outputs = list(tensors_in([result]))
            if outputs:
                operators.append({"name": f"{function.__name__.strip('_')}_{len(operators)}",
                                  "target": function.__name__,
                                  "inputs": [named(one) for one in tensors_in([*arguments, *(keywords or {}).values()])],
                                  "outputs": [named(one) for one in outputs],
                                  "arguments": plain_arguments(keywords or {})})
            return result

    with torch.no_grad(), Recorder():
        module(*example_inputs)
    return operators


def base_name(target):
    """aten.linear.default -> linear, __mul__ -> mul."""
    parts = target.split(".")
    name = parts[1] if len(parts) > 1 and parts[0] == "aten" else parts[-1]
    return name.strip("_") if name.startswith("__") else name


class Graph:
    """Values by id through views, kernels by level: how many kernels stand before one at most.

    A view of a part of a value is read as that part, a view of a part as the whole part."""

    def __init__(self, operators):
        self.operators = [self.read(number, operator) for number, operator in enumerate(operators)]
        self.root = {}      # id of a view -> id of the value that it looks at
        self.span = {}      # id of a view -> id of the part of it that counts as read
        self.size = {}      # bytes by id
        self.level = {}     # by id
        self.users = collections.Counter()
        self.groups = []    # of streaming operators, and kernels of their own
        self.group_of = {}  # by id of a value

    @staticmethod
    def read(number, operator):
        for field in ("target", "inputs", "outputs"):
            if field not in operator:
                raise ValueError(f"operator {number}: lacks {field}")
        for value in [*operator["inputs"], *operator["outputs"]]:
            if value.get("dtype") not in SIZES:
                raise ValueError(f"operator {number}: found dtype {value.get('dtype')!r}, "
                                 f"expected one of {', '.join(SIZES)}")
            if not all(isinstance(extent, int) and extent >= 0 for extent in value["shape"]):
                raise ValueError(f"operator {number}: found shape {value['shape']}, expected whole numbers")
        return {"name": f"operator_{number}", "arguments": {}, **operator}

    def kernels(self):
        self.settle_views()
        private = self.begins_of_reductions()
        for operator in self.operators:
            name = base_name(operator["target"])
            if name in VIEWS or not operator["outputs"]:
                continue
            if name in PRODUCTS:
                self.add_product(operator, name)
            elif ATTENTION.fullmatch(name):
                self.add_kernel(operator, "attention", attention_flops(operator))
            elif name in NORMS:
                self.add_kernel(operator, "norm", 0, outputs=operator["outputs"][:1])
            elif name in SOFTMAX:
                self.add_kernel(operator, "softmax", 0)
            elif name in EMBEDDING:
                rows = bytes_of(operator["outputs"][0])
                self.add(operator, "embedding", 0, 2 * rows + bytes_of(operator["inputs"][-1]))
            else:
                self.add_streaming(operator, name in REDUCTIONS, operator["outputs"][0]["id"] in private)
        return Operators(self.kernel_of(group) for group in self.groups)

    def settle_views(self):
        for operator in self.operators:
            view = base_name(operator["target"]) in VIEWS and operator["inputs"]
            for value in operator["inputs"]:
                self.size.setdefault(value["id"], bytes_of(value))
            for value in operator["outputs"]:
                name = value["id"]
                if name in self.root:
                    continue
                self.size.setdefault(name, bytes_of(value))
                self.root[name] = self.span[name] = name
                if view:
                    seen = operator["inputs"][0]["id"]
                    self.root[name] = self.of(seen)
                    part = self.span.get(seen, seen) == self.of(seen) and self.size[name] < self.size[self.of(seen)]
                    self.span[name] = name if part else self.span.get(seen, seen)
            if not view:
                for one in {self.of(value["id"]) for value in operator["inputs"]}:
                    self.users[one] += 1

    def of(self, name):
        return self.root.get(name, name)

    def begins_of_reductions(self):
        """Values that only reductions, or such values, use: a norm begins there."""
        private = set()
        users = collections.defaultdict(list)
        for operator in self.operators:
            if base_name(operator["target"]) not in VIEWS and operator["outputs"]:
                for value in operator["inputs"]:
                    users[self.of(value["id"])].append(operator)
        for operator in reversed(self.operators):
            name = base_name(operator["target"])
            if name in VIEWS or name in PRODUCTS or name in NORMS or not operator["outputs"]:
                continue
            using = users[operator["outputs"][0]["id"]]
            if using and all(base_name(user["target"]) in REDUCTIONS or user["outputs"][0]["id"] in private
                             for user in using):
                private.add(operator["outputs"][0]["id"])
        return private

    def level_of(self, operator):
        return max((self.level.get(self.of(value["id"]), 0) for value in operator["inputs"]), default=0)

    def add(self, operator, kind, flops, moved):
        group = {"name": operator["name"], "kind": kind, "flops": flops, "bytes": moved, "fused": 1}
        self.groups.append(group)
        for value in operator["outputs"]:
            self.level[value["id"]] = self.level_of(operator) + 1
        return group

    def add_kernel(self, operator, kind, flops, outputs=None):
        moved = sum(self.read_bytes(value) for value in operator["inputs"])
        self.add(operator, kind, flops, moved + sum(bytes_of(value) for value in outputs or operator["outputs"][:1]))

    def read_bytes(self, value):
        """An expanded view is read as what it expands."""
        return min(bytes_of(value), self.size[self.span.get(value["id"], value["id"])])

    def add_product(self, operator, name):
        inputs = operator["inputs"]
        bias = None
        if name == "linear" and len(inputs) > 2:
            inputs, bias = inputs[:2], inputs[2]
        elif name in ("addmm", "baddbmm"):
            inputs, bias = inputs[1:], inputs[0]
        result = operator["outputs"][0]
        inner = inputs[0]["shape"][-1]
        flops = 2.0 * math.prod(result["shape"]) * inner
        self.add(operator, "gemm", flops, sum(bytes_of(value) for value in [*inputs, result]))
        if bias is not None:
            group = self.begin(operator["name"] + "_bias", [bias["id"]], result["id"], False)
            group["product"] = bytes_of(result)

    def begin(self, name, reads, result, reduces):
        group = {"name": name, "kind": "norm" if reduces else "elementwise", "flops": 0, "fused": 1,
                 "reads": list(reads), "product": 0, "reduces": reduces,
                 "members": {result}, "inside": collections.Counter()}
        self.groups.append(group)
        self.group_of[result] = group
        return group

    def add_streaming(self, operator, reduces, apart):
        level = self.level_of(operator)
        result = operator["outputs"][0]["id"]
        self.level[result] = level
        reads = list(dict.fromkeys(self.span.get(value["id"], value["id"]) for value in operator["inputs"]))
        roots = {self.of(read) for read in reads}
        before = []
        for read in reads:
            group = self.group_of.get(self.of(read))
            if group is not None and self.level.get(self.of(read), 0) == level and \
                    not any(group is one for one in before):
                before.append(group)
        if apart or not before:
            group = self.begin(operator["name"], reads, result, reduces or apart)
        else:
            norms = [one for one in before if one["reduces"]]
            group = norms[-1] if norms else self.united(before)
            group["fused"] += 1
            group["reads"] += [read for read in reads if read not in group["reads"]]
            group["members"].add(result)
            self.group_of[result] = group
        group["inside"].update(root for root in roots if self.group_of.get(root) is group)

    def united(self, groups):
        first = groups[0]
        for other in groups[1:]:
            first["reads"] += [read for read in other["reads"] if read not in first["reads"]]
            first["members"] |= other["members"]
            first["inside"] += other["inside"]
            first["fused"] += other["fused"]
            first["product"] += other["product"]
            for member in other["members"]:
                self.group_of[member] = first
            self.groups = [group for group in self.groups if group is not other]
        return first

    def kernel_of(self, group):
        if "reads" in group:
            own = group["members"]
            read = collections.Counter()
            for name in group["reads"]:
                if self.of(name) not in own:
                    read[self.of(name)] = min(self.size[self.of(name)], read[self.of(name)] + self.size[name])
            written = sum(self.size[name] for name in own
                          if self.users[name] > group["inside"][name] or self.users[name] == 0)
            group["bytes"] = group["product"] + sum(read.values()) + written
        return Operator(group["name"], group["kind"], group["flops"], group["bytes"], group["fused"])


def bytes_of(value):
    return math.prod(value["shape"]) * SIZES[value["dtype"]]


def attention_flops(operator):
    query, key, value = (one["shape"] for one in operator["inputs"][:3])
    queries, keys = query[-2], key[-2]
    pairs = queries * keys
    if operator["arguments"].get("is_causal"):
        seen = min(queries, keys)
        pairs = queries * keys - (seen * (seen - 1) / 2 if queries >= keys else queries * (queries - 1) / 2)
    return 2.0 * math.prod(query[:-2]) * pairs * (query[-1] + value[-1])
