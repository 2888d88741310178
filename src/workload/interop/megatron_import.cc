// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/reader.h"
#include "workload/interop/launcher.h"
#include "workload/interop/megatron.h"
#include "workload/interop/megatron_flags.h"
#include "workload/interop/optimizer_name.h"

namespace orrery::interop {
namespace {

class MegatronImport {
 public:
  MegatronImport(const LaunchLine& line, const LaunchWords& words, const ImportOptions& options)
      : arguments_(line.arguments, line.places),
        words_(words),
        program_(line.program),
        plan_(options.rest) {
    imported_.remarks = words.remarks;
    if (words.dumped) {
      arguments_.pass_unknown();
    }
    ulysses_ = arguments_.has("--ds-sequence-parallel-size");
    for (const RenamedFlag& flag : megatron_renamed()) {
      arguments_.rename(flag.name, flag.as);
    }
  }

  Result<Imported> run(std::int64_t devices) {
    degrees(devices);
    batch();
    read_megatron_pipeline(arguments_, plan_);
    read_megatron_memory(arguments_, plan_);
    read_megatron_data_parallel(arguments_, plan_);
    context();
    read_megatron_deepspeed(arguments_, words_.documents, plan_);
    experts();
    kernels();
    overlaps();
    vocabulary();
    other_flags();
    Error mistakes = arguments_.take_mistakes();
    imported_.model_config = read_megatron_model(arguments_, plan_.sequence, program_);
    arguments_.take_mistakes();  // they are in model_config
    read_bucket_count();
    mistakes.add(arguments_.finish());
    std::ranges::move(arguments_.take_notes(), std::back_inserter(imported_.remarks));
    if (!mistakes.empty()) {
      return fail(std::move(mistakes));
    }
    imported_.plan = std::move(plan_);
    return std::move(imported_);
  }

 private:
  std::int64_t degree(std::string_view name) {
    const std::int64_t value = arguments_.number_or(name, 1);
    arguments_.require(value <= kMostDegree, name, "at most " + std::to_string(kMostDegree));
    return std::min(value, kMostDegree);
  }

  void degrees(std::int64_t devices) {
    plan_.tp = degree("--tensor-model-parallel-size");
    plan_.pp = degree("--pipeline-model-parallel-size");
    plan_.cp = degree("--context-parallel-size");
    plan_.ep = degree("--expert-model-parallel-size");
    plan_.etp = arguments_.number_or("--expert-tensor-parallel-size", 0);
    if (arguments_.flag("--moe-tp-extend-ep")) {  // MindSpeed: experts are spread over tp, too
      plan_.ep = std::min(plan_.ep * plan_.tp, kMostDegree);
      plan_.etp = 1;
    }
    const std::int64_t replica = plan_.tp * plan_.pp * plan_.cp;
    knows_devices_ = devices > 0 && devices % replica == 0;
    if (devices == 0) {
      arguments_.reject("--devices",
                        arguments_.has("--devices")
                            ? "it before --: it is the command's, not the script's"
                            : "missing; expected the number of devices, as the line has no "
                              "launcher that states it");
    } else if (devices % replica != 0) {
      arguments_.reject(
          "--devices",
          std::to_string(devices) + " is no multiple of tp x pp x cp = " + std::to_string(replica));
    } else {
      plan_.dp = devices / replica;
    }
    plan_.sequence_parallel = arguments_.flag("--sequence-parallel") && plan_.tp > 1;
    plan_.order = arguments_.flag("--use-tp-pp-dp-mapping") ? "tp-cp-pp-dp" : "tp-cp-dp-pp";
  }

  void batch() {
    const auto microbatch = arguments_.number("--micro-batch-size", 1);
    arguments_.require(microbatch.has_value(), "--micro-batch-size", "required, but missing");
    plan_.microbatch = std::min(microbatch.value_or(1), kMostDegree);
    const std::int64_t together = plan_.microbatch * plan_.dp;
    plan_.global_batch = arguments_.number_or("--global-batch-size", together);
    arguments_.require(plan_.global_batch % together == 0, "--global-batch-size",
                       "a multiple of micro-batch size x dp = " + std::to_string(together));
    const auto sequence = arguments_.number("--seq-length", 1);
    arguments_.require(sequence.has_value(), "--seq-length", "required, but missing");
    plan_.sequence = sequence.value_or(0);
  }

  void context() {
    const std::vector<std::string> given = arguments_.words("--cp-comm-type");
    const std::vector<std::string> kinds = given.empty() ? std::vector<std::string>{"p2p"} : given;
    const bool alike = std::all_of(kinds.begin(), kinds.end(),
                                   [&](const std::string& kind) { return kind == kinds.front(); });
    const std::string kind = exchange_of(kinds.front());
    const auto exchange =
        value_of<plan::ContextExchange>(kind == "allgather" ? std::string("all_gather") : kind);
    arguments_.require(alike, "--cp-comm-type", "the same for all layers");
    arguments_.require(exchange.has_value(), "--cp-comm-type", "p2p, a2a, allgather or a2a+p2p");
    plan_.cp_exchange =
        ulysses_ ? plan::ContextExchange::a2a : exchange.value_or(plan::ContextExchange::p2p);
    const std::vector<std::string> levels =
        arguments_.words("--hierarchical-context-parallel-sizes");
    if (plan_.cp_exchange == plan::ContextExchange::a2a_p2p) {
      read_levels(levels);
    }
  }

  /// Returns the kind of exchange, by MindSpeed's name for it where the line has one.
  std::string exchange_of(const std::string& kind) {
    const auto algorithm = arguments_.word("--context-parallel-algo");
    const bool known =
        !algorithm || *algorithm == "megatron_cp_algo" || *algorithm == "ulysses_cp_algo";
    arguments_.require(known, "--context-parallel-algo", "megatron_cp_algo or ulysses_cp_algo");
    return !algorithm ? kind : *algorithm == "ulysses_cp_algo" ? "a2a" : "p2p";
  }

  /// The inner level exchanges by all-to-all, the outer one is the ring.
  void read_levels(const std::vector<std::string>& levels) {
    constexpr std::string_view kName = "--hierarchical-context-parallel-sizes";
    if (levels.size() != 2) {
      arguments_.reject(kName, "two sizes: of the all-to-all and of the ring");
      return;
    }
    const auto inner = parse_value<std::int64_t>(levels[0]);
    const auto outer = parse_value<std::int64_t>(levels[1]);
    if (!inner || !outer || *inner < 1 || *inner > plan_.cp || plan_.cp % *inner != 0 ||
        *outer != plan_.cp / *inner) {
      arguments_.reject(kName, "two sizes whose product is cp = " + std::to_string(plan_.cp));
      return;
    }
    plan_.cp_a2a = *inner;
  }

  void experts() {
    expert_ranks();
    const bool routed = arguments_.number("--num-experts").value_or(0) > 0;
    const auto kind = arguments_.word("--moe-token-dispatcher-type");
    arguments_.flag("--moe-enable-deepep");  // what flex is used with
    if (kind == "flex") {
      plan_.moe_dispatch = plan::MoeDispatch::hierarchical;
    } else if (kind) {
      const auto dispatch = value_of<plan::MoeDispatch>(*kind);
      arguments_.require(dispatch.has_value() && dispatch != plan::MoeDispatch::hierarchical,
                         "--moe-token-dispatcher-type", "allgather, alltoall or flex");
      plan_.moe_dispatch = dispatch.value_or(plan::MoeDispatch::all_to_all);
    } else {
      plan_.moe_dispatch = routed ? plan::MoeDispatch::all_gather : plan::MoeDispatch::all_to_all;
    }
    const double capacity = arguments_.real("--moe-expert-capacity-factor").value_or(0);
    plan_.moe_capacity = std::max(capacity, 0.0);  // -1 means dropless, as in Megatron core
    const bool concurrent_with_shared = arguments_.flag("--moe-shared-expert-overlap");
    const bool beside_microbatch = arguments_.flag("--overlap-moe-expert-parallel-comm");
    arguments_.require(!concurrent_with_shared || !beside_microbatch, "--moe-shared-expert-overlap",
                       "not together with --overlap-moe-expert-parallel-comm");
    plan_.overlap_ep = beside_microbatch        ? plan::OverlapExperts::microbatch
                       : concurrent_with_shared ? plan::OverlapExperts::shared
                                                : plan::OverlapExperts::off;
    if (plan_.lora_rank > 0 && plan_.overlap_ep != plan::OverlapExperts::off) {
      plan_.overlap_ep = plan::OverlapExperts::off;
      arguments_.note("--moe-shared-expert-overlap", "with adapters nothing runs beside exchanges");
    }
    if (arguments_.flag("--moe-router-force-load-balancing")) {
      plan_.moe_imbalance = 1;
      plan_.moe_spread = 0;
    }
  }

  /// Megatron core: the ranks of a pipeline stage are tp x cp x dp, those of an expert etp x ep.
  void expert_ranks() {
    const std::int64_t ranks = plan_.tp * plan_.cp * plan_.dp;
    const std::int64_t inner = plan_.etp > 0 ? plan_.etp : plan_.tp;
    arguments_.require(!knows_devices_ || plan_.ep == 1 ||
                           (inner <= ranks && ranks % (std::min(inner, ranks) * plan_.ep) == 0),
                       "--expert-model-parallel-size",
                       "a divisor of tp x cp x dp / etp = " +
                           std::to_string(ranks / std::max<std::int64_t>(inner, 1)));
  }

  /// Whichever modules are named: layers are captured but for routed experts.
  void graphs() {
    const auto implementation = arguments_.word("--cuda-graph-impl");
    const std::vector<std::string> scope = arguments_.words("--cuda-graph-scope");
    const bool inside = arguments_.flag("--enable-cuda-graph");  // before --cuda-graph-impl
    const bool outside = arguments_.flag("--external-cuda-graph");
    const bool known = !implementation || implementation == "none" || implementation == "local" ||
                       implementation == "transformer_engine" || implementation == "full_iteration";
    arguments_.require(known, "--cuda-graph-impl",
                       "none, local, transformer_engine or full_iteration");
    const bool whole = implementation == "full_iteration" ||
                       std::find(scope.begin(), scope.end(), "full_iteration") != scope.end();
    const bool captures = inside || outside || (implementation && implementation != "none");
    plan_.cuda_graphs = !captures ? plan::CudaGraphs::none
                        : whole   ? plan::CudaGraphs::full
                                  : plan::CudaGraphs::layers;
  }

  void kernels() {
    graphs();
    const std::string implementation =
        arguments_.word("--transformer-impl").value_or("transformer_engine");
    const std::string backend = arguments_.word("--attention-backend").value_or("auto");
    const bool asked = arguments_.flag("--use-flash-attn");
    arguments_.require(backend == "auto" || backend == "flash" || backend == "fused" ||
                           backend == "unfused" || backend == "local",
                       "--attention-backend", "flash, fused, unfused, local or auto");
    const bool fused = backend == "fused" || (backend == "auto" && implementation != "local");
    plan_.attention = asked || backend == "flash" ? zoo::AttentionKernel::flash
                      : fused                     ? zoo::AttentionKernel::cudnn
                                                  : zoo::AttentionKernel::unfused;
    plan_.persistent_norm = !arguments_.flag("--no-persist-layer-norm");
    plan_.fused_cross_entropy = arguments_.flag("--cross-entropy-loss-fusion");
    plan_.host_sync = arguments_.number("--timing-log-level").value_or(0) >= 2;
    fusions();
    const std::string optimizer = arguments_.word("--optimizer").value_or("adam");
    const auto known = optimizer_named(optimizer);
    plan_.optimizer = known.value_or(plan::Optimizer::adam);
    if (!known) {
      arguments_.note("--optimizer",
                      optimizer + ": counted as adam, with two moments per parameter");
    }
  }

  /// A plan fuses every element-wise chain or none; chains that the model does not have do not
  /// count.
  void fusions() {
    const bool gated = arguments_.flag("--swiglu");
    const bool rotary = arguments_.word("--position-embedding-type").value_or("") == "rope" ||
                        arguments_.flag("--use-rotary-position-embeddings");
    const bool gelu_apart = arguments_.flag("--no-bias-gelu-fusion");
    const bool swiglu_apart = arguments_.flag("--no-bias-swiglu-fusion");
    const bool softmax_apart = arguments_.flag("--no-masked-softmax-fusion");
    const bool rotary_apart = arguments_.flag("--no-rope-fusion");
    const bool activation_apart = gated ? swiglu_apart : gelu_apart;
    std::vector<bool> apart{arguments_.flag("--no-bias-dropout-fusion"), activation_apart};
    if (plan_.attention == zoo::AttentionKernel::unfused) {
      apart.push_back(softmax_apart);
    }
    if (rotary) {
      apart.push_back(rotary_apart);
    }
    const auto count = std::count(apart.begin(), apart.end(), true);
    plan_.fused_kernels = count < std::ssize(apart);
    if (count > 0 && plan_.fused_kernels) {
      imported_.remarks.push_back(
          {"--no-...-fusion", "some kernels only are not fused; the plan fuses all of them"});
    }
  }

  void overlaps() {
    // Releases before core 0.9 run the all-reduce alone with this flag; later ones ignore it.
    plan_.overlap_tp = !arguments_.flag("--no-async-tensor-model-parallel-allreduce");
    const bool chunked = arguments_.flag("--tp-comm-overlap");
    arguments_.require(!chunked || plan_.sequence_parallel, "--tp-comm-overlap",
                       "--sequence-parallel and tp > 1 beside it");
    plan_.tp_chunks = chunked ? plan_.tp : 1;  // ring exchange: as many pieces as ranks
    const bool asked = arguments_.flag("--overlap-p2p-communication");
    const bool refused = arguments_.flag("--no-overlap-p2p-communication");
    arguments_.require(!asked || !refused, "--no-overlap-p2p-communication",
                       "not together with --overlap-p2p-communication");
    plan_.overlap_p2p = plan_.schedule == plan::Schedule::interleaved && !refused;
    const bool whole = arguments_.flag("--no-scatter-gather-tensors-in-pipeline");
    plan_.pipeline_send =
        whole || plan_.tp == 1 ? plan::PipelineSend::whole : plan::PipelineSend::scatter_gather;
  }

  /// --ddp-num-buckets: each bucket holds so large a part of the rank's parameters, those of
  /// experts among them. Source: megatron/training/training.py (core 0.12).
  void read_bucket_count() {
    constexpr std::string_view kFlag = "--ddp-num-buckets";
    const auto count = arguments_.number(kFlag, 1);
    if (!count || plan_.bucket == Bytes(0)) {
      return;  // without overlap there is one
    }
    arguments_.require(!arguments_.has("--ddp-bucket-size"), kFlag,
                       "no --ddp-bucket-size beside it");
    const auto model = imported_.model_config.and_then([](const std::string& text) {
      return parse_config(text, "model", ConfigSyntax::json).and_then([](const ConfigNode& node) {
        return zoo::parse_model(node, "model");
      });
    });
    if (!model) {
      arguments_.require(false, kFlag,
                         "arguments that state a model beside it: " + model.error().to_string());
    } else {
      const zoo::ParameterCount parameters = zoo::count_parameters(*model);
      const std::int64_t idle = model->experts - model->top_k;
      const std::int64_t experts =
          idle > 0 ? (parameters.total - parameters.active) / idle * model->experts : 0;
      const std::int64_t etp = plan_.etp > 0 ? plan_.etp : plan_.tp;
      const std::int64_t own =
          ((parameters.total - experts) / plan_.tp + experts / (plan_.ep * etp)) / plan_.pp;
      plan_.bucket = graph::bytes_of(plan_.grad_type, std::max<std::int64_t>(own / *count, 1));
      arguments_.note(kFlag, "read as buckets of " + std::to_string(own / *count) + " parameters");
    }
  }

  void vocabulary() {
    plan_.vocab_multiple = arguments_.number_or("--make-vocab-size-divisible-by", 128);
  }

  void other_flags() {
    for (const auto names : {megatron_ignored(), megatron_others_ignored()}) {
      for (const std::string_view name : names) {
        arguments_.has(name);
      }
    }
    for (const Flag& flag : megatron_noted()) {
      if (arguments_.has(flag.name)) {
        imported_.remarks.push_back({std::string(flag.name), "accepted; " + std::string(flag.why)});
      }
    }
    for (const Flag& flag : megatron_refused()) {
      if (arguments_.has(flag.name)) {
        arguments_.reject(flag.name, "not modelled; " + std::string(flag.why));
      }
    }
  }

  Arguments arguments_;
  const LaunchWords& words_;
  std::string program_;
  plan::Plan plan_;
  Imported imported_;
  bool knows_devices_ = false;
  bool ulysses_ = false;  ///< Megatron-DeepSpeed's sequence parallelism: all-to-all
};

}  // namespace

Result<Imported> import_megatron(const LaunchWords& words, const ImportOptions& options) {
  auto line = split_launch_line(words, options.devices);
  if (!line) {
    return fail(line.error());
  }
  const bool shaped = std::ranges::any_of(line->arguments, [](const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    return name == "--num-layers" || name == "--num_layers" || name == "--encoder-num-layers";
  });
  if (options.model != nullptr && !shaped) {  // a checkpoint's own configuration states them
    line->arguments.insert(line->arguments.end(),
                           {"--num-layers", std::to_string(options.model->layers)});
  }
  line->devices = line->devices != 0 ? line->devices : words.tasks;
  const bool stated = options.devices != 0;
  auto imported =
      MegatronImport(*line, words, options).run(stated ? options.devices : line->devices);
  if (imported && stated && line->devices != 0 && line->devices != options.devices) {
    imported->remarks.push_back(
        {"--devices", "the launch line starts " + std::to_string(line->devices) + " processes"});
  }
  return imported;
}

}  // namespace orrery::interop
