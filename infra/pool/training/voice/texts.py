"""What the teacher is asked to say: sentences of ../reference/sentences.py, and words of a dictionary without any sense.

    python3 texts.py --text work/text

writes more.txt, the single words of WordNet (Debian's wordnet-base), beside the sentences.
"""

import argparse
import random
import re

SYMBOLS = " abcdefghijklmnopqrstuvwxyz',.?"
LETTERS = "bee see dee ee eff gee aitch eye jay kay el em en oh pee cue are ess tee you vee double ex why zee".split()


def draw(rng: random.Random, sentences: list[str], words: list[str], more: list[str]) -> str:
    """Something to say; punctuation as people write it, and sometimes where nobody would."""
    kind = rng.random()
    if kind < 0.3:
        text = rng.choice(sentences)
    elif kind < 0.45:
        text = rng.choice(sentences) + rng.choice([", ", ". ", "? ", " "]) + rng.choice(sentences)
    elif kind < 0.75:
        pool = more if rng.random() < 0.7 else words + LETTERS
        text = " ".join(rng.choice(pool) for _ in range(rng.randint(1, 9)))
    else:
        parts = rng.choice(sentences).split()
        for _ in range(rng.randint(1, 3)):
            parts[rng.randrange(len(parts))] = rng.choice(more)
        text = " ".join(parts)
    parts = text.split(" ")
    if len(parts) > 3 and rng.random() < 0.35:
        place = rng.randrange(len(parts) - 1)
        if parts[place][-1].isalpha():
            parts[place] += rng.choice([",", ",", ",", ".", "?"])
    return " ".join(parts) + rng.choice([".", ".", ".", "?"])


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--root", default="/")
    options.add_argument("--text", default="work/text")
    chosen = options.parse_args()
    found = set()
    for part in ("noun", "verb", "adj", "adv"):
        with open(f"{chosen.root}/usr/share/wordnet/index.{part}", encoding="latin-1") as lines:
            for line in lines:
                word = line.split(" ")[0]
                if re.fullmatch(r"[a-z]{3,14}", word) and re.search("[aeiouy]", word):
                    found.add(word)
    with open(f"{chosen.text}/more.txt", "w", encoding="ascii") as file:
        file.write("\n".join(sorted(found)) + "\n")
    print(f"{len(found)} words")


if __name__ == "__main__":
    main()
