import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseEnv } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { tensorsOf } from '../../../../infra/pool/agent/asr/recognise.ts';
import { isSpeechModel, readRepository } from '../../../../infra/pool/agent/models/models.ts';
import { createRecognisers } from '../../../../infra/pool/agent/models/recogniser.ts';
import { describeServerModel } from '../../../../infra/pool/agent/models/server-models.ts';
import { readSettings } from '../../../../infra/pool/agent/settings/settings.ts';
import { readConfig } from '../../../../infra/pool/models/config/read-parts.ts';
import { checkRules } from '../../../../infra/pool/models/config/rules.ts';
import { startFakeEdge } from '../../../fake/edge.ts';
import { makeEnvironment } from '../start-agent.ts';

const examples = path.resolve(import.meta.dirname, '../../../../infra/pool/models/examples');
const folder = mkdtempSync(path.join(tmpdir(), 'auricle-examples-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('U2 the example models', () => {
  it('are described as models whose answer is text, live and in recordings', async () => {
    const repository = path.join(folder, 'models');
    cpSync(examples, repository, { recursive: true });
    // Weights and tokens come from elsewhere.
    writeFileSync(path.join(repository, 'whisper-trtllm/tokens.txt'), 'a\nĠb\n<|endoftext|>\n');
    const onBroken = (model: string, detail: string) => expect.unreachable(`${model}: ${detail}`);
    const models = await readRepository(repository, { now: 0, onBroken });
    const recogniserOf = createRecognisers();
    const described = await Promise.all(
      models.filter(isSpeechModel).map(async (model) => {
        const { outputs } = tensorsOf(await recogniserOf(model));
        const { name, languages, hears, precision } = model.description;
        return [name, languages, hears, precision, outputs, model.live?.hopSamples];
      }),
    );
    expect(described).toEqual([
      ['faster-whisper', ['en'], 'people', 'fp32', ['TEXT', 'WORD_TIMES', 'WORD_CONFIDENCE'], 24_000],
      ['parakeet-rnnt', ['en'], 'people', 'fp32', ['TEXT', 'WORD_TIMES'], 12_800],
      ['whisper-trtllm', ['en'], 'people', 'fp16', ['TOKENS'], 12_800],
    ]);
  });

  it('have configurations by the rules of Triton', async () => {
    const names = readdirSync(examples, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    for (const { name } of names) {
      const config = await readConfig(path.join(examples, name));
      expect(config?.name).toBe(name);
      expect(config && checkRules(config)).toBeUndefined();
    }
  });

  it('name a speech server, its models and its key', async () => {
    const { AURICLE_MODELS: _, ...env } = await makeEnvironment(folder, await startFakeEdge());
    const { engine } = readSettings({
      ...env,
      ...parseEnv(readFileSync(path.join(examples, 'speech-server.env'), 'utf8')),
    });
    if (engine.kind !== 'openai') throw new Error('another kind of engine');
    expect(engine.url).toBe('http://127.0.0.1:8000/v1');
    const models = engine.models.map((model) => describeServerModel(model, engine.languages, 0));
    expect(
      models.map(({ engineModel, description }) => [engineModel, description.name, description.languages]),
    ).toEqual([
      ['openai/whisper-large-v3', 'whisper-large', ['en', 'de']],
      ['Systran/faster-whisper-tiny.en', 'faster-whisper-tiny.en', ['en', 'de']],
    ]);
    expect(models.every(({ live }) => live)).toBe(true);
  });
});
