"""The whole voice as one graph: numbers of symbols to samples."""

import torch
from torch import Tensor, nn

from lessons import PHONES, SLOTS, VOICES
from network import Network, places_of
from texts import SYMBOLS
from vocoder import CEPSTRA, RATE, Vocoder

LONGEST = 40 * RATE // 80  # frames of one text; what lasts longer is cut


class Speech(nn.Module):
    """One text at a time: TEXT [1, L], VOICE, RATE, PITCH [1, 1] to AUDIO [1, N]. There are no batches: texts differ in length."""

    def __init__(self, network: Network, vocoder: Vocoder) -> None:
        super().__init__()
        self.network, self.vocoder = network, vocoder

    def forward(self, text: Tensor, voice: Tensor, rate: Tensor, factor: Tensor) -> Tensor:
        network = self.network
        thought, scores = network.read(text[:1].long())
        phones = scores[0].argmax(-1)
        which = phones.nonzero()[:, 0]  # the slots that say something
        speaker = voice[0].long()
        planned, lengths = network.plan(thought[:, which], phones[which][None], speaker)
        lasting = (lengths[0].clamp(max=5.5).exp() / rate[0]).clamp(min=1)
        ends = torch.round(lasting.cumsum(0)).clamp(max=LONGEST)
        starts = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
        at = torch.arange(ends[-1].long()).float()
        owner = (at[:, None] >= ends[None, :]).sum(1)
        length = (ends - starts).clamp(min=1)[owner]
        places = places_of(at - starts[owner], length)
        frames = network.speak(planned[:, owner], places[None], speaker)[0]
        frames = frames * network.scale + network.mean
        pitch = frames[:, CEPSTRA].clamp(4, 6.3).exp() * factor[0]  # 55 to 545 Hz at its natural pitch
        voiced = (frames[:, CEPSTRA + 1] > 0).float()
        strengths = frames[:, CEPSTRA + 2 :].clamp(0, 1)
        return self.vocoder(pitch, voiced, frames[:, :CEPSTRA], strengths).clamp(-1, 1)[None]


def load(path: str, filters: Tensor) -> Speech:
    network = Network(len(SYMBOLS), len(PHONES), SLOTS, len(VOICES))
    network.load_state_dict({name: value.float() for name, value in torch.load(path, map_location="cpu", weights_only=True).items()})
    return Speech(network, Vocoder(filters)).eval()


def numbers(text: str) -> Tensor:
    return torch.tensor([[SYMBOLS.index(c) for c in text]], dtype=torch.int32)
