from __future__ import annotations

from companion_subjects import AUDIO, AUDIO_TENSORS, GEMMA, companion, encoder, file, gemma
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.projector_widths_differ import check
from rule_subjects import SETTINGS


def both(width: int) -> Gguf:
    tensors = {
        "mm.input_projection.weight": (32, width),
        "v.patch_embd.weight": (8, 8, 3, 32),
        **encoder("v"),
        **AUDIO_TENSORS,
    }
    types = {"clip.vision.projector_type": "gemma4v", "clip.audio.projector_type": "qwen2a"}
    return file({**GEMMA, **AUDIO}, tensors, lost=["clip.projector_type"], changed=types)


def test_fires_where_vision_and_audio_differ() -> None:
    assert list(check(companion(both(128)), SETTINGS)) == [
        Hit(
            message="vision and audio need one width, vision has 128 and audio 64",
            where=Where(key="clip.audio.projection_dim"),
            expected=128,
            actual=64,
            unit="number",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_silent_where_they_agree_or_there_is_one() -> None:
    assert list(check(companion(both(64)), SETTINGS)) == []
    assert list(check(companion(gemma()), SETTINGS)) == []
