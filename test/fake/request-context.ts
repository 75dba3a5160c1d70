// Context of a request that a test makes itself: a gate, a clock, an upload.
import { env } from 'cloudflare:workers';
import type { Runtime } from '../../edge/clock.ts';
import type { RequestContext } from '../../edge/context.ts';
import { Recorder } from '../../edge/ledger/record.ts';
import type { Bindings } from '../../edge/settings.ts';
import { makeToken } from '../edge/authority.ts';
import { asGate, type FakeGate } from '../edge/gate-steps.ts';
import { makeSettings } from './settings.ts';

/** Calls the Worker's own function with a gate of the test's making. */
export function makeContext(gate: FakeGate, runtime: Runtime, settings = makeSettings({})) {
  const work: Promise<unknown>[] = [];
  const own = { ...env, GATE: { getByName: () => asGate(gate) } } as unknown as Bindings;
  const waitUntil = (one: Promise<unknown>) => void work.push(one);
  const context: RequestContext = {
    id: crypto.randomUUID(),
    env: own,
    settings,
    runtime,
    recorder: new Recorder({
      ...{ gates: own.GATE, zones: settings.zones, waitMs: settings.auditWaitMs },
      ...{ runtime, waitUntil },
    }),
    waitUntil,
    discardBody: undefined,
  };
  return { context, settled: () => Promise.all(work) };
}

export async function makeUpload(model: string, claims: Record<string, unknown>): Promise<Request> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(100)]), 'x.wav');
  form.append('model', model);
  const authorization = `Bearer ${await makeToken(claims)}`;
  return new Request('http://edge.test/v1/audio/transcriptions', {
    method: 'POST',
    headers: { authorization },
    body: form,
  });
}
