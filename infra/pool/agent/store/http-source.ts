import type { ModelFile, Source } from './contract.ts';

/** Time without a byte after which a read fails and is resumed later. */
const SOURCE_IDLE_MS = 30_000;

/** Returns the address of a file; `renew`: the former one was refused. Rejects while there is none. */
export type AddressOf = (file: ModelFile, renew: boolean) => Promise<string>;

/** Reads files by short-lived addresses, from any position (RFC 9110 §14). */
export const httpSource = (addressOf: AddressOf): Source => ({
  async *read(file, from, signal) {
    const idle = new AbortController();
    const timer = setTimeout(() => idle.abort(), SOURCE_IDLE_MS);
    try {
      const response = await open(file, from, AbortSignal.any([signal, idle.signal]), addressOf);
      if (!response.body) return;
      for await (const piece of response.body) {
        timer.refresh();
        yield piece;
      }
    } catch (error) {
      throw idle.signal.aborted ? new Error(`no byte for ${SOURCE_IDLE_MS / 1_000} s`) : error;
    } finally {
      clearTimeout(timer);
    }
  },
});

/** Statuses of storage for an address that has expired. */
const EXPIRED = [401, 403];

async function open(file: ModelFile, from: number, signal: AbortSignal, addressOf: AddressOf): Promise<Response> {
  const headers = from > 0 ? { range: `bytes=${from}-` } : {};
  let response = await fetch(await addressOf(file, false), { headers, signal });
  if (EXPIRED.includes(response.status)) {
    await response.body?.cancel();
    response = await fetch(await addressOf(file, true), { headers, signal });
  }
  if (response.status === (from > 0 ? 206 : 200)) return response;
  await response.body?.cancel();
  throw new Error(`status ${response.status} of storage`);
}
