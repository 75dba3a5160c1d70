// The edge's own pump without cryptography: the caller's body is counted, watched, cut into segments and framed as
// records by the same code, and nothing is encrypted.
import { Hono } from 'hono';
import { realSurroundings } from '../../../../edge/clock.ts';
import { CallerBody } from '../../../../edge/short/body.ts';
import type { Sealer } from '../../../../shared/seal/records.ts';
import { sealStream } from '../../../../shared/seal/streams.ts';

/** A record as long as a sealed one: length, flag, header, and room for the tag. */
const frameOnly: Sealer = {
  async seal(plaintext, final) {
    const record = new Uint8Array(4 + 2 + plaintext.length + 16);
    new DataView(record.buffer).setUint32(0, 0x8000_0000 | (record.length - 4));
    record[4] = final ? 1 : 0;
    record.set(plaintext, 6);
    return record;
  },
};

const app = new Hono<{ Bindings: { UPSTREAM: string } }>();
app.post('/v1/audio/transcriptions', (c) => {
  const body = new CallerBody(c.req.raw.body, realSurroundings).open();
  return fetch(`${c.env.UPSTREAM}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream' },
    body: sealStream(undefined, body, frameOnly),
  });
});

export const worker = { fetch: app.fetch };
