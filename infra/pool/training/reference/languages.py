"""The languages of the reference networks: their tokens, the units of an error, and the text that a voice reads."""

import dataclasses
import functools
import os
import re

FOLDER = os.path.join(os.path.dirname(__file__), "languages")
ALL = ["en", "zh", "yue", "es"]
LETTERS = {"en": "'abcdefghijklmnopqrstuvwxyz", "es": "abcdefghijklmnopqrstuvwxyzáéíñóúü"}
SPELLED = "零一二三四五六七八九十百千萬万年"  # characters of numbers, which no rule lists
TONED = {"ng4": "吳", "ng5": "五", "ng6": "誤"}


@dataclasses.dataclass(frozen=True)
class Language:
    name: str
    tokens: list[str]
    width: int
    depth: int

    @property
    def spaced(self) -> bool:
        """Whether white space divides words."""
        return self.name in LETTERS

    @property
    def gap(self) -> str:
        return " " if self.spaced else ""

    def units(self, text: str) -> list[str]:
        """The units that errors are counted in: words, or characters."""
        return text.split() if self.spaced else list(text.replace(" ", ""))

    def reading(self, text: str) -> str:
        """The text as its voice takes it: espeak-ng reads many characters wrongly, syllables rightly."""
        if self.name == "zh":
            return pinyin(text)
        return jyutping(text) if self.name == "yue" else text


def pinyin(text: str) -> str:
    from pypinyin import Style, lazy_pinyin

    return " ".join(lazy_pinyin(text, style=Style.TONE3, neutral_tone_with_five=True, tone_sandhi=True))


def jyutping(text: str) -> str:
    import ToJyutping

    # The voice drops the tone of a syllable without a vowel, unless it reads the character.
    return " ".join(TONED.get(reading, reading) for _, reading in ToJyutping.get_jyutping_list(text))


def read_rules(name: str) -> dict[str, list[str]]:
    """The text grammar: alternatives by the name of their rule."""
    rules: dict[str, list[str]] = {}
    for line in open(f"{FOLDER}/{name}.txt", encoding="utf-8").read().splitlines():
        header = re.fullmatch(r"\[(\w+)\]", line)
        if header:
            alternatives = rules.setdefault(header[1], [])
        elif line and not line.startswith("#"):
            alternatives += [alternative.strip() for alternative in line.split("|")]
    return rules


@functools.cache
def language(name: str) -> Language:
    if name in LETTERS:
        tokens = ["<blank>", " ", *LETTERS[name]]
    else:
        text = "".join(alternative for rule in read_rules(name).values() for alternative in rule)
        tokens = ["<blank>", " ", *sorted(set(re.findall(r"[\u3400-\u9fff]", text + numerals(name))))]
    return Language(name, tokens, *((192, 9) if name == "en" else (144, 6)))


def numerals(name: str) -> str:
    return SPELLED.replace("萬" if name == "zh" else "万", "") + ("两" if name == "zh" else "兩")
