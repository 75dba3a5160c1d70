import { createHash } from 'node:crypto';
import { HEARTBEAT_UNKNOWN_MS } from '../../../../shared/pool/limits.ts';
import type { Engine } from '../engine/engine.ts';
import { speechServerTensors } from '../engine/openai/speech-server.ts';
import { nameOfId, type ServerModel, type SpeechServerSettings } from '../settings/speech-server.ts';
import type { Log } from '../telemetry/log.ts';
import { serve } from './model-source.ts';
import { liveOfText, type SpeechModel } from './models.ts';
import { createRecognisers } from './recogniser.ts';
import type { ServedModel } from './served-model.ts';
import { textParameters } from './text-parameters.ts';

/** Describes a model of a speech server as a model whose answer is text. Its revision is a digest of its id alone. */
export function describeServerModel({ id, name }: ServerModel, languages: readonly string[], now: number): SpeechModel {
  const read = textParameters.parse({ language: languages.join(), sample_rate: '16000' });
  const { task, precision, stage } = read;
  const revision = `sha256:${createHash('sha256').update(id).digest('hex')}`;
  const { inputs, outputs } = speechServerTensors;
  return {
    folder: '',
    engineModel: id,
    description: {
      ...{ name, task, languages: [...languages], revision, precision, stage },
      loaded: Math.floor(now / 1_000),
    },
    unchanged: async () => true,
    parameters: { ...read, inputs, outputs },
    ...liveOfText(id, read),
  };
}

interface ServerModelsOptions {
  readonly engine: Pick<Engine, 'loaded'>;
  readonly settings: SpeechServerSettings;
  readonly now: () => number;
  readonly log: Log;
}

/** Models that a speech server lists, or that its settings name. */
export function createServerModels({ engine, settings, now, log }: ServerModelsOptions) {
  const recogniserOf = createRecognisers();
  let served: readonly ServedModel[] = [];
  let ids = '';

  /** Pairs ids with names, each name once. */
  function nameAll(listed: readonly string[]): ServerModel[] {
    const models = settings.models.length > 0 ? settings.models : listed.map((id) => ({ id, name: nameOfId(id) }));
    return models.filter(({ id, name }, at) => {
      const isFirst = models.findIndex((other) => other.name === name) === at;
      if (!isFirst || name === '') log('model-broken', { model: id, detail: `the name "${name}" is taken or empty` });
      return isFirst && name !== '';
    });
  }

  return {
    served: () => served,
    /** Lists the models of the server again, and reports whether they are others. */
    async refresh(): Promise<boolean> {
      const listed = await engine.loaded(AbortSignal.timeout(HEARTBEAT_UNKNOWN_MS));
      const found = listed.ok ? [...listed.value.keys()].sort() : undefined;
      if (!found || found.join('\n') === ids) return false;
      ids = found.join('\n');
      served = await Promise.all(
        nameAll(found).map(async (given) => {
          const known = served.find(({ engineModel }) => engineModel === given.id);
          const model = describeServerModel(given, settings.languages, now());
          return known ?? serve(model, await recogniserOf(model));
        }),
      );
      return true;
    },
  };
}
