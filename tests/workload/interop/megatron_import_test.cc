// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plans.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Arguments that every line needs, then `more`.
Result<interop::Imported> import_megatron_line(const std::string& more, std::int64_t devices = 64) {
  const auto words =
      interop::launch_words("--micro-batch-size 1 --seq-length 4096 --bf16 " + more, "line")
          .value();
  return interop::import_megatron(words, {.devices = devices});
}
plan::Plan megatron_plan_of(const std::string& more, std::int64_t devices = 64) {
  const auto imported = import_megatron_line(more, devices);
  EXPECT_TRUE(imported.has_value()) << (imported ? "" : imported.error().to_string());
  return imported ? imported->plan : plan::Plan();
}
std::string megatron_mistakes_of(const std::string& more, std::int64_t devices = 64) {
  const auto imported = import_megatron_line(more, devices);
  return imported ? "" : imported.error().to_string();
}

TEST(MegatronImport, DataParallelDegreeIsWhatTheOthersLeave) {
  // 64 / (2 x 4 x 2) = 4; without --global-batch-size one micro-batch per replica.
  const plan::Plan plan = megatron_plan_of(
      "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --context-parallel-size 2");
  EXPECT_EQ(plan.dp, 4);
  EXPECT_EQ(plan.global_batch, 4);
  EXPECT_THAT(megatron_mistakes_of("--tensor-model-parallel-size 3"),
              HasSubstr("no multiple of tp x pp"));
}

TEST(MegatronImport, TheLaunchLineStatesTheDevices) {
  const std::string arguments = " --micro-batch-size 2 --seq-length 128";
  const auto devices_of = [&](const std::string& launcher) {
    const auto words =
        interop::launch_words(launcher + " pretrain_gpt.py" + arguments, "line").value();
    return interop::import_megatron(words, {}).value().plan.dp;
  };
  EXPECT_EQ(devices_of("CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nproc_per_node 8 --nnodes=4"), 32);
  EXPECT_EQ(devices_of("python -m torch.distributed.launch --nproc-per-node 8"), 8);
  EXPECT_EQ(devices_of("srun -N 16 --ntasks-per-node=8 python"), 128);
  EXPECT_EQ(devices_of("mpirun -np 24 python"), 24);
  const auto words =
      interop::launch_words("torchrun --nproc-per-node gpu x.py" + arguments, "line").value();
  EXPECT_THAT(interop::import_megatron(words, {}).error().to_string(),
              HasSubstr("--nproc-per-node"));
}

TEST(MegatronImport, VirtualStagesByNumberOrByLayers) {
  const std::string pp = "--num-layers 48 --pipeline-model-parallel-size 4 ";
  // 48 layers / 4 stages = 12 on each; 3 per virtual stage make 4 chunks.
  for (const std::string flag :
       {"--num-layers-per-virtual-pipeline-stage 3", "--num-virtual-stages-per-pipeline-rank 4"}) {
    const plan::Plan plan = megatron_plan_of(pp + flag);
    EXPECT_EQ(plan.chunks, 4);
    EXPECT_EQ(plan.schedule, plan::Schedule::interleaved);
    EXPECT_TRUE(plan.overlap_p2p);
    EXPECT_EQ(plan.stage_layers, "");
  }
  EXPECT_FALSE(megatron_plan_of(pp + "--num-virtual-stages-per-pipeline-rank 4 "
                                     "--no-overlap-p2p-communication")
                   .overlap_p2p);
  EXPECT_EQ(megatron_plan_of(pp).schedule, plan::Schedule::one_f_one_b);
  EXPECT_THAT(megatron_mistakes_of(pp + "--num-layers-per-virtual-pipeline-stage 5"),
              HasSubstr("--num-layers-per-virtual-pipeline-stage: found '5'"));
}

TEST(MegatronImport, UnevenStages) {
  const std::string pp = "--pipeline-model-parallel-size 4 ";
  // 30 - 6 - 4 = 20 layers on two stages.
  EXPECT_EQ(megatron_plan_of(pp + "--num-layers 30 --decoder-first-pipeline-num-layers 6 "
                                  "--decoder-last-pipeline-num-layers 4")
                .stage_layers,
            "6,10,10,4");
  // Two chunks: parts 0 .. 7 of the model are chunk 0 of every stage, then chunk 1.
  EXPECT_EQ(megatron_plan_of(pp + "--num-layers 28 --decoder-first-pipeline-num-layers 4 "
                                  "--num-virtual-stages-per-pipeline-rank 2")
                .stage_layers,
            "2,4,4,4,2,4,4,4");
  // 30 + embedding + loss = 32 = 4 x 8.
  EXPECT_EQ(megatron_plan_of(pp + "--num-layers 30 --account-for-embedding-in-pipeline-split "
                                  "--account-for-loss-in-pipeline-split")
                .stage_layers,
            "7,8,8,7");
}

TEST(MegatronImport, PipelineLayoutIsUnrolled) {
  // E ttt | tt, six times | t | L: nine parts, three on each of three stages.
  const std::string layout = " --pipeline-model-parallel-layout 'Et*3|(tt|)*6,t|L'";
  const plan::Plan plan = megatron_plan_of("--pipeline-model-parallel-size 3" + layout, 9);
  EXPECT_EQ(plan.stage_layers, "3,2,2,2,2,2,2,1,0");
  EXPECT_EQ(plan.chunks, 3);
  EXPECT_THAT(megatron_mistakes_of("--pipeline-model-parallel-size 4" + layout),
              HasSubstr("a multiple of pp = 4 parts; this has 9"));
  // Layers that predict further tokens run with the loss and count as none.
  EXPECT_EQ(megatron_plan_of("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "
                             "'Ett|tmL'")
                .stage_layers,
            "2,1");
  for (const std::string wrong : {"t*3L", "Et*3m|L", "E(t|L", "Et*99999999L", "Et-L"}) {
    EXPECT_THAT(megatron_mistakes_of("--pipeline-model-parallel-layout '" + wrong + "'"),
                HasSubstr("--pipeline-model-parallel-layout: found '" + wrong))
        << wrong;
  }
}

TEST(MegatronImport, SchedulesRecomputeAndOffload) {
  EXPECT_EQ(megatron_plan_of("--recompute-activations").recompute, plan::Recompute::selective);
  EXPECT_EQ(megatron_plan_of("--recompute-granularity full --recompute-method uniform "
                             "--recompute-num-layers 1")
                .recompute,
            plan::Recompute::full);
  const plan::Plan block = megatron_plan_of(
      "--recompute-granularity full --recompute-method block --recompute-num-layers 3");
  EXPECT_EQ(block.recompute, plan::Recompute::full);
  EXPECT_EQ(block.recompute_layers, 3);
  const plan::Plan modules =
      megatron_plan_of("--recompute-granularity selective --recompute-modules moe_act layernorm");
  EXPECT_EQ(modules.recompute, plan::Recompute::none);
  EXPECT_EQ(modules.recompute_modules, "moe_act,layernorm");
  // Units of four layers keep fewer inputs than a plan counts: a remark.
  const auto units = import_megatron_line(
      "--recompute-granularity full --recompute-method uniform --recompute-num-layers 4");
  EXPECT_EQ(units->plan.recompute, plan::Recompute::full);
  EXPECT_EQ(units->remarks.at(0).about, "--recompute-num-layers");
  EXPECT_EQ(megatron_plan_of("--optimizer-cpu-offload").offload_optimizer, plan::Offload::cpu);
  EXPECT_EQ(megatron_plan_of("--num-layers 40 --cpu-offloading-num-layers 10").offload_activations,
            0.25);
}

TEST(MegatronImport, GradientsAreInFp32UnlessAskedFor) {
  EXPECT_EQ(megatron_plan_of("").grad_type, graph::DataType::fp32);
  EXPECT_EQ(megatron_plan_of("--grad-reduce-in-bf16").grad_type, graph::DataType::bf16);
  EXPECT_EQ(megatron_plan_of("--grad-reduce-in-bf16").grad_reduce_type, graph::DataType::bf16);
}

TEST(MegatronImport, BucketOfOverlappedGradientsIsCountedInParameters) {
  EXPECT_EQ(megatron_plan_of("").bucket, Bytes(0));
  // 40 million fp32 gradients; from 41 ranks on a million per rank.
  EXPECT_EQ(megatron_plan_of("--overlap-grad-reduce", 32).bucket, Bytes(160'000'000));
  EXPECT_EQ(megatron_plan_of("--overlap-grad-reduce", 64).bucket, Bytes(256'000'000));
  EXPECT_EQ(megatron_plan_of("--overlap-grad-reduce --ddp-bucket-size 1000").bucket, Bytes(4000));
}

TEST(MegatronImport, ShardingStages) {
  EXPECT_EQ(megatron_plan_of("--use-distributed-optimizer").zero, 1);
  EXPECT_EQ(
      megatron_plan_of("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads").zero,
      2);
  const plan::Plan fsdp =
      megatron_plan_of("--use-torch-fsdp2 --torch-fsdp2-no-reshard-after-forward");
  EXPECT_EQ(fsdp.zero, 3);
  EXPECT_FALSE(fsdp.reshard_after_forward);
  // 64 ranks, 4 copies of the optimizer states: each over 16 ranks.
  const plan::Plan hybrid =
      megatron_plan_of("--use-distributed-optimizer --num-distributed-optimizer-instances 4");
  EXPECT_EQ(hybrid.shard_optimizer, 16);
  EXPECT_EQ(hybrid.shard_params, 0);
}

TEST(MegatronImport, ExpertsTokensAndContext) {
  const plan::Plan plan = megatron_plan_of(
      "--num-experts 8 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1 "
      "--tensor-model-parallel-size 4 --context-parallel-size 4 --cp-comm-type a2a+p2p "
      "--hierarchical-context-parallel-sizes 2 2");
  EXPECT_EQ(plan.ep, 8);
  EXPECT_EQ(plan.etp, 1);
  EXPECT_EQ(plan.moe_dispatch, plan::MoeDispatch::all_gather);  // Megatron-LM's default
  EXPECT_EQ(plan.cp_exchange, plan::ContextExchange::a2a_p2p);
  EXPECT_EQ(plan.cp_a2a, 2);
  EXPECT_EQ(megatron_plan_of("--moe-token-dispatcher-type flex --moe-enable-deepep").moe_dispatch,
            plan::MoeDispatch::hierarchical);
  EXPECT_THAT(megatron_mistakes_of("--cp-comm-type p2p a2a"), HasSubstr("the same for all layers"));
}

TEST(MegatronImport, GraphsOfLayersOrOfTheWholeStep) {
  const auto graphs = [](const std::string& flags) { return megatron_plan_of(flags).cuda_graphs; };
  EXPECT_EQ(graphs(""), plan::CudaGraphs::none);
  EXPECT_EQ(graphs("--cuda-graph-impl none"), plan::CudaGraphs::none);
  EXPECT_EQ(graphs("--cuda-graph-impl transformer_engine --cuda-graph-scope attn moe_router"),
            plan::CudaGraphs::layers);
  EXPECT_EQ(graphs("--external-cuda-graph"), plan::CudaGraphs::layers);
  EXPECT_EQ(graphs("--cuda-graph-impl local --cuda-graph-scope full_iteration"),
            plan::CudaGraphs::full);
  EXPECT_EQ(graphs("--cuda-graph-impl full_iteration"), plan::CudaGraphs::full);
  EXPECT_THAT(megatron_mistakes_of("--cuda-graph-impl whole"), HasSubstr("full_iteration"));
}

TEST(MegatronImport, FusionsOfKernelsThatTheModelLacksDoNotCount) {
  EXPECT_TRUE(
      megatron_plan_of("--no-masked-softmax-fusion").fused_kernels);  // flash attention has none
  EXPECT_FALSE(megatron_plan_of("--no-bias-gelu-fusion --no-bias-dropout-fusion").fused_kernels);
  const auto some = import_megatron_line("--no-bias-dropout-fusion").value();
  EXPECT_TRUE(some.plan.fused_kernels);
  EXPECT_EQ(some.remarks.size(), 1U);
}

TEST(MegatronImport, LearningRatesAreIgnoredAndSmallEffectsAreRemarks) {
  const auto plain = import_megatron_line("").value();
  EXPECT_TRUE(plain.remarks.empty());
  const auto rates =
      import_megatron_line("--lr 1e-4 --adam_beta2 0.95 --data-path 0.5 a 0.5 b").value();
  EXPECT_EQ(rates.plan, plain.plan);
  EXPECT_TRUE(rates.remarks.empty());
  const auto padded = import_megatron_line("--ddp-pad-buckets-for-high-nccl-busbw").value();
  EXPECT_EQ(padded.plan, plain.plan);
  ASSERT_EQ(padded.remarks.size(), 1U);
  EXPECT_EQ(padded.remarks[0].about, "--ddp-pad-buckets-for-high-nccl-busbw");
}

TEST(MegatronImport, LayersAtTheEndsStayInBf16) {
  const std::string nvfp4 = "--fp4-format e2m1 --first-last-layers-bf16";
  const plan::Plan usual = megatron_plan_of(nvfp4);
  EXPECT_EQ(usual.unquantized_start_layers, 1);  // Megatron's defaults
  EXPECT_EQ(usual.unquantized_end_layers, 1);
  const plan::Plan super =
      megatron_plan_of(nvfp4 + " --num-layers-at-start-in-bf16 0 --num-layers-at-end-in-bf16 2");
  EXPECT_EQ(super.unquantized_start_layers, 0);
  EXPECT_EQ(super.unquantized_end_layers, 2);
}

TEST(MegatronImport, ExpertsDivideTheRanksOfAStage) {
  // 64 devices, tp 2, pp 2: tp x cp x dp = 32 ranks; experts whole on a rank (etp 1) leave 32 / ep.
  const std::string degrees =
      "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --num-experts 8 "
      "--expert-tensor-parallel-size 1 --expert-model-parallel-size ";
  EXPECT_EQ(megatron_plan_of(degrees + "8").ep, 8);
  EXPECT_THAT(megatron_mistakes_of(degrees + "12"),
              HasSubstr("--expert-model-parallel-size: found '12', expected a divisor of tp x cp x "
                        "dp / etp = 32"));
}

TEST(MegatronImport, FlagsOfMegatronDeepSpeed) {
  // Megatron-DeepSpeed: --checkpoint-activations recomputes every layer; a step reduces in fp16;
  // its buckets hold 5e8 elements of 2 bytes.
  const auto words = interop::launch_words(
      "cat <<EOT > ds.json\n{\"zero_optimization\": {\"stage\": 2}}\nEOT\n"
      "deepspeed --num_nodes 2 --num_gpus 4 pretrain_gpt.py --micro-batch-size 1 --seq-length 64 "
      "--fp16 --deepspeed --deepspeed_config ds.json --zero-stage 1 --checkpoint-activations "
      "--ds-sequence-parallel-size 2 --no-pipeline-parallel --DDP-impl local --data-impl mmap",
      "run.sh");
  const plan::Plan plan = interop::import_megatron(words.value(), {}).value().plan;
  EXPECT_EQ(plan.zero, 2);  // the configuration wins
  EXPECT_EQ(plan.recompute, plan::Recompute::full);
  EXPECT_EQ(plan.grad_reduce_type, graph::DataType::fp16);
  EXPECT_EQ(plan.bucket, Bytes(1'000'000'000));
  EXPECT_EQ(plan.cp, 2);  // Ulysses: all-to-all
  EXPECT_EQ(plan.cp_exchange, plan::ContextExchange::a2a);
  EXPECT_EQ(plan.dp, 4);
  // Megatron-LM before 2.0: its names of tp and of the microbatch.
  const auto early = interop::launch_words(
      "python -m torch.distributed.launch --nproc_per_node 8 pretrain_gpt2.py --batch-size 4 "
      "--model-parallel-size 2 --seq-length 64 --fp16",
      "run.sh");
  const plan::Plan first = interop::import_megatron(early.value(), {}).value().plan;
  EXPECT_EQ(first.tp, 2);
  EXPECT_EQ(first.microbatch, 4);
}

TEST(MegatronImport, DeepSpeedPartitionsLayersWithTheEmbedding) {
  // BLOOM-176B's launch file: 70 layers and a table at both ends are 72 parts, 6 on each of 12
  // stages.
  const std::string bloom =
      "--num-layers 70 --pipeline-model-parallel-size 12 --pp-partition-method ";
  EXPECT_EQ(megatron_plan_of(bloom + "'type:transformer|embedding'", 384).stage_layers,
            "5,6,6,6,6,6,6,6,6,6,6,5");
  // 30 layers on 4 stages: the longest has 8.
  const std::string thirty = "--num-layers 30 --pipeline-model-parallel-size 4 ";
  EXPECT_EQ(megatron_plan_of(thirty + "--pp-partition-method type:transformer").stage_layers,
            "8,8,8,6");
  EXPECT_EQ(megatron_plan_of("--num-layers 32 --pipeline-model-parallel-size 4 "
                             "--pp-partition-method type:transformer")
                .stage_layers,
            "");
}

TEST(MegatronImport, OtherLaunches) {
  const auto plan_of = [](const std::string& text) {
    const auto words = interop::launch_words(text, "run.sh");
    const auto imported = interop::import_megatron(words.value(), {});
    EXPECT_TRUE(imported.has_value()) << (imported ? "" : imported.error().to_string());
    return imported ? imported->plan : plan::Plan();
  };
  const std::string flags = "--micro-batch-size 1 --seq-length 64 --tensor-model-parallel-size 2";
  EXPECT_EQ(plan_of("torchrun --nproc_per_node 8 --module pretrain_hybrid " + flags).dp, 4);
  // The tasks of the batch job, where the launcher states none.
  EXPECT_EQ(plan_of("#SBATCH <OPTIONS> --nodes=16 --ntasks-per-node=8\n"
                    "srun -l sh -c \"python -u pretrain_gpt.py " +
                    flags + "\"")
                .dp,
            64);
  // Flags as a map, as Megatron-LM's functional tests state them.
  const auto words = interop::launch_words(
      "ENV_VARS:\n  NCCL_ALGO: Ring\nMODEL_ARGS:\n  --micro-batch-size: 4\n  --seq-length: 1024\n"
      "  --tensor-model-parallel-size: 2\n  --bf16: true\n  --sequence-parallel: false\n"
      "  --deterministic-mode: true\n  --cuda-graph-scope: attn mlp\nTEST_TYPE: regular\n",
      "model_config.yaml", {"--global-batch-size", "64"});
  const auto imported = interop::import_megatron(words.value(), {.devices = 8});
  ASSERT_TRUE(imported.has_value()) << imported.error().to_string();
  EXPECT_EQ(imported->plan.dp, 4);
  EXPECT_EQ(imported->plan.global_batch, 64);
  EXPECT_FALSE(imported->plan.sequence_parallel);
}

TEST(MegatronImport, FlagsWithoutWeightAreNotesAndPlacesAreNamed) {
  EXPECT_EQ(import_megatron_line("--deterministic-mode")->remarks.at(0).about,
            "--deterministic-mode");
  EXPECT_TRUE(import_megatron_line("--override-lr-scheduler --train-tokens 9")->remarks.empty());
  EXPECT_TRUE(import_megatron_line("--llama-model --causal-lm")->remarks.empty());  // Domino's
  // Old scripts of BigScience: with their spelling.
  const auto old = import_megatron_line("--partition-activations --contigious-checkpointing");
  ASSERT_EQ(old->remarks.size(), 2U);
  EXPECT_THAT(old->remarks[1].sentence + old->remarks[0].sentence,
              HasSubstr("keeps the inputs of its layers whole"));
  const auto line = interop::launch_words(
      "ARGS=(\n  --micro-batch-size 1\n  --seq-length x\n)\n"
      "torchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]}",
      "run.sh");
  EXPECT_THAT(interop::import_megatron(line.value(), {}).error().to_string(),
              HasSubstr("run.sh:3: --seq-length: found 'x'"));
  // The user's devices win over the script's.
  const auto stated = interop::launch_words(
      "torchrun --nproc_per_node 8 --nnodes $N p.py --micro-batch-size 1 --seq-length 8", "run.sh");
  EXPECT_EQ(interop::import_megatron(stated.value(), {.devices = 64}).value().plan.dp, 64);
  EXPECT_THAT(interop::import_megatron(stated.value(), {}).error().to_string(),
              HasSubstr("--nnodes: found '$N'"));
}

TEST(MegatronImport, FlagsOfMindSpeedAndPai) {
  // Experts over tp, too: 2 x 4 ranks of 8, none of them split.
  const plan::Plan plan = megatron_plan_of(
      "--tensor-model-parallel-size 2 --context-parallel-size 2 --expert-model-parallel-size 4 "
      "--moe-tp-extend-ep --context-parallel-algo ulysses_cp_algo --num-experts 8 "
      "--moe-alltoall-overlap-comm --use-fused-swiglu --norm-topk-prob --packing true");
  EXPECT_EQ(plan.ep, 8);
  EXPECT_EQ(plan.etp, 1);
  EXPECT_EQ(plan.cp_exchange, plan::ContextExchange::a2a);
  EXPECT_THAT(megatron_mistakes_of("--context-parallel-algo adaptive_cp_algo"),
              HasSubstr("megatron_cp_algo or ulysses_cp_algo"));
  EXPECT_THAT(megatron_mistakes_of("--noop-layers 47,x --num-layers 64"),
              HasSubstr("numbers of layers below --num-layers"));
  EXPECT_THAT(megatron_mistakes_of("--noop-layers 0,1 --num-layers 2"), HasSubstr("not of all"));
  // 64 layers in 8 x 4 parts of 2, of which three are none.
  EXPECT_EQ(megatron_plan_of("--num-layers 64 --pipeline-model-parallel-size 8 "
                             "--num-layers-per-virtual-pipeline-stage 2 --noop-layers 47,62,63")
                .stage_layers,
            "2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,1,2,2,2,2,2,2,2,0");
  const auto half =
      import_megatron_line("--optimizer-cpu-offload --optimizer-offload-fraction 0.5");
  ASSERT_TRUE(half) << half.error().to_string();
  EXPECT_EQ(half->plan.offload_optimizer, plan::Offload::cpu);
  EXPECT_THAT(half->remarks, ::testing::Contains(::testing::Field(&interop::Remark::sentence,
                                                                  HasSubstr("read as all"))));
}

TEST(MegatronImport, ASwitchMaySayTrueOrFalse) {
  const std::string tp = "--tensor-model-parallel-size 2 ";
  EXPECT_TRUE(megatron_plan_of(tp + "--sequence_parallel true").sequence_parallel);
  EXPECT_FALSE(megatron_plan_of(tp + "--sequence_parallel false").sequence_parallel);
  EXPECT_THAT(megatron_mistakes_of(tp + "--sequence_parallel maybe"), HasSubstr("true or false"));
}

TEST(MegatronImport, SwiftStartsTheProcessesOfItsVariables) {
  // 2 nodes of 4 processes, tp 4: dp 2; batches of 1 and 16 unless the line says otherwise.
  const auto words = interop::launch_words(
      "NNODES=2 NPROC_PER_NODE=4 \\\nmegatron sft \\\n  --model Qwen/Qwen2.5-7B "
      "--tensor_model_parallel_size 4 --max_length 8192 --recompute_granularity full "
      "--recompute_method uniform --recompute_num_layers 1 --sequence_parallel true",
      "node1.sh");
  const auto imported = interop::import_megatron(words.value(), {});
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->plan.dp, 2);
  EXPECT_EQ(imported->plan.global_batch, 16);
  EXPECT_EQ(imported->plan.sequence, 8192);
  EXPECT_EQ(imported->plan.recompute, plan::Recompute::full);
  EXPECT_EQ(imported->plan.zero, 1);
}

TEST(MegatronImport, EveryMistakeIsNamedAtOnce) {
  const auto words = interop::launch_words(
                         "--tensor-model-paralel-size 8 --fp32-residual-connection --bf16 yes", "x")
                         .value();
  EXPECT_THAT(interop::import_megatron(words, {}).error().to_string(),
              AllOf(HasSubstr("did you mean '--tensor-model-parallel-size'"),
                    HasSubstr("--fp32-residual-connection: not modelled"),
                    HasSubstr("--bf16: found 'yes', expected no value"),
                    HasSubstr("--micro-batch-size: required"),
                    HasSubstr("--devices: missing; expected the number of devices")));
}

}  // namespace
}  // namespace orrery::testing
