// SPDX-License-Identifier: Apache-2.0
/// Reading Chakra traces: bytes and nodes per second of the decoder alone, and of whole folders.
#include <benchmark/benchmark.h>
#include <google/protobuf/io/coded_stream.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "chakra.pb.h"
#include "workload/chakra/load.h"
#include "workload/chakra/program_builder.h"
#include "workload/chakra/wire.h"

namespace orrery::chakra {
namespace {

void frame(const google::protobuf::MessageLite& message, std::string& bytes) {
  std::size_t length = message.ByteSizeLong();
  for (; length >= 0x80; length >>= 7) {
    bytes += static_cast<char>((length & 0x7F) | 0x80);
  }
  bytes += static_cast<char>(length);
  message.AppendToString(&bytes);
}

void attribute(ChakraProtoMsg::Node& node, const char* name, std::int64_t value) {
  auto* attribute = node.add_attr();
  attribute->set_name(name);
  attribute->set_int64_val(value);
}

/// Says how files of a folder differ.
enum class Differ : std::uint8_t { not_at_all, in_peers, in_groups };

/// Two GEMMs, an all-reduce, and another or a message around a ring of all ranks. Groups are of
/// eight neighbours and of every eighth rank.
std::string trace(std::int64_t nodes, std::int64_t rank, std::int64_t ranks, Differ differ) {
  std::string bytes;
  ChakraProtoMsg::GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  frame(metadata, bytes);
  for (std::int64_t i = 0; i < nodes; ++i) {
    ChakraProtoMsg::Node node;
    node.set_id(static_cast<std::uint64_t>(i));
    node.set_name("layer_" + std::to_string(i / 4));
    if (i > 0) {
      node.add_data_deps(static_cast<std::uint64_t>(i - 1));
    }
    auto* on_cpu = node.add_attr();
    on_cpu->set_name("is_cpu_op");
    on_cpu->set_bool_val(false);
    if (i % 4 < 2) {
      node.set_type(ChakraProtoMsg::COMP_NODE);
      attribute(node, "num_ops", 1'000'000'000);
      attribute(node, "tensor_size", 1 << 20);
    } else if (i % 4 == 2 || differ != Differ::in_peers) {
      node.set_type(ChakraProtoMsg::COMM_COLL_NODE);
      attribute(node, "comm_type", ChakraProtoMsg::ALL_REDUCE);
      attribute(node, "comm_size", 1 << 23);
      if (differ == Differ::in_groups) {
        const std::int64_t group = i % 4 == 2 ? 1 + rank / 8 : 1001 + rank % 8;
        auto* name = node.add_attr();
        name->set_name("pg_name");
        name->set_string_val(std::to_string(group));
      }
    } else {
      const bool sends = i % 8 == 3;
      node.set_type(sends ? ChakraProtoMsg::COMM_SEND_NODE : ChakraProtoMsg::COMM_RECV_NODE);
      attribute(node, "comm_size", 1 << 20);
      attribute(node, sends ? "comm_dst" : "comm_src", (rank + (sends ? 1 : ranks - 1)) % ranks);
      attribute(node, "comm_tag", i / 8);
    }
    frame(node, bytes);
  }
  return bytes;
}

void decode(benchmark::State& state) {
  const std::string bytes = trace(state.range(0), 0, 8, Differ::in_peers);
  ByteWindow window;
  Mistakes mistakes;
  ProgramBuilder builder;
  FileShape shape;
  for (auto _ : state) {
    mistakes.begin("trace");
    builder.begin(mistakes);
    window.open(std::string_view(bytes));
    read_et(window, builder, shape, mistakes);
    benchmark::DoNotOptimize(builder.trace().program.nodes.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(decode)->Arg(120)->Arg(10'000);

/// The same with protobuf's classes: what the decoder is held against.
void decode_with_generated_classes(benchmark::State& state) {
  const std::string bytes = trace(state.range(0), 0, 8, Differ::in_peers);
  for (auto _ : state) {
    google::protobuf::io::CodedInputStream stream(
        reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
    std::uint32_t length = 0;
    stream.ReadVarint32(&length);
    stream.Skip(static_cast<int>(length));
    ChakraProtoMsg::Node node;
    while (stream.ReadVarint32(&length)) {
      const auto limit = stream.PushLimit(static_cast<int>(length));
      node.ParseFromCodedStream(&stream);
      stream.PopLimit(limit);
      benchmark::DoNotOptimize(node.id());
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(decode_with_generated_classes)->Arg(120)->Arg(10'000);

/// {"1": [0, ..., 7], ..., "1001": [0, 8, ...], ...}
std::string groups_of(std::int64_t ranks) {
  std::string text = "{";
  for (std::int64_t i = 0; i < ranks / 8 + 8; ++i) {
    const bool neighbours = i < ranks / 8;
    text += (i > 0 ? ", \"" : "\"") + std::to_string(neighbours ? 1 + i : 1001 + i - ranks / 8) +
            "\": [";
    for (std::int64_t k = 0; k < (neighbours ? 8 : ranks / 8); ++k) {
      text += (k > 0 ? ", " : "") + std::to_string(neighbours ? 8 * i + k : i - ranks / 8 + 8 * k);
    }
    text += "]";
  }
  return text + "}";
}

/// A folder of 1,024 files.
void load_folder(benchmark::State& state) {
  constexpr std::int64_t kRanks = 1024;
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("orrery_chakra_bench_" + std::to_string(getpid()));
  fs::create_directories(folder);
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    std::ofstream(folder / ("t." + std::to_string(rank) + ".et"), std::ios::binary)
        << trace(state.range(0), rank, kRanks, static_cast<Differ>(state.range(1)));
  }
  std::ofstream(folder / "groups.json") << groups_of(kRanks);
  const LoadOptions options{.prefix = (folder / "t").string(),
                            .ranks = kRanks,
                            .groups = (folder / "groups.json").string(),
                            .progress = {}};
  for (auto _ : state) {
    auto traces = load(options);
    benchmark::DoNotOptimize(traces->programs.size());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * kRanks);
  fs::remove_all(folder);
}
BENCHMARK(load_folder)
    ->ArgNames({"nodes", "differ"})
    ->Args({120, 0})
    ->Args({120, 1})
    ->Args({120, 2})
    ->Args({10'000, 1})
    ->Unit(benchmark::kMillisecond);

/// One file for all.
void load_one_for_all(benchmark::State& state) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("orrery_chakra_bench_" + std::to_string(getpid()) + ".et"))
                               .string();
  std::ofstream(path, std::ios::binary) << trace(120, 0, 8, Differ::not_at_all);
  const LoadOptions options{.prefix = path, .ranks = state.range(0), .groups = {}, .progress = {}};
  for (auto _ : state) {
    auto traces = load(options);
    benchmark::DoNotOptimize(traces->programs.size());
  }
  std::filesystem::remove(path);
}
BENCHMARK(load_one_for_all)->Arg(65'536)->Arg(1'048'576)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::chakra
