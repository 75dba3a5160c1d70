// auricle models
import { z } from 'zod';
import { type Answer, refused } from '../answer.ts';
import type { Arguments } from '../options.ts';

const list = z.looseObject({ data: z.array(z.looseObject({ id: z.string(), owned_by: z.string().optional() })) });

export async function models(given: Arguments, headers: Record<string, string>): Promise<Answer> {
  const response = await fetch(`${given.edge}/v1/models`, { headers });
  if (!response.ok) return refused(response);
  const value = list.parse(await response.json());
  return { exit: 0, text: value.data.map((model) => model.id).join('\n'), value };
}
