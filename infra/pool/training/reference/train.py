"""Trains the reference network on speech that is spoken while it trains.

    torchrun --nproc-per-node GPUS train.py --language en --text work/text --out work --minutes 25 [--resume FILE]

`--repository` takes the features of the shipped models, which all languages share, as they are. Each GPU has its own
speakers (processes running espeak-ng and flite), its own ring of sound and its own
batches; only gradients are shared. The learning rate follows the clock, not a count of steps.
"""

import argparse
import copy
import math
import os
import random
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

import augment
import shrink
from errors import error_rate, test_sets
from languages import ALL, language
from network import FLOOR, RATE, Network
from speakers import Speakers


def batch_from(pool: augment.Pool, frontend, size: int, rng: random.Random):
    """A batch of similar lengths, spoiled, as features."""
    first = pool.oldest
    drawn = sorted((rng.randrange(first, len(pool.spans)) for _ in range(size * 8)), key=lambda i: pool.spans[i][1])
    start = rng.randrange(8) * size
    places = drawn[start : start + size]
    tempo = torch.empty(size, 1).uniform_(0.9, 1.12)
    before = torch.randint(0, RATE // 2, (size, 1))
    sound, lengths = pool.draw(places, tempo, before, rng.randrange(0, RATE // 2))
    with torch.no_grad():
        features = augment.hide(frontend(augment.spoil(sound)))
    counts = (lengths - 400) // 160 + 1
    labels = [pool.spans[i][2] for i in places]
    return features, counts, labels


def loss_of(scores, halfway, counts, labels):
    """The loss at the top and, with a quarter of the weight, half-way up; lengths stay on the CPU."""
    flat = torch.tensor([letter for label in labels for letter in label], dtype=torch.int32).to(scores.device)
    sizes = torch.tensor([len(label) for label in labels]).repeat(2)
    frames = ((counts + 3) // 4).repeat(2)
    likely = torch.cat([scores, halfway]).float().log_softmax(-1).transpose(0, 1)
    losses = F.ctc_loss(likely, flat.repeat(2), frames, sizes, reduction="none", zero_infinity=True)
    top, half = (losses / sizes.to(losses.device)).chunk(2)
    return top.mean(), half.mean()


def save(network, path: str) -> None:
    """In 16 bits: what the shipped file holds anyway."""
    parameters = dict(network.named_parameters())
    state = {name: value.half() if name in parameters else value for name, value in network.state_dict().items()}
    torch.save(state, path + ".part")
    os.replace(path + ".part", path)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--language", choices=ALL, default="en")
    options.add_argument("--repository", help="take the features of this repository instead of measuring them")
    options.add_argument("--text", default="work/text")
    options.add_argument("--out", default="work")
    options.add_argument("--minutes", type=float, default=25)
    options.add_argument("--resume", help="a checkpoint to go on from")
    options.add_argument("--rate", type=float, default=2e-3)
    options.add_argument("--batch", type=int, default=192)
    options.add_argument("--hours", type=float, default=600)
    options.add_argument("--speakers", type=int, default=15)
    chosen = options.parse_args()
    began = time.time()
    rank, world = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    spoken = language(chosen.language)
    sentences, unseen, words = read_text(f"{chosen.text}/{spoken.name}")
    seed = int(began) % 10_000_000 + rank * 100
    # Before CUDA is touched, since the speakers are forks.
    speakers = Speakers(chosen.speakers, seed, spoken.name, sentences, words, flite=spoken.name == "en")

    cuda = torch.cuda.is_available()
    device = torch.device(f"cuda:{rank}" if cuda else "cpu")
    if cuda:
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("high")
    if world > 1:
        dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(17)
    network = Network(len(spoken.tokens), spoken.width, spoken.depth).to(device)
    if chosen.resume:
        network.load_state_dict(torch.load(chosen.resume, map_location=device, weights_only=True))
    if chosen.repository:
        network.load_state_dict(shipped_features(chosen.repository), strict=False)
    torch.manual_seed(1000 + rank)
    average = copy.deepcopy(network).eval()
    frontend = network.frontend
    pool = augment.Pool(chosen.hours, device)
    tests = test_sets(unseen, spoken) if rank == 0 else {}
    decayed = [p for p in network.parameters() if p.dim() > 1]
    others = [p for p in network.parameters() if p.dim() <= 1]
    optimiser = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.02}, {"params": others, "weight_decay": 0.0}],
        lr=chosen.rate,
        betas=(0.9, 0.98),
        fused=cuda,
    )
    parameters = decayed + others
    while len(pool.spans) < 8 * chosen.batch:
        speakers.collect(pool, 100)
        time.sleep(0.2)
    if not (chosen.resume or chosen.repository) and rank == 0:
        measure_features(pool, frontend)
    if world > 1:
        for value in (frontend.mean, frontend.scale):
            dist.broadcast(value, 0)
    if cuda:  # the blocks are one piece of code: compiled once, run for all
        torch._dynamo.config.suppress_errors = True
        for block in network.blocks:
            block.compile()
    rng = random.Random(50 + rank)
    training, length, step, shown = time.time(), chosen.minutes * 60, 0, time.time()
    while True:
        progress = (time.time() - training) / length
        if world > 1 and step % 10 == 0:  # all must stop at the same step
            done = torch.tensor(progress, device=device)
            dist.broadcast(done, 0)
            progress = done.item()
        if progress >= 1 and (world == 1 or step % 10 == 0):
            break
        progress = min(progress, 1)
        if pool.hours() < 40 or step % 3 == 0:
            speakers.collect(pool, 1)
        for group in optimiser.param_groups:
            group["lr"] = chosen.rate * min(1, (step + 1) / 500) * (0.5 + 0.5 * math.cos(math.pi * progress)) + 1e-6
        features, counts, labels = batch_from(pool, frontend, chosen.batch, rng)
        with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
            scores, _, halfway = network(features, counts.to(device, non_blocking=True))
        loss, half = loss_of(scores, halfway, counts, labels)
        (0.75 * loss + 0.25 * half).backward()
        if world > 1:
            flat = torch.cat([p.grad.flatten() for p in parameters])
            dist.all_reduce(flat, op=dist.ReduceOp.AVG)
            for p, piece in zip(parameters, flat.split([p.numel() for p in parameters])):
                p.grad.copy_(piece.view_as(p))
        torch.nn.utils.clip_grad_norm_(parameters, 3.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=False)
        step += 1
        with torch.no_grad():
            keep = min(0.9995, step / (step + 20))
            torch._foreach_lerp_(list(average.parameters()), list(network.parameters()), 1 - keep)
        if rank == 0 and time.time() - shown > 40:
            shown = time.time()
            average.frontend.load_state_dict(frontend.state_dict())
            wers = {name: round(error_rate(average, part, spoken, device), 4) for name, part in tests.items()}
            print(
                f"{shown - began:.0f} s step {step} loss {loss.item():.3f} pool {pool.hours():.0f} h {wers}", flush=True
            )
            save(average, f"{chosen.out}/{spoken.name}.pt")
    if rank == 0:
        average.frontend.load_state_dict(frontend.state_dict())
        wers = {name: round(error_rate(average, part, spoken, device), 4) for name, part in tests.items()}
        print(f"end: step {step} pool {pool.hours():.0f} h {wers}", flush=True)
        save(average, f"{chosen.out}/{spoken.name}.pt")
    for process in speakers.all:
        process.kill()
    os._exit(0)


def read_text(folder: str) -> tuple[list[str], list[str], list[str]]:
    """Sentences for training, unseen ones, and words."""
    train, test, words = (open(f"{folder}/{name}.txt", encoding="utf-8") for name in ("train", "test", "words"))
    # A word and its count on each line; a word of Spanish rules may be a phrase.
    return train.read().splitlines(), test.read().splitlines(), [line.rsplit(" ", 1)[0] for line in words]


def shipped_features(repository: str) -> dict[str, torch.Tensor]:
    """Mean and scale of the shipped features."""
    held = shrink.recover(f"{repository}/vad_preprocess/1/model.onnx")
    return {name: held[name] for name in ("frontend.mean", "frontend.scale")}


@torch.no_grad()
def measure_features(pool: augment.Pool, frontend) -> None:
    """Sets the fixed normalisation from spoiled speech, once."""
    rng = random.Random(3)
    places = [rng.randrange(len(pool.spans)) for _ in range(200)]
    ones = torch.ones(200, 1)
    sound, _ = pool.draw(places, ones, torch.zeros_like(ones).long(), 0)
    sound = augment.spoil(sound)
    mels = torch.log(frontend.power(sound) @ frontend.filters + FLOOR).flatten(0, 1)
    mels = mels[mels.mean(1) > -13]
    frontend.mean.copy_(mels.mean(0))
    frontend.scale.copy_(1 / mels.std(0))


if __name__ == "__main__":
    main()
