"""Which letters of a word its phones belong to: every letter says nothing, one phone or two.

    python3 alignment.py --text work/text --out work/text/alignment.json

learns from flite's own pronunciations how likely a letter stands for which phones (expectation and maximisation over all
ways to divide a word), so that a network that reads letters can be told phone by phone what each of them says.
"""

import argparse
import collections
import json
import math

import teacher

MOST = 2  # phones of one letter
UNSEEN = 1e-7


def bare(phone: str) -> str:
    return phone.rstrip("01")


class Alignment:
    def __init__(self, table: dict[str, float]) -> None:
        self.table = table
        self.known: dict[tuple, list[list[str]] | None] = {}

    def align(self, word: str, phones: list[str]) -> list[list[str]] | None:
        """The likeliest division; None when there are too many phones for the letters."""
        key = (word, tuple(phones))
        if key not in self.known:
            self.known[key] = best(word, phones, lambda letter, said: self.table.get(f"{letter}:{said}", UNSEEN))
        return self.known[key]


def best(word: str, phones: list[str], chance) -> list[list[str]] | None:
    says = [bare(p) for p in phones]
    rows: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
    for letter in word:
        row: dict[int, tuple[float, int]] = {}
        for at, (score, _) in rows[-1].items():
            for many in range(min(MOST, len(says) - at) + 1):
                found = score + math.log(chance(letter, " ".join(says[at : at + many])))
                if at + many not in row or found > row[at + many][0]:
                    row[at + many] = (found, many)
        rows.append(row)
    if len(says) not in rows[-1]:
        return None
    at, division = len(says), []
    for row in reversed(rows[1:]):
        many = row[at][1]
        division.append(phones[at - many : at])
        at -= many
    return division[::-1]


def expect(pairs: list[tuple[str, tuple[str, ...]]], table: dict[str, float]) -> dict[str, float]:
    """One round: how often each letter stands for what, over all divisions weighed by their likelihood."""
    counts: collections.Counter[str] = collections.Counter()
    for word, says in pairs:
        ahead = [[0.0] * (len(says) + 1) for _ in range(len(word) + 1)]
        ahead[0][0] = 1
        arcs = []
        for i, letter in enumerate(word):
            for at in range(len(says) + 1):
                if not ahead[i][at]:
                    continue
                for many in range(min(MOST, len(says) - at) + 1):
                    key = f"{letter}:{' '.join(says[at : at + many])}"
                    weight = table.get(key, UNSEEN) if table else (0.2, 0.7, 0.1)[many]
                    ahead[i + 1][at + many] += ahead[i][at] * weight
                    arcs.append((i, at, many, key, weight))
        total = ahead[-1][-1]
        if total <= 0:
            continue
        behind = [[0.0] * (len(says) + 1) for _ in range(len(word) + 1)]
        behind[-1][-1] = 1
        for i, at, many, key, weight in reversed(arcs):
            share = weight * behind[i + 1][at + many]
            behind[i][at] += share
            counts[key] += ahead[i][at] * share / total
    sums: collections.Counter[str] = collections.Counter()
    for key, count in counts.items():
        sums[key[0]] += count
    return {key: count / sums[key[0]] for key, count in counts.items() if count > 0.05}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--text", default="work/text")
    options.add_argument("--out", default="work/text/alignment.json")
    chosen = options.parse_args()
    words = [line.split()[0] for line in open(f"{chosen.text}/words.txt")]
    words += open(f"{chosen.text}/more.txt").read().split()[::5]
    speaker, pairs = teacher.Teacher("slt"), set()
    for start in range(0, len(words), 12):
        said, phones = speaker.pronounce(" ".join(words[start : start + 12]))
        for number, word in enumerate(said):
            pairs.add((word, tuple(bare(p.name) for p in phones if p.word == number)))
    table: dict[str, float] = {}
    for _ in range(6):
        table = expect(sorted(pairs), table)
    with open(chosen.out, "w", encoding="ascii") as file:
        json.dump({key: round(value, 8) for key, value in sorted(table.items())}, file)
    found = Alignment(table)
    print(f"{len(pairs)} words, {len(table)} ways to say a letter")
    for word in ("quick", "through", "extra", "one", "university", "doesnt"):
        print(word, found.align(word, [p.name for p in speaker.pronounce(word)[1] if p.word == 0]))


if __name__ == "__main__":
    main()
