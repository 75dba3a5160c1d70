// The chart through helm: rendered objects, and the message of a refused rendering.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { helm, KUBERNETES } from './install.ts';

export const CHART = path.resolve(import.meta.dirname, '../../infra/pool/chart');
const EXAMPLES = path.join(CHART, 'examples');

// Objects of Kubernetes have no types here: kubeconform checks their shape.
export type Manifest = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly [key: string]: unknown };
  readonly [key: string]: unknown;
};
export type Values = { readonly [key: string]: unknown };

export interface Ran {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** Runs a tool with a text on its standard input. */
export function run(tool: string, args: readonly string[], input = ''): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = execFile(tool, args, { maxBuffer: 2 ** 26 }, (error, output, errors) => {
      if (error && typeof error.code !== 'number') return reject(error);
      resolve({ code: Number(error?.code ?? 0), output, errors });
    });
    child.stdin?.end(input);
  });
}

export const examples: readonly string[] = readdirSync(EXAMPLES).map((file) => path.basename(file, '.yaml'));
export const example = (name: string): Values => parse(readFileSync(path.join(EXAMPLES, `${name}.yaml`), 'utf8'));

/** Values of the server that clients call directly. */
export const direct: Values = {
  ...{ enabled: true, image: 'registry.example.com/riva:1', claim: 'riva-models', host: 'grpc.example.com' },
  tlsSecret: 'grpc-tls',
};

const isMap = (value: unknown): value is Values => typeof value === 'object' && value !== null && !Array.isArray(value);
/** Returns `base` with the members of `over`, as helm merges files of values. */
export function merge(base: Values, over: Values): Values {
  const pairs = Object.entries(over).map(([key, value]) => {
    const below = base[key];
    return [key, isMap(below) && isMap(value) ? merge(below, value) : value] as const;
  });
  return { ...base, ...Object.fromEntries(pairs) };
}

/** Renders the chart as release `speech` in namespace `pools` and returns the text of all manifests. */
export async function template(values: Values): Promise<Ran> {
  const args = ['template', 'speech', CHART, '-n', 'pools', '--kube-version', KUBERNETES, '-f', '-'];
  return run(helm, args, stringify(values));
}

/** Renders the chart, which must succeed. */
export async function render(values: Values): Promise<readonly Manifest[]> {
  const { code, output, errors } = await template(values);
  if (code !== 0) throw new Error(errors);
  return parseAllDocuments(output)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
}

/** Returns the message of a rendering, which must be refused. */
export async function refusal(values: Values): Promise<string> {
  const { code, output, errors } = await template(values);
  if (code === 0) throw new Error(`rendered:\n${output.slice(0, 500)}`);
  return errors;
}

/** Returns the only manifest of a kind. */
export function only(manifests: readonly Manifest[], kind: string): Manifest {
  const [found, ...others] = manifests.filter((manifest) => manifest.kind === kind);
  if (!found || others.length > 0) throw new Error(`${others.length + (found ? 1 : 0)} manifests of kind ${kind}`);
  return found;
}
