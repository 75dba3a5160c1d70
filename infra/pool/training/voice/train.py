"""Teaches the network while the teacher speaks.

    python3 train.py --text work/text --out work --minutes 8 [--resume work/network.pt]

The learning rate follows the clock, not a count of steps.
"""

import argparse
import copy
import math
import os
import queue
import random
import time

import torch
import torch.nn.functional as F

from lessons import PHONES, SLOTS, VOICES, Lessons
from network import Network, places_of
from texts import SYMBOLS
from vocoder import CEPSTRA, sharpened


class Pool:
    """All lessons so far, end to end, on the GPU."""

    def __init__(self, device: torch.device, hours: float) -> None:
        self.device = device
        frames = int(hours * 720_000)
        self.frames = torch.zeros(frames, CEPSTRA + 6, dtype=torch.float16, device=device)
        self.letters = torch.zeros(frames // 8, dtype=torch.uint8, device=device)
        self.slots = torch.zeros(frames // 8 * SLOTS, dtype=torch.uint8, device=device)
        self.durations = torch.zeros(frames // 4, dtype=torch.int16, device=device)
        self.spans: list[tuple[int, ...]] = []  # where letters, durations and frames begin, how many, voice
        self.at = [0, 0, 0]

    def add(self, pack) -> None:
        sizes = [len(l.letters) for l in pack], [len(l.durations) for l in pack], [len(l.frames) for l in pack]
        totals = [sum(s) for s in sizes]
        rooms = (len(self.letters), len(self.durations), len(self.frames))
        if any(a + t > r for a, t, r in zip(self.at, totals, rooms)):
            return
        joined = lambda name: torch.cat([torch.from_numpy(getattr(l, name)) for l in pack]).to(self.device)
        a, d, f = self.at
        self.letters[a : a + totals[0]] = joined("letters").to(torch.uint8)
        self.slots[a * SLOTS : (a + totals[0]) * SLOTS] = joined("slots").to(torch.uint8)
        self.durations[d : d + totals[1]] = joined("durations").to(torch.int16)
        frames = joined("frames").float()
        frames[:, 1 : CEPSTRA + 1] = sharpened(frames[:, 1 : CEPSTRA + 1])
        self.frames[f : f + totals[2]] = frames.half()
        for lesson, letters, durations, long in zip(pack, *sizes):
            self.spans.append((a, d, f, letters, durations, long, lesson.voice))
            a, d, f = a + letters, d + durations, f + long
        self.at = [a, d, f]

    def hours(self) -> float:
        return self.at[2] / 720_000

    def batch(self, chosen: list[tuple[int, ...]]) -> dict[str, torch.Tensor]:
        table = torch.tensor(chosen, device=self.device)
        a, d, f, letters, durations, long, voice = table.T
        most = [max(span[i] for span in chosen) for i in (3, 4, 5)]
        grid = lambda size: torch.arange(size, device=self.device)[None]
        heard, spoken, lasting = grid(most[0]), grid(most[1]), grid(most[2])
        inside, slot_grid = heard < letters[:, None], grid(most[0] * SLOTS)
        taken = lambda source, start, steps, mask: source[((start[:, None] + steps) * mask).long()]
        text = taken(self.letters, a, heard, inside).long().masked_fill(~inside, len(SYMBOLS))
        inside_slots = slot_grid < letters[:, None] * SLOTS
        slots = taken(self.slots, a * SLOTS, slot_grid, inside_slots).long().masked_fill(~inside_slots, 0)
        said = spoken < durations[:, None]
        lengths = taken(self.durations, d, spoken, said).long() * said
        # The k-th slot that says something, for every k.
        says = slots > 0
        which = torch.zeros(len(chosen), most[1] + 1, dtype=torch.long, device=self.device)
        order = torch.where(says, says.long().cumsum(1) - 1, most[1]).clamp(max=most[1])
        which.scatter_(1, order, slot_grid.expand_as(slots))
        which = which[:, :-1] * said
        ends = lengths.cumsum(1)
        owner = torch.searchsorted(ends, lasting.expand(len(chosen), -1).contiguous(), right=True)
        owner = owner.clamp(max=most[1] - 1)
        long_of = lengths.gather(1, owner).clamp(min=1)
        at = (lasting - (ends.gather(1, owner) - long_of)).clamp(min=0)
        alive = lasting < long[:, None]
        frames = taken(self.frames, f, lasting, alive).float()
        return {
            "text": text, "inside": inside, "slots": slots, "inside_slots": inside_slots, "which": which, "said": said,
            "lengths": lengths, "owner": owner, "places": places_of(at.float(), long_of.float()), "alive": alive,
            "frames": frames, "voice": voice,
        }  # fmt: skip


def split_frames(frames: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Frames of the teacher as the network gives them, and where they are voiced."""
    voiced = frames[..., 0] > 0
    pitch = frames[..., :1].clamp(min=50).log()
    return torch.cat([frames[..., 1 : CEPSTRA + 1], pitch, voiced[..., None].float(), frames[..., CEPSTRA + 1 :]], -1), voiced


def measure(network: Network, pool: Pool) -> None:
    """Sets mean and scale from what was heard so far, once."""
    frames = pool.frames[: min(pool.at[2], 2_000_000)].float()
    wanted, voiced = split_frames(frames)
    network.mean.copy_(wanted.mean(0))
    network.scale.copy_(wanted.std(0))
    pitch = wanted[voiced, CEPSTRA]
    network.mean[CEPSTRA], network.scale[CEPSTRA] = pitch.mean(), pitch.std()
    network.mean[CEPSTRA + 1], network.scale[CEPSTRA + 1] = 0, 1


def mean_of(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    mask = mask.float()
    return (values * mask).sum() / mask.sum().clamp(min=1)


def losses_of(network: Network, lesson: dict[str, torch.Tensor], half: bool) -> dict[str, torch.Tensor]:
    with torch.autocast("cuda", torch.bfloat16, enabled=half):
        inside, said, alive = (lesson[name][..., None].float() for name in ("inside", "said", "alive"))
        thought, scores = network.read(lesson["text"], inside)
        which = lesson["which"][..., None]
        phones = lesson["slots"].gather(1, lesson["which"])
        planned, lengths = network.plan(thought.gather(1, which.expand(-1, -1, thought.shape[2])), phones, lesson["voice"], said)
        repeated = planned.gather(1, lesson["owner"][..., None].expand(-1, -1, planned.shape[2]))
        given = network.speak(repeated, lesson["places"], lesson["voice"], alive).float()
    wanted, voiced = split_frames(lesson["frames"])
    off = (given - (wanted - network.mean) / network.scale).abs()
    # A coefficient counts by how much it moves, half of it.
    weight = 0.5 + 0.5 * network.scale[:CEPSTRA] / network.scale[:CEPSTRA].mean()
    right = scores.float().argmax(-1) == lesson["slots"]
    return {
        "phones": F.cross_entropy(scores.float().transpose(1, 2), lesson["slots"], reduction="none")[lesson["inside_slots"]].mean(),
        "lengths": mean_of((lengths.float() - lesson["lengths"].clamp(min=1).float().log()).abs(), lesson["said"]),
        "cepstra": mean_of((off[..., :CEPSTRA] * weight).mean(-1), lesson["alive"]),
        "pitch": mean_of(off[..., CEPSTRA], lesson["alive"] & voiced),
        "voiced": mean_of(
            F.binary_cross_entropy_with_logits(given[..., CEPSTRA + 1], voiced.float(), reduction="none"), lesson["alive"]
        ),
        "strengths": mean_of(off[..., CEPSTRA + 2 :].mean(-1), lesson["alive"] & voiced),
        "wrong": mean_of((~right).float(), lesson["inside_slots"]).detach(),
    }  # fmt: skip


WEIGHTS = {"phones": 1.0, "lengths": 1.0, "cepstra": 1.0, "pitch": 0.3, "voiced": 0.5, "strengths": 0.3, "wrong": 0.0}


def batch_of(pool: Pool, spans: list, size: int, rng: random.Random) -> dict[str, torch.Tensor]:
    drawn = sorted((rng.choice(spans) for _ in range(size * 6)), key=lambda span: span[5])
    start = rng.randrange(6) * size
    return pool.batch(drawn[start : start + size])


def save(network: Network, path: str) -> None:
    torch.save({name: value.half() if value.dim() > 1 else value for name, value in network.state_dict().items()}, path + ".part")
    os.replace(path + ".part", path)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--text", default="work/text")
    options.add_argument("--out", default="work")
    options.add_argument("--minutes", type=float, default=8)
    options.add_argument("--resume", help="a checkpoint to go on from")
    options.add_argument("--rate", type=float, default=1.5e-3)
    options.add_argument("--batch", type=int, default=96)
    options.add_argument("--hours", type=float, default=120)
    options.add_argument("--begin", type=float, default=1.0, help="hours heard before the first step")
    options.add_argument("--speakers", type=int, default=15)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    lessons = Lessons(chosen.speakers, chosen.seed * 1000, chosen.text)  # before CUDA is touched
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(chosen.seed)
    network = Network(len(SYMBOLS), len(PHONES), SLOTS, len(VOICES)).to(device)
    print(sum(p.numel() for p in network.parameters()), "parameters", flush=True)
    pool = Pool(device, chosen.hours)
    began = time.time()
    while pool.hours() < chosen.begin:
        pool.add(lessons.out.get())
    print(f"{time.time() - began:.0f} s until {pool.hours():.2f} hours were heard", flush=True)
    if chosen.resume:
        network.load_state_dict(torch.load(chosen.resume, map_location=device, weights_only=True))
    else:
        measure(network, pool)
    average = copy.deepcopy(network).eval()
    unheard, first = pool.spans[:192], 192  # these are for looking only
    optimiser = torch.optim.AdamW(network.parameters(), lr=chosen.rate, betas=(0.9, 0.98), weight_decay=0.01, fused=cuda)
    rng = random.Random(chosen.seed)
    start, length, step, shown = time.time(), chosen.minutes * 60, 0, time.time()
    while (progress := (time.time() - start) / length) < 1:
        for _ in range(4):
            try:
                pool.add(lessons.out.get_nowait())
            except queue.Empty:
                break
        if step % 50 == 0:
            heard = pool.spans[first:]
        for group in optimiser.param_groups:
            group["lr"] = chosen.rate * min(1, (step + 1) / 300) * (0.5 + 0.5 * math.cos(math.pi * progress)) + 1e-6
        losses = losses_of(network, batch_of(pool, heard, chosen.batch, rng), cuda)
        sum(WEIGHTS[name] * loss for name, loss in losses.items()).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        step += 1
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(network.parameters()), 1 - min(0.999, step / (step + 20)))
        if time.time() - shown > 20:
            shown = time.time()
            with torch.no_grad():
                found = losses_of(average, pool.batch(unheard), cuda)
            told = " ".join(f"{name} {losses[name].item():.4f}/{found[name].item():.4f}" for name in losses)
            print(f"{shown - start:.0f} s step {step} {pool.hours():.1f} h {told}", flush=True)
            save(average, f"{chosen.out}/network.pt")
    save(average, f"{chosen.out}/network.pt")
    for process in lessons.all:
        process.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
