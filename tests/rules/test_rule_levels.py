from __future__ import annotations

from gguf_audit_rules import load

#: What a gate may rely on: id -> name and levels. A number is never given again.
RULES = {
    "ARCH001": "unknown-architecture: error warning",
    "ARCH002": "block-count-changed: error",
    "ARCH003": "metadata-shape-mismatch: error",
    "ARCH004": "load-refused: error",
    "ARCH005": "architecture-changed: error",
    "ARCH006": "hyperparameter-changed: error warning",
    "ARCH007": "value-type-wrong: error",
    "ARCH008": "graph-incomplete: error",
    "ARCH009": "outdated-conversion: error warning",
    "CTX001": "context-length-changed: error warning info",
    "CTX002": "rope-base-changed: error",
    "CTX003": "rope-scaling-changed: error warning info",
    "CTX004": "rotation-changed: error",
    "CTX005": "rope-tensors-changed: error warning",
    "GGUF001": "tensor-data-truncated: error",
    "GGUF002": "tensor-placement: error",
    "GGUF003": "duplicate-name: error",
    "GGUF004": "tensor-type: error info",
    "GGUF005": "trailing-bytes: error warning",
    "GGUF006": "hidden-characters: error warning",
    "KV101": "kv-full-attention: error",
    "KV102": "latent-unpacked: error",
    "KV103": "window-lost: error",
    "KV104": "window-changed: error",
    "KV105": "state-changed: error",
    "KV106": "kv-heads-changed: error",
    "KV107": "full-attention-unconfirmed: warning",
    "KV108": "cache-layout-changed: error",
    "KV109": "runtime-limit: info",
    "KV110": "layout-unverified: info",
    "RUN001": "probe-disagrees: error warning info",
    "TOK001": "pre-tokenizer-missing: error info",
    "TOK002": "vocabulary-size-mismatch: error",
    "TOK003": "special-id-out-of-range: error",
    "TOK004": "special-id-changed: error warning info",
    "TOK005": "token-arrays-unequal: error",
    "TOK006": "token-scores-missing: error",
    "TOK007": "vocabulary-type-wrong: error",
    "TOK008": "vocabulary-incomplete: error",
    "TPL001": "chat-template-lost: error",
    "WT001": "tensor-missing: error",
    "WT002": "tensor-unexpected: error",
    "WT003": "tensor-shape-mismatch: error",
    "WT004": "tensor-lost: error",
    "WT005": "tensor-added: warning info",
    "WT006": "parameters-changed: error",
}


def test_ids_names_and_levels_stay() -> None:
    found = {rule.id: f"{rule.name}: {' '.join(rule.levels)}" for rule in load()}
    assert {id_: found.get(id_) for id_ in RULES} == RULES
