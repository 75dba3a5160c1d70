import { readFileSync } from 'node:fs';
import net from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';

// The client dials TLS whatever the address, and the local stack has none; elsewhere leave the options out.
const options = { createConnection: () => net.connect(8787, '127.0.0.1') };
const client = new OpenAI({ apiKey: process.env.TOKEN, baseURL: 'http://127.0.0.1:8787/v1' });
const socket = new OpenAIRealtimeWS({ intent: 'transcription', options }, client);
const transcription = { model: 'reference-en' };
const input = { format: { type: 'audio/pcm', rate: 16_000 }, transcription, turn_detection: null };
const audio = readFileSync('test/clips/balance.wav').subarray(44).toString('base64');
socket.on('conversation.item.input_audio_transcription.delta', ({ delta }) => process.stdout.write(delta));
socket.on('conversation.item.input_audio_transcription.completed', () => socket.close());
await socket.emitted('session.created');
socket.send({ type: 'session.update', session: { type: 'transcription', audio: { input } } });
socket.send({ type: 'input_audio_buffer.append', audio });
socket.send({ type: 'input_audio_buffer.commit' });
