"""Processes in which the teacher speaks for as long as the training runs, and what is learned from one utterance."""

import json
import multiprocessing
import os
import random
from dataclasses import dataclass

import numpy as np

import teacher
from alignment import Alignment
from texts import SYMBOLS, draw

VOICES = ["slt", "awb"]
VOWELS = "aa ae ah ao aw ax ay eh er ey ih iy ow oy uh uw".split()
OTHERS = "b ch d dh f g hh jh k l m n ng p r s sh t th v w y z zh".split()
PHONES = ["", teacher.PAUSE, *(v + stress for v in VOWELS for stress in "01"), *OTHERS]  # "": nothing is said
NUMBER = {phone: number for number, phone in enumerate(PHONES)}
SLOTS = 2  # phones that a letter may stand for
EDGE = 8  # frames of silence kept at both ends
LONGEST = 2400  # frames: 12 s
PACK = 16


@dataclass
class Lesson:
    voice: int
    letters: np.ndarray  # [L], numbers of SYMBOLS
    slots: np.ndarray  # [L * SLOTS], numbers of PHONES
    durations: np.ndarray  # frames of every slot that says something
    frames: np.ndarray  # [T, 31], 16 bits


def spread(text: str, said: teacher.Said, alignment: Alignment) -> list[list[tuple[str, int]]] | None:
    """For every symbol what is said for it, and for how many frames. None when words and letters do not agree."""
    words, starts = text.split(), [i for i in range(len(text)) if text[i] != " " and (i == 0 or text[i - 1] == " ")]
    groups: list[list[list[teacher.Phone]]] = [[]]  # phones before each word, and of it
    plan: list[list[tuple[str, int]]] = [[] for _ in text]
    spoken = [word.replace("'", "") for word in said.words]
    at, owner = 0, []
    for number, word in enumerate(words):
        rest = "".join(c for c in word if c.isalpha())
        while rest:
            if at == len(spoken) or not spoken[at] or not rest.startswith(spoken[at]):
                return None
            rest = rest[len(spoken[at]) :]
            owner.append(number)
            at += 1
    if at != len(spoken):
        return None
    groups = [[] for _ in words]
    before = 0  # the symbol that a pause belongs to
    for phone in said.phones:
        if phone.word < 0:
            plan[before].append((phone.name, phone.frames))
            continue
        number = owner[phone.word]
        groups[number].append(phone)
        before = starts[number] + len(words[number].rstrip(",.?"))
    for number, word in enumerate(words):
        body = word.rstrip(",.?").replace("'", "")
        division = alignment.align(body, [p.name for p in groups[number]])
        if division is None:
            return None
        places = [starts[number] + i for i, c in enumerate(word) if c.isalpha()]
        phones = iter(groups[number])
        for place, names in zip(places, division):
            plan[place] = [(phone.name, phone.frames) for phone in (next(phones) for _ in names)]
    return plan if all(len(said) <= SLOTS for said in plan) else None


def lesson_of(voice: int, text: str, said: teacher.Said, alignment: Alignment) -> Lesson | None:
    plan = spread(text, said, alignment)
    first, last = said.phones[0], said.phones[-1]
    if plan is None or first.name != teacher.PAUSE or last.name != teacher.PAUSE:
        return None
    cut_first, cut_last = max(0, first.frames - EDGE), max(0, last.frames - EDGE)
    slots, durations = np.zeros(len(text) * SLOTS, np.int64), []
    for place, phones in enumerate(plan):
        for number, (name, frames) in enumerate(phones):
            slots[place * SLOTS + number] = NUMBER[name]
            durations.append(frames)
    durations[0] -= cut_first
    durations[-1] -= cut_last
    frames = said.frames[cut_first : len(said.frames) - cut_last]
    if sum(durations) != len(frames) or min(durations) < 1 or len(frames) > LONGEST:
        return None
    letters = np.array([SYMBOLS.index(c) for c in text])
    return Lesson(voice, letters, slots, np.array(durations), frames.astype(np.float16))


def teach_forever(out: multiprocessing.Queue, text: str, seed: int) -> None:
    os.nice(5)
    rng = random.Random(seed)
    sentences = open(f"{text}/train.txt").read().splitlines()
    words = [line.split()[0] for line in open(f"{text}/words.txt")]
    more = open(f"{text}/more.txt").read().split()
    alignment = Alignment(json.load(open(f"{text}/alignment.json")))
    teachers = [teacher.Teacher(name) for name in VOICES]
    while True:
        pack = []
        while len(pack) < PACK:
            voice = rng.randrange(len(VOICES))
            said = " " + draw(rng, sentences, words, more)
            lesson = lesson_of(voice, said, teachers[voice].say(said), alignment)
            if lesson:
                pack.append(lesson)
        out.put(pack)


class Lessons:
    def __init__(self, count: int, seed: int, text: str) -> None:
        self.out = multiprocessing.Queue(4000)
        self.all = [
            multiprocessing.Process(target=teach_forever, args=(self.out, text, seed + number), daemon=True)
            for number in range(count)
        ]
        for process in self.all:
            process.start()
