"""The projectors that llama.cpp's multimodal loader knows, and what each asks of its file.

Facts from llama.cpp build 11434, tools/mtmd: the names are ``PROJECTOR_TYPE_NAMES`` in
clip-impl.h, keys those that ``load_hparams`` in clip.cpp reads without a default, tensors
those that ``load_tensors`` doesn't do without, and the width is ``clip_n_mmproj_embd``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

__all__ = ["COMMON", "COMMON_AUDIO", "COMMON_VISION", "PROJECTORS", "Encoder", "Projector"]

Encoder = Literal["vision", "audio", "gen.audio"]

#: Keys that every encoder has, after ``clip.<encoder>.``.
COMMON = (
    "embedding_length",
    "attention.head_count",
    "feed_forward_length",
    "block_count",
    "projection_dim",
    "attention.layer_norm_epsilon",
)
COMMON_VISION = ("image_size", "patch_size")
COMMON_AUDIO = ("num_mel_bins",)


class Projector(Struct, frozen=True, kw_only=True):
    """What llama.cpp asks of the encoder and the projector of one type."""

    encoder: Encoder
    #: Tensor and dimension of ``ne`` that say how wide the text model has to be. Of
    #: several the first that is there. Empty where metadata say it.
    width: tuple[tuple[str, int], ...]
    #: Tensors without which it isn't loaded, or that its graph takes unseen.
    needs: tuple[str, ...] = ()
    #: Tensors of each block, beyond those that all have.
    block: tuple[str, ...] = ()
    #: Keys without a default, after ``clip.<encoder>.``, beyond those that all have.
    keys: tuple[str, ...] = ()
    #: Of those, the ones that hold an array of i32.
    arrays: tuple[str, ...] = ()
    #: Its blocks are the loader's ordinary ones; else they are of another kind.
    ordinary: bool = True
    #: Its blocks have the same tensors each.
    even: bool = True
    #: The graph takes ``v.patch_embd.weight`` and each block's q, k and v unseen: files of
    #: this type were made, broken and loaded.
    plain: bool = False


def _both(*stems: str) -> tuple[str, ...]:
    """Return the weight and the bias of each layer."""
    return tuple(f"{stem}.{part}" for stem in stems for part in ("weight", "bias"))


def _weights(*stems: str) -> tuple[str, ...]:
    return tuple(f"{stem}.weight" for stem in stems)


_WHISPER = _both("a.conv1d.1", "a.conv1d.2")
_CONV2D = (*_both("a.conv2d.1", "a.conv2d.2", "a.conv2d.3"), "a.conv_out.weight")
_INPUT_NORM = _both("mm.input_norm")
_LDP = tuple(
    f"mm.model.mb_block.{block}.block.{part}"
    for block in (1, 2)
    for part in (
        "0.0.weight",
        "0.1.weight",
        "0.1.bias",
        "1.fc1.weight",
        "1.fc1.bias",
        "1.fc2.weight",
        "1.fc2.bias",
        "2.0.weight",
        "2.1.weight",
        "2.1.bias",
    )
)
_CONFORMER = (
    *_both("ffn_norm", "ffn_norm_1", "norm_conv", "conv_norm"),
    "ffn_up_1.weight",
    "ffn_down_1.weight",
    "conv_pw1.weight",
    "conv_pw2.weight",
    "conv_dw.weight",
)
_PRE_ENCODE = _both(*(f"a.conv1d.{index}" for index in (0, 2, 3, 5, 6)), "a.pre_encode.out")
_PIXELS = ("image_min_pixels", "image_max_pixels")
_QFORMER = _both(
    *(
        f"{part}_{name}"
        for part in ("self_attn", "cross_attn")
        for name in ("q", "k", "v", "out", "norm")
    ),
    "ffn_up",
    "ffn_down",
    "ffn_norm",
)
_SAM = (
    *_both("v.sam.patch_embd", "v.sam.neck.1", "v.sam.neck.3", "mm.model.fc"),
    *_weights("v.sam.pos_embd", "v.sam.neck.0", "v.sam.neck.2", "v.sam.net_2", "v.sam.net_3"),
    "v.view_seperator",
)
_SAM_KEYS = ("sam.block_count", "sam.head_count", "sam.embedding_length", "window_size")


def _vision(
    width: tuple[tuple[str, int], ...],
    needs: tuple[str, ...],
    keys: tuple[str, ...] = (),
    *,
    arrays: tuple[str, ...] = (),
    even: bool = True,
    plain: bool = False,
) -> Projector:
    return Projector(
        encoder="vision",
        width=width,
        needs=needs,
        keys=keys,
        arrays=arrays,
        even=even,
        plain=plain,
    )


def _audio(
    width: tuple[tuple[str, int], ...],
    needs: tuple[str, ...],
    keys: tuple[str, ...] = (),
    *,
    block: tuple[str, ...] = (),
    arrays: tuple[str, ...] = (),
    plain: bool = False,
) -> Projector:
    return Projector(
        encoder="audio",
        width=width,
        needs=needs,
        keys=keys,
        block=block,
        arrays=arrays,
        plain=plain,
    )


_MM2 = (("mm.2.weight", 1),)
_MM2_BIAS = (("mm.2.bias", 0),)
_MM_IN = (("mm.input_projection.weight", 0),)
_MM_OUT = (("mm.input_projection.weight", 1),)
_FC = (("mm.model.fc.weight", 1),)
_MLP3 = (("mm.model.mlp.3.weight", 1),)
_DOWN = (("mm.down.weight", 1),)
_A_MLP2 = (("mm.a.mlp.2.weight", 1),)
_KIMI = _vision(_MM2, (*_INPUT_NORM, *_both("mm.1", "mm.2")))
_QWEN = _both("mm.0", "mm.2")
#: Images are two frames long: what stands for the second is taken unseen (models/qwen2vl.cpp).
_QWEN_FRAMES = (*_QWEN, "v.patch_embd.weight.1")
_GLM = (
    *_weights("mm.model.fc", "mm.up", "mm.gate", "mm.down", "mm.post_norm"),
    *_both("mm.patch_merger"),
)
_SOFT = ("mm.input_projection.weight", "mm.soft_emb_norm.weight")

#: Value of ``clip.projector_type`` -> what it means. A type that the loader knows by name
#: but has no tensors for isn't here: it stops there as it does for an unknown one.
PROJECTORS: Mapping[str, Projector] = {
    # mm.3 makes it Yi's projector, whose last layer is mm.3
    "mlp": _vision((("mm.3.bias", 0), *_MM2), (), plain=True),
    "ldp": _vision(
        (("mm.model.mb_block.1.block.2.1.bias", 0),),
        (*_both("mm.model.mlp.1", "mm.model.mlp.3"), *_LDP),
    ),
    "ldpv2": _vision(
        (("mm.model.peg.0.bias", 0),),
        _both("mm.model.mlp.0", "mm.model.mlp.2", "mm.model.peg.0"),
    ),
    "resampler": _vision(
        (("resampler.proj.weight", 0),),
        (
            "resampler.pos_embed_k",
            "resampler.query",
            "resampler.proj.weight",
            "resampler.kv.weight",
            *_both(*(f"resampler.attn.{name}" for name in ("q", "k", "v", "out"))),
            *_both(*(f"resampler.ln_{name}" for name in ("q", "kv", "post"))),
        ),
    ),
    "adapter": _vision(
        (("adapter.linear.dense_4h_to_h.weight", 1),),
        (
            *_both("adapter.conv", "adapter.linear.norm1"),
            *_weights(
                "adapter.linear.linear",
                "adapter.linear.dense_h_to_4h",
                "adapter.linear.gate",
                "adapter.linear.dense_4h_to_h",
            ),
            "adapter.boi",
            "adapter.eoi",
        ),
    ),
    "qwen2vl_merger": _vision(_MM2_BIAS, _QWEN_FRAMES, plain=True),
    "qwen2.5vl_merger": _vision(_MM2_BIAS, _QWEN_FRAMES, ("n_wa_pattern",), plain=True),
    # times one and the number of v.deepstack layers; its graph asserts that both of the
    # last are there (models/qwen3vl.cpp)
    "qwen3vl_merger": _vision(
        _MM2_BIAS, (*_QWEN_FRAMES, "v.patch_embd.bias", "v.position_embd.weight"), plain=True
    ),
    "ling3vl": _vision(_MM2_BIAS, (*_INPUT_NORM, *_QWEN)),
    "step3vl": _vision(_FC, (*_weights("mm.0", "mm.1"), "mm.model.fc.weight")),
    "gemma3": _vision(_MM_IN, _SOFT, plain=True),
    "gemma3nv": Projector(encoder="vision", width=_MM_IN, needs=_SOFT, ordinary=False, even=False),
    "gemma4v": _vision(_MM_OUT, ("mm.input_projection.weight",), plain=True),
    "gemma4uv": _vision(
        _MM_OUT,
        (
            "mm.input_projection.weight",
            *_both("v.patch_norm.1", "v.patch_norm.2", "v.patch_norm.3"),
        ),
    ),
    "phi4": _vision(_MM2, _QWEN, _PIXELS),
    "idefics3": _vision(_FC, ("mm.model.fc.weight",), plain=True),
    "pixtral": _vision(_MM2, (*_weights("mm.1", "mm.2"), "v.token_embd.img_break"), plain=True),
    "lightonocr": _vision(_MM2, _weights("mm.1", "mm.2")),
    "internvl": _vision(
        _MLP3, _both("mm.model.mlp.0", "mm.model.mlp.1", "mm.model.mlp.3"), plain=True
    ),
    "nemotron_v2_vl": _vision(
        _MLP3, _weights("mm.model.mlp.0", "mm.model.mlp.1", "mm.model.mlp.3")
    ),
    "llama4": _vision(_FC, _weights("mm.model.fc", "mm.model.mlp.1", "mm.model.mlp.2")),
    "lfm2": _vision(_MM2, _both("mm.1", "mm.2"), plain=True),
    "kimivl": _KIMI,
    "kimik25": _KIMI,
    "paddleocr": _vision(_MM2, (*_INPUT_NORM, *_both("mm.1", "mm.2")), _PIXELS),
    "cogvlm": _vision(
        _DOWN,
        (
            "mm.model.fc.weight",
            *_both("mm.post_fc_norm"),
            *_weights("mm.up", "mm.gate", "mm.down"),
            "v.boi",
            "v.eoi",
        ),
    ),
    "janus_pro": _vision((("mm.1.bias", 0),), _both("mm.0", "mm.1")),
    "dots_ocr": _vision(
        _MM2,
        (*_QWEN, *_INPUT_NORM, "mm.post_norm.weight"),
        ("projector.scale_factor", *_PIXELS),
    ),
    "dots3note_v": _vision(
        _MM2,
        (*_QWEN, *_INPUT_NORM, "mm.post_norm.weight"),
        ("spatial_merge_size", *_PIXELS, "expert_used_count"),
        even=False,
    ),
    "deepseekocr": _vision(_FC, _SAM, _SAM_KEYS),
    "deepseekocr2": _vision(_FC, _SAM, (*_SAM_KEYS, "attention.head_count_kv")),
    "deepseek4v": _vision(
        _MM2,
        (
            *_both("mm.1", "mm.2"),
            "v.image_newline",
            "v.token_embd.img_start",
            "v.token_embd.img_end",
            "v.token_embd.img_pad",
        ),
        ("projector.scale_factor", "image_min_pixels"),
    ),
    "glm4v": _vision(_DOWN, _GLM),
    "glm5v": _vision(_DOWN, _GLM, ("swiglu_clamp", *_PIXELS)),
    "youtuvl": _vision(
        _MM2_BIAS,
        ("mm.input_norm.weight", *_QWEN),
        ("window_size", "wa_layer_indexes"),
        arrays=("wa_layer_indexes",),
    ),
    "yasa2": _vision(_MM2, ("v.patch_embd.weight", *_weights("mm.0", "mm.2")), even=False),
    "hunyuanvl": _vision(
        _FC,
        (
            *_QWEN,
            *_both("mm.model.fc"),
            *_weights("mm.pre_norm", "mm.post_norm"),
            "mm.image_begin",
            "mm.image_end",
            "v.image_newline",
        ),
    ),
    "exaone4_5": _vision(_MM2_BIAS, _QWEN, ("attention.head_count_kv", *_PIXELS)),
    "minicpmv4_6": _vision(
        _DOWN, ("mm.input_norm.weight", *_weights("mm.up", "mm.down")), plain=True
    ),
    "mimovl": _vision(
        _MM2,
        _weights("mm.0", "mm.2"),
        ("attention.head_count_kv", "window_size", "wa_pattern_mode", *_PIXELS),
        arrays=("wa_pattern_mode",),
        even=False,
    ),
    "minimax_m3": _vision(
        (("mm.merger.fc2.bias", 0),), _both("mm.1", "mm.2", "mm.merger.fc1", "mm.merger.fc2")
    ),
    "muse-glimmer": _vision(_MM2, _weights("mm.0", "mm.1", "mm.2"), even=False),
    # the width is in the metadata: one projection for each feature layer
    "granite4_vision": _vision(
        (),
        ("v.image_newline",),
        ("projector.spatial_offsets", "projector.query_side", "projector.window_side"),
        arrays=("projector.spatial_offsets",),
    ),
    "ultravox": _audio(
        _A_MLP2,
        (*_WHISPER, *_weights("mm.a.mlp.1", "mm.a.mlp.2", "mm.a.norm_pre", "mm.a.norm_mid")),
        ("projector.stack_factor",),
    ),
    "voxtral": _audio(
        _A_MLP2,
        (*_WHISPER, *_weights("mm.a.mlp.1", "mm.a.mlp.2")),
        ("projector.stack_factor",),
        plain=True,
    ),
    "meralion": _audio(
        (("mm.a.mlp.3.weight", 1),),
        (*_WHISPER, *_both(*(f"mm.a.mlp.{index}" for index in range(4)), "mm.a.norm_pre")),
        ("projector.stack_factor",),
    ),
    "musicflamingo": _audio(_A_MLP2, (*_WHISPER, *_both("mm.a.mlp.1", "mm.a.mlp.2"))),
    "qwen2a": _audio((("mm.a.fc.weight", 1),), (*_WHISPER, *_both("mm.a.fc")), plain=True),
    "qwen3a": _audio(_A_MLP2, (*_CONV2D, *_both("mm.a.mlp.1", "mm.a.mlp.2"))),
    "glma": _audio(
        _A_MLP2,
        (*_WHISPER, *_both("mm.a.mlp.1", "mm.a.mlp.2", "mm.a.norm_pre"), "v.boi", "v.eoi"),
        ("projector.stack_factor",),
    ),
    "dots3note_a": _audio(
        (("mm.a.mlp.3.weight", 1),),
        (*_CONV2D, *_both("mm.a.norm_pre", "mm.a.mlp.1", "mm.a.mlp.3")),
    ),
    "lfm2a": _audio(
        (("a.position_embd.weight", 0),),
        (*_PRE_ENCODE, *_both("mm.a.mlp.0", "mm.a.mlp.1", "mm.a.mlp.3")),
        block=(
            *_CONFORMER,
            *("ffn_up_1.bias", "ffn_down_1.bias", "conv_pw1.bias", "conv_pw2.bias"),
            *("conv_dw.bias", "pos_bias_u", "pos_bias_v", "linear_pos.weight"),
        ),
    ),
    "parakeet": _audio(
        _A_MLP2,
        (*_PRE_ENCODE, *_weights("mm.model.mlp.0", "mm.model.mlp.1", "mm.model.mlp.3")),
        ("subsampling_factor", "conv_kernel_size"),
        block=(
            *_CONFORMER,
            *("pos_bias_u", "pos_bias_v", "linear_pos.weight"),
            *("conv_norm_mean", "conv_norm_var"),
        ),
    ),
    "gemma4a": _audio(
        (("mm.a.input_projection.weight", 1),),
        (*_weights("a.conv1d.0", "a.conv1d.1", "a.input_projection"),),
        block=_weights(
            *("ffn_norm", "ffn_norm_1", "ffn_up_1", "ffn_down_1"),
            *("conv_pw1", "conv_pw2", "conv_dw"),
        ),
    ),
    "gemma4ua": _audio((("mm.a.input_projection.weight", 1),), ("mm.a.input_projection.weight",)),
    "granite_speech": _audio(
        (("a.proj_linear.weight", 1),),
        (
            *_both("a.input_projection", "a.enc_ctc_out", "a.enc_ctc_out_mid"),
            "a.proj_query",
            *_both("a.proj_norm", "a.proj_linear"),
            *(f"a.proj_blk.{index}.{name}" for index in (0, 1) for name in _QFORMER),
        ),
        (
            "chunk_size",
            "conv_kernel_size",
            "max_pos_emb",
            "projector.window_size",
            "projector.downsample_rate",
            "projector.head_count",
        ),
        block=(
            *_CONFORMER,
            *("ffn_up_1.bias", "ffn_down_1.bias", "conv_pw1.bias", "conv_pw2.bias"),
            "attn_rel_pos_emb",
        ),
    ),
    "mimo_audio": _audio(
        _A_MLP2,
        (
            *_WHISPER,
            "a.downsample.conv.weight",
            *_both("a.downsample.norm"),
            *_weights("a.rvq.codebook", "mm.a.code_embd", "mm.a.local_norm"),
            *_weights("mm.a.mlp.1", "mm.a.mlp.2"),
        ),
        (
            "rvq.num_quantizers",
            "rvq.codebook_size",
            "window_size",
            "wa_pattern_mode",
            "local_block_count",
            "local_group_size",
        ),
        arrays=("rvq.codebook_size", "wa_pattern_mode"),
    ),
    "qwen3tts_spkenc": Projector(
        encoder="audio",
        width=(("mm.a.fc.weight", 2),),
        needs=_both("a.conv1d.0", "a.conv_out", "a.asp_attn", "a.asp_tdnn", "mm.a.fc"),
        ordinary=False,
        even=False,
    ),
    "pockettts_spkenc": Projector(
        encoder="audio",
        width=(("a.speaker_proj.weight", 1),),
        needs=(
            *_both("a.seanet.conv_in", "a.seanet.conv_out"),
            *_weights("a.downsample.conv", "a.speaker_proj"),
        ),
        even=False,
    ),
    "qwen3tts_gen": Projector(
        encoder="gen.audio",
        width=(("a.gen.code.out_embd.weight", 0),),
        needs=_weights(
            *("a.gen.code.embd", "a.gen.code.head", "a.gen.code.out_embd"),
            "a.gen.code.output_norm",
        ),
        even=False,
    ),
    "pockettts_gen": Projector(
        encoder="gen.audio",
        width=(("a.gen.input_linear.weight", 1),),
        needs=(
            *_both("a.gen.flow.input_proj", "a.gen.flow.cond_embd", "a.gen.out_eos"),
            "a.gen.input_linear.weight",
            "a.gen.emb_mean",
            "a.gen.emb_std",
        ),
        ordinary=False,
        even=False,
    ),
}
