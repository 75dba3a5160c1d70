"""Builds the decoder's files from the training text: the lexicon and a word trigram model.

    python language_model.py --text work/text --out ../../models/repository/reference-en

`lexicon.txt.gz` has one word a line. `words.lm.gz` is an ARPA file (the format of SRILM and KenLM) with interpolated
Kneser-Ney smoothing (Chen and Goodman 1999, one discount per order); n-grams of two and three words seen fewer than
`--keep` times are left out and their weight goes to the shorter ones.
"""

import argparse
import collections
import gzip
import math
import pathlib

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"


def count(sentences: list[list[str]]) -> list[collections.Counter]:
    grams = [collections.Counter() for _ in range(3)]
    for words in sentences:
        line = [BEGIN, *words, END]
        for order in (1, 2, 3):
            grams[order - 1].update(tuple(line[at : at + order]) for at in range(len(line) - order + 1))
    return grams


def continuations(longer: collections.Counter) -> collections.Counter:
    """How many different words an n-gram follows: what Kneser-Ney counts instead of occurrences."""
    return collections.Counter(gram[1:] for gram in longer)


def discount(counts: collections.Counter) -> float:
    once = sum(1 for value in counts.values() if value == 1)
    twice = sum(1 for value in counts.values() if value == 2)
    return once / (once + 2 * twice) if once and twice else 0.5


class Model:
    """Interpolated probabilities and back-off weights of one set of counts."""

    def __init__(self, sentences: list[list[str]], keep: int):
        raw = count(sentences)
        # N-grams that start a sentence have nothing before them, so they keep their plain counts.
        used = [continuations(raw[1]), continuations(raw[2]), raw[2]]
        for gram, value in raw[1].items():
            if gram[0] == BEGIN:
                used[1][gram] = value
        self.seen = [used[0]] + [{g: v for g, v in used[n].items() if raw[n][g] >= keep} for n in (1, 2)]
        self.cut = [discount(collections.Counter(used[n])) for n in range(3)]
        self.total = [collections.Counter(), collections.Counter(), collections.Counter()]
        self.kept = [collections.Counter(), collections.Counter(), collections.Counter()]
        for order in range(3):
            for gram, value in used[order].items():
                self.total[order][gram[:-1]] += value
            for gram, value in self.seen[order].items():
                self.kept[order][gram[:-1]] += value - self.cut[order]
        self.vocabulary = len([gram for gram in self.seen[0] if gram[0] != BEGIN]) + 1

    def backoff(self, history: tuple[str, ...]) -> float:
        """The share of a history's probability that longer n-grams leave to shorter ones."""
        order = len(history)
        total = self.total[order][history]
        return 1.0 if total == 0 else 1.0 - self.kept[order][history] / total

    def probability(self, gram: tuple[str, ...]) -> float:
        if len(gram) == 0:
            return 1.0 / self.vocabulary
        order, history = len(gram) - 1, gram[:-1]
        total = self.total[order][history]
        own = max(0.0, self.seen[order].get(gram, 0.0) - self.cut[order]) / total if total else 0.0
        return own + self.backoff(history) * self.probability(gram[1:])


def log10(value: float) -> str:
    return f"{math.log10(max(value, 1e-12)):.3f}"


def write_arpa(model: Model, path: pathlib.Path) -> None:
    lines: list[list[str]] = [[], [], []]
    lines[0].append(f"{log10(model.backoff(()) / model.vocabulary)}\t{UNKNOWN}")
    lines[0].append(f"-99\t{BEGIN}\t{log10(model.backoff((BEGIN,)))}")
    for order in range(3):
        for gram in sorted(model.seen[order]):
            if gram[-1] == BEGIN:
                continue
            line = f"{log10(model.probability(gram))}\t{' '.join(gram)}"
            if order < 2 and gram in model.total[order + 1]:
                line += f"\t{log10(model.backoff(gram))}"
            lines[order].append(line)
    text = ["\\data\\", *(f"ngram {n + 1}={len(lines[n])}" for n in range(3))]
    for order in range(3):
        text += ["", f"\\{order + 1}-grams:", *lines[order]]
    text += ["", "\\end\\", ""]
    path.write_bytes(gzip.compress("\n".join(text).encode(), 9, mtime=0))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--text", type=pathlib.Path, required=True)
    arguments.add_argument("--out", type=pathlib.Path, required=True)
    arguments.add_argument("--keep", type=int, default=2)
    given = arguments.parse_args()
    sentences = [line.split() for line in (given.text / "train.txt").read_text().splitlines() if line]
    counted = (given.text / "words.txt").read_text().splitlines()  # a word and its count on each line
    words = sorted({line.split()[0] for line in counted} | {w for s in sentences for w in s})
    (given.out / "lexicon.txt.gz").write_bytes(gzip.compress("\n".join(words).encode(), 9, mtime=0))
    # Every word of the lexicon is seen at least once, so that none is unknown.
    write_arpa(Model(sentences + [[word] for word in words], given.keep), given.out / "words.lm.gz")


if __name__ == "__main__":
    main()
