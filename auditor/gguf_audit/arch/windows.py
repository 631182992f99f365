"""Architectures with windows that have no module of their own.

``load_arch_hparams`` in src/models/*.cpp of llama.cpp build 11434. Some periods are in
llama.cpp alone: a file without a pattern has the period below.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, Window, windowed
from gguf_audit.arch._model import Hyper, LlamaModel, refuse
from gguf_audit.arch.architecture import Architecture

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"
WINDOW = "attention.sliding_window"

#: The window is off where the key is absent or 0.
OPTIONAL = Window(when_absent=0, zero_is_none=True, period=4)
#: The window and the pattern must be in the file.
LISTED = Window(period=None)


def _afmoe(hyper: Hyper) -> LlamaModel:
    if not hyper.fields.integer(WINDOW):
        message = f"{hyper.fields.key(WINDOW)} is absent or 0: the graph can't be built"
        raise refuse(hyper.fields, WINDOW, message, aborts=True)
    return windowed(OPTIONAL, RMS, EXPERTS, "expert_shared_count")(hyper)


ARCHITECTURES = (
    Architecture(
        names=("afmoe",),
        implied=_afmoe,
        defaults={"expert_gating_func": 2},
        saves=frozenset({"window"}),
    ),
    Architecture(
        names=("laguna",),
        defaults={"expert_gating_func": 2, "expert_shared_count": 1},
        implied=windowed(
            Window(when_absent=0, zero_is_none=True, period=4, dense_first=True),
            RMS,
            "leading_dense_block_count",
            EXPERTS,
        ),
    ),
    Architecture(
        names=("maple",),
        implied=windowed(LISTED, RMS, EXPERTS, "swiglu_clamp_exp"),
        saves=frozenset({"window"}),
    ),
    Architecture(names=("mellum",), implied=windowed(OPTIONAL, RMS, EXPERTS)),
    Architecture(
        names=("step35",),
        defaults={"expert_gating_func": 2, "rope.freq_base_swa": 10000.0},
        implied=windowed(LISTED, RMS, EXPERTS),
        saves=frozenset({"window"}),
    ),
    Architecture(
        names=("muse-glimmer",),
        implied=windowed(Window(period=4), RMS, "logit_scale"),
        saves=frozenset({"window"}),
    ),
    Architecture(
        names=("smallthinker",),
        implied=windowed(
            Window(when_absent=0, zero_is_none=True, fixed=4096, period=4, dense_first=True), RMS
        ),
    ),
    Architecture(names=("spark2_5",), implied=windowed(LISTED, RMS), saves=frozenset({"window"})),
)
