"""Gemma 3n and 4: windows, and late layers that read an earlier layer's cache.

src/models/gemma3n.cpp, gemma4.cpp and gemma4-assistant.cpp of llama.cpp build 11434,
``llama_model::create_memory`` (src/llama-model.cpp).
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, Window, attention, check, needs_heads, windows
from gguf_audit.arch._model import Hyper, LlamaModel, Trait, refuse
from gguf_audit.arch.architecture import Architecture
from gguf_audit.layout import Layer

__all__ = ["ARCHITECTURES"]

#: Layers of a Gemma 3n with a cache of their own: in llama.cpp, not in the file.
GEMMA3N_OWN = 20

GEMMA3N = Window(period=5)
GEMMA4 = Window(period=None)


def _gemma3n(hyper: Hyper) -> LlamaModel:
    check(hyper, ("attention.sliding_window", RMS))
    needs_heads(hyper)
    return _shared(hyper, GEMMA3N, GEMMA3N_OWN)


def _gemma4(hyper: Hyper) -> LlamaModel:
    required = (
        "attention.sliding_window_pattern",
        "attention.sliding_window",
        RMS,
        "embedding_length_per_layer_input",
        "attention.key_length_swa",
        "attention.value_length_swa",
    )
    check(hyper, required)
    needs_heads(hyper)
    shared = hyper.fields.integer("attention.shared_kv_layers") or 0
    return _shared(hyper, GEMMA4, hyper.blocks - shared)


def _shared(hyper: Hyper, window: Window, own: int) -> LlamaModel:
    """Return a model whose first ``own`` layers keep what all of them read.

    A layer beyond them reads the last of its kind: the window layer before the last
    own one, or the last own one, which must be full.
    """
    found = windows(hyper, window)
    tokens, pattern = found if found is not None else (0, (False,) * hyper.blocks)
    layers: list[Layer] = []
    for index in range(hyper.trunk):
        if index < own:
            store = attention(hyper, index, tokens, pattern, window)
            layers.append(Layer(index=index, stores=(store,)))
            continue
        source = own - (2 if pattern[index] else 1)
        if own < 2 or pattern[source] != pattern[index]:
            message = f"block {index} has no layer of its kind to read, of {own} with a cache"
            raise refuse(hyper.fields, "attention.shared_kv_layers", message, aborts=True)
        layers.append(Layer(index=index, shares_with=source))
    return hyper.model(layers, windowed=pattern)


def _assistant(hyper: Hyper) -> LlamaModel:
    required = (
        "attention.sliding_window_pattern",
        "attention.sliding_window",
        RMS,
        "attention.key_length_swa",
        "attention.value_length_swa",
    )
    check(hyper, required)
    needs_heads(hyper)
    layers = [Layer(index=index) for index in range(hyper.trunk)]
    return hyper.model(layers, traits=(Trait.BORROWED,))


ARCHITECTURES = (
    Architecture(
        names=("gemma3n",),
        implied=_gemma3n,
        defaults={"rope.freq_base_swa": 10000.0},
        saves=frozenset({"window"}),
    ),
    Architecture(
        names=("gemma4",),
        implied=_gemma4,
        defaults={"rope.freq_base_swa": 10000.0, "final_logit_softcapping": 30.0},
        saves=frozenset({"window"}),
    ),
    Architecture(names=("gemma4-assistant",), implied=_assistant, verified=False),
)
