// SPDX-License-Identifier: Apache-2.0
/// The tensors between a block's operators: every graph is whole, and its sizes are the operators'.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "operators_of.h"
#include "workload/zoo/builder.h"
#include "workload/zoo/model.h"

namespace orrery::zoo {
namespace {

using graph::ModelTensor;
using Use = ModelTensor::Use;
using testing::find;
using testing::small_llama;

std::vector<Model> shipped_models() {
  std::vector<std::string> names;
  const auto one = find_config("models", "gpt2");
  for (const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(*one).parent_path())) {
    if (file.path().extension() == ".json") {
      names.push_back(file.path().stem().string());
    }
  }
  std::ranges::sort(names);
  std::vector<Model> models;
  for (const std::string& name : names) {
    if (auto model = load_model(name)) {
      models.push_back(std::move(*model));
    }
  }
  EXPECT_GT(models.size(), 50U);
  return models;
}

/// Kernels that differ in what they keep.
std::vector<ShapeOptions> kernel_choices() {
  const ShapeOptions flash{.microbatch = 2, .sequence = 256, .attention = AttentionKernel::flash};
  ShapeOptions apart = flash;
  apart.fused_kernels = false;
  apart.experts_apart = true;
  ShapeOptions unfused = flash;
  unfused.attention = AttentionKernel::unfused;
  unfused.fused_softmax = false;
  unfused.fused_cross_entropy = true;
  return {flash, apart, unfused};
}

std::vector<ModelGraph> graphs(const Model& model, const ShapeOptions& options) {
  std::vector<ModelGraph> all{embedding_graph(model, options), head_graph(model, options)};
  for (int kind = 0; kind < std::ssize(layer_kinds(model)); ++kind) {
    all.push_back(layer_graph(model, options, kind));
  }
  return all;
}

template <class Check>
void for_each_graph(Check check) {
  for (const Model& model : shipped_models()) {
    for (const ShapeOptions& options : kernel_choices()) {
      for (const ModelGraph& graph : graphs(model, options)) {
        SCOPED_TRACE(model.name);
        check(graph);
      }
    }
  }
}

const ModelTensor& tensor(const ModelGraph& graph, int number) {
  return graph.tensors.at(static_cast<std::size_t>(number));
}

std::int64_t elements(const ModelTensor& tensor) {
  return tensor.rows() * tensor.columns();
}

/// The tensor itself, not a view of it.
int whole(const ModelGraph& graph, int number) {
  while (tensor(graph, number).view_of >= 0) {
    number = tensor(graph, number).view_of;
  }
  return number;
}

TEST(ModelGraph, ReadsWhatIsWrittenBeforeOrEntersAndWritesATensorOnce) {
  for_each_graph([](const ModelGraph& graph) {
    std::set<int> written;
    for (const ModelOperator& op : graph.operators) {
      for (const int read : op.reads) {
        const int base = whole(graph, read);
        const Use use = tensor(graph, base).use;
        const bool enters = use == Use::input || use == Use::parameter;
        EXPECT_TRUE(enters || written.contains(base)) << op.name << " reads tensor " << read;
      }
      for (const int write : op.writes) {
        EXPECT_TRUE(tensor(graph, write).use == Use::activation ||
                    tensor(graph, write).use == Use::buffer)
            << op.name;
        EXPECT_LT(tensor(graph, write).view_of, 0) << op.name;
        EXPECT_TRUE(written.insert(write).second) << op.name << " writes tensor " << write;
      }
      for (const int kept : op.saves) {
        EXPECT_TRUE(std::ranges::count(op.reads, kept) + std::ranges::count(op.writes, kept) > 0)
            << op.name << " keeps what it does not touch";
      }
    }
    if (graph.output >= 0) {
      EXPECT_TRUE(written.contains(whole(graph, graph.output)));
    }
  });
}

/// Every result has a reader or leaves the block; losses and what only they are made of, and biases
/// by position that all layers add, have none. A buffer is what its operator keeps for itself.
TEST(ModelGraph, WritesNothingForNobody) {
  using enum graph::OperatorRole;
  for_each_graph([](const ModelGraph& graph) {
    std::set<int> read{graph.output < 0 ? -1 : whole(graph, graph.output)};
    for (const ModelOperator& op : graph.operators) {
      for (const int number : op.reads) {
        read.insert(whole(graph, number));
      }
    }
    for (const ModelOperator& op : graph.operators) {
      const bool ends = op.role == cross_entropy || op.role == click_loss ||
                        op.role == classifier || op.role == relative_bias;
      for (const int write : op.writes) {
        if (tensor(graph, write).use == Use::buffer) {
          EXPECT_TRUE(!read.contains(write) && std::ranges::count(op.saves, write) == 1) << op.name;
        } else {
          EXPECT_TRUE(ends || read.contains(write)) << op.name << " writes tensor " << write;
        }
      }
    }
  });
}

/// C[m, n] = A[m, k] W[k, n]: the weight has batch n k elements, and the kernel moves A, W and C.
TEST(ModelGraph, AProductsTensorsAreThoseOfItsShape) {
  for_each_graph([](const ModelGraph& graph) {
    for (const ModelOperator& op : graph.operators) {
      if (!op.has_weight) {
        continue;
      }
      const ModelTensor& result = tensor(graph, *op.writes.begin());
      std::int64_t read = 0;
      Bytes moved = result.bytes();
      const ModelTensor* weight = nullptr;
      for (const int number : op.reads) {
        const ModelTensor& one = tensor(graph, number);
        if (one.use != Use::parameter) {
          read += elements(one);
          moved += one.bytes();
        } else if (weight == nullptr) {  // others are biases
          weight = &one;
          moved += one.bytes();
        }
      }
      ASSERT_NE(weight, nullptr) << op.name;
      EXPECT_EQ(elements(*weight), op.gemm.batch * op.gemm.n * op.gemm.k) << op.name;
      EXPECT_EQ(moved, op.forward_bytes) << op.name;
      // Rows of experts are those of equal load, rounded up.
      const std::int64_t rows = op.expert ? result.rows() : op.gemm.m;
      const std::int64_t groups = op.expert ? 1 : op.gemm.batch;
      EXPECT_EQ(read, groups * rows * op.gemm.k) << op.name;
      EXPECT_EQ(elements(result), groups * rows * op.gemm.n) << op.name;
    }
  });
}

/// Q K^T of a heads: T x a x S scores of d products each; their product with V is T x a d_v.
TEST(ModelGraph, ProductsOfActivationsHaveTheTensorsOfTheirShape) {
  for_each_graph([](const ModelGraph& graph) {
    for (const ModelOperator& op : graph.operators) {
      if (op.role == graph::OperatorRole::scores || op.role == graph::OperatorRole::context) {
        EXPECT_EQ(elements(tensor(graph, op.writes.front())), op.gemm.batch * op.gemm.m * op.gemm.n)
            << op.name;
        EXPECT_EQ(elements(tensor(graph, op.reads.front())), op.gemm.batch * op.gemm.m * op.gemm.k)
            << op.name;
      }
    }
  });
}

/// T = 128, H = 512, 8 query and 2 key-value heads of 64, F = 1536, two bytes an element.
TEST(ModelGraph, ALlamaLayersTensorsByHand) {
  const ModelGraph graph =
      layer_graph(small_llama(), {.sequence = 128, .attention = AttentionKernel::flash});
  const auto written = [&](const std::string& name) {
    std::vector<std::int64_t> sizes;
    for (const int write : find(graph.operators, name).writes) {
      sizes.push_back(tensor(graph, write).bytes().value());
    }
    return sizes;
  };
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(written("input_norm"), Sizes{128 * 512 * 2});
  EXPECT_EQ(written("qkv_gemm"), Sizes{128 * (512 + 2 * 128) * 2});
  EXPECT_EQ(written("qkv_split"), (Sizes{128 * 512 * 2, 128 * 128 * 2, 128 * 128 * 2}));
  EXPECT_EQ(written("flash_attention"), (Sizes{128 * 512 * 2, 128 * 8 * 4}));  // fp32 row sums
  EXPECT_EQ(written("fc1_gemm"), Sizes{128 * 2 * 1536 * 2});
  EXPECT_EQ(written("silu_mul"), Sizes{128 * 1536 * 2});
  EXPECT_EQ(written("mlp_residual"), Sizes{128 * 512 * 2});
}

/// Either sum reads the stream as it was before their branch's norm.
TEST(ModelGraph, AResidualSumReadsWhatItsNormRead) {
  const ModelGraph graph = layer_graph(small_llama(), {.sequence = 128});
  const auto first_read = [&](const std::string& name) {
    return find(graph.operators, name).reads.front();
  };
  EXPECT_EQ(first_read("input_norm"), first_read("attention_residual"));
  EXPECT_EQ(first_read("mlp_norm"), first_read("mlp_residual"));
  EXPECT_EQ(find(graph.operators, "attention_residual").writes.front(), first_read("mlp_norm"));
  EXPECT_EQ(find(graph.operators, "mlp_residual").writes.front(), graph.output);
}

/// Tensor parallelism divides heads and F, nothing of the stream.
TEST(ModelGraph, WhatTensorParallelismDividesFollowsFromItsDimensions) {
  const ModelGraph graph =
      layer_graph(small_llama(), {.sequence = 128, .attention = AttentionKernel::flash});
  std::vector<std::string> divided;
  for (const ModelOperator& op : graph.operators) {
    if (tensor(graph, op.writes.front()).is_divided()) {
      divided.push_back(op.name);
    }
  }
  EXPECT_EQ(divided, (std::vector<std::string>{"qkv_gemm", "qkv_split", "rotary", "flash_attention",
                                               "fc1_gemm", "silu_mul"}));
}

/// Sizes saturate as byte counts do.
TEST(ModelTensor, BytesSaturate) {
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_TRUE(
      (ModelTensor{.extents = {{{.size = large}, {.size = large}, {}}}}.bytes().is_overflow()));
}

}  // namespace
}  // namespace orrery::zoo
