import { createReadStream } from 'node:fs';
import { DeepgramClient } from '@deepgram/sdk';

const environment = { base: 'http://127.0.0.1:8787', production: 'ws://127.0.0.1:8787', agent: '', agentRest: '' };
const deepgram = new DeepgramClient({ accessToken: process.env.TOKEN, environment });
const socket = await deepgram.listen.v1.connect({ model: 'reference-en', encoding: 'linear16', sample_rate: 16_000 });
socket.on('message', ({ is_final, channel }) => is_final && console.log(channel.alternatives[0].transcript));
socket.connect();
await socket.waitForOpen();
const samples = createReadStream('test/clips/balance.wav', { start: 44, highWaterMark: 3_200 });
for await (const piece of samples) socket.sendMedia(piece);
socket.sendCloseStream({ type: 'CloseStream' });
