// Requests about revisions over HTTP, and the lookup of a revision by a prefix of its digest.
import { readFileSync, statSync } from 'node:fs';
import type { z } from 'zod';
import { jsonOf } from '../../../shared/json-text.ts';
import { type ModelState, modelState } from '../../../shared/registry/contract.ts';
import { type Answer, impossible, refused, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { signatureOf } from './files.ts';

export type Headers = Record<string, string>;

/** The edge and the credentials of a request. */
export interface Caller {
  readonly edge: string;
  readonly headers: Headers;
}

interface Sent {
  readonly method: 'POST' | 'PUT';
  readonly body: unknown;
}

export const callRegistry = <T extends z.ZodType>(caller: Caller, path: string, schema: T, sent?: Sent) =>
  callEdge(caller, `models/${path}`, schema, sent);

/** Sends a request. Returns the parsed value, or the answer for a refusal. */
export async function callEdge<T extends z.ZodType>(
  { edge, headers }: Caller,
  path: string,
  schema: T,
  sent?: Sent,
): Promise<{ readonly value: z.infer<T> } | Answer> {
  const response = await fetch(`${edge}/v1/${path}`, {
    headers: { ...headers, ...(sent && { 'content-type': 'application/json' }) },
    ...(sent && { method: sent.method, body: JSON.stringify(sent.body) }),
  });
  if (!response.ok) return refused(response);
  return { value: schema.parse(await response.json()) };
}

export const fetchState = (given: Pick<Arguments, 'edge' | 'at'>, headers: Headers, model: string) => {
  const at = given.at === undefined ? '' : `?at=${encodeURIComponent(given.at)}`;
  return callRegistry({ edge: given.edge, headers }, `${encodeURIComponent(model)}/revisions${at}`, modelState);
};

/** As few characters of it as say which; `undefined` when it is none of them, or one of several. */
export function findRevision({ revisions }: ModelState, text: string): ModelState['revisions'][number] | undefined {
  const found = revisions.filter(({ revision }) =>
    revision.replace('sha256:', '').startsWith(text.replace('sha256:', '')),
  );
  return found.length === 1 ? found[0] : undefined;
}

export const shortOf = (revision: string | undefined): string =>
  revision?.replace('sha256:', '').slice(0, 12) ?? 'nothing';

/** A signature file, or the one that lies in a folder. */
export function readBundle(place: string): { readonly value: unknown } | Answer | undefined {
  const file = statSync(place).isDirectory()
    ? (['sha256', 'sm3'] as const)
        .map((hash) => signatureOf(place, [], hash))
        .find((name) => statSync(name, { throwIfNoEntry: false })?.isFile())
    : place;
  return file === undefined ? undefined : readJsonFile(file);
}

/** Returns the value of a JSON file, or the answer for an invalid one. */
export function readJsonFile(file: string): { readonly value: unknown } | Answer {
  const value = jsonOf(readFileSync(file, 'utf8'));
  return value === undefined ? wrong(`${file} is not JSON`) : { value };
}

export const unknownRevision = (text: string | undefined): Answer =>
  wrong(text === undefined ? 'which revision?' : `"${text}" does not name one revision`);

/** Refuses a model without a registered revision; pools may serve it all the same. */
export async function unknownModel(
  { edge }: Pick<Arguments, 'edge'>,
  headers: Headers,
  model: string,
): Promise<Answer> {
  const served = await fetch(`${edge}/v1/models/${encodeURIComponent(model)}`, { headers });
  await served.body?.cancel();
  return impossible(
    served.ok
      ? `${model} is served unregistered: it has no registered revision`
      : `there is no model ${model}: no revision is registered under that name`,
  );
}
