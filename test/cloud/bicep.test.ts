// Templates of Azure against the resource types of its providers.
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { containers } from '../../functions/store/blobs.ts';
import { NOTICES } from '../../functions/store/notices.ts';
import { ROOT } from '../../infra/local/root.ts';
import { checkTemplate, readTemplate } from './bicep/check.ts';
import { openParser, type Syntax } from './bicep/parse.ts';

const folder = path.join(ROOT, 'infra/azure');
const templates = globSync('**/*.bicep', { cwd: folder }).sort();
let parse: (text: string) => Syntax;

beforeAll(async () => {
  parse = await openParser();
});

const problemsOf = (file: string, text?: string): string[] =>
  checkTemplate(readTemplate(path.join(folder, file), parse, text), parse);

describe('templates', () => {
  it.each(templates)('T7 %s fits the types of its resources', (file) => expect(problemsOf(file)).toEqual([]));

  it.each(['staging', 'production'])('T7 parameters of %s are those of main.bicep', (environment) => {
    const { parameters } = JSON.parse(readFileSync(path.join(folder, `${environment}.json`), 'utf8'));
    const known = readTemplate(path.join(folder, 'main.bicep'), parse).parameters;
    expect(Object.keys(parameters).filter((name) => !known.has(name))).toEqual([]);
  });
});

describe('templates and code', () => {
  const all = () => templates.map((file) => readFileSync(path.join(folder, file), 'utf8')).join('\n');
  const listIn = (file: string, list: RegExp): string[] => {
    const [, found = ''] = list.exec(readFileSync(path.join(folder, file), 'utf8')) ?? [];
    return [...found.matchAll(/'([^']+)'/g)].map(([, one = '']) => one);
  };

  it('T7 C11 every container, table and queue of the functions is made', () => {
    const stores = readFileSync(path.join(ROOT, 'functions/STORAGE.md'), 'utf8');
    const titles = (kind: string) => stores.match(new RegExp(`^## ${kind}.*$`, 'gm'))?.join() ?? '';
    const named = (text: string) => [...text.matchAll(/`([a-z-]+)`/g)].map(([, one]) => one);
    const made = listIn('stores.bicep', /containers'? [\s\S]*?for name in (\[.*?\])/);
    const ours = [...made, 'audit-log', ...listIn('audit/storage.bicep', /for name in (\[.*?\])/)];
    // The host makes its own container in its own account.
    expect([...ours, 'azure-webjobs-hosts'].sort()).toEqual(named(titles('Containers?')).sort());
    expect(ours).toEqual(expect.arrayContaining([...containers]));
    expect(listIn('stores.bicep', /resource tables [\s\S]*?for name in (\[.*?\])/).sort()).toEqual(
      named(titles('Table')).sort(),
    );
    expect(listIn('stores.bicep', /resource notices ([\s\S]*?)\n}/)).toContain(NOTICES);
  });

  it('C11 each blob trigger has its subscription', () => {
    const triggers = readFileSync(path.join(ROOT, 'functions/triggers.ts'), 'utf8');
    const blobs = triggers.matchAll(/storageBlob\('([^']+)'[\s\S]*?path: '([^/]+)\//g);
    const subscribed = readFileSync(path.join(folder, 'events.bicep'), 'utf8');
    const rows = subscribed.matchAll(/function: '([^']+)', container: '([^']+)'/g);
    const pairs = (found: Iterable<RegExpMatchArray>) => [...found].map(([, one, other]) => [one, other]);
    expect(pairs(rows)).toEqual(pairs(blobs));
  });

  it('T7 each alarm of the functions has an alert', () => {
    const readme = readFileSync(path.join(ROOT, 'functions/README.md'), 'utf8').replace(/\s+/g, ' ');
    const [, alarm = '', model = ''] =
      /Alarm on `what`: (.*?) \(\[meaning\].*?and of models (.*?)\(storage/.exec(readme) ?? [];
    const words = [...`${alarm}${model}`.matchAll(/`([a-z_ ]+)`/g)].map(([, one]) => one);
    const alerted = [
      ...listIn('monitor.bicep', /var record = \[([\s\S]*?)\]/),
      ...listIn('monitor.bicep', /var models = \[([\s\S]*?)\]/),
    ];
    expect(alerted.sort()).toEqual(words.sort());
  });

  it('T7 no blob is public, no account has keys, old TLS is refused', () => {
    const text = all();
    const accounts = text.match(/^resource \w+ 'Microsoft.Storage\/storageAccounts@[^']+' = {/gm) ?? [];
    expect(text.match(/allowBlobPublicAccess: false/g)).toHaveLength(accounts.length);
    expect(text.match(/minimumTlsVersion: 'TLS1_2'/g)).toHaveLength(accounts.length);
    expect(text.match(/publicAccess: '(?!None)/g)).toBeNull();
    expect(text.match(/allowSharedKeyAccess: false/g)).toHaveLength(accounts.length);
    expect(text).toMatch(/disableLocalAccounts: true[\s\S]*enableAzureRBAC: true/);
    // Every role but that of the script that locks the log ends below the resource group.
    expect(text).not.toMatch(/scope: (resourceGroup|subscription)\(\)/);
  });

  it('T7 secrets of the vault are those of functions.secrets.env', () => {
    const init = readFileSync(path.join(ROOT, 'infra/cli/deploy/settings.ts'), 'utf8');
    const [, rows = ''] = /function functionsSecretRows([\s\S]*?)\n}/.exec(init) ?? [];
    const names = [...rows.matchAll(/(?:row|fill)\('(\w+)'/g)].map(([, name]) => name);
    expect(listIn('functions.bicep', /param secrets array = \[([\s\S]*?)\]/)).toEqual(names);
  });

  it('T7 no output bears a key', () => {
    expect(all().match(/^output .*(listKeys|[Kk]ey\d|connectionString)/gm)).toBeNull();
  });
});

describe('the checker', () => {
  const changed = (file: string, from: string, to: string): string[] => {
    const text = readFileSync(path.join(folder, file), 'utf8');
    expect(text).toContain(from);
    return problemsOf(file, text.replace(from, to));
  };

  it.each([
    ['functions.bicep', 'maximumInstanceCount', 'maximumInstances', 'unknown property (BCP037)'],
    ['functions.bicep', "minTlsVersion: '1.3'", "minTlsVersion: '1.4'", 'expected 1.0 | 1.1 | 1.2 | 1.3 (BCP036)'],
    ['functions.bicep', 'httpsOnly: true', "httpsOnly: 'yes'", 'expected BooleanType (BCP036)'],
    ['functions.bicep', 'serverfarms@2025-03-01', 'serverfarms@2025-03-02', 'unknown type or API version (BCP081)'],
    ['functions.bicep', "  sku: { name: 'Standard_LRS' }\n", '', 'misses sku (BCP035)'],
    ['functions.bicep', 'location: location', 'location: region', 'no name region (BCP057)'],
    ['functions.bicep', 'toObject(', 'toMap(', 'no function toMap (BCP057)'],
    ['pool.bicep', "osType: 'Linux'", "osType: 'Plan9'", 'expected Linux | Windows (BCP036)'],
    ['events.bicep', "endpointType: 'WebHook'", "endpointType: 'Pigeon'", 'expected endpointType of'],
    ['main.bicep', 'alwaysReady: functionsAlwaysReady', '', 'misses parameter alwaysReady (BCP035)'],
    ['main.bicep', 'functions.outputs.url', 'functions.outputs.address', 'no output address (BCP053)'],
    ['main.bicep', "= {\n  name: 'stores'", "= \n  name: 'stores'", 'syntax error'],
  ])('%s with a mistake is refused', (file, from, to, problem) => {
    expect(changed(file, from, to)).toContainEqual(expect.stringContaining(problem));
  });
});
