// A bare proxy: hono, one fetch, the body passed through by the runtime without being looked at.
import { Hono } from 'hono';

const app = new Hono<{ Bindings: { UPSTREAM: string } }>();
app.post('/v1/audio/transcriptions', (c) =>
  fetch(`${c.env.UPSTREAM}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { 'content-type': c.req.header('content-type') ?? 'application/octet-stream' },
    body: c.req.raw.body,
  }),
);

export const worker = { fetch: app.fetch };
