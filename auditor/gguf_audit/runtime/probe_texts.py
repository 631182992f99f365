r"""What tokenizers are compared on.

Short, so that a difference can be shown, and each of another kind. Already in Unicode's
composed form, which llama.cpp doesn't make, and without capitals beyond ASCII in the
middle of words, which it doesn't tell from small letters: there it differs from every
reference, whatever a file says.
"""

from __future__ import annotations

__all__ = ["TEXTS"]

TEXTS = (
    "12345 and 1234567",
    "7 42 365 v2.5 3.14 1,000,000 x86_64",
    "I'm sure they'll say IT'S fine, we'Ve \u2019tis Ankara'day\u0131m 'sabah",
    "a  b   c    d\n\n\ne \n \tf\t\tg   \n",
    "x  12   345\n 6",
    "def f(x):\n    if x != 0 and y_1 >= 2:\n        return x[0]//2  # ok\n",
    "HTTPServer camelCase XMLParser2 ABCdef iPhone15Pro",
    (
        "\u6211\u60f3\u5728apple\u5de5\u4f5c1314151\u5929\u3002\u3042\u3044\u30a2\u30a4\u30fc "
        "\ud55c\uad6d\uc5b4 \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22"
    ),
    (
        "d\u00e9j\u00e0 vu na\u00efve \u041f\u0440\u0438\u0432\u0435\u0442 "
        "\u0645\u0631\u062d\u0628\u0627 \u0939\u093f\u0928\u094d\u0926\u0940"
    ),
    "\U0001f680 \U0001f999\U0001f999 ok\U0001f600!",
    "------=======!!!??... '''```\"\"\" (a) [b] {c} <d> $5 50% #1 @x a/b/c a\\b ~^|",
    "a.\nb!\r\n\r\nc -\n\nd/\n/e;  \n",
    "\u00bd \u0663\u0664 x\u00b2 \u2167",
    # Beyond splitting: what vocabularies treat in ways of their own, and whole sentences.
    "Hello",
    " Hello",
    "hello world",
    "The quick brown fox jumps over the lazy dog.",
    " ",
    "  ",
    "   a",
    "\n",
    "\n\n",
    "\t\t\tx",
    "\u0421\u044a\u0435\u0448\u044c \u0435\u0449\u0451 \u044d\u0442\u0438\u0445 \u0431\u0443\u043b\u043e\u043a",
    "\u6570\u5b57\u548c\u6807\u70b9\uff0c\u201c\u5f15\u53f7\u201d\uff01",
    "\u0f40\u0f0b\ua000\U00020000",
    "#include <stdio.h>\nint main(void) { return 0x1F << 2; }\n",
    '{"name": "value", "list": [1, 2.5e-3, null]}',
    "https://example.org/a?b=c&d=%20#e",
)
