"""Every published report is made again by a test, or stands here with why it cannot be."""

from __future__ import annotations

from importlib import import_module

from public_reports import TOLD
from test_public_headers import CASES as HEADERS
from test_public_metadata_faults import METADATA
from test_public_pre_tokenizers import CASES as PRE_TOKENIZERS
from test_public_template_faults import CASES as TEMPLATES
from test_public_tensor_faults import INVENTED, MODELS

PERMUTED = "how rows are permuted for RoPE is in the weights: names and shapes stay the same"
SCALES = "a scale that is no number is in the blocks of a tensor, and blocks aren't read"
ENGINE = "the file is right, another engine reads it wrongly"
EDITED = "an offset or a sign is in the weights: names and shapes stay the same"
#: Report -> why a header shows nothing of it.
UNSEEN = {
    "rope-015": "which of the two right sets of factors is used depends on the context that "
    "a user asks for",
    "mla-005": "llama-quantize itself stores these tensors in about 5 bits, for their rows "
    "are too short for its blocks: a type that low is no fault, and what an importance "
    "matrix lacked isn't written down",
    "hyb-006": EDITED,
    "hyb-007": EDITED,
    "hyb-012": "nobody writes down how many tensors an importance matrix should have had",
    "ten-001": PERMUTED,
    "ten-002": PERMUTED,
    "ten-004": PERMUTED,
    "ten-005": SCALES,
    "ten-006": SCALES,
    "ten-009": SCALES,
    "ten-020": ENGINE,
    "ten-022": "llama-quantize stops, so there is no file",
    "num-003": ENGINE,
    "num-004": ENGINE,
    "num-007": EDITED,
    "num-010": ENGINE,
    "num-011": ENGINE,
    "tok-026": "nobody settled which side was wrong: the tokenizer was changed after the "
    "conversion, and a file that agrees with the checkpoint it was made from is right",
    "tok-033": "the weights were right; what differed in the end was the name of the "
    "pre-tokenizer, as in pre-001, and prompts, which no file holds",
}
#: How the reports of these families are numbered.
REPORTS = {
    "rope": (1, 4, 7, 8, 9, 10, 11, 14, 15, 16),
    "swa": (2, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14),
    "mla": (2, 3, 4, 5, 6),
    "hyb": (1, 2, 3, 6, 7, 8, 9, 10, 12, 13, 14, 16),
    "moe": (1, 2, 3, 4, 5, 7, 9, 11, 12, 13, 14, 15),
    "ten": (1, 2, 4, 5, 6, 9, 13, 14, 15, 17, 18, 19, 20, 22),
    "spl": (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 17, 18),
    "num": (2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13),
    "typ": (5, 8),
    "tok": (1, 2, 4, 5, 8, 9, 11, 16, 17, 19, 21, 25, 26, 27, 30, 31, 32, 33, 35),
    "pre": (1, 2, 3, 6, 8, 10, 11, 12),
    "emb": (4, 7, 8, 10, 11, 12, 13),
    "tpl": (2, 3, 4, 8, 10),
    "sec": (2, 3, 4, 5, 7, 8, 9, 10, 11, 12),
    "mmp": (1, 2, 5, 7, 9),
}


def test_every_report_is_made_again_once_or_cannot_be_seen() -> None:
    for family in ("companion_faults", "file_faults", "right_files", "vocabularies"):
        import_module(f"test_public_{family}")  # notes its tests in TOLD
    tables = (METADATA, MODELS, INVENTED, PRE_TOKENIZERS, TEMPLATES, HEADERS)
    of_cases = [each.rows for cases in tables for each in cases]
    made = " ".join([*TOLD.values(), *of_cases]).split()
    every = [f"{family}-{number:03}" for family, all_ in REPORTS.items() for number in all_]
    assert sorted([*made, *UNSEEN]) == sorted(every)
