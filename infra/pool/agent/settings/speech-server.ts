// Settings of an OpenAI-compatible speech server that stands in the engine's place.
import { z } from 'zod';
import { isLoopback, urlProblems } from '../../../../shared/settings/fit.ts';
import type { Rule } from '../../../../shared/settings/problem.ts';

const PREFIX = 'openai:';
/** Longest name of a model. */
const NAME_CHARACTERS = 63;

/** A model of the server: its id there, and its name for callers. */
export interface ServerModel {
  readonly id: string;
  readonly name: string;
}

export interface SpeechServerSettings {
  /** Base address: `/audio/transcriptions` follows. */
  readonly url: string;
  /** Empty: those that the server lists. */
  readonly models: readonly ServerModel[];
  readonly languages: readonly string[];
  /** File with its API key. */
  readonly keyFile: string | undefined;
}

/** Returns the name that a model has by its id: `Systran/faster-whisper-tiny.en` is `faster-whisper-tiny.en`. */
export const nameOfId = (id: string): string =>
  (id.split('/').filter(Boolean).at(-1) ?? '')
    .toLowerCase()
    .replace(/[^a-z0-9_.-]/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, NAME_CHARACTERS);

const textsOf = (list: string) =>
  list
    .split(',')
    .map((text) => text.trim())
    .filter(Boolean);

function modelOf(text: string): ServerModel {
  const [, name, id = text] = /^([a-z0-9][a-z0-9_.-]{0,62})=(.+)$/.exec(text) ?? [];
  return { id, name: name ?? nameOfId(id) };
}

const models = z.array(z.object({ id: z.string(), name: z.string().min(1) })).min(1);

export const speechServerEnvironment = {
  /** `openai:` and the address of the server, with its path or for `/v1`. */
  AURICLE_ENGINE: z.string().min(1).optional(),
  /** `id` or `name=id`, separated by commas. */
  AURICLE_ENGINE_MODELS: z
    .string()
    .transform((list) => textsOf(list).map(modelOf))
    .pipe(models)
    .optional(),
  /** BCP 47 tags, separated by commas. */
  AURICLE_ENGINE_LANGUAGES: z
    .string()
    .transform(textsOf)
    .pipe(z.array(z.string().min(2).max(35)).min(1))
    .optional(),
  /** Read at each request. */
  AURICLE_ENGINE_KEY_FILE: z.string().min(1).optional(),
};

export const speechServerMeanings = {
  AURICLE_ENGINE: 'openai: and the address of a speech server, in place of AURICLE_ENGINE_URL',
  AURICLE_ENGINE_MODELS: 'models of that server, id or name=id, separated by commas; those that it lists unless set',
  AURICLE_ENGINE_LANGUAGES: 'languages that its models know, BCP 47 tags separated by commas',
  AURICLE_ENGINE_KEY_FILE: 'file with the API key of that server',
} as const;

type Environment = z.output<z.ZodObject<typeof speechServerEnvironment>> & {
  readonly AURICLE_ENGINE_URL?: string | undefined;
  readonly AURICLE_ENGINE_REPOSITORY?: string | undefined;
  readonly AURICLE_MODELS?: string | undefined;
};

const isAddress = (engine: string) => /^openai:https?:/.test(engine) && URL.canParse(engine.slice(PREFIX.length));

function baseOf(engine: string): URL {
  const url = new URL(engine.slice(PREFIX.length));
  if (url.pathname === '/') url.pathname = '/v1';
  return url;
}

/** Returns the settings of the server; `undefined` where the engine speaks KServe v2. */
export function speechServerOf(e: Environment): SpeechServerSettings | undefined {
  const { AURICLE_ENGINE: engine, AURICLE_ENGINE_MODELS: named = [], AURICLE_ENGINE_LANGUAGES: languages = [] } = e;
  if (engine === undefined) return undefined;
  const url = baseOf(engine).href.replace(/\/$/, '');
  return { url, models: named, languages, keyFile: e.AURICLE_ENGINE_KEY_FILE };
}

/** Returns the problem of a setting that goes with one kind of engine only. */
const oneKind = (given: unknown, goes: boolean, needed: boolean): readonly string[] =>
  given === undefined ? (goes && needed ? ['is missing'] : []) : goes ? [] : ['goes with another kind of engine'];

export const speechServerRules: readonly Rule<Environment>[] = [
  [
    'AURICLE_ENGINE',
    ({ AURICLE_ENGINE: engine = '' }) => (engine === '' || isAddress(engine) ? [] : ['is no address']),
  ],
  ['AURICLE_ENGINE_URL', (e) => oneKind(e.AURICLE_ENGINE_URL, e.AURICLE_ENGINE === undefined, true)],
  ['AURICLE_MODELS', (e) => oneKind(e.AURICLE_MODELS, e.AURICLE_ENGINE === undefined, true)],
  ['AURICLE_ENGINE_REPOSITORY', (e) => oneKind(e.AURICLE_ENGINE_REPOSITORY, e.AURICLE_ENGINE === undefined, false)],
  ['AURICLE_ENGINE_LANGUAGES', (e) => oneKind(e.AURICLE_ENGINE_LANGUAGES, e.AURICLE_ENGINE !== undefined, true)],
  ['AURICLE_ENGINE_MODELS', (e) => oneKind(e.AURICLE_ENGINE_MODELS, e.AURICLE_ENGINE !== undefined, false)],
  ['AURICLE_ENGINE_KEY_FILE', (e) => oneKind(e.AURICLE_ENGINE_KEY_FILE, e.AURICLE_ENGINE !== undefined, false)],
];

/** Reaches a server on another machine over TLS only: it gets the sound unsealed. */
export function speechServerProblems(engine: string | undefined): readonly string[] {
  if (engine === undefined || !isAddress(engine)) return [];
  const url = baseOf(engine);
  return isLoopback(url.hostname) ? [] : urlProblems(url.href);
}
