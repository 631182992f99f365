r"""How llama.cpp splits a text before byte pairs are merged, by ``tokenizer.ggml.pre``.

``llama_vocab::impl::load`` and ``llm_tokenizer_bpe`` (src/llama-vocab.cpp), and
``unicode_regex_split`` (src/unicode.cpp), llama.cpp build 11434.

Expressions are in Oniguruma's syntax, which is what ``tokenizers`` runs; each splits what
the ones before it have left, matches and gaps alike. They say what llama.cpp does, not how
it writes it: it has no classes of upper and lower case beyond ASCII, so ``\p{Lu}`` is any
letter there, and some expressions only stand for code of its own. Where that isn't quite
what the models that it is meant for do, their own steps stand beside it, as in the
``pre_tokenizer`` of their ``tokenizer.json``.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from gguf_audit.checkpoint import Json

__all__ = ["DEFAULT", "GROUPS", "SPLITTERS", "VOCABULARIES", "Splitter", "pre_tokenizer"]

Step = dict[str, Json]

#: The name that llama.cpp takes for an absent or empty one.
DEFAULT = "default"
#: Values of ``tokenizer.ggml.model`` that llama.cpp knows; others it refuses.
VOCABULARIES = frozenset(
    {
        "bert",
        "gemma4",
        "gpt2",
        "hybriddna",
        "llama",
        "no_vocab",
        "none",
        "plamo2",
        "rwkv",
        "t5",
        "test",
        "whitespace",
    }
)


class Splitter(Struct, frozen=True, kw_only=True, eq=False):
    """What some names make of a text, all of them the same."""

    #: With a space between, the usual one first.
    spelled: str
    patterns: tuple[str, ...]
    #: A piece that is a token as a whole isn't put together by merges.
    ignore_merges: bool = False
    #: Spaces become U+2581 and pieces stay UTF-8, where others stand for bytes.
    raw: bool = False
    #: What the models that it is meant for do, where the patterns only come close.
    meant_for: tuple[Step, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, the usual one first."""
        return tuple(self.spelled.split())


def _split(pattern: str, behavior: str = "Isolated") -> Step:
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": behavior,
        "invert": False,
    }


def pre_tokenizer(splitter: Splitter, *, meant: bool = False) -> Step:
    """Return the steps of a splitter, or of the models that it is meant for."""
    steps = splitter.meant_for if meant else None
    if steps is None:
        steps = tuple(_split(pattern) for pattern in splitter.patterns)
    listed: list[Json] = [*steps]
    return {"type": "Sequence", "pretokenizers": listed}


_CONTRACTION = "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"(?:{_CONTRACTION})|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACES}"
_QWEN2 = rf"(?:{_CONTRACTION})|{_WORD}|\p{{N}}|{_SIGNS}|{_SPACES}"
_JAIS2 = (
    rf"(?:{_CONTRACTION})|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|\s*[\r\n]+|\s{{512}}(?!\S)|\s{{256}}(?!\S)"
    r"|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)"
    r"|\s{1,2}(?!\S)|\s{1}"
)


def _cased(letter: str, numbers: str, *, contracted: bool = True) -> str:
    """Return GPT-4o's expression: words end where lower case does."""
    upper, lower = rf"(?:(?={letter})[^a-z])", rf"(?:(?={letter})[^A-Z])"
    tail = rf"(?:{_CONTRACTION})?" if contracted else ""
    lead = r"[^\r\n\p{L}\p{N}]?"
    return (
        rf"{lead}{upper}*{lower}+{tail}|{lead}{upper}+{lower}*{tail}|{numbers}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
    )


#: The same where every letter is of both cases.
_UNCASED = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+(?:{_CONTRACTION})?|%s"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
)
#: What they come from: whole Unicode has cases.
_TITLE, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}%s]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}%s]"


def _unicode_cased(numbers: str, *, contracted: bool = True, but: str = "") -> str:
    """Return GPT-4o's expression as ``tokenizer.json`` has it."""
    upper, lower = _TITLE % but, _LOWER % but
    tail = rf"(?:{_CONTRACTION})?" if contracted else ""
    lead = r"[^\r\n\p{L}\p{N}]?"
    return (
        rf"{lead}{upper}*{lower}+{tail}|{lead}{upper}+{lower}*{tail}|{numbers}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
    )


#: Digits in threes from the right; what stands before the first of them stays with it.
_THREES = r"\P{N}*\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
_LINES = r"[^\n]+|[\n]+"
_CHINESE = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_ASCII_SIGN = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
_MARKED_WORD = r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
_DEEPSEEK3 = rf"{_ASCII_SIGN}|{_MARKED_WORD}| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
#: Letters of scripts with two cases.
_CASED_LETTERS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd"
    "\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d"
    "\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4"
    "\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec"
    "\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128"
    "\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b"
    "\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787"
    "\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)
_ASIAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_PHRASES = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"

_EAST = (
    "[\uac00-\ud7a3\u3131-\u318e]+"
    "|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+"
    f"|[\u3105-\u312f]+|{_CHINESE}"
)
_KIMI = _unicode_cased(r"\p{N}{1,3}", but=r"&&[^\p{Han}]")
_ONE_DIGIT = (r"\p{N}", _GPT2)
GROUPS: tuple[Splitter, ...] = (
    Splitter(
        spelled="default", patterns=(r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")
    ),
    Splitter(
        spelled="llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano glm4 glm5",
        patterns=(_LLAMA3,),
        ignore_merges=True,
    ),
    Splitter(spelled="dbrx smaug-bpe chatglm-bpe", patterns=(_LLAMA3,)),
    Splitter(spelled="jais-2", patterns=(_JAIS2,)),
    Splitter(
        spelled="gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert jina-v1-en jina-v2-code roberta-bpe mpt olmo jais exaone4 trillion granite-docling",
        patterns=(_GPT2,),
    ),
    Splitter(
        spelled="starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
        patterns=_ONE_DIGIT,
    ),
    Splitter(
        spelled="qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2",
        patterns=(_QWEN2,),
    ),
    Splitter(
        spelled="qwen35",
        patterns=(
            (
                rf"(?:{_CONTRACTION})|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
                rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
            ),
        ),
    ),
    Splitter(spelled="ufakzeka", patterns=(rf"{_WORD}|\p{{N}}|{_SIGNS}|{_SPACES}",)),
    Splitter(
        spelled="laguna",
        patterns=(_LINES, _QWEN2),
        meant_for=(_split(r"(?:\r?\n)+(?!\r?\n)", "MergedWithNext"), _split(_QWEN2)),
    ),
    Splitter(
        spelled="deepseek-v3 hunyuan-dense joyai-llm hy_v4",
        patterns=(r"\p{N}{1,3}", _CHINESE, _DEEPSEEK3),
    ),
    Splitter(
        spelled="spark2_5",
        patterns=(
            r"\p{N}{1,3}",
            _CHINESE,
            rf"{_ASCII_SIGN}|{_MARKED_WORD}| ?[\p{{P}}\p{{S}}]+|[\r\n]|\s+(?!\S)|\s+",
            r"\p{N}",
        ),
    ),
    Splitter(
        spelled="deepseek-llm",
        patterns=(
            r"[\r\n]",
            rf"\s?[{_CASED_LETTERS}]+",
            "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
            r"\s+\z",
            _ASIAN,
            r"\p{N}+",
        ),
        # No merge puts digits together, so their runs needn't be cut.
        meant_for=(
            _split(r"[\r\n]"),
            _split(rf"\s?[{_CASED_LETTERS}]+"),
            _split("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"),
            _split(r"\s+$"),
            _split(_ASIAN),
            _split(r"\p{N}"),
        ),
    ),
    Splitter(
        spelled="deepseek-coder", patterns=(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _ASIAN, r"\p{N}")
    ),
    Splitter(
        spelled="falcon",
        patterns=(r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]"),
        # The last two see letters that stand for bytes, some of them digits.
        meant_for=(
            {"type": "Punctuation", "behavior": "Contiguous"},
            {
                "type": "ByteLevel",
                "add_prefix_space": False,
                "trim_offsets": True,
                "use_regex": True,
            },
            {"type": "Digits", "individual_digits": False},
            _split("[0-9][0-9][0-9]"),
        ),
    ),
    Splitter(spelled="bloom gpt3-finnish poro-chat", patterns=(_PHRASES,)),
    Splitter(spelled="viking", patterns=(_PHRASES, r"\p{N}")),
    Splitter(
        spelled="tekken",
        patterns=(_cased(r"\p{L}", r"\p{N}", contracted=False),),
        ignore_merges=True,
        meant_for=(_split(_unicode_cased(r"\p{N}", contracted=False)),),
    ),
    Splitter(
        spelled="gpt-4o llama4 kanana2 talkie minimax-m2",
        patterns=(_cased(r"\p{L}", r"\p{N}{1,3}"),),
        meant_for=(_split(_unicode_cased(r"\p{N}{1,3}")),),
    ),
    Splitter(
        spelled="granite-embed-multi-97m",
        patterns=(_cased(r"[\p{L}\p{M}]", r"\p{N}{1,3}"),),
        ignore_merges=True,
        meant_for=(_split(_unicode_cased(r"\p{N}{1,3}")),),
    ),
    Splitter(
        spelled="tiny_aya cohere2moe",
        patterns=(_THREES, _UNCASED % r"\p{N}{1,3}"),
        meant_for=(
            _split(r"\d{1,3}(?=(?:\d{3})*\b)"),
            _split(_unicode_cased(r"\p{N}{1,3}")),
        ),
    ),
    Splitter(
        spelled="youtu",
        patterns=(_EAST, _UNCASED % r"\p{N}"),
        ignore_merges=True,
        meant_for=(_split(_EAST), _split(_unicode_cased(r"\p{N}"))),
    ),
    Splitter(
        spelled="kimi-k2",
        patterns=(
            (
                r"\p{Han}+"
                rf"|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}&&[^\p{{Han}}]]+(?:{_CONTRACTION})?"
                rf"|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACES}"
            ),
        ),
        meant_for=(_split(r"\p{Han}+|" + _KIMI.replace(r"[\r\n/]*", r"[\r\n]*")),),
    ),
    Splitter(spelled="superbpe", patterns=(r"\p{N}+", r"[0-9]{1,3}(?=(?:[0-9]{3})*(?![0-9]))")),
    Splitter(
        spelled="bailingmoe bailingmoe2 llada-moe",
        patterns=(
            (
                rf"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|{_WORD}|\p{{N}}|{_SIGNS}"
                r"|\s*[\r\n]|\s+(?!\S)|\s+"
            ),
        ),
    ),
    Splitter(
        spelled="seed-coder",
        patterns=(rf"(?:{_CONTRACTION})|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}",),
    ),
    Splitter(
        spelled="afmoe",
        patterns=(
            _THREES,
            (
                "[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f"
                "\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f"
                "\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"
            ),
            _DEEPSEEK3,
        ),
    ),
    Splitter(
        spelled="exaone-moe",
        patterns=(
            (
                rf"(?:{_CONTRACTION})|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+"
                r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
            ),
        ),
    ),
    Splitter(
        spelled="chameleon",
        patterns=(
            "<sentinel:[0-9]+>",
            "IMGIMG[A-I]{1,4}Z",
            r"[\t\n]|    |  ",
            r"\p{N}",
            r"[\p{P}!-/:-@\[-`{-~]",
            _GPT2,
        ),
    ),
    Splitter(
        spelled="minicpm5",
        patterns=(
            r"\p{N}{1,3}",
            rf"(?:{_CONTRACTION})|{_WORD}|\p{{N}}+|{_SIGNS}|{_SPACES}",
        ),
        ignore_merges=True,
    ),
    # No merge puts lines together, so the models needn't cut them.
    Splitter(
        spelled="gemma4 granite-embed-multi-311m mmbert sarvam-moe",
        patterns=(_LINES,),
        raw=True,
        meant_for=(),
    ),
    Splitter(spelled="whitespace", patterns=(r"\S+",), raw=True),
)
#: Name -> what it does; llama.cpp refuses any other.
SPLITTERS: Mapping[str, Splitter] = {
    name: splitter for splitter in GROUPS for name in splitter.names
}
