"""Counts the training sentences into the word model that the decoder reads.

    python3 language.py --text work/text --out ../repository/reference-en/words.lm.gz

A trigram model with interpolated Kneser-Ney smoothing (Kneser and Ney 1995), written in back-off form; trigrams
seen once are left out. The layout of the file is described where it is read:
infra/pool/agent/decode/language-model.ts. No sentence can be read back from it.
"""

import argparse
import array
import collections
import gzip
import math
import struct

START, END, UNKNOWN = 0, 1, 2
DISCOUNT = 0.75
UNKNOWN_SHARE = 2e-3  # of all words: names, and what the packages never say
UNIT = 1000


def thousandths(probability: float) -> int:
    return max(-32767, round(math.log(probability) * UNIT))


class Counts:
    def __init__(self, sentences: list[list[int]]) -> None:
        self.three, self.two = collections.Counter(), collections.Counter()
        for sentence in sentences:
            padded = [START, *sentence, END]
            self.two.update(zip(padded, padded[1:]))
            self.three.update(zip(padded, padded[1:], padded[2:]))
        # Kneser-Ney: a word counts for the lower order by how many words it follows, not how often.
        self.kinds_before = collections.Counter(word for _, word in self.two)
        self.kinds_after_one = collections.Counter(before for before, _ in self.two)
        self.total_after_one = collections.Counter()
        for (before, _), count in self.two.items():
            self.total_after_one[before] += count
        self.kinds_after_two, self.total_after_two = collections.Counter(), collections.Counter()
        for (earlier, before, _), count in self.three.items():
            self.total_after_two[earlier, before] += count
            if count > 1:
                self.kinds_after_two[earlier, before] += 1


def build(counts: Counts, words: int):
    kinds = sum(counts.kinds_before.values())
    uni = [0.0] * words
    for word in range(words):
        seen = counts.kinds_before[word]
        uni[word] = (1 - UNKNOWN_SHARE) * (max(seen, 0.1) / kinds)
    uni[UNKNOWN] = UNKNOWN_SHARE
    back_one = [
        DISCOUNT * counts.kinds_after_one[w] / counts.total_after_one[w] if counts.total_after_one[w] else 1.0
        for w in range(words)
    ]
    two = {
        (a, b): (count - DISCOUNT) / counts.total_after_one[a] + back_one[a] * uni[b]
        for (a, b), count in counts.two.items()
    }
    # What the trigrams seen once had goes to the back-off, so that the rest still sums to one.
    kept = collections.defaultdict(int)
    for (a, b, _), count in counts.three.items():
        if count > 1:
            kept[a, b] += count
    back_two = {}
    for pair in two:
        total = counts.total_after_two[pair]
        back_two[pair] = (total - kept[pair] + DISCOUNT * counts.kinds_after_two[pair]) / total if total else 1.0
    three = {
        (a, b, c): (count - DISCOUNT) / counts.total_after_two[a, b] + back_two[a, b] * two[b, c]
        for (a, b, c), count in counts.three.items()
        if count > 1
    }
    return uni, back_one, two, back_two, three


def write(path: str, names: list[str], uni, back_one, two, back_two, three) -> None:
    pairs, triples = sorted(two), sorted(three)
    place = {pair: number for number, pair in enumerate(pairs)}
    two_start, three_start = [0] * (len(names) + 1), [0] * (len(pairs) + 1)
    for before, _ in pairs:
        two_start[before + 1] += 1
    for a, b, _ in triples:
        three_start[place[a, b] + 1] += 1
    for starts in (two_start, three_start):
        for index in range(1, len(starts)):
            starts[index] += starts[index - 1]
    text = "\n".join(names).encode()
    parts = [
        text,
        array.array("h", map(thousandths, uni)).tobytes(),
        array.array("h", map(thousandths, back_one)).tobytes(),
        array.array("I", two_start).tobytes(),
        array.array("H", [word for _, word in pairs]).tobytes(),
        array.array("h", [thousandths(two[p]) for p in pairs]).tobytes(),
        array.array("h", [thousandths(back_two[p]) for p in pairs]).tobytes(),
        array.array("I", three_start).tobytes(),
        array.array("H", [word for _, _, word in triples]).tobytes(),
        array.array("h", [thousandths(three[t]) for t in triples]).tobytes(),
    ]
    data = b"AULM1\n" + struct.pack("<4I", len(names), len(pairs), len(triples), len(text))
    data += b"".join(part + b"\0" * (-len(part) % 4) for part in parts)
    with open(path, "wb") as file:
        file.write(gzip.compress(data, 9, mtime=0))
    print(f"{len(names)} words, {len(pairs)} bigrams, {len(triples)} trigrams")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--text", default="work/text")
    options.add_argument("--out", default="../repository/reference-en/words.lm.gz")
    chosen = options.parse_args()
    names = ["<s>", "</s>", "<unk>"] + [line.split()[0] for line in open(f"{chosen.text}/words.txt")]
    index = {name: number for number, name in enumerate(names)}
    sentences = [[index[w] for w in line.split()] for line in open(f"{chosen.text}/train.txt")]
    write(chosen.out, names, *build(Counts(sentences), len(names)))


if __name__ == "__main__":
    main()
