"""Encoders and diffusion models: llama.cpp makes no cache for them at all.

The first case of ``llama_model::create_memory`` (src/llama-model.cpp of llama.cpp build
11434); conversion/bert.py, dream.py, llada.py, gemma.py and qwen.py for what is written.
T5's encoder isn't among them: it gets a cache that it never reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from gguf_audit.arch._attention import NORM, RMS, check, needs_heads
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import POOLING, Either, Keys
from gguf_audit.arch._model import Hyper, LlamaModel, Trait
from gguf_audit.arch._recipe import Recipe, sizes
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.gemma import DEFAULTS as GEMMA
from gguf_audit.arch.gemma import gemma3_keys
from gguf_audit.checkpoint import Json
from gguf_audit.errors import UnsupportedError
from gguf_audit.gguf import Scalar
from gguf_audit.layout import CacheLayout, Layer
from gguf_audit.where import Where

__all__ = ["ARCHITECTURES"]

WINDOW = "attention.sliding_window"

#: Keys without which a vocoder's other networks have no size.
VOCODER = (
    NORM,
    "attention.group_norm_epsilon",
    "attention.group_norm_groups",
    "convnext.block_count",
    "convnext.embedding_length",
    "features_length",
    "posnet.block_count",
    "posnet.embedding_length",
)
#: Clef is a Qwen3.5 that decides instead of writing.
CLEF = (
    RMS,
    NORM,
    "decision.block_count",
    "decision.head_count",
    "decision.routing_block_count",
    "rope.dimension_sections",
    "ssm.conv_kernel",
    "ssm.group_count",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.time_step_rank",
)
CLASSIFIER_POOLING = {"mean": 1, "cls": 2}


def no_cache(*required: str, heads: bool = True) -> Callable[[Hyper], LlamaModel]:
    """Return how an architecture is read that keeps nothing."""

    def implied(hyper: Hyper) -> LlamaModel:
        check(hyper, required)
        if heads:
            needs_heads(hyper)
        layers = (Layer(index=index) for index in range(hyper.trunk))
        model = hyper.model(layers, traits=(Trait.NO_CACHE,))
        return replace(model, causal=model.causal and hyper.architecture != "gemma-embedding")

    return implied


def _nothing(config: Config) -> CacheLayout:
    return CacheLayout(layers=tuple(Layer(index=index) for index in range(config.blocks())))


#: BertConfig, DistilBertConfig, ModernBertConfig and EuroBertConfig of transformers;
#: what RobertaConfig and its kin add.
BERT: dict[str, Json] = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 512,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
ROBERTA: dict[str, Json] = {**BERT, "pad_token_id": 1}
DISTILBERT: dict[str, Json] = {
    "vocab_size": 30522,
    "max_position_embeddings": 512,
    "dim": 768,
    "hidden_dim": 3072,
    "n_heads": 12,
    "n_layers": 6,
}
MODERN: dict[str, Json] = {
    "vocab_size": 50368,
    "hidden_size": 768,
    "intermediate_size": 1152,
    "num_hidden_layers": 22,
    "num_attention_heads": 12,
    "max_position_embeddings": 8192,
    "norm_eps": 1e-5,
    "global_attn_every_n_layers": 3,
    "local_attention": 128,
    "global_rope_theta": 160000.0,
    "local_rope_theta": 10000.0,
    "hidden_activation": "gelu",
    "classifier_pooling": "cls",
}
EURO: dict[str, Json] = sizes(128256, 768, 3072, 12, 12, None, None, 8192, 1e-5, 250000.0)


def _labels(config: Config) -> tuple[Scalar, ...]:
    """Return what a classifier calls its classes, none where nobody named them."""
    labels = config.mapping("id2label")
    if not labels:
        return ()
    names: list[str] = []
    for number in sorted(labels, key=_number):
        name = labels[number]
        if not isinstance(name, str):
            raise malformed("id2label", name, "an object of strings")
        names.append(name)
    return () if len(names) == 2 and names[0] == "LABEL_0" else tuple(names)


def _number(key: str) -> int:
    if not key.isdecimal() or len(key) > 9:
        raise malformed("id2label", key, "an object by numbers")
    return int(key)


def _pooled(config: Config, keys: Draft) -> Draft:
    keys = {**keys, "attention.causal": False, "pooling_type": POOLING}
    pooling = config.string("classifier_pooling")
    if pooling is not None:
        if pooling not in CLASSIFIER_POOLING:
            where = Where(file="config.json", key="classifier_pooling")
            raise UnsupportedError(f"the converter knows no pooling {pooling!r}", where=where)
        keys["classifier.pooling_type"] = CLASSIFIER_POOLING[pooling]
    return keys


def _bert(config: Config, keys: Draft) -> Draft:
    keys = _pooled(config, keys)
    if labels := _labels(config):
        keys["classifier.output_labels"] = labels
    return keys


def _roberta(config: Config, keys: Draft) -> Draft:
    """Leave out the positions that stand for padding."""
    padding = config.integer("pad_token_id")
    context = keys.get("context_length")
    if padding is not None and isinstance(context, int):
        keys["context_length"] = context - (1 + padding)
        if context <= padding:
            raise malformed("max_position_embeddings", context, "more than the padding")
    return _bert(config, keys)


def _distilbert(config: Config, keys: Draft) -> Draft:
    return _bert(config, {**keys, NORM: 1e-12})


def _nomic(config: Config, keys: Draft) -> Draft:
    trained = config.integer("max_trained_positions")
    positions = {8192: 2048, 2048: 512}.get(config.need("n_positions"))
    if positions is None or trained not in (None, 2048):
        raise malformed("n_positions", config.get("n_positions"), "8192 or 2048")
    keys = _bert(config, {**keys, "context_length": positions})
    if every := config.integer("moe_every_n_layers"):
        keys["moe_every_n_layers"] = every
        keys["expert_used_count"] = config.need("moe_top_k")
    return keys


def _nomic_name(config: Config) -> str:
    return "nomic-bert-moe" if config.integer("moe_every_n_layers") else "nomic-bert"


def _neo(config: Config, keys: Draft) -> Draft:
    epsilon = config.number("norm_eps")
    return {
        **_bert(config, keys),
        "feed_forward_length": int(2 * config.need("intermediate_size") / 3),
        "rope.freq_base": 10000.0,
        "rope.scaling.type": "none",
        RMS: 1e-6 if epsilon is None else epsilon,
        "pooling_type": 2,
    }


def _modern(config: Config, keys: Draft) -> Draft:
    keys = {
        **_bert(config, keys),
        WINDOW: config.need("local_attention"),
        "rope.scaling.type": "none",
        "vocab_size": config.need("vocab_size"),
    }
    if period := config.integer("global_attn_every_n_layers"):
        published = config.published("global_attn_every_n_layers") is not None
        # transformers 5 no longer fills it in
        found = period if published else Either(period, (None,))
        keys["attention.sliding_window_pattern"] = found
    if activation := config.string("hidden_activation"):
        keys["hidden_activation"] = activation
    return keys


def _euro(config: Config, keys: Draft) -> Draft:
    return {**_pooled(config, keys), "rope.scaling.type": "none"}


def _gemma_keys(config: Config) -> Keys:
    keys = {**gemma3_keys(config), "pooling_type": POOLING}
    window = config.published("sliding_window")
    if isinstance(window, bool) or not isinstance(window, int):
        raise malformed("sliding_window", window, "a whole number")
    return {**keys, WINDOW: window}


def _llada(config: Config) -> Keys:
    keys = LLADA_RECIPE.keys(config)
    names = {
        "context_length": ("max_sequence_length", 4096),
        "embedding_length": ("d_model", 4096),
        "feed_forward_length": ("mlp_hidden_size", 12288),
    }
    own = {key: config.integer(name) or other for key, (name, other) in names.items()}
    return {**keys, **own}


def _llada_rope(config: Config) -> int:
    length = config.integer("head_dim")
    if length is not None:
        return length
    heads = config.need("num_attention_heads", "n_heads")
    if heads == 0:
        raise malformed("n_heads", 0, "a number of heads")
    return config.need("hidden_size", "d_model") // heads


def _recipe(
    writes: str | Callable[[Config], str],
    *takes: str,
    more: Callable[[Config, Draft], Draft] = _bert,
    defaults: Mapping[str, Mapping[str, Json]] | None = None,
    kv_heads: bool = False,
) -> Recipe:
    return Recipe(
        takes=takes,
        writes=writes,
        defaults=defaults or {},
        fills_kv_heads=kv_heads,
        more=more,
        ideal=_nothing,
    )


BERTS = (
    _recipe(
        "bert",
        "BertForMaskedLM",
        "BertForSequenceClassification",
        "BertModel",
        "CamembertModel",
        defaults={"bert": BERT, "camembert": ROBERTA},
    ),
    _recipe(
        "bert",
        "DistilBertForMaskedLM",
        "DistilBertForSequenceClassification",
        "DistilBertModel",
        more=_distilbert,
        defaults={"distilbert": DISTILBERT},
    ),
    _recipe(
        "bert",
        "RobertaForSequenceClassification",
        "RobertaModel",
        more=_roberta,
        defaults={"roberta": ROBERTA},
    ),
    _recipe(
        lambda config: "jina-bert-v3" if config.items("lora_adaptations") else "bert",
        "XLMRobertaForSequenceClassification",
        "XLMRobertaModel",
        more=_roberta,
        defaults={"xlm-roberta": ROBERTA},
    ),
)
NOMIC = _recipe(_nomic_name, "NomicBertModel", more=_nomic)
NEO = _recipe("neo-bert", "NeoBERT", "NeoBERTForSequenceClassification", "NeoBERTLMHead", more=_neo)
JINA = _recipe("jina-bert-v2", "JinaBertForMaskedLM", "JinaBertModel")
MODERN_RECIPE = _recipe(
    "modern-bert",
    "ModernBertForMaskedLM",
    "ModernBertForSequenceClassification",
    "ModernBertModel",
    more=_modern,
    defaults={"modernbert": MODERN},
)
EURO_RECIPE = _recipe(
    "eurobert",
    "EuroBertModel",
    "JinaEmbeddingsV5Model",
    more=_euro,
    defaults={"eurobert": EURO},
)
LLADA_RECIPE = Recipe(
    takes=("LLaDAModelLM",),
    writes="llada",
    needs={"vocab_size": "vocab_size"},
    sets={"attention.causal": False, "pooling_type": POOLING},
    rope=_llada_rope,
    ideal=_nothing,
)
LLADA_MOE = Recipe(
    takes=("LLaDAMoEModel", "LLaDAMoEModelLM"),
    writes="llada-moe",
    copies={"expert_feed_forward_length": "expert_intermediate_size"},
    sets={"attention.causal": False},
    ideal=_nothing,
)
DREAM = _recipe("dream", "DreamModel", more=_pooled)
RND1 = Recipe(
    takes=("RND1",),
    writes="rnd1",
    copies={
        "expert_feed_forward_length": "moe_intermediate_size",
        "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    },
    sets={"attention.causal": False},
    ideal=_nothing,
)
LLADA = Converter(takes=LLADA_RECIPE.takes, writes="llada", keys=_llada, ideal=LLADA_RECIPE.ideal)
GEMMA_EMBEDDING = Converter(
    takes=("Gemma3TextModel",),
    writes="gemma-embedding",
    defaults=GEMMA,
    keys=_gemma_keys,
    ideal=_nothing,
)


def _architecture(
    name: str,
    *converters: Recipe | Converter,
    required: tuple[str, ...] = (RMS,),
    defaults: Mapping[str, int | float | str] | None = None,
) -> Architecture:
    made = tuple(found.converter() if isinstance(found, Recipe) else found for found in converters)
    return Architecture(
        names=(name,),
        implied=no_cache(*required),
        converters=made,
        defaults=defaults or {},
    )


LOCAL_BASE: dict[str, int | float | str] = {"rope.freq_base_swa": 10000.0}
#: These look both ways whatever a key says.
BOTH_WAYS: dict[str, int | float | str] = {"attention.causal": False}

ARCHITECTURES = (
    _architecture("bert", *BERTS, required=(NORM,)),
    _architecture("jina-bert-v2", JINA, required=(NORM,)),
    _architecture("jina-bert-v3", required=(NORM,)),
    _architecture("nomic-bert", NOMIC, required=(NORM,)),
    _architecture("nomic-bert-moe", required=(NORM,)),
    _architecture("neo-bert", NEO),
    _architecture(
        "modern-bert",
        MODERN_RECIPE,
        required=(NORM,),
        defaults=LOCAL_BASE | {"hidden_activation": "gelu"},
    ),
    _architecture("eurobert", EURO_RECIPE),
    _architecture(
        "gemma-embedding", GEMMA_EMBEDDING, required=(WINDOW, RMS), defaults=LOCAL_BASE | BOTH_WAYS
    ),
    _architecture("dream", DREAM, defaults=BOTH_WAYS),
    _architecture("llada", LLADA, defaults=BOTH_WAYS),
    _architecture("llada-moe", LLADA_MOE, defaults=BOTH_WAYS),
    _architecture("rnd1", RND1, defaults=BOTH_WAYS),
    Architecture(names=("wavtokenizer-dec",), implied=no_cache(*VOCODER, heads=False)),
    Architecture(names=("clef",), implied=no_cache(*CLEF), verified=False),
)
