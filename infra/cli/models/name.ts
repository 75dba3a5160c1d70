// auricle name set | list | remove

import { z } from 'zod';
import { nameRow } from '../../../shared/registry/contract.ts';
import { type NamedModel, namedModel } from '../../../shared/registry/names.ts';
import { type Answer, impossible, refused } from '../answer.ts';
import type { Arguments } from '../options.ts';
import type { Headers } from './registry.ts';

/** Answer of `GET /v1/names`. */
export const namedModels = z.object({ data: z.array(namedModel) });

const showOwner = (tenant: string | undefined): string => (tenant === undefined ? '' : ` for ${tenant}`);

/** Runs the verb that the first operand names. */
export async function name(given: Arguments, headers: Headers): Promise<Answer> {
  const [verb, named = '', model] = given.operands;
  const found = await fetchNames(given, headers);
  if ('exit' in found) return found;
  if (verb === 'list') return show(found.value);
  const { tenant, reason } = given;
  const from = found.value.find((one) => one.name === named && one.tenant === tenant)?.model;
  if (verb === 'remove' && from === undefined) return impossible(`"${named}" names no model${showOwner(tenant)}`);
  const body = { name: named, tenant, from, reason, model: verb === 'set' ? model : undefined };
  const response = await fetch(`${given.edge}/v1/names`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) return refused(response);
  const value = nameRow.parse(await response.json());
  return { exit: 0, text: `${named}${showOwner(tenant)}: ${from ?? 'nothing'} → ${value.model ?? 'nothing'}`, value };
}

async function fetchNames(
  { edge }: Arguments,
  headers: Headers,
): Promise<{ readonly value: readonly NamedModel[] } | Answer> {
  const response = await fetch(`${edge}/v1/names`, { headers });
  return response.ok ? { value: namedModels.parse(await response.json()).data } : refused(response);
}

function show(names: readonly NamedModel[]): Answer {
  const rows = names.map(({ name: named, tenant, model }) => `${named}${showOwner(tenant)} → ${model}`);
  return { exit: 0, text: rows.join('\n'), value: { names } };
}
