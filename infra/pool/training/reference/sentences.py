"""Sentences to be spoken: read from Debian packages, cleaned, divided into train and test.

Nothing of the text is kept in the repository; this script makes it again: English from wordnet-base, fortunes,
fortunes-min, anarchism and grammar.py, Spanish from fortunes-es and languages/es.txt, Mandarin and Cantonese from
their rules in languages/ alone.

    python3 sentences.py --language en --root / --out work/text

writes train.txt, test.txt (no sentence of one is in the other) and words.txt (the vocabulary with counts, most
frequent first) into the language's folder.
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
from languages import ALL, LETTERS, Language, language
from rules import Grammar

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


def refranes(root: str) -> list[str]:
    """Fortunes in Spanish: proverbs, quotations, jokes."""
    found = []
    for path in sorted(glob.glob(f"{root}/usr/share/games/fortunes/es/*.fortunes")):
        with open(path, encoding="utf-8", errors="ignore") as file:
            for fortune in file.read().split("\n%\n"):
                found.append(re.sub(r"\n\s*--.*", "", fortune, flags=re.S).replace("\n", " "))
    return found


def clean_spanish(sentence: str) -> str | None:
    if any(w[0].isupper() for w in sentence.split()[1:]):
        return None
    text = " ".join(re.sub(r"[\"\u201c\u201d«»,;:()¡!¿?.]", " ", sentence.lower()).split())
    if not re.fullmatch(f"[{LETTERS['es']} ]+", text):
        return None
    words = text.split()
    if not SHORTEST <= len(words) <= LONGEST or any(len(w) == 1 and w not in "aeouy" for w in words):
        return None
    return text if len(set(words)) >= len(words) * 0.6 else None


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


def divide(texts: list[str], clean=clean) -> set[str]:
    sentences = set()
    for text in texts:
        for piece in re.split(r"(?<=[.!?;:])\s+|\s[-–—]+\s|[()\[\]]", text):
            cleaned = clean(piece)
            if cleaned:
                sentences.add(cleaned)
            elif len(piece.split()) > LONGEST:  # long prose: take the clauses between commas
                sentences.update(c for c in map(clean, piece.split(",")) if c)
    return sentences


def read(name: str, root: str, rng: random.Random) -> set[str]:
    """Sentences of Debian packages."""
    if name == "es":
        return divide(refranes(root), clean_spanish)
    if name != "en":
        return set()
    long = sorted(divide(prose(root)))
    return divide(wordnet(root) + fortunes(root)) | set(rng.sample(long, min(PROSE, len(long))))


def known(found: set[str], spoken: set[str]) -> list[str]:
    """The sentences whose words are all among the vocabulary: every word of the grammar, frequent ones of the rest."""
    counts = collections.Counter(w for s in found for w in s.split())
    vocabulary = {w for s in spoken for w in s.split()}
    for word, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if len(vocabulary) >= VOCABULARY or count < 2:
            break
        vocabulary.add(word)
    return sorted(s for s in found | spoken if all(w in vocabulary for w in s.split()))


def words_of(spoken: Language, sentences: list[str]) -> collections.Counter:
    """Words to be spoken out of context."""
    if spoken.spaced:
        return collections.Counter(w for s in sentences for w in s.split())
    return collections.Counter(Grammar(spoken.name).words())


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--language", choices=ALL, default="en")
    options.add_argument("--root", default="/")
    options.add_argument("--out", default="work/text")
    options.add_argument("--grammar", type=int, default=120_000)
    chosen = options.parse_args()
    spoken = language(chosen.language)
    out = f"{chosen.out}/{spoken.name}"
    os.makedirs(out, exist_ok=True)
    rng = random.Random(20)

    found = read(spoken.name, chosen.root, rng)
    sentence = grammar.sentence if spoken.name == "en" else Grammar(spoken.name).sentence
    made = {sentence(rng) for _ in range(chosen.grammar)}
    kept = known(found, made)
    rng.shuffle(kept)
    test = int(len(kept) * HELD_OUT)
    total = words_of(spoken, kept[test:])
    counted = [f"{word} {count}" for word, count in sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))]
    for name, lines in (("test.txt", kept[:test]), ("train.txt", kept[test:]), ("words.txt", counted)):
        with open(f"{out}/{name}", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    print(f"{len(found)} found, {len(made)} from the grammar, {len(kept)} kept, {len(total)} words")


if __name__ == "__main__":
    main()
