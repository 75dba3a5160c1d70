"""Speaks the test set: unseen sentences by unseen espeak-ng voices; English also by flite voices seen in training and
by one unseen.

    python3 testset.py --language en --text work/text --out work/test

For each set, in the language's folder, writes NAME.pcm (16-bit mono 16 kHz, utterances end to end) and NAME.json
([{text, voice, samples}]).
The seed is fixed, so the same packages give the same bytes.
"""

import argparse
import json
import os
import random

import voices
from languages import ALL, Language, language

SEED = 100
SENTENCES = 20


def espeak_set(rng: random.Random, sentences: list[str], settings: int, spoken: Language):
    espeak = voices.Espeak()
    for number in range(settings):
        # Every held-out variant in turn; accent, speed and pitch are drawn.
        setting = voices.espeak_setting(rng, [voices.HELD_OUT[number % len(voices.HELD_OUT)]], spoken.name)
        if not espeak.voice(*setting):
            raise SystemExit(f"espeak-ng has no voice {setting[0]}")
        for text in rng.sample(sentences, SENTENCES):
            yield text, " ".join(map(str, setting)), espeak.speak(spoken.reading(text))


def flite_set(rng: random.Random, sentences: list[str], settings: int, names: list[str]):
    flite = voices.Flite(names)
    for number in range(settings):
        name, stretch, pitch = voices.flite_setting(rng, [names[number % len(names)]])
        for text in rng.sample(sentences, SENTENCES):
            yield text, f"{name} {stretch:.2f} {pitch:.0f}", flite.speak(name, text, stretch, pitch)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--language", choices=ALL, default="en")
    options.add_argument("--text", default="work/text")
    options.add_argument("--out", default="work/test")
    chosen = options.parse_args()
    spoken = language(chosen.language)
    out = f"{chosen.out}/{spoken.name}"
    os.makedirs(out, exist_ok=True)
    sentences = open(f"{chosen.text}/{spoken.name}/test.txt", encoding="utf-8").read().splitlines()
    rng = random.Random(SEED)
    sets = {"espeak": espeak_set(rng, sentences, 100 if spoken.name == "en" else 36, spoken)}
    if spoken.name == "en":
        sets["flite"] = flite_set(rng, sentences, 20, voices.FLITE_TRAINED)
        sets["flite_heldout"] = flite_set(rng, sentences, 5, voices.FLITE_HELD_OUT)
    for name, spoken in sets.items():
        listed = []
        with open(f"{out}/{name}.pcm", "wb") as file:
            for text, voice, sound in spoken:
                file.write(sound.tobytes())
                listed.append({"text": text, "voice": voice, "samples": len(sound)})
        with open(f"{out}/{name}.json", "w", encoding="utf-8") as file:
            json.dump(listed, file, ensure_ascii=False)
        print(f"{name}: {len(listed)} utterances, {sum(u['samples'] for u in listed) / 16000 / 60:.0f} minutes")


if __name__ == "__main__":
    main()
