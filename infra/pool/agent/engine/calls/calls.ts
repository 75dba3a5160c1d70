import { z } from 'zod';
import type { CallHead } from '../../../../../shared/kserve/call.ts';
import { encodeInferRequest } from '../../../../../shared/kserve/infer-request.ts';
import { type ModelMetadata, modelMetadata } from '../../../../../shared/kserve/metadata.ts';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import { AGENT_FLUSH_MS, SEQUENCE_IDLE_MS } from '../../settings/limits.ts';
import type { Dispatcher } from '../dispatch.ts';
import { BodyBudget } from './body-budget.ts';
import { type EngineClient, modelPath, readWhole } from './client.ts';
import { engineRefusal } from './engine-refusal.ts';
import { type FinalStep, Sequences } from './sequences.ts';

/** Longest call that reports the end of an idle sequence to the engine. */
const SEQUENCE_END_MS = 5_000;

/** State that tensor requests of an agent share. */
export interface Calls {
  readonly client: EngineClient;
  readonly budget: BodyBudget;
  readonly sequences: Sequences;
  /** Priority levels of a model at the engine. */
  levels(model: string): number;
  metadata(model: string, version: string | undefined, signal: AbortSignal): Promise<Result<ModelMetadata>>;
  /** Ends the sequences of callers and closes the connections. */
  close(): Promise<void>;
}

export interface CallsOptions {
  readonly client: EngineClient;
  readonly dispatcher: Pick<Dispatcher, 'hold'>;
  readonly levels: (model: string) => number;
  readonly now: () => number;
}

/** The part of a model's configuration that is read here; 64-bit numbers may be text. */
const idleConfig = z.object({
  sequence_batching: z.object({ max_sequence_idle_microseconds: z.coerce.number().positive() }),
});

export function createCalls({ client, dispatcher, levels, now }: CallsOptions): Calls {
  async function query(about: Pick<CallHead, 'model' | 'version'>, below: string, signal: AbortSignal) {
    const path = `${modelPath(about.model, about.version)}${below}`;
    const answer = await client.call({ method: 'GET', path, signal });
    const body = answer.ok ? await readWhole(answer.value) : answer;
    if (!answer.ok || !body.ok) return body;
    const { status } = answer.value;
    if (status !== 200) return no(engineRefusal({ status, body: body.value }, about));
    try {
      return ok<unknown>(JSON.parse(new TextDecoder().decode(body.value)));
    } catch {
      return no(refuse('engine_failed', undefined, 'engine answer: not JSON'));
    }
  }

  /** Ensembles do not say it: their sequences are in a step, for which the usual time is a good guess. */
  async function engineIdleMs(model: string): Promise<number> {
    const config = await query({ model, version: undefined }, '/config', AbortSignal.timeout(SEQUENCE_END_MS));
    const read = idleConfig.safeParse(config.ok ? config.value : undefined);
    return read.success ? read.data.sequence_batching.max_sequence_idle_microseconds / 1_000 : SEQUENCE_IDLE_MS;
  }

  async function end({ model, version, inputs, step }: FinalStep): Promise<void> {
    const body = encodeInferRequest({
      inputs,
      parameters: { sequence_id: step.id, sequence_start: step.start, sequence_end: step.end },
    });
    if (!body.ok) return;
    const { headers, chunks } = body.value;
    const signal = AbortSignal.timeout(SEQUENCE_END_MS);
    await dispatcher.hold({ class: 'default', deadline: now() + SEQUENCE_END_MS, signal }, async () => {
      const path = `${modelPath(model, version)}/infer`;
      const answer = await client.call({ method: 'POST', path, headers, chunks, signal });
      return answer.ok ? readWhole(answer.value) : answer;
    });
  }

  const sequences = new Sequences({
    engineIdleMs,
    end,
    after(milliseconds, act) {
      const timer = setTimeout(act, milliseconds);
      return () => clearTimeout(timer);
    },
  });

  return {
    client,
    budget: new BodyBudget(),
    sequences,
    levels,
    async metadata(model, version, signal) {
      const described = await query({ model, version }, '', signal);
      if (!described.ok) return described;
      const read = modelMetadata.safeParse(described.value);
      return read.success ? ok(read.data) : no(refuse('engine_failed', undefined, 'engine answer: no metadata'));
    },
    async close() {
      // An engine that does not answer any more has nothing to end.
      const late = new Promise((resolve) => setTimeout(resolve, AGENT_FLUSH_MS).unref());
      await Promise.race([sequences.close(), late]);
      client.close();
    },
  };
}
