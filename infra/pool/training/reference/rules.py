"""Sentences of a text grammar: rules expanded at random, numbers in words."""

import random
import re

from languages import read_rules

UNITS = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete "
    "veintiocho veintinueve"
).split()
TENS = ["", "", "", "treinta", "cuarenta", "cincuenta", "sesenta", "setenta", "ochenta", "noventa"]
HUNDREDS = (
    " ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
).split(" ")


def spanish(value: int) -> str:
    if value >= 1000:
        head = "mil" if value < 2000 else f"{spanish(value // 1000)} mil"
        return head if value % 1000 == 0 else f"{head} {spanish(value % 1000)}"
    if value >= 100:
        if value == 100:
            return "cien"
        return HUNDREDS[value // 100] + (f" {spanish(value % 100)}" if value % 100 else "")
    if value < 30:
        return UNITS[value]
    return TENS[value // 10] + (f" y {UNITS[value % 10]}" if value % 10 else "")


def before_noun(words: str) -> str:
    """Shortens a final "uno", as a masculine noun asks."""
    return re.sub(r"uno$", "ún" if words.endswith("veintiuno") else "un", words)


def chinese(value: int, two: str) -> str:
    """`two` is the form of 2 before hundreds and thousands."""
    digits = "零一二三四五六七八九"
    if value < 20:
        return digits[value] if value < 10 else "十" + (digits[value - 10] if value > 10 else "")
    for size, unit in ((1000, "千"), (100, "百"), (10, "十")):
        if value >= size:
            break
    head = (two if value // size == 2 and size > 10 else digits[value // size]) + unit
    rest = value % size
    if rest == 0:
        return head
    skipped = "零" if rest < size // 10 else ""
    below = "一" + chinese(rest, two) if 10 <= rest < 20 else chinese(rest, two)
    return head + skipped + below


class Grammar:
    def __init__(self, name: str) -> None:
        self.name = name
        self.rules = read_rules(name)

    def number(self, value: int) -> str:
        if self.name == "es":
            return before_noun(spanish(value))
        return chinese(value, "两" if self.name == "zh" else "兩")

    def digits(self, rng: random.Random, count: int) -> str:
        if self.name == "es":
            return " ".join(UNITS[rng.randrange(10)] for _ in range(count))
        return "".join("零一二三四五六七八九"[rng.randrange(10)] for _ in range(count))

    def expand(self, rng: random.Random, rule: str) -> str:
        span = re.fullmatch(r"(#|digits)(\d+)-(\d+)", rule)
        if span:
            value = rng.randint(int(span[2]), int(span[3]))
            return self.number(value) if span[1] == "#" else self.digits(rng, value)
        chosen = rng.choice(self.rules[rule])
        return re.sub(r"\{([^}]+)\}", lambda match: self.expand(rng, match[1]), chosen)

    def sentence(self, rng: random.Random) -> str:
        return self.expand(rng, "sentence")

    def words(self) -> list[str]:
        """The terms of the rules, as words out of context; one character alone has too many homophones."""
        found = {a for rule in self.rules.values() for a in rule if "{" not in a}
        return sorted(word for word in found if self.name == "es" or 2 <= len(word) <= 4)
