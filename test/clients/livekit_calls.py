"""What LiveKit's agents do with a speech recogniser: frames in, events out."""

import asyncio
import os

import aiohttp
from livekit import rtc
from livekit.agents import stt
from livekit.plugins import deepgram, openai

from sound import samples

EDGE = os.environ["EDGE"]
TOKEN = os.environ["TOKEN"]
MODEL = "reference-en"


def frame(data, rate):
    return rtc.AudioFrame(data=data.tobytes(), sample_rate=rate, num_channels=1, samples_per_channel=len(data))


async def hear(recogniser, file, rate, words):
    """Kinds of events and the final words, until there are enough of them."""
    stream = recogniser.stream()
    kinds, finals = [], []

    async def read():
        async for event in stream:
            kinds.append(event.type.value)
            if event.type == stt.SpeechEventType.FINAL_TRANSCRIPT:
                finals.append(event.alternatives[0].text)
            if sum(len(text.split()) for text in finals) >= words:
                return

    reading = asyncio.create_task(read())
    sound = samples(file, rate)
    for at in range(0, len(sound), rate // 10):
        stream.push_frame(frame(sound[at : at + rate // 10], rate))
        # The plugins resample in another thread, which a burst would overrun.
        await asyncio.sleep(0.01)
    stream.flush()
    await asyncio.wait_for(reading, 20)
    await stream.aclose()
    return {"kinds": sorted(set(kinds)), "text": " ".join(finals)}


def through_deepgram(file, words):
    async def go():
        async with aiohttp.ClientSession() as session:
            recogniser = deepgram.STT(
                model=MODEL, api_key=TOKEN, base_url=f"{EDGE}/v1/listen", http_session=session, sample_rate=16000
            )
            return await hear(recogniser, file, 16000, words)

    return asyncio.run(go())


def through_openai(file, words):
    async def go():
        async with aiohttp.ClientSession() as session:
            recogniser = openai.STT(model=MODEL, api_key=TOKEN, base_url=f"{EDGE}/v1", use_realtime=True)
            # Outside of a worker of LiveKit's there is no session of its own to be had.
            recogniser._session = session
            return await hear(recogniser, file, 24000, words)

    return asyncio.run(go())


def at_once(file):
    async def go():
        recogniser = openai.STT(model=MODEL, api_key=TOKEN, base_url=f"{EDGE}/v1")
        return (await recogniser.recognize(frame(samples(file, 16000), 16000))).alternatives[0].text

    return asyncio.run(go())
