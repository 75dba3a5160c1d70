import type { AddressInfo } from 'node:net';
import { expect, it, vi } from 'vitest';
import { serveInference } from '../../../infra/pool/engine/http/serve.ts';
import type { Repository } from '../../../infra/pool/engine/repository/repository.ts';

it('logs an unexpected error by class and place, never by its message', async () => {
  const lines: string[] = [];
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => lines.push(String(text)) > 0);
  // A repository that fails at every call, with words of the request in its message.
  const broken = new Proxy({} as Repository, {
    get() {
      throw new RangeError('spoken words\nmore spoken words');
    },
  });
  const server = serveInference(broken);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const reply = await fetch(`${url}/v2/models/any/ready`);
  const answer = [reply.status, await reply.text()];
  await new Promise((resolve) => server.close(resolve));
  out.mockRestore();
  expect(answer).toEqual([500, '{"error":"internal error"}']);
  const line = lines.find((text) => text.includes('internal error')) ?? '{}';
  expect(JSON.parse(line)).toMatchObject({ name: 'RangeError', place: expect.stringContaining('internal-error.') });
  expect(lines.join()).not.toContain('spoken');
});
