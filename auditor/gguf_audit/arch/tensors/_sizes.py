"""What the names in the tensor tables stand for: hyper-parameters as llama.cpp reads them.

``heads`` is what llama.cpp takes of the first block for all (``hparams.n_head()``),
``heads_i`` the block's own (``hparams.n_head(i)``); so it is for whatever ends in ``_i``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gguf_audit.arch._model import Hyper
from gguf_audit.fields import Fields
from gguf_audit.gguf import Array
from gguf_audit.layout import CacheLayout, Chunked, Indexer, Latent, Layer, Recurrent, Sliding

__all__ = ["ANY", "KEYS", "NAMES", "Sizes"]

#: Sizes that no key tells, or that another rule compares.
ANY = frozenset({"_", "vocab", "token_types", "embd_out", "embd_inp", "dense_2_out", "dense_3_in"})

#: Name -> key of a number that holds for the whole model, absent meaning 0.
_KEYS = {
    "experts": "expert_count",
    "shared": "expert_shared_count",
    "chunk_ff": "expert_chunk_feed_forward_length",
    "group_experts": "experts_per_group",
    "expert_latent": "expert_latent_length",
    "moe_latent": "moe_latent_size",
    "q_rank": "attention.q_lora_rank",
    "kv_rank": "attention.kv_lora_rank",
    "decay_rank": "attention.decay_lora_rank",
    "iclr_rank": "attention.iclr_lora_rank",
    "residual_rank": "attention.value_residual_mix_lora_rank",
    "gate_rank": "attention.gate_lora_rank",
    "index_heads": "attention.indexer.head_count",
    "index_key": "attention.indexer.key_length",
    "index_top": "attention.indexer.top_k",
    "index_pool": "attention.indexer.kpool",
    "o_groups": "attention.output_group_count",
    "o_rank": "attention.output_lora_rank",
    "buckets": "attention.relative_buckets_count",
    "ssm_inner": "ssm.inner_size",
    "ssm_state": "ssm.state_size",
    "ssm_conv": "ssm.conv_kernel",
    "ssm_rank": "ssm.time_step_rank",
    "ssm_groups": "ssm.group_count",
    "kda": "kda.head_dim",
    "shortconv": "shortconv.l_cache",
    "wkv_head": "wkv.head_size",
    "time_mix": "time_mix_extra_dim",
    "time_decay": "time_decay_extra_dim",
    "hc": "hyper_connection.count",
    "hc_rank": "hyper_connection.low_rank",
    "embd_per_layer": "embedding_length_per_layer_input",
    "ple_heads": "ple.heads_per_ngram",
    "ple_dim": "embedding_length_per_layer_input",
    "ple_conv": "ple.conv_kernel",
    "res_block": "attn_res.block_size",
    "adapters": "adapters.count",
    "lora_rank": "adapters.lora_rank",
    "leading": "leading_dense_block_count",
    "moe_step": "interleave_moe_layer_step",
    "moe_every": "moe_every_n_layers",
    "hash_layers": "hash_layer_count",
}
#: Name -> key that tells it, for every name that is the number of one key.
KEYS = _KEYS | {
    "context": "context_length",
    "ff": "feed_forward_length",
    "ff_i": "feed_forward_length",
    "heads": "attention.head_count",
    "heads_i": "attention.head_count",
    "expert_ff": "expert_feed_forward_length",
    "expert_ff_i": "expert_feed_forward_length",
    "shared_ff": "expert_shared_feed_forward_length",
    "shared_ff|ff": "expert_shared_feed_forward_length",
    "expert_ff|ff": "expert_feed_forward_length",
    "expert_ff|ff/used": "expert_feed_forward_length",
}
#: Sizes that no file states (``llama_hparams``): Gemma 3n's.
_FIXED = {"altup": 4, "laurel_rank": 64, "altup_embd": 256}
#: Architectures without a latent in front of their values whatever the file says
#: (``load_arch_hparams`` sets the value length to the rank).
_RANK_IS_VALUE = frozenset({"kimi-k3", "glm5-next"})
#: Architectures that have experts, but none that is shared: the key is never read.
_UNSHARED = frozenset({"llama", "llama-embed", "minicpm", "mistral3", "refact"})
#: Lengths of one block's heads where its kind has others, full attention first.
_MLA = ("attention.key_length_mla", "attention.value_length_mla")

_Own = Callable[["Sizes", int], int]


class Sizes:
    """The numbers that one model has for the names in the tables."""

    def __init__(self, fields: Fields, hyper: Hyper, layout: CacheLayout) -> None:
        self.fields = fields
        self.hyper = hyper
        self.layers: Mapping[int, Layer] = {layer.index: layer for layer in layout.layers}
        self.whole = self._whole()

    def of(self, block: int, names: frozenset[str]) -> dict[str, int]:
        """Return the value of each name in a block; KeyError for one without meaning."""
        return {
            name: self.whole[name] if name in self.whole else _OWN[name](self, block)
            for name in names
        }

    def _whole(self) -> dict[str, int]:
        hyper, integer = self.hyper, self.fields.integer
        found = {name: integer(key) or 0 for name, key in _KEYS.items()} | _FIXED
        if hyper.architecture in {"hunyuan_vl", "hunyuan-dense"} and found["experts"] <= 1:
            found["experts"] = 0
        if hyper.architecture == "lfm2":
            found["leading"] = hyper.trunk
        if hyper.architecture == "laguna" and "expert_shared_count" not in self.fields:
            found["shared"] = 1
        found |= {
            "embd": hyper.embedding_length,
            "context": hyper.context_length,
            "layers": hyper.trunk,
            "plamo_dt": max(64, hyper.embedding_length // 16),
            "classes": self._classes(),
            "longrope": int(self.fields.string("rope.scaling.type") == "longrope"),
            "heads": hyper.heads[0],
            "kv_heads": hyper.kv_heads[0],
            "ff": hyper.feed_forward[0],
            "key": self.key(0),
            "value": self.value(0),
            "key_full": hyper.key_length,
            "rot": self._rotated(),
            "used": self._per_block("expert_used_count")[0],
            "expert_ff": self._per_block("expert_feed_forward_length")[0],
        }
        found["shared_ff"] = self._shared(found)
        latent = [integer(key) or 0 for key in _MLA]
        found["mla"] = int(all(latent))
        found["key_mla"] = latent[0] if all(latent) else found["key"]
        found["value_mla"] = latent[1] if all(latent) else found["value"]
        return found

    def _classes(self) -> int:
        """Return how many scores a classifier gives, one without labels (``n_cls_out``)."""
        found = self.fields.find("classifier.output_labels")
        labels = None if found is None else found.value
        return (len(labels) if isinstance(labels, Array | tuple) else 0) or 1

    def _shared(self, found: Mapping[str, int]) -> int:
        if self.hyper.architecture in _UNSHARED:
            return 0
        stated = self.fields.integer("expert_shared_feed_forward_length") or 0
        match self.hyper.architecture:
            case "bailingmoe3":
                return stated or found["expert_ff"] * max(1, found["shared"])
            case "laguna":
                return stated or found["expert_ff"] * found["shared"]
            case _:
                return stated

    def _rotated(self) -> int:
        full = self.fields.integer("rope.dimension_count")
        rotated = self.hyper.key_length if full is None else full
        if self.window(0):
            own = self.fields.integer("rope.dimension_count_swa")
            return rotated if own is None else own
        return rotated

    def _per_block(self, key: str) -> tuple[int, ...]:
        return self.fields.per_block(key, self.hyper.blocks) or (0,) * self.hyper.blocks

    def per_block(self, key: str, block: int) -> int:
        """Return a block's own number of a key, absent meaning 0."""
        return self._per_block(key)[block]

    def draft(self, block: int) -> int:
        """Tell whether a block predicts further tokens (MTP)."""
        return int(block >= self.hyper.trunk)

    def window(self, block: int) -> int:
        """Tell whether a block's attention has a window."""
        layer = self.layers.get(block)
        if layer is not None and layer.shares_with is not None:
            layer = self.layers.get(layer.shares_with)
        stores = () if layer is None else layer.stores
        return int(
            any(
                isinstance(store, Sliding | Chunked)
                or (isinstance(store, Latent) and store.window_tokens is not None)
                for store in stores
            )
        )

    def key(self, block: int) -> int:
        """Return the elements of a key's head."""
        return self.hyper.key_length_swa if self.window(block) else self.hyper.key_length

    def value(self, block: int) -> int:
        """Return the elements of a value's head."""
        if self.hyper.architecture in _RANK_IS_VALUE:
            return self.fields.integer("attention.kv_lora_rank") or 0
        return self.hyper.value_length_swa if self.window(block) else self.hyper.value_length

    def keeps(self, block: int, store: type[Recurrent | Indexer]) -> int:
        """Tell whether a block keeps such a store of its own."""
        layer = self.layers.get(block)
        return int(layer is not None and any(isinstance(kept, store) for kept in layer.stores))

    def own_kv(self, block: int) -> int:
        """Tell whether a block has keys and values of its own."""
        layer = self.layers.get(block)
        return int(layer is None or layer.shares_with is None)

    def windowed(self, key: str, block: int) -> int:
        """Return a latent's number, another one where the block has a window or drafts."""
        suffix = "_swa" if self.window(block) or self.draft(block) else ""
        return self.fields.integer(f"{key}{suffix}") or 0

    def stepped(self, block: int) -> int:
        """Tell whether experts come every so many blocks and this is one."""
        if self.hyper.architecture == "nomic-bert-moe":
            every = self.whole["moe_every"]
            return int(every > 0 and block % every == 1)
        step = self.whole["moe_step"]
        return int(step > 0 and (block + 1) % step == 0)

    def ple(self, block: int) -> int:
        """Tell whether a block looks n-grams up (Qwen4-Exp)."""
        return int(block in (self.fields.items("ple.layers") or ()))


_OWN: dict[str, _Own] = {
    "heads_i": lambda sizes, block: sizes.hyper.heads[block],
    "kv_heads_i": lambda sizes, block: sizes.hyper.kv_heads[block],
    "ff_i": lambda sizes, block: sizes.hyper.feed_forward[block],
    "key_i": Sizes.key,
    "value_i": Sizes.value,
    "expert_ff_i": lambda sizes, block: sizes.per_block("expert_feed_forward_length", block),
    "used_i": lambda sizes, block: sizes.per_block("expert_used_count", block),
    "kv_rank_i": lambda sizes, block: sizes.windowed("attention.kv_lora_rank", block),
    "key_mla_i": lambda sizes, block: sizes.windowed("attention.key_length_mla", block),
    "value_mla_i": lambda sizes, block: sizes.windowed("attention.value_length_mla", block),
    "ratio_i": lambda sizes, block: sizes.per_block("attention.compress_ratios", block),
    "ratio_width": lambda sizes, block: (
        2 if sizes.per_block("attention.compress_ratios", block) == 4 else 1
    ),
    "draft": Sizes.draft,
    "window": Sizes.window,
    "recurrent": lambda sizes, block: sizes.keeps(block, Recurrent),
    "indexed": lambda sizes, block: sizes.keeps(block, Indexer),
    "own_kv": Sizes.own_kv,
    "lead": lambda sizes, block: int(block < sizes.whole["leading"]),
    "hashed": lambda sizes, block: int(block < sizes.whole["hash_layers"]),
    "first": lambda _, block: int(block == 0),
    "stepped": Sizes.stepped,
    "ple": Sizes.ple,
}
#: Every name that the tables may use, but ``@name``.
NAMES = frozenset(
    {
        *_KEYS,
        *_FIXED,
        *_OWN,
        *(
            "embd",
            "context",
            "layers",
            "plamo_dt",
            "classes",
            "longrope",
            "heads",
            "kv_heads",
            "ff",
        ),
        *("key", "value", "key_full", "rot", "used", "expert_ff", "shared_ff"),
        *("mla", "key_mla", "value_mla"),
    }
)
