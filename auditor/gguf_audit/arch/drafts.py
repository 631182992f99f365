"""Draft models that guess ahead for a larger one: EAGLE-3 and DFlash.

src/models/eagle3.cpp and dflash.cpp of llama.cpp build 11434.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, Window, check, full_layers, needs_heads, windowed
from gguf_audit.arch._model import Hyper, LlamaModel, refuse
from gguf_audit.arch.architecture import Architecture

__all__ = ["ARCHITECTURES"]

TARGETS = "target_layers"
OPTIONAL = Window(when_absent=0, zero_is_none=True, period=None)
#: Stages of a DeepSeek-V4: every layer has the window.
STAGES = Window(period=0, reads_pattern=False)


def _eagle3(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS, "target_hidden_size"))
    if len(hyper.fields.items(TARGETS) or ()) != 3:
        raise refuse(
            hyper.fields, TARGETS, f"{hyper.fields.key(TARGETS)} doesn't name three layers"
        )
    needs_heads(hyper)
    return full_layers(hyper)


def _dflash(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS,))
    if hyper.fields.items(TARGETS) is None:
        raise refuse(hyper.fields, TARGETS, f"{hyper.fields.key(TARGETS)} is absent")
    staged = bool(hyper.fields.integer("hyper_connection.count"))
    return windowed(STAGES if staged else OPTIONAL)(hyper)


ARCHITECTURES = (
    Architecture(names=("eagle3",), implied=_eagle3, verified=False),
    Architecture(
        names=("dflash",),
        implied=_dflash,
        defaults={"final_logit_softcapping": 0.0},
        verified=False,
    ),
)
