import type { Engine, ModelState } from '../../infra/pool/agent/engine/engine.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok } from '../../shared/result.ts';

/** An engine that loads on request and computes nothing. */
export class LoadingEngine implements Engine {
  readonly models = new Map<string, ModelState>();
  /** Memory of each model. */
  bytes = 1_000;
  /** Loads and unloads in their order, for example `+m.0123456789ab`. */
  readonly calls: string[] = [];
  /** Runs in the middle of a load; a text is the reason of its failure. */
  onLoad: (model: string) => Promise<string | undefined> = async () => undefined;
  onUnload: (model: string) => Promise<string | undefined> = async () => undefined;
  /** Models that ran their first inference. */
  readonly inferred: string[] = [];

  ready = async () => true;
  modelReady = async (model: string) => this.models.get(model)?.is === 'ready';
  metadata = async () => ok({ inputs: [], outputs: [] });
  queues = async () => ok([]);
  statistics = async () => no(refuse('engine_failed'));
  loaded: Engine['loaded'] = async () => ok(this.models);
  memory: Engine['memory'] = async () => ({ bytes: this.bytes, source: 'reported' });
  retriesLoads = async () => false;
  close() {}

  async infer({ model }: { readonly model: string }) {
    this.inferred.push(model);
    return { ok: true as const, value: new Map() };
  }

  async load(model: string): ReturnType<Engine['load']> {
    this.calls.push(`+${model}`);
    const reason = await this.onLoad(model);
    if (reason !== undefined) return no(refuse('engine_failed', undefined, reason));
    this.models.set(model, { is: 'ready' });
    return ok(undefined);
  }

  async unload(model: string): ReturnType<Engine['unload']> {
    this.calls.push(`-${model}`);
    const reason = await this.onUnload(model);
    if (reason !== undefined) return no(refuse('engine_failed', undefined, reason));
    this.models.delete(model);
    return ok(undefined);
  }
}
