"""Keys that only some architectures read, and which: a table for ``_reads``.

``load_arch_hparams`` of src/models/*.cpp, llama.cpp build 11434.
"""

from __future__ import annotations

__all__ = ["BOTH_NORMS", "READERS"]

#: Have norms of both kinds, or take the epsilon of either; others have one kind only.
BOTH_NORMS = frozenset(
    {
        "arwkv7",
        "clef",
        "cohere2moe",
        "glm5-next",
        "nemotron_h",
        "nemotron_h_moe",
        "rwkv6",
        "rwkv6qwen2",
        "rwkv7",
    }
)
#: Keys, a colon, the architectures that read them; a line that is indented goes on.
READERS = """
attention.layer_norm_epsilon : arwkv7 bert bloom clef codeshell cohere2 cohere2moe
    command-r dbrx falcon glm5-next gpt2 gptneox jais jais2 jina-bert-v2 jina-bert-v3
    modern-bert mpt nemotron nemotron_h nemotron_h_moe nomic-bert nomic-bert-moe olmo orion
    phi2 pockettts rwkv6 rwkv6qwen2 rwkv7 stablelm starcoder starcoder2 wavtokenizer-dec
activation.situ_beta activation.situ_linear_beta attn_res.block_size
    expert_latent_length : kimi-k3
adapters.count adapters.lora_rank adapters.router_gain adapters.token_ids_activate
    adapters.token_ids_substitute : graniteswitch
attention.clamp_kqv : dbrx mpt olmo
attention.compress_ratios : deepseek4 dflash qwen4exp
attention.compress_rope_freq_base hash_layer_count : deepseek4
attention.decay_lora_rank attention.gate_lora_rank attention.iclr_lora_rank
    attention.value_residual_mix_lora_rank : arwkv7 rwkv7
attention.group_norm_epsilon attention.group_norm_groups : wavtokenizer-dec
attention.indexer.block_size attention.indexer.local_blocks : minimax-m3
attention.indexer.head_count attention.indexer.key_length attention.indexer.top_k :
    deepseek32 deepseek4 dots3note glm-dsa glm5-next hy_v4 minimax-m3 qwen4exp
attention.indexer.kpool attention.indexer.kpool_select_tail : glm5-next
attention.indexer.types : dots3note glm-dsa glm5-next hy_v4
attention.key_length_mla attention.value_length_mla : bailingmoe3 deepseek2 deepseek32
    dots3note glm-dsa glm5-next hy_v4 kimi-k3 kimi-linear mistral4
attention.key_length_mla_swa attention.kv_lora_rank_swa attention.value_length_mla_swa :
    dots3note
attention.kv_lora_rank : bailingmoe3 deepseek2 deepseek32 dots3note glm-dsa glm5-next
    hy_v4 kimi-k3 kimi-linear minicpm3 mistral4 plm
attention.max_alibi_bias : jais mpt
attention.output_group_count attention.output_lora_rank : deepseek4 dflash
attention.output_scale rope.scaling.yarn_attn_factor rope.scaling.yarn_ext_factor
    router_logit_softcapping : grok
attention.q_lora_rank : bailingmoe3 deepseek2 deepseek32 deepseek4 dflash dots3note
    glm-dsa glm5-next hy_v4 kimi-k3 minicpm3 mistral4
attention.recurrent_layers full_attention_interval : clef minimax-01 qwen35 qwen35moe
    qwen3next qwen4exp
attention.relative_buckets_count : t5 t5encoder
attention.rope_pattern : granite_swa
attention.scale : dflash granite granite_swa granitehybrid granitemoe graniteswitch
attention.shared_kv_layers : gemma4 gemma4-assistant
attention.sliding_window : afmoe cohere2 cohere2moe deepseek4 dflash dots3note
    exaone-moe exaone4 gemma-embedding gemma2 gemma3 gemma3n gemma4 gemma4-assistant gpt-oss
    granite_swa laguna lfm2 llama4 maple mellum mimo2 modern-bert muse-glimmer olmo2 phi3
    plamo3 smallthinker spark2_5 step35
attention.sliding_window_pattern : afmoe cohere2 cohere2moe dflash dots3note exaone-moe
    exaone4 gemma-embedding gemma2 gemma3 gemma3n gemma4 gemma4-assistant gpt-oss
    granite_swa laguna llama4 maple mellum mimo2 modern-bert muse-glimmer olmo2 plamo3
    smallthinker spark2_5 step35
attention.temperature_length : deepseek2 grok mistral4
attention.temperature_scale : deepseek2 mistral3 mistral4
attention.value_scale : dflash mimo2
attn_logit_softcapping : gemma2 grok
block_size conv_group_size conv_kernel_size selector_rank selector_top_k : dflash
decision.block_count : clef modern-bert
decision.head_count decision.routing_block_count : clef
decoder_block_count decoder_start_token_id : t5
deepstack_mapping : granite granite_swa
dense_2_feat_in dense_2_feat_out dense_3_feat_in dense_3_feat_out : gemma-embedding
embedding_length_per_layer_input : gemma4 qwen4exp
embedding_scale : dflash granite granite_swa granitehybrid granitemoe graniteswitch grok
    hrm_text minicpm
expert_chunk_feed_forward_length expert_group_scale experts_per_group : grovemoe
expert_feed_forward_length : afmoe bailingmoe bailingmoe2 bailingmoe3 cohere2moe
    deepseek deepseek2 deepseek2-ocr deepseek32 deepseek4 dflash dots1 dots3note ernie4_5
    ernie4_5-moe exaone-moe gemma4 glm-dsa glm4moe glm5-next gpt-oss grok grovemoe
    hunyuan-moe hy_v3 hy_v4 kimi-k3 kimi-linear laguna lfm2moe llada-moe llama4 maple mellum
    mimo2 minimax-m2 minimax-m3 mistral4 nemotron_h nemotron_h_moe paddleocr qwen2moe
    qwen35moe qwen3moe qwen3next qwen3vlmoe qwen4exp rnd1 smallthinker step35
expert_gating_func : afmoe bailingmoe2 bailingmoe3 cohere2moe deepseek2 deepseek2-ocr
    deepseek32 deepseek4 dflash dots1 dots3note exaone-moe glm-dsa glm4moe glm5-next hy_v3
    hy_v4 kimi-k3 kimi-linear laguna lfm2moe minimax-m2 minimax-m3 mistral4 smallthinker
    step35
expert_shared_count : afmoe bailingmoe bailingmoe2 bailingmoe3 cohere2moe deepseek
    deepseek2 deepseek2-ocr deepseek32 deepseek4 dflash dots1 dots3note exaone-moe glm-dsa
    glm4moe glm5-next hy_v4 kimi-k3 kimi-linear laguna minimax-m3 mistral4 nemotron_h
    nemotron_h_moe
expert_shared_feed_forward_length : bailingmoe2 bailingmoe3 cohere2moe ernie4_5
    ernie4_5-moe exaone-moe granite granite_swa granitehybrid granitemoe graniteswitch
    hunyuan-moe hy_v3 laguna nemotron_h nemotron_h_moe paddleocr qwen2moe qwen35moe
    qwen3next qwen4exp step35
expert_weights_norm : afmoe bailingmoe bailingmoe2 bailingmoe3 cohere2moe deepseek2
    deepseek2-ocr deepseek32 deepseek4 dflash dots1 dots3note exaone-moe glm-dsa glm4moe
    glm5-next hy_v3 hy_v4 kimi-k3 laguna minimax-m3 mistral4 nemotron_h nemotron_h_moe
    step35
expert_weights_scale : afmoe bailingmoe bailingmoe2 bailingmoe3 cohere2moe deepseek
    deepseek2 deepseek2-ocr deepseek32 deepseek4 dflash dots1 dots3note exaone-moe glm-dsa
    glm4moe glm5-next hy_v3 hy_v4 kimi-k3 kimi-linear laguna minimax-m3 mistral4 nemotron_h
    nemotron_h_moe step35
final_logit_softcapping : dflash gemma2 gemma3 gemma4 grok muse-glimmer
hidden_activation : dflash modern-bert
hrm.h_cycles hrm.l_cycles hrm.layers_per_stack hrm.prefix_lm : hrm_text
hyper_connection.count : deepseek4 dflash glm5-next hy_v4 qwen4exp
hyper_connection.epsilon : deepseek4 dflash glm5-next hy_v4
hyper_connection.low_rank ple.conv_kernel ple.eos_token_id ple.head_offsets
    ple.head_vocab_sizes ple.heads_per_ngram ple.image_token_id ple.layer_multipliers
    ple.layers ple.ngram_size : qwen4exp
hyper_connection.magnitude : hy_v4
hyper_connection.sinkhorn_iterations : deepseek4 dflash glm5-next
interleave_moe_layer_step : ernie4_5 ernie4_5-moe llama4 paddleocr
kda.gate_lower_bound : bailingmoe3 glm5-next kimi-k3
kda.head_dim : bailingmoe3 glm5-next kimi-k3 kimi-linear
kda.safe_gate : bailingmoe3
leading_dense_block_count : afmoe bailingmoe bailingmoe2 bailingmoe3 cohere2moe deepseek
    deepseek2 deepseek2-ocr deepseek32 dots1 dots3note ernie4_5 ernie4_5-moe exaone-moe
    glm-dsa glm4moe glm5-next hy_v4 kimi-k3 kimi-linear laguna lfm2moe minimax-m3 mistral4
    paddleocr
logit_scale : cohere2 cohere2moe command-r dflash granite granite_swa granitehybrid
    granitemoe graniteswitch grok minicpm muse-glimmer talkie
moe_every_n_layers : nomic-bert-moe
moe_latent_size : nemotron_h nemotron_h_moe
n_deepstack_layers : qwen3tts qwen3vl qwen3vlmoe
norm_before_fc norm_before_residual target_hidden_size : eagle3
num_loops skip_loop_final_norm : nanbeige
rescale_every_n_layers time_decay_extra_dim time_mix_extra_dim : rwkv6 rwkv6qwen2
residual_scale : granite granite_swa granitehybrid granitemoe graniteswitch minicpm
    minimax-01
rope.dimension_sections : bailingmoe3 clef deepseek32 dflash ernie4_5 ernie4_5-moe
    glm-dsa glm4 glm4moe hunyuan-dense hunyuan_vl paddleocr qwen2vl qwen35 qwen35moe
    qwen3tts qwen3vl qwen3vlmoe qwen4exp
rope.freq_base_swa : afmoe cohere2 cohere2moe dots3note exaone-moe exaone4
    gemma-embedding gemma2 gemma3 gemma3n gemma4 gemma4-assistant gpt-oss laguna llama4
    maple mellum mimo2 modern-bert muse-glimmer olmo2 plamo3 smallthinker spark2_5 step35
rope.scaling.finetuned : granite granitehybrid graniteswitch
rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow : grok mistral3
rope.scaling.yarn_log_multiplier : deepseek2 deepseek32 mistral3 mistral4
shortconv.l_cache : lfm2 lfm2moe
ssm.conv_kernel : bailingmoe3 clef falcon-h1 glm5-next granitehybrid jamba kimi-k3
    kimi-linear mamba mamba2 nemotron_h nemotron_h_moe plamo2 qwen35 qwen35moe qwen3next
    qwen4exp
ssm.dt_b_c_rms : mamba
ssm.group_count : clef falcon-h1 granitehybrid mamba2 nemotron_h nemotron_h_moe plamo2
    qwen35 qwen35moe qwen3next qwen4exp
ssm.inner_size ssm.state_size ssm.time_step_rank : clef falcon-h1 granitehybrid jamba
    mamba mamba2 nemotron_h nemotron_h_moe plamo2 qwen35 qwen35moe qwen3next qwen4exp
swiglu_clamp_exp : bailingmoe3 deepseek4 dflash glm5-next hy_v4 maple step35
swiglu_clamp_shexp : bailingmoe3 deepseek4 dflash glm5-next step35
swin_norm : chameleon
target_layers : dflash eagle3
token_shift_count wkv.head_size : arwkv7 rwkv6 rwkv6qwen2 rwkv7
use_parallel_residual : gptneox
vocab_size : deepseek2 llama llama-embed mistral4
xielu.alpha_n xielu.alpha_p xielu.beta xielu.eps : apertus
"""
