// `auricle deploy init`: its files are whole for the deployables' own readers once the listed blanks are filled.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { settingProblems } from '../../../edge/settings.ts';
import { settingsSchema as edgeSchema } from '../../../edge/settings-schema.ts';
import { readSettings as readFunctions } from '../../../functions/settings.ts';
import { settingsSchema as functionsSchema } from '../../../functions/settings-schema.ts';
import { readArguments } from '../../../infra/cli/arguments.ts';
import { initEnvironment } from '../../../infra/cli/deploy/init.ts';
import { ROOT } from '../../../infra/local/root.ts';
import { environment as agentSchema } from '../../../infra/pool/agent/settings/schema.ts';
import { readSettings as readAgent } from '../../../infra/pool/agent/settings/settings.ts';

const out = path.join(mkdtempSync(path.join(os.tmpdir(), 'auricle-deploy-')), 'prd');
const words = ['deploy', 'init', 'prd', '--domain', 'speech.example', '--zones', 'eu,us', '--out', out];
const init = async (more: readonly string[] = []) => {
  const given = readArguments([...words, ...more]);
  if ('problem' in given) throw new Error(given.problem);
  return initEnvironment(given);
};
const read = (file: string) => readFileSync(path.join(out, file), 'utf8');

const ATTESTATION = JSON.stringify({
  issuers: [{ profile: 'azure-sevsnp', issuer: 'https://a.example', jwks: { url: 'https://a.example/certs' } }],
});
const POINT = 'A'.repeat(43);
const ZONE_KEY = [{ kid: POINT, jwk: { kty: 'EC', crv: 'P-256', x: POINT, y: POINT } }];
const SIGNERS = '[]';
/** Values of an operator, by name. */
const filled: Readonly<Record<string, string>> = {
  ATTESTATION,
  ZONE_KEYS: JSON.stringify({ eu: ZONE_KEY, us: ZONE_KEY }),
  SQS_REGION: 'eu-west-1',
  AWS_ACCESS_KEY_ID: 'id',
  AWS_SECRET_ACCESS_KEY: 'secret',
  AURICLE_REGION: 'westeurope',
  AURICLE_RELEASE_VAULT: 'https://keys.vault.azure.net',
  AURICLE_MODEL_SIGNERS: SIGNERS,
};

/** Settings of a file, with the operator's values; a blank that has none is left out. */
const settingsOf = (...files: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    files
      .flatMap((file) => read(file).split('\n'))
      .filter((line) => /^\w+=/.test(line))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const)
      .map(([name, value]) => [name, value || filled[name] || ''])
      .filter(([, value]) => value !== ''),
  );

let first: Awaited<ReturnType<typeof init>>;
beforeAll(async () => {
  first = await init();
});
afterAll(() => rmSync(path.dirname(out), { recursive: true, force: true }));

describe('files of an environment', () => {
  it('T7 satisfy the edge in production, once filled', () => {
    const settings = { MODE: 'production', ...settingsOf('edge.env') };
    expect(settingProblems(settings as unknown as Parameters<typeof settingProblems>[0])).toEqual([]);
  });

  it.each(['eu', 'us'])('T7 satisfy the functions of %s in production, once filled', (zone) => {
    const text = settingsOf(`zones/${zone}/functions.env`, `zones/${zone}/functions.secrets.env`);
    // Bicep names the services of the data account.
    const services = ['blob', 'queue', 'table'].map((name) => [
      `STORAGE_CONNECTION__${name}ServiceUri`,
      `https://prdeudata.${name}.core.windows.net`,
    ]);
    const settings = readFunctions({ ...text, ...Object.fromEntries(services) });
    expect(settings).toMatchObject({ MODE: 'production', ZONES: [zone] });
  });

  it('T7 satisfy an agent in production, once filled', () => {
    const settings = readAgent(settingsOf('pools/pool-eu/agent.env'));
    expect(settings.batch).toMatchObject({ queue: 'jobs', region: 'eu-west-1' });
  });

  it('T7 name settings that the deployables read', () => {
    const names = (file: string) => [...read(file).matchAll(/^#?([A-Za-z_]+)=/gm)].map(([, name]) => name ?? '');
    const known = (schema: { shape: object }) => Object.keys(schema.shape);
    const platform = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'];
    const functions = [...names('zones/eu/functions.env'), ...names('zones/eu/functions.secrets.env')];
    expect(['MODE', ...names('edge.env')].sort()).toEqual(known(edgeSchema).sort());
    expect(functions.filter((name) => ![...known(functionsSchema), ...platform].includes(name))).toEqual([]);
    expect(names('pools/pool-eu/agent.env').filter((name) => !known(agentSchema).includes(name))).toEqual([]);
  });

  it('T7 are readable by their owner only, and ignored by git', () => {
    const files = readdirSync(out, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    const open = files.filter((one) => (statSync(path.join(one.parentPath, one.name)).mode & 0o77) !== 0);
    expect(open.map(({ name }) => name)).toEqual([]);
    expect(read('.gitignore')).toBe('*\n');
  });

  it('T7 list each blank with its reason', () => {
    const { unfilled } = first.value as { unfilled: { file: string; name: string; reason: string }[] };
    expect(unfilled).toContainEqual(expect.objectContaining({ file: 'edge.env', name: 'ATTESTATION' }));
    expect(unfilled.filter(({ reason }) => reason.length < 8)).toEqual([]);
  });

  it('T7 are never overwritten', async () => {
    const keys = read('keys/ticket.private.jwk.json');
    writeFileSync(path.join(out, 'edge.env'), 'ISSUERS=mine\n');
    const second = await init(['--pools', 'aks-westeurope=eu']);
    expect(read('edge.env')).toBe('ISSUERS=mine\n');
    expect(read('keys/ticket.private.jwk.json')).toBe(keys);
    expect(second.value).toMatchObject({ made: ['pools/aks-westeurope/agent.env', 'pools/aks-westeurope/token'] });
  });
});

it.each([
  [['deploy', 'init', 'prd'], 'missing --domain HOST'],
  [['deploy', 'init', 'Production!', '--domain', 'a.example'], 'is no name of an environment'],
  [['deploy', 'init', 'prd', '--domain', 'a.example', '--pools', 'a=mars'], 'NAME=ZONE with a zone of eu'],
])('%j is refused', async (line, problem) => {
  const given = readArguments(line);
  if ('problem' in given) throw new Error(given.problem);
  expect((await initEnvironment({ ...given, out })).text).toContain(problem);
});

describe('KEYS.md', () => {
  const page = readFileSync(path.join(ROOT, 'infra/KEYS.md'), 'utf8');
  const rows = [...page.matchAll(/^\| (`.*?) \|/gm)].map(([, cell = '']) => cell);
  const named = rows.flatMap((cell) => [...cell.matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, name = '']) => name));

  /** Settings whose comment calls them a secret or private key, and files that hold one. */
  const secretsIn = (file: string, schema: { shape: object }): string[] => {
    const text = readFileSync(path.join(ROOT, file), 'utf8');
    return Object.keys(schema.shape).filter((name) => {
      const [, comment = ''] = new RegExp(`/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\s*${name}:`).exec(text) ?? [];
      return (
        /\bsecret\b|[Pp]rivate|account that holds/.test(comment) || /_(TOKEN|KEY|SECRET|ASSERTION)_FILE$/.test(name)
      );
    });
  };

  it('T7 has every key and secret that the deployables read, and no others', () => {
    const read = [
      ...secretsIn('edge/settings-schema.ts', edgeSchema),
      ...secretsIn('functions/settings-schema.ts', functionsSchema),
      ...secretsIn('infra/pool/agent/settings/schema.ts', agentSchema),
    ];
    const platform = [
      'AWS_ACCESS_KEY_ID',
      'AWS_SECRET_ACCESS_KEY',
      'AUDIT_VAULT_KEY',
      'WITNESS_KEY',
      'OTEL_EXPORTER_OTLP_HEADERS',
    ];
    const publicHalves = ['ZONE_KEYS', 'MODEL_SIGNERS'];
    expect([...new Set(named)].sort()).toEqual([...new Set([...read, ...platform, ...publicHalves])].sort());
  });

  it('T7 has every key file that deploy init makes', () => {
    const files = readdirSync(path.join(out, 'keys'), { recursive: true }).map(String);
    const made = files.filter((file) => /\.(key|private\.jwk\.json)$/.test(file)).map((file) => path.basename(file));
    for (const file of new Set(made)) expect(page).toContain(file);
    expect(existsSync(path.join(out, 'keys/eu/audit.key'))).toBe(true);
  });
});
