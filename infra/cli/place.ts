// Target of a command: the edge, and the state folder of the local stack.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { jsonOf } from '../../shared/json-text.ts';
import type { Arguments } from './options.ts';

const DEFAULT_EDGE = 'http://127.0.0.1:8787';
const LOCAL_STATE = path.resolve(fileURLToPath(import.meta.url), '../../../.auricle');

export type Environment = Readonly<Record<string, string | undefined>>;

/** Members read from the file that a running local stack writes. */
const stack = z.object({ url: z.string() });

/** Selects state folder and edge: option, else environment, else default. A local command needs no edge. */
export function readPlace(
  given: { readonly edge: string | undefined; readonly state: string | undefined },
  { AURICLE_EDGE }: Environment,
  isLocal = false,
): Pick<Arguments, 'edge' | 'state' | 'isLocalEdge'> | { problem: string } {
  const state = given.state ?? LOCAL_STATE;
  const running = stack.safeParse(jsonOf(readText(path.join(state, 'stack.json')) ?? '')).data?.url;
  const local = running ?? (given.state === undefined ? DEFAULT_EDGE : undefined);
  const [source, edge] =
    given.edge !== undefined
      ? ['--edge', given.edge]
      : given.state === undefined && AURICLE_EDGE
        ? ['AURICLE_EDGE', AURICLE_EDGE]
        : ['--state', local];
  if (isLocal) return { state, edge: edge ?? DEFAULT_EDGE, isLocalEdge: false };
  if (edge === undefined) return { problem: `no stack runs in --state ${state}: start it, or name an --edge` };
  if (!URL.canParse(edge)) return { problem: `${source} ${edge} is not a URL` };
  if (!/^https?:$/.test(new URL(edge).protocol))
    return { problem: `${source} ${edge} is no address of an edge: it begins with http:// or https://` };
  const address = edge.replace(/\/+$/, '');
  return { state, edge: address, isLocalEdge: address === local };
}

export function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
