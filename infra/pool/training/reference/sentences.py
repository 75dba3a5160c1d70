"""Sentences to be spoken: read from Debian packages, cleaned, divided into train and test.

Nothing of the text is kept in the repository; this script makes it again from
wordnet-base, fortunes, fortunes-min and anarchism, and from grammar.py.

    python3 sentences.py --root / --out work/text

writes train.txt, test.txt (no sentence of one is in the other) and words.txt
(the vocabulary with counts, most frequent first).
"""

import argparse
import collections
import glob
import gzip
import html
import os
import random
import re

import grammar

VOCABULARY = 12000
SHORTEST, LONGEST = 3, 16  # words
PROSE = 30_000  # sentences of the one long book, lest its subject rule the vocabulary
HELD_OUT = 0.02  # share of the sentences that only the tests may see
CONTRACTIONS = re.compile(r"(?<=[a-z])'(?!(s|t|re|ve|ll|d|m)\b)|(?<![a-z])'")


def wordnet(root: str) -> list[str]:
    """The quoted examples of use; the definitions are fragments and read badly."""
    found = []
    for path in glob.glob(f"{root}/usr/share/wordnet/data.*"):
        with open(path, encoding="latin-1") as lines:
            for line in lines:
                found += re.findall(r'"([^"]+)"', line.partition(" | ")[2])
    return found


def fortunes(root: str) -> list[str]:
    found = []
    for path in glob.glob(f"{root}/usr/share/games/fortunes/*.u8"):
        with open(path, encoding="utf-8", errors="ignore") as file:
            for fortune in file.read().split("\n%\n"):
                found.append(re.sub(r"\n\s*--.*", "", fortune, flags=re.S).replace("\n", " "))
    return found


def prose(root: str) -> list[str]:
    found = []
    for path in glob.glob(f"{root}/usr/share/doc/anarchism/html/*.html*"):
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8", errors="ignore") as file:
            text = html.unescape(re.sub(r"<[^>]+>", " ", file.read()))
            found.append(re.sub(r"\s+", " ", text))
    return found


def clean(sentence: str) -> str | None:
    """Lower-case words with apostrophes only, or None where that would change what is said."""
    if any(w[0].isupper() and not re.match(r"I\b", w) for w in sentence.split()[1:]):
        return None  # names of people and places: every one would need a word of the vocabulary
    text = sentence.lower().replace("\u2019", "'").replace("--", " ").replace("-", " ")
    text = re.sub(r"\b\d{1,4}\b", lambda m: grammar.cardinal(int(m[0])), text)
    text = CONTRACTIONS.sub("", re.sub(r"[\"\u201c\u201d,;:()]", " ", text))
    text = " ".join(text.split()).strip(" .!?")
    if not re.fullmatch(r"[a-z' ]+", text):
        return None
    words = text.split()
    if not SHORTEST <= len(words) <= LONGEST or any(len(w) == 1 and w not in "aio" for w in words):
        return None
    if len(set(words)) < len(words) * 0.6:
        return None
    return text


def divide(texts: list[str]) -> set[str]:
    sentences = set()
    for text in texts:
        for piece in re.split(r"(?<=[.!?;:])\s+|\s[-–—]+\s|[()\[\]]", text):
            cleaned = clean(piece)
            if cleaned:
                sentences.add(cleaned)
            elif len(piece.split()) > LONGEST:  # long prose: take the clauses between commas
                sentences.update(c for c in map(clean, piece.split(",")) if c)
    return sentences


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--root", default="/")
    options.add_argument("--out", default="work/text")
    options.add_argument("--grammar", type=int, default=120_000)
    chosen = options.parse_args()
    os.makedirs(chosen.out, exist_ok=True)
    rng = random.Random(20)

    long = sorted(divide(prose(chosen.root)))
    found = divide(wordnet(chosen.root) + fortunes(chosen.root)) | set(rng.sample(long, min(PROSE, len(long))))
    spoken = {grammar.sentence(rng) for _ in range(chosen.grammar)}
    counts = collections.Counter(w for s in found for w in s.split())
    everyday = {w for s in spoken for w in s.split()}
    vocabulary = set(everyday)
    for word, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if len(vocabulary) >= VOCABULARY or count < 2:
            break
        vocabulary.add(word)

    kept = sorted(s for s in found | spoken if all(w in vocabulary for w in s.split()))
    rng.shuffle(kept)
    test = int(len(kept) * HELD_OUT)
    for name, part in (("test.txt", kept[:test]), ("train.txt", kept[test:])):
        with open(f"{chosen.out}/{name}", "w", encoding="ascii") as file:
            file.write("\n".join(part) + "\n")
    total = collections.Counter(w for s in kept[test:] for w in s.split())
    with open(f"{chosen.out}/words.txt", "w", encoding="ascii") as file:
        for word, count in sorted(total.items(), key=lambda pair: (-pair[1], pair[0])):
            file.write(f"{word} {count}\n")
    print(f"{len(found)} found, {len(spoken)} from the grammar, {len(kept)} kept, {len(total)} words")


if __name__ == "__main__":
    main()
