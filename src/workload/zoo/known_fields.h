// SPDX-License-Identifier: Apache-2.0
/// Vocabulary of Hugging Face configurations that does not reach `Model`. Internal to this folder.
#pragma once

#include <array>
#include <string_view>

namespace orrery::zoo {

/// Fields of any Hugging Face configuration that neither change a shape nor a kernel.
inline constexpr auto kIgnored = std::to_array<std::string_view>({
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_name_or_path",
    "_num_labels",
    "architectures",
    "attn_implementation",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "is_decoder",
    "label2id",
    "length_penalty",
    "max_length",
    "max_new_tokens",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_scores",
    "pad_token_id",
    "prefix",
    "quantization_config",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "use_bfloat16",
    "use_cache",
    "use_return_dict",
});
inline constexpr auto kIgnoredGpt2 = std::to_array<std::string_view>({
    "layer_norm_epsilon",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
});
/// Decoders with rotary positions (read_decoder) have these fields, which change nothing.
inline constexpr auto kIgnoredDecoder = std::to_array<std::string_view>({
    "is_llama_config",
    "layer_norm_eps",
    "norm_eps",
    "pretraining_tp",
    "rms_norm_eps",
    "rope_interleave",
    "rope_interleaved",
    "rope_local_base_freq",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
});
/// Training of the router, and how its weights are scaled.
inline constexpr auto kIgnoredRouter = std::to_array<std::string_view>({
    "aux_loss_alpha",
    "ep_size",
    "norm_topk_prob",
    "output_router_logits",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "scoring_func",
    "seq_aux",
});

/// Parts of names of what changes neither sizes nor times: numbers of tokens, formulas of
/// positions, constants of norms, scaling, initial values, losses, and which software wrote the
/// file.
inline constexpr auto kWeightlessEnds = std::to_array<std::string_view>({
    "_alpha", "_coef",           "_coeff", "_dtype", "_eps",    "_epsilon", "_id",
    "_ids",   "_implementation", "_index", "_init",  "_length", "_loss",    "_multiplier",
    "_path",  "_range",          "_scale", "_std",   "_theta",  "_version",
});
inline constexpr auto kWeightlessBegins = std::to_array<std::string_view>({
    "_",
    "attn_impl",
    "aux_",
    "init",
    "rope_",
    "rotary_base",
    "rotary_emb",
    "router_",
    "sbert_",
    "tokenizer",
    "torch",
    "transformers",
    "unsloth",
    "use_flash",
    "z_loss",
});

/// Names that published files have beside their class's own, which change neither sizes nor times:
/// others' names of fields that are there too, and how prompts beyond the trained length attend.
inline constexpr auto kWeightlessNames = std::to_array<std::string_view>({
    "activation",
    "attention_sink_size",
    "context_window_size",
    "conversational",
    "custom_pipelines",
    "dual_chunk_attention_config",
    "emb_size",
    "ff_factor",
    "prefill_chunk_size",
    "rotary",
    "sliding_window_size",
});

/// Parts of names that speak of what layers are made of: an unknown switch, text or map of such a
/// name may change sizes and times.
inline constexpr auto kShapeWords = std::to_array<std::string_view>({
    "activation", "arch",    "attention", "attn",     "bias",  "block", "expert", "ffn",
    "gate",       "hidden",  "head",      "layer",    "mixer", "mlp",   "moe",    "norm",
    "parallel",   "pattern", "position",  "residual", "tie",   "_type",
});
/// Parts of the names of classes whose last projection has a few columns.
inline constexpr auto kFewColumns = std::to_array<std::string_view>({
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "RewardModel",
});

/// Fields beside the text part of a multimodal model: those of other parts, of which add_vision()
/// reads some.
inline constexpr auto kIgnoredMultimodal = std::to_array<std::string_view>({
    "audio_config",
    "audio_token_id",
    "boa_token_id",
    "boi_token_id",
    "boi_token_index",
    "downsample_ratio",
    "eoa_token_id",
    "eoa_token_index",
    "eoi_token_id",
    "eoi_token_index",
    "image_token_id",
    "image_seq_length",
    "image_token_index",
    "max_dynamic_patch",
    "mm_tokens_per_image",
    "multimodal_projector_bias",
    "projector_hidden_act",
    "spatial_merge_size",
    "video_token_id",
    "vision_config",
    "vision_end_token_id",
    "vision_feature_layer",
    "vision_feature_select_strategy",
    "vision_start_token_id",
    "vision_token_id",
});

}  // namespace orrery::zoo
