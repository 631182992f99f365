"""Makes templates out of pieces of templates: most parse, or nearly do."""

from __future__ import annotations

import random
import re

__all__ = ["SEEDS", "mutated"]

SEEDS = (
    (
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content']"
        " + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant' }}{% endif %}"
    ),
    (
        "{%- if messages[0].role == 'system' %}{% set system = messages[0]['content'] | trim %}"
        "{% set loop_messages = messages[1:] %}{% else %}{% set system = '' %}{% endif %}{{ bos_token }}"
    ),
    (
        "{% macro show(tool, depth=0) %}{{ tool | tojson(indent=4) }}{% if tool.more %}"
        "{{ show(tool.more, depth + 1) }}{% endif %}{% endmacro %}{{ show(tools[0]) }}"
    ),
    (
        "{% set ns = namespace(found=false, text='') %}{% for m in messages if m.role != 'tool' %}"
        "{% set ns.text = ns.text ~ m.content %}{% break %}{% endfor %}{{ ns.text[::-1] }}"
    ),
    "{{ raise_exception('x' * 3) if x is defined and x is not none else strftime_now('%Y') }}",
    "{{ ''.__class__.__mro__[1] }}{{ x | attr('__globals__') }}{{ '{0.a}'.format(x) }}",
    "{% include 'a' %}{% import 'b' as c %}{% call(x) show() %}{% endcall %}{% raw %}{{ }}{% endraw %}",
    "{% for i in range(10 ** 9) %}{{ 'a' | center(2 ** 31) }}{{ '%0900d' % i }}{% endfor %}",
    "{% if 'ignore' in messages[-1].content | lower %}{{ 'Always answer in this way now.' }}{% endif %}",
    "{% generation %}{{ messages | map(attribute='content') | join(', ') }}{% endgeneration %}",
)
_PIECE = re.compile(r"\{[%{#]-?|-?[%}#]\}|'[^']*'|\w+|\s+|[^\w\s]", re.DOTALL)
#: Characters that one change adds at most: no input is longer.
_MOST = 1 << 16
WORDS = (
    *(
        "for",
        "in",
        "if",
        "else",
        "endif",
        "endfor",
        "set",
        "macro",
        "endmacro",
        "call",
        "filter",
        "not",
    ),
    *(
        "is",
        "and",
        "or",
        "recursive",
        "namespace",
        "range",
        "self",
        "loop",
        "cycler",
        "lipsum",
        "true",
    ),
    *(
        "messages",
        "content",
        "role",
        "tools",
        "bos_token",
        "x",
        "0",
        "1",
        "999999999",
        "1e308",
        "0x7f",
    ),
    *(
        "{%",
        "%}",
        "{{",
        "}}",
        "{#",
        "#}",
        "(",
        ")",
        "[",
        "]",
        "|",
        "~",
        "**",
        "//",
        "%",
        ":",
        ",",
        ".",
    ),
    *(
        "'__class__'",
        "'\\x5f\\x5finit\\x5f\\x5f'",
        "'\u202e'",
        "'\U000e0041'",
        "'%s'",
        "'a' * 99999999",
    ),
)


def mutated(data: bytes, other: bytes, seed: int) -> bytes:
    """Return a template changed by its pieces, some of them taken out of another."""
    chance = random.Random(seed)  # noqa: S311 - a fuzzer's choice, no secret
    pieces = _PIECE.findall(data.decode("utf-8", "replace")) or [""]
    others = _PIECE.findall(other.decode("utf-8", "replace")) or [""]
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(pieces))
        match chance.randrange(6):
            case 0 if len(pieces) > 1:
                del pieces[at]
            case 1:
                pieces.insert(at, chance.choice(WORDS))
            case 2:
                pieces[at] = chance.choice(WORDS)
            case 3:
                start = chance.randrange(len(others))
                pieces[at:at] = others[start : start + chance.randint(1, 24)]
            case 4:
                times = min(chance.choice((2, 3, 64, 2048)), _MOST // max(len(pieces[at]), 1))
                pieces[at:at] = [pieces[at]] * times
            case _:
                pieces[at], pieces[-1] = pieces[-1], pieces[at]
    return "".join(pieces).encode("utf-8", "surrogatepass")
